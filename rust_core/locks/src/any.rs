//! The catalogue: a strategy by its name, and one machine type for all of them, so that a driver can keep its clients
//! in one flat vector.

use std::sync::Arc;

use crate::args::{ArgValue, Args};
use crate::multilock::Multilock;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::quorum::QuorumRules;
use crate::redisson::{Redisson, RedissonRules};
use crate::redlock::Redlock;
use crate::{Actions, Chance, Event, LockMachine, Nanos, Script, Spec, SpecError};
use crate::{redisson_multilock, redisson_redlock};

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Naive,
    Mutex,
    Redlock(QuorumRules),
    RedissonRedlock(RedissonRules),
    Multilock(QuorumRules),
    RedissonMultilock(RedissonRules),
}

impl Strategy {
    /// Each with its default arguments.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Naive,
        Self::Mutex,
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
        match self {
            Self::None | Self::Naive | Self::Mutex => Ok(self),
            Self::Redlock(rules) => Ok(Self::Redlock(rules.with(args)?)),
            Self::RedissonRedlock(rules) => Ok(Self::RedissonRedlock(rules.with(args)?)),
            Self::Multilock(rules) => Ok(Self::Multilock(rules.with(args)?)),
            Self::RedissonMultilock(rules) => Ok(Self::RedissonMultilock(rules.with(args)?)),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Mutex => "mutex",
            Self::Redlock(_) => "redlock",
            Self::RedissonRedlock(_) => "redisson-redlock",
            Self::Multilock(_) => "multilock",
            Self::RedissonMultilock(_) => "redisson-multilock",
        }
    }

    /// Whether some holders may share it: `Mode::Shared` is understood.
    pub const fn shares(self) -> bool {
        match self {
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Redlock(_)
            | Self::RedissonRedlock(_)
            | Self::Multilock(_)
            | Self::RedissonMultilock(_) => false,
        }
    }

    /// Whether its holder may enter once more.
    pub const fn nests(self) -> bool {
        match self {
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Redlock(_)
            | Self::RedissonRedlock(_)
            | Self::Multilock(_)
            | Self::RedissonMultilock(_) => false,
        }
    }

    /// Whether one acquire may name several keys.
    pub const fn takes_many_keys(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex | Self::Redlock(_) | Self::RedissonRedlock(_) => false,
            Self::Multilock(_) | Self::RedissonMultilock(_) => true,
        }
    }

    /// Whether each client needs a connection of its own to the first server, beside the shared ones.
    pub const fn owns_connection(self) -> bool {
        match self {
            Self::None
            | Self::Naive
            | Self::Mutex
            | Self::Redlock(_)
            | Self::RedissonRedlock(_)
            | Self::Multilock(_)
            | Self::RedissonMultilock(_) => false,
        }
    }

    /// How many servers it wants; `None` for a lock that takes the first of them.
    pub const fn nodes(self) -> Option<u16> {
        match self {
            Self::None | Self::Naive | Self::Mutex => None,
            Self::Redlock(rules) | Self::Multilock(rules) => Some(rules.nodes),
            Self::RedissonRedlock(rules) | Self::RedissonMultilock(rules) => Some(rules.nodes),
        }
    }

    /// How many may hold one key at once.
    pub const fn permits(self) -> u32 {
        match self {
            // `none` promises nothing, but what it is held to is what a lock should do.
            Self::None
            | Self::Naive
            | Self::Mutex
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
            // A lease that outlasts the usual drift outlasts the most that a strategy can be given.
            Self::Mutex | Self::Redlock(_) | Self::Multilock(_) | Self::RedissonMultilock(_)
                if spec.lease.outlasts_drift() =>
            {
                Ok(())
            }
            Self::Mutex | Self::Redlock(_) | Self::Multilock(_) | Self::RedissonMultilock(_) => {
                Err(SpecError::LeaseWithinDrift {
                    strategy: self.name(),
                    lease: spec.lease.ttl(),
                    allowance: spec.lease.drift(),
                })
            }
        }
    }

    /// The scripts it sends, for a driver that loads them beforehand.
    pub const fn scripts(self) -> &'static [Script] {
        match self {
            Self::None | Self::Naive => &[],
            Self::Mutex | Self::Redlock(_) => &[Script::CompareAndDelete],
            Self::RedissonRedlock(_) | Self::RedissonMultilock(_) => &[Script::CompareAndDelete, Script::Renew],
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
    Mutex(Mutex),
    // In a box: they keep something of each server, and a client is to stay small.
    Redlock(Box<Redlock>),
    Multilock(Box<Multilock>),
    Redisson(Box<Redisson>),
}

impl AnyLock {
    /// The machine of one client. `spec` is one that `Strategy::check` has passed; `chance` is a stream of its own.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Mutex => Machine::Mutex(Mutex::new(spec, chance)),
            Strategy::Redlock(rules) => Machine::Redlock(Redlock::new(rules, spec, chance).into()),
            Strategy::Multilock(rules) => Machine::Multilock(Multilock::new(rules, spec, chance).into()),
            Strategy::RedissonRedlock(rules) | Strategy::RedissonMultilock(rules) => {
                Machine::Redisson(Redisson::new(rules, spec, chance).into())
            }
        })
    }
}

impl LockMachine for AnyLock {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match &mut self.0 {
            Machine::None(lock) => lock.on(now, event, out),
            Machine::Naive(lock) => lock.on(now, event, out),
            Machine::Mutex(lock) => lock.on(now, event, out),
            Machine::Redlock(lock) => lock.on(now, event, out),
            Machine::Multilock(lock) => lock.on(now, event, out),
            Machine::Redisson(lock) => lock.on(now, event, out),
        }
    }

    fn attempts(&self) -> u32 {
        match &self.0 {
            Machine::None(lock) => lock.attempts(),
            Machine::Naive(lock) => lock.attempts(),
            Machine::Mutex(lock) => lock.attempts(),
            Machine::Redlock(lock) => lock.attempts(),
            Machine::Multilock(lock) => lock.attempts(),
            Machine::Redisson(lock) => lock.attempts(),
        }
    }

    fn split_votes(&self) -> u32 {
        match &self.0 {
            Machine::None(_) | Machine::Naive(_) | Machine::Mutex(_) | Machine::Redisson(_) => 0,
            Machine::Redlock(lock) => lock.split_votes(),
            Machine::Multilock(lock) => lock.split_votes(),
        }
    }
}
