//! The catalogue: a strategy by its name, and one machine type for all of them, so that a driver can keep its clients
//! in one flat vector.

use std::sync::Arc;

use crate::args::{ArgValue, Args};
use crate::fair::Fair;
use crate::fair_queue::FairQueue;
use crate::leased::Leased;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::notify::Notify;
use crate::{Actions, Chance, Event, LockMachine, Millis, Nanos, Script, Spec, SpecError};

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Naive,
    Mutex,
    Fair,
    FairQueue {
        /// How often a waiter shows that it lives.
        beat: Millis,
    },
    Notify,
}

impl Strategy {
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Naive,
        Self::Mutex,
        Self::Fair,
        Self::FairQueue { beat: Millis(2_000) },
        Self::Notify,
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
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::Notify => Ok(self),
            Self::FairQueue { beat } => Ok(Self::FairQueue {
                beat: Millis(args.count("beat_ms", beat.0, 10, 60_000)?),
            }),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Naive => "naive",
            Self::Mutex => "mutex",
            Self::Fair => "fair",
            Self::FairQueue { .. } => "fair-queue",
            Self::Notify => "notify",
        }
    }

    /// Whether some holders may share it: `Mode::Shared` is understood.
    pub const fn shares(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify => false,
        }
    }

    /// Whether its holder may enter once more.
    pub const fn nests(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify => false,
        }
    }

    /// Whether one acquire may name several keys.
    pub const fn takes_many_keys(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify => false,
        }
    }

    /// Whether each client needs a connection of its own to the first server, beside the shared ones.
    pub const fn owns_connection(self) -> bool {
        match self {
            Self::None | Self::Naive | Self::Mutex => false,
            Self::Fair | Self::FairQueue { .. } | Self::Notify => true,
        }
    }

    /// How many may hold one key at once.
    pub const fn permits(self) -> u32 {
        match self {
            // `none` promises nothing, but what it is held to is what a lock should do.
            Self::None | Self::Naive | Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify => 1,
        }
    }

    /// Whether it can work with this description at all.
    pub fn check(self, spec: &Spec) -> Result<(), SpecError> {
        spec.check()?;
        match self {
            // `naive` rounds up to a second, far more than its drift.
            Self::None | Self::Naive => Ok(()),
            Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify if spec.lease.outlasts_drift() => Ok(()),
            Self::Mutex | Self::Fair | Self::FairQueue { .. } | Self::Notify => Err(SpecError::LeaseWithinDrift {
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
            Self::Mutex | Self::Fair => &[Script::CompareAndDelete],
            Self::FairQueue { .. } => &[Script::QueueTake, Script::QueueLeave],
            Self::Notify => &[Script::NotifyAcquire, Script::NotifyRelease],
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
    // Boxed: those that remember more than others must not make the clients of all larger.
    Fair(Box<Fair>),
    FairQueue(Box<FairQueue>),
    Notify(Box<Notify>),
    Mutex(Leased<Mutex>),
}

impl AnyLock {
    /// The machine of one client. `spec` is one that `Strategy::check` has passed; `chance` is a stream of its own.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Fair => Machine::Fair(Box::new(Fair::new(spec, chance))),
            Strategy::FairQueue { beat } => Machine::FairQueue(Box::new(FairQueue::new(spec, beat, chance))),
            Strategy::Notify => Machine::Notify(Box::new(Notify::new(spec, chance))),
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
            Machine::Fair(lock) => lock.on(now, event, out),
            Machine::FairQueue(lock) => lock.on(now, event, out),
            Machine::Notify(lock) => lock.on(now, event, out),
        }
    }

    fn attempts(&self) -> u32 {
        match &self.0 {
            Machine::None(lock) => lock.attempts(),
            Machine::Naive(lock) => lock.attempts(),
            Machine::Mutex(lock) => lock.attempts(),
            Machine::Fair(lock) => lock.attempts(),
            Machine::FairQueue(lock) => lock.attempts(),
            Machine::Notify(lock) => lock.attempts(),
        }
    }
}
