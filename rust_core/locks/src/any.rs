//! The catalogue: a strategy by its name, and one machine type for all of them, so that a driver can keep its clients
//! in one flat vector.

use std::sync::Arc;

use crate::args::{ArgValue, Args};
use crate::leased::Leased;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::{Actions, Chance, Event, LockMachine, Nanos, Script, Spec, SpecError};

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Naive,
    Mutex,
}

impl Strategy {
    pub const ALL: [Self; 3] = [Self::None, Self::Naive, Self::Mutex];

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
    fn with(self, _args: &mut Args<'_>) -> Result<Self, SpecError> {
        match self {
            Self::None | Self::Naive | Self::Mutex => Ok(self),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Mutex => "mutex",
        }
    }

    /// Whether some holders may share it: `Mode::Shared` is understood.
    pub const fn shares(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex => false,
        }
    }

    /// Whether its holder may enter once more.
    pub const fn nests(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex => false,
        }
    }

    /// Whether one acquire may name several keys.
    pub const fn takes_many_keys(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex => false,
        }
    }

    /// Whether each client needs a connection of its own to the first server, beside the shared ones.
    pub const fn owns_connection(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex => false,
        }
    }

    /// How many may hold one key at once.
    pub const fn permits(self) -> u32 {
        match self {
            // `none` promises nothing, but what it is held to is what a lock should do.
            Self::None | Self::Naive | Self::Mutex => 1,
        }
    }

    /// Whether it can work with this description at all.
    pub fn check(self, spec: &Spec) -> Result<(), SpecError> {
        spec.check()?;
        match self {
            // `naive` rounds up to a second, far more than its drift.
            Self::None | Self::Naive => Ok(()),
            Self::Mutex if spec.lease.outlasts_drift() => Ok(()),
            Self::Mutex => Err(SpecError::LeaseWithinDrift {
                strategy: self.name(),
                lease: spec.lease.ttl(),
                allowance: spec.lease.drift(),
            }),
        }
    }

    /// The scripts it sends, for a driver that loads them beforehand.
    pub const fn scripts(self) -> &'static [Script] {
        match self {
            Self::None | Self::Naive => &[],
            Self::Mutex => &[Script::CompareAndDelete],
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
}

impl AnyLock {
    /// The machine of one client. `spec` is one that `Strategy::check` has passed; `chance` is a stream of its own.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Mutex => Machine::Mutex(Leased::new(spec, chance, Mutex)),
        })
    }
}

impl LockMachine for AnyLock {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match &mut self.0 {
            Machine::None(lock) => lock.on(now, event, out),
            Machine::Naive(lock) => lock.on(now, event, out),
            Machine::Mutex(lock) => lock.on(now, event, out),
        }
    }

    fn attempts(&self) -> u32 {
        match &self.0 {
            Machine::None(lock) => lock.attempts(),
            Machine::Naive(lock) => lock.attempts(),
            Machine::Mutex(lock) => lock.attempts(),
        }
    }
}
