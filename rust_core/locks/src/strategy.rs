//! The catalogue: each strategy by its name, its arguments, and what a driver has to know of it.

use crate::args::{ArgValue, Args};
use crate::read_write::Prefer;
use crate::reentrant::Count;
use crate::{Lease, Millis, Nanos, QuorumRules, RedissonRules, Script, Spec, SpecError};
use crate::{redisson_multilock, redisson_redlock};

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Naive,
    Mutex,
    Watchdog {
        /// How often a lease is set anew before it would end.
        renewals_per_ttl: u32,
        /// No renewal follows after so long a hold; `None`: it goes on for ever.
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
        /// How often a waiter shows that it lives.
        beat: Millis,
    },
    Notify,
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
}

impl Strategy {
    /// Each with the arguments that it has when none are given.
    pub const ALL: [Self; 16] = [
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
        Self::Notify,
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
    ];

    /// The strategy that a matrix names. A name or argument that does not exist is an error that lists those that do.
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

    /// The same strategy with the arguments that it was given.
    fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        Ok(match self {
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::Notify => self,
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
            Self::Notify => "notify",
            Self::Semaphore { .. } => "semaphore",
            Self::Fenced { .. } => "fenced",
            Self::Replicated { .. } => "replicated",
            Self::Redlock(_) => "redlock",
            Self::RedissonRedlock(_) => "redisson-redlock",
            Self::Multilock(_) => "multilock",
            Self::RedissonMultilock(_) => "redisson-multilock",
        }
    }

    /// Whether some holders may share it: `Mode::Shared` is understood.
    pub const fn shares(self) -> bool {
        matches!(self, Self::ReadWrite { .. })
    }

    /// Whether its holder may enter once more.
    pub const fn nests(self) -> bool {
        matches!(self, Self::Reentrant { .. })
    }

    /// Whether one acquire may name several keys.
    pub const fn takes_many_keys(self) -> bool {
        matches!(self, Self::Multilock(_) | Self::RedissonMultilock(_))
    }

    /// Whether each client needs a connection of its own to the first server, beside the shared ones.
    pub const fn owns_connection(self) -> bool {
        matches!(self, Self::Fair | Self::FairQueue { .. } | Self::Replicated { .. })
    }

    /// Whether its clients subscribe to channels, over connections to the first server beside the shared ones.
    pub const fn subscribes(self) -> bool {
        matches!(self, Self::Notify)
    }

    /// Whether each grant carries a fence that grows.
    pub const fn fences(self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    /// Whether it serves those whose place it acknowledged in their order.
    pub const fn is_fifo(self) -> bool {
        matches!(self, Self::FairQueue { .. })
    }

    /// How many may hold one key at once. What promises nothing is held to what a lock should do.
    pub const fn permits(self) -> u32 {
        match self {
            Self::Semaphore { permits } => permits,
            _ => 1,
        }
    }

    /// How many servers it wants; `None` for a lock that takes the first of them.
    pub const fn nodes(self) -> Option<u16> {
        match self {
            Self::Redlock(rules) | Self::Multilock(rules) => Some(rules.nodes),
            Self::RedissonRedlock(rules) | Self::RedissonMultilock(rules) => Some(rules.nodes),
            _ => None,
        }
    }

    /// Whether it can work with this description at all.
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
            if timeout >= spec.patience || timeout >= Nanos::from(spec.lease.ttl()) {
                return Err(SpecError::BadArgument {
                    strategy: self.name(),
                    argument: "timeout_ms",
                    wanted: "shorter than the lease and than the patience for an answer".to_owned(),
                });
            }
        }
        // `naive` rounds up to a second, far more than its drift; `redisson-redlock` believes in all of its lease. A lease
        // that outlasts the usual drift outlasts the most that a strategy can be given.
        let takes_drift_off = !matches!(self, Self::None | Self::Naive | Self::RedissonRedlock(_));
        if takes_drift_off && !spec.lease.outlasts_drift() {
            return Err(SpecError::LeaseWithinDrift {
                strategy: self.name(),
                lease: spec.lease.ttl(),
                allowance: spec.lease.drift(),
            });
        }
        Ok(())
    }

    /// The scripts it sends, for a driver that loads them beforehand.
    pub const fn scripts(self) -> &'static [Script] {
        match self {
            Self::None | Self::Naive => &[],
            Self::Mutex
            | Self::Reentrant { count: Count::Local }
            | Self::Fair
            | Self::Replicated { .. }
            | Self::Redlock(_) => &[Script::CompareAndDelete],
            Self::Watchdog { .. } | Self::RedissonRedlock(_) | Self::RedissonMultilock(_) => {
                &[Script::CompareAndDelete, Script::CompareAndExpire]
            }
            Self::Reentrant { count: Count::Server } => {
                &[Script::ReentrantTake, Script::ReentrantEnter, Script::ReentrantLeave]
            }
            Self::ReadWrite { .. } => &[
                Script::ReadTake,
                Script::ReadGiveBack,
                Script::WriteTake,
                Script::WriteGiveBack,
            ],
            Self::FairQueue { .. } => &[Script::QueueTake, Script::QueueLeave],
            Self::Notify => &[Script::NotifyAcquire, Script::NotifyRelease],
            Self::Semaphore { .. } => &[Script::SemaphoreTake, Script::SemaphoreGiveBack],
            Self::Fenced { renews: false } => &[Script::FencedTake, Script::CompareAndDelete],
            Self::Fenced { renews: true } => &[Script::FencedTake, Script::CompareAndDelete, Script::CompareAndExpire],
            Self::Multilock(_) => &[Script::TakeAll, Script::GiveBackAll],
        }
    }
}
