//! The catalogue: a strategy by its name, and one machine type for all of them, so that a driver can keep its clients
//! in one flat vector.

use std::sync::Arc;

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

/// The value of an argument, as in `redlock(nodes=5)`.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    Int(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}

impl Strategy {
    pub const ALL: [Self; 3] = [Self::None, Self::Naive, Self::Mutex];

    /// The strategy that a matrix names. A name or argument that does not exist is an error that lists those that do.
    pub fn named(name: &str, args: &[(String, ArgValue)]) -> Result<Self, SpecError> {
        let strategy = Self::ALL.into_iter().find(|known| known.name() == name);
        let strategy = strategy.ok_or_else(|| SpecError::UnknownStrategy {
            given: name.to_owned(),
            known: Self::ALL.map(Self::name).to_vec(),
        })?;
        let known = strategy.arguments();
        match args.iter().find(|(argument, _)| !known.contains(&argument.as_str())) {
            None => Ok(strategy),
            Some((argument, _)) => Err(SpecError::UnknownArgument {
                strategy: strategy.name(),
                argument: argument.clone(),
                known,
            }),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Mutex => "mutex",
        }
    }

    /// The names of the arguments it takes.
    pub const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::None | Self::Naive | Self::Mutex => &[],
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
    Mutex(Mutex),
}

impl AnyLock {
    /// The machine of one client. `spec` is one that `Strategy::check` has passed; `chance` is a stream of its own.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Mutex => Machine::Mutex(Mutex::new(spec, chance)),
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
