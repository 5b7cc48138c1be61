//! The catalogue: a strategy by its name, and one machine type for all of them, so that a driver can keep its clients
//! in one flat vector.

use std::sync::Arc;

use crate::args::{ArgValue, Args};
use crate::fair::Fair;
use crate::fair_queue::FairQueue;
use crate::fenced::fenced;
use crate::leased::Leased;
use crate::multilock::Multilock;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::notify::Notify;
use crate::quorum::QuorumRules;
use crate::read_write::{Prefer, ReadWrite};
use crate::redisson::{Redisson, RedissonRules};
use crate::redlock::Redlock;
use crate::reentrant::{Count, Reentrant};
use crate::replicated::Replicated;
use crate::semaphore::Semaphore;
use crate::watchdog::watchdog;
use crate::{Actions, Chance, Event, Lease, LockMachine, Millis, Nanos, Script, Spec, SpecError};
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
        matches!(
            self,
            Self::Fair | Self::FairQueue { .. } | Self::Notify | Self::Replicated { .. }
        )
    }

    /// How many servers it wants; `None` for a lock that takes the first of them.
    pub const fn nodes(self) -> Option<u16> {
        match self {
            Self::Redlock(QuorumRules { nodes, .. })
            | Self::Multilock(QuorumRules { nodes, .. })
            | Self::RedissonRedlock(RedissonRules { nodes, .. })
            | Self::RedissonMultilock(RedissonRules { nodes, .. }) => Some(nodes),
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Watchdog { .. }
            | Self::Reentrant { .. }
            | Self::ReadWrite { .. }
            | Self::Fair
            | Self::FairQueue { .. }
            | Self::Notify
            | Self::Semaphore { .. }
            | Self::Fenced { .. }
            | Self::Replicated { .. } => None,
        }
    }

    /// How many may hold one key at once. What promises nothing is held to what a lock should do.
    pub const fn permits(self) -> u32 {
        match self {
            Self::Semaphore { permits } => permits,
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Watchdog { .. }
            | Self::Reentrant { .. }
            | Self::ReadWrite { .. }
            | Self::Fair
            | Self::FairQueue { .. }
            | Self::Notify
            | Self::Fenced { .. }
            | Self::Replicated { .. }
            | Self::Redlock(_)
            | Self::RedissonRedlock(_)
            | Self::Multilock(_)
            | Self::RedissonMultilock(_) => 1,
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
        match self {
            // `naive` rounds up to a second, far more than its drift; `redisson-redlock` believes in all of its lease.
            Self::None | Self::Naive | Self::RedissonRedlock(_) => Ok(()),
            Self::Replicated { timeout_ms, .. } => {
                let timeout = Nanos::from_millis(timeout_ms.into());
                if timeout >= spec.patience || timeout >= Nanos::from(spec.lease.ttl()) {
                    return Err(SpecError::BadArgument {
                        strategy: self.name(),
                        argument: "timeout_ms",
                        wanted: "shorter than the lease and than the patience for an answer".to_owned(),
                    });
                }
                self.check_drift(spec)
            }
            Self::Mutex
            | Self::Watchdog { .. }
            | Self::Reentrant { .. }
            | Self::ReadWrite { .. }
            | Self::Fair
            | Self::FairQueue { .. }
            | Self::Notify
            | Self::Semaphore { .. }
            | Self::Fenced { .. }
            // A lease that outlasts the usual drift outlasts the most that these can be given.
            | Self::Redlock(_)
            | Self::Multilock(_)
            | Self::RedissonMultilock(_) => self.check_drift(spec),
        }
    }

    fn check_drift(self, spec: &Spec) -> Result<(), SpecError> {
        if spec.lease.outlasts_drift() {
            return Ok(());
        }
        Err(SpecError::LeaseWithinDrift {
            strategy: self.name(),
            lease: spec.lease.ttl(),
            allowance: spec.lease.drift(),
        })
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

/// Any lock of the catalogue.
#[derive(Debug)]
pub struct AnyLock(Machine);

#[derive(Debug)]
enum Machine {
    None(NoLock),
    Naive(Naive),
    Mutex(Leased<Mutex>),
    /// One that remembers more than a mutex: it must not make the clients of all larger.
    Boxed(Box<dyn Large>),
}

trait Large: LockMachine + std::fmt::Debug + Send {}

impl<T: LockMachine + std::fmt::Debug + Send> Large for T {}

impl AnyLock {
    /// The machine of one client. `spec` is one that `Strategy::check` has passed; `chance` is a stream of its own.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Mutex => Machine::Mutex(Leased::new(spec, chance, Mutex)),
            Strategy::Watchdog {
                renewals_per_ttl,
                max_hold,
            } => {
                let longest_hold = max_hold.map_or(Nanos::NEVER, Nanos::from);
                Machine::Boxed(Box::new(watchdog(spec, chance, renewals_per_ttl, longest_hold)))
            }
            Strategy::Reentrant { count } => Machine::Boxed(Box::new(Reentrant::new(spec, chance, count))),
            Strategy::ReadWrite { prefer } => {
                let recipe = ReadWrite::new(prefer, &spec);
                Machine::Boxed(Box::new(Leased::new(spec, chance, recipe)))
            }
            Strategy::Fair => Machine::Boxed(Box::new(Fair::new(spec, chance))),
            Strategy::FairQueue { beat } => Machine::Boxed(Box::new(FairQueue::new(spec, beat, chance))),
            Strategy::Notify => Machine::Boxed(Box::new(Notify::new(spec, chance))),
            Strategy::Semaphore { permits } => {
                Machine::Boxed(Box::new(Leased::new(spec, chance, Semaphore { permits })))
            }
            Strategy::Fenced { renews } => Machine::Boxed(Box::new(fenced(spec, chance, renews))),
            Strategy::Replicated { replicas, timeout_ms } => {
                let recipe = Replicated { replicas, timeout_ms };
                Machine::Boxed(Box::new(Leased::new(spec, chance, recipe)))
            }
            Strategy::Redlock(rules) => Machine::Boxed(Box::new(Redlock::new(rules, spec, chance))),
            Strategy::Multilock(rules) => Machine::Boxed(Box::new(Multilock::new(rules, spec, chance))),
            Strategy::RedissonRedlock(rules) | Strategy::RedissonMultilock(rules) => {
                Machine::Boxed(Box::new(Redisson::new(rules, spec, chance)))
            }
        })
    }

    fn machine(&self) -> &dyn LockMachine {
        match &self.0 {
            Machine::None(lock) => lock,
            Machine::Naive(lock) => lock,
            Machine::Mutex(lock) => lock,
            Machine::Boxed(lock) => lock.as_ref(),
        }
    }
}

impl LockMachine for AnyLock {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match &mut self.0 {
            Machine::None(lock) => lock.on(now, event, out),
            Machine::Naive(lock) => lock.on(now, event, out),
            Machine::Mutex(lock) => lock.on(now, event, out),
            Machine::Boxed(lock) => lock.on(now, event, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.machine().attempts()
    }

    fn split_votes(&self) -> u32 {
        self.machine().split_votes()
    }
}
