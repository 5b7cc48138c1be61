//! The catalogue: each strategy with its name, its arguments, and what a driver has to know about it.

use crate::args::{ArgValue, Args};
use crate::postgres::{Scope, SessionOwner, Wait};
use crate::read_write::Prefer;
use crate::reentrant::Count;
use crate::{Lease, Millis, Nanos, QuorumRules, RedissonRules, ServerId, Spec, SpecError};
use crate::{redisson_multilock, redisson_redlock};

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Naive,
    Mutex,
    Watchdog {
        /// How many renewals fall into one lease.
        renewals_per_ttl: u32,
        /// The hold after which no renewal is sent; `None`: renewals never stop.
        max_hold: Option<Millis>,
    },
    Reentrant {
        count: Count,
    },
    ReadWrite {
        prefer: Prefer,
    },
    Fair,
    FairQueue {
        /// The time between two signs of life of a waiter.
        beat: Millis,
    },
    Notify {
        renews: bool,
    },
    Semaphore {
        permits: u32,
    },
    Fenced {
        renews: bool,
    },
    Replicated {
        replicas: u32,
        timeout_ms: u32,
    },
    Redlock(QuorumRules),
    RedissonRedlock(RedissonRules),
    Multilock(QuorumRules),
    RedissonMultilock(RedissonRules),
    PgAdvisory {
        scope: Scope,
        wait: Wait,
        session: SessionOwner,
    },
    PgRow {
        wait: Wait,
    },
    PgLease,
    PgOptimistic,
    PgSerializable,
    Layered,
}

impl Strategy {
    /// Each strategy with its default arguments.
    pub const ALL: [Self; 22] = [
        Self::None,
        Self::Naive,
        Self::Mutex,
        Self::Watchdog {
            renewals_per_ttl: 3,
            max_hold: None,
        },
        Self::Reentrant { count: Count::Server },
        Self::ReadWrite {
            prefer: Prefer::Readers,
        },
        Self::Fair,
        Self::FairQueue { beat: Millis(2_000) },
        Self::Notify { renews: false },
        Self::Semaphore { permits: 4 },
        Self::Fenced { renews: true },
        Self::Replicated {
            replicas: 1,
            timeout_ms: 100,
        },
        Self::Redlock(QuorumRules::DEFAULT),
        Self::RedissonRedlock(redisson_redlock::RULES),
        Self::Multilock(QuorumRules::DEFAULT),
        Self::RedissonMultilock(redisson_multilock::RULES),
        Self::PgAdvisory {
            scope: Scope::Session,
            wait: Wait::Block,
            session: SessionOwner::ThisClient,
        },
        Self::PgRow { wait: Wait::Block },
        Self::PgLease,
        Self::PgOptimistic,
        Self::PgSerializable,
        Self::Layered,
    ];

    /// The strategy that a matrix names. For an unknown name or argument the error lists the known ones.
    pub fn named(name: &str, given: &[(String, ArgValue)]) -> Result<Self, SpecError> {
        let strategy = Self::ALL.into_iter().find(|known| known.name() == name);
        let strategy = strategy.ok_or_else(|| SpecError::UnknownStrategy {
            given: name.to_owned(),
            known: Self::ALL.map(Self::name).to_vec(),
        })?;
        let mut args = Args::new(strategy.name(), given);
        let strategy = strategy.with(&mut args)?;
        args.finish()?;
        Ok(strategy)
    }

    /// This strategy with the given arguments.
    fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        Ok(match self {
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Fair
            | Self::PgLease
            | Self::PgOptimistic
            | Self::PgSerializable
            | Self::Layered => self,
            Self::PgAdvisory { .. } => Self::PgAdvisory {
                scope: args.choice(
                    "scope",
                    &[("session", Scope::Session), ("transaction", Scope::Transaction)],
                )?,
                wait: args.choice("wait", &[("block", Wait::Block), ("try", Wait::Try)])?,
                session: args.choice(
                    "session",
                    &[("own", SessionOwner::ThisClient), ("shared", SessionOwner::AllClients)],
                )?,
            },
            Self::PgRow { .. } => Self::PgRow {
                wait: args.choice(
                    "wait",
                    &[
                        ("block", Wait::Block),
                        ("nowait", Wait::Try),
                        ("skip-locked", Wait::SkipLocked),
                    ],
                )?,
            },
            Self::Watchdog { renewals_per_ttl, .. } => Self::Watchdog {
                renewals_per_ttl: args.count("renewals_per_ttl", renewals_per_ttl.into(), 2, 20)? as u32,
                max_hold: Some(Millis(args.count("max_hold_ms", 0, 0, Lease::LONGEST.0)?)).filter(|most| most.0 > 0),
            },
            Self::Reentrant { .. } => Self::Reentrant {
                count: args.choice("count", &[("server", Count::Server), ("local", Count::Local)])?,
            },
            Self::ReadWrite { .. } => Self::ReadWrite {
                prefer: args.choice("prefer", &[("readers", Prefer::Readers), ("writers", Prefer::Writers)])?,
            },
            Self::FairQueue { beat } => Self::FairQueue {
                beat: Millis(args.count("beat_ms", beat.0, 10, 60_000)?),
            },
            Self::Notify { .. } => Self::Notify {
                renews: args.choice("renew", &[("off", false), ("ttl/3", true)])?,
            },
            Self::Semaphore { permits } => Self::Semaphore {
                permits: args.count("permits", permits.into(), 1, 1_000)? as u32,
            },
            Self::Fenced { .. } => Self::Fenced {
                renews: args.choice("renew", &[("ttl/3", true), ("off", false)])?,
            },
            Self::Replicated { replicas, timeout_ms } => Self::Replicated {
                replicas: args.count("replicas", replicas.into(), 1, 100)? as u32,
                timeout_ms: args.count("timeout_ms", timeout_ms.into(), 1, 60_000)? as u32,
            },
            Self::Redlock(rules) => Self::Redlock(rules.with(args)?),
            Self::RedissonRedlock(rules) => Self::RedissonRedlock(rules.with(args)?),
            Self::Multilock(rules) => Self::Multilock(rules.with(args)?),
            Self::RedissonMultilock(rules) => Self::RedissonMultilock(rules.with(args)?),
        })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Mutex => "mutex",
            Self::Watchdog { .. } => "watchdog",
            Self::Reentrant { .. } => "reentrant",
            Self::ReadWrite { .. } => "read-write",
            Self::Fair => "fair",
            Self::FairQueue { .. } => "fair-queue",
            Self::Notify { .. } => "notify",
            Self::Semaphore { .. } => "semaphore",
            Self::Fenced { .. } => "fenced",
            Self::Replicated { .. } => "replicated",
            Self::Redlock(_) => "redlock",
            Self::RedissonRedlock(_) => "redisson-redlock",
            Self::Multilock(_) => "multilock",
            Self::RedissonMultilock(_) => "redisson-multilock",
            Self::PgAdvisory { .. } => "pg-advisory",
            Self::PgRow { .. } => "pg-row",
            Self::PgLease => "pg-lease",
            Self::PgOptimistic => "pg-optimistic",
            Self::PgSerializable => "pg-serializable",
            Self::Layered => "layered",
        }
    }

    /// Whether holders may share the lock: `Mode::Shared` is supported.
    pub const fn shares(self) -> bool {
        matches!(
            self,
            Self::ReadWrite { .. } | Self::PgAdvisory { .. } | Self::PgRow { .. }
        )
    }

    /// Whether the holder may enter once more.
    pub const fn nests(self) -> bool {
        matches!(self, Self::Reentrant { .. })
    }

    /// Whether one acquire may name several keys.
    pub const fn takes_many_keys(self) -> bool {
        matches!(
            self,
            Self::Multilock(_) | Self::RedissonMultilock(_) | Self::PgRow { .. }
        )
    }

    /// Whether each client needs its own connection to the first server.
    pub const fn owns_connection(self) -> bool {
        matches!(
            self,
            Self::Fair
                | Self::FairQueue { .. }
                | Self::Replicated { .. }
                | Self::PgRow { .. }
                | Self::PgSerializable
                | Self::PgAdvisory {
                    session: SessionOwner::ThisClient,
                    ..
                }
        )
    }

    /// Whether its clients subscribe to channels, over separate connections to the first server.
    pub const fn subscribes(self) -> bool {
        matches!(self, Self::Notify { .. })
    }

    /// Whether it uses connections that clients share: an unused database session would be an expensive waste.
    pub const fn shares_connections(self) -> bool {
        !(self.owns_connection() && self.database().is_some())
    }

    /// The server that is a database, if there is one; all other servers are Redis servers.
    pub const fn database(self) -> Option<ServerId> {
        match self {
            Self::PgAdvisory { .. }
            | Self::PgRow { .. }
            | Self::PgLease
            | Self::PgOptimistic
            | Self::PgSerializable => Some(ServerId(0)),
            Self::Layered => Some(ServerId(1)),
            _ => None,
        }
    }

    /// Whether a hold ends with a session: see `Lasts::Session`.
    pub const fn holds_by_session(self) -> bool {
        matches!(self, Self::PgAdvisory { .. } | Self::PgRow { .. })
    }

    /// Whether its lock on a server expires by the clock.
    pub const fn has_lease(self) -> bool {
        !(self.holds_by_session() || self.is_optimistic())
    }

    /// Whether its release writes the effect of the work, so that the work counts only if the release settled as
    /// `Released`. Strategies that exclude nobody have no belief: their written values are judged instead.
    pub const fn writes(self) -> bool {
        matches!(self, Self::PgOptimistic | Self::PgSerializable | Self::Layered)
    }

    /// Whether a grant only starts a try, whose release may find a conflict.
    pub const fn is_optimistic(self) -> bool {
        matches!(self, Self::PgOptimistic | Self::PgSerializable)
    }

    /// Whether each grant has a fence, which grows from grant to grant.
    pub const fn fences(self) -> bool {
        matches!(self, Self::Fenced { .. } | Self::PgLease | Self::Layered)
    }

    /// Whether its server acknowledges places in a queue, which the machine reports with `Action::Queued`.
    pub const fn acknowledges_places(self) -> bool {
        matches!(self, Self::Fair | Self::FairQueue { .. })
    }

    /// Whether it grants in the order of the acknowledged places.
    pub const fn is_fifo(self) -> bool {
        matches!(self, Self::FairQueue { .. })
    }

    /// How many clients may hold one key at once. A strategy that promises nothing is measured against one holder.
    pub const fn permits(self) -> u32 {
        match self {
            Self::Semaphore { permits } => permits,
            _ => 1,
        }
    }

    /// How many servers it needs; `None` for a lock that uses only the first of them.
    pub const fn nodes(self) -> Option<u16> {
        match self {
            Self::Redlock(rules) | Self::Multilock(rules) => Some(rules.nodes),
            Self::RedissonRedlock(rules) | Self::RedissonMultilock(rules) => Some(rules.nodes),
            Self::Layered => Some(2),
            _ => None,
        }
    }

    /// Whether the strategy can work with this spec.
    pub fn check(self, spec: &Spec) -> Result<(), SpecError> {
        spec.check()?;
        if let Some(nodes) = self.nodes().filter(|&nodes| nodes != spec.servers) {
            return Err(SpecError::OtherServers {
                strategy: self.name(),
                nodes,
                servers: spec.servers,
            });
        }
        if let Self::Replicated { timeout_ms, .. } = self {
            let timeout = Nanos::from_millis(timeout_ms.into());
            if timeout >= spec.reply_timeout || timeout >= Nanos::from(spec.lease.ttl()) {
                return Err(SpecError::BadArgument {
                    strategy: self.name(),
                    argument: "timeout_ms",
                    wanted: "shorter than the lease and than the reply timeout".to_owned(),
                });
            }
        }
        if let Self::PgAdvisory {
            session: SessionOwner::AllClients,
            scope,
            wait,
        } = self
            && (scope, wait) != (Scope::Session, Wait::Try)
        {
            return Err(SpecError::BadArgument {
                strategy: self.name(),
                argument: "session",
                wanted: "`own` unless it is given `scope=session` and `wait=try`: what waits in a session, or opens a \
                         transaction there, stops or mixes up all others that use it"
                    .to_owned(),
            });
        }
        // `naive` rounds up to a second, far more than its clock-skew margin; `redisson-redlock` believes in all of its
        // lease. A lease that exceeds the standard margin exceeds the largest margin that a strategy can be given.
        let takes_skew_margin_off =
            self.has_lease() && !matches!(self, Self::None | Self::Naive | Self::RedissonRedlock(_));
        if takes_skew_margin_off && !spec.lease.outlasts_skew_margin() {
            return Err(SpecError::LeaseWithinSkewMargin {
                strategy: self.name(),
                lease: spec.lease.ttl(),
                margin: spec.lease.skew_margin(),
            });
        }
        Ok(())
    }
}

mod sends;
