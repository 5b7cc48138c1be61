//! One machine type for all strategies, for a driver that mixes them or does not mind a dispatch on each event.

use std::fmt::Debug;
use std::sync::Arc;

#[cfg(feature = "mutants")]
use crate::mutants::Mutated as Shell;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
#[cfg(not(feature = "mutants"))]
use crate::shell::Shell;
use crate::{Actions, CallId, Chance, Event, LockMachine, MachineVisitor, Nanos, Spec, Strategy};

/// Any lock of the catalogue.
#[derive(Debug)]
pub struct AnyLock(Machine);

#[derive(Debug)]
enum Machine {
    None(NoLock),
    Naive(Shell<Naive>),
    Mutex(Shell<Mutex>),
    /// A machine that may need more memory than a mutex. Boxed, so that the clients of every other cell stay small.
    Boxed(Box<dyn Large>),
}

trait Large: LockMachine + Debug + Send {}

impl<T: LockMachine + Debug + Send> Large for T {}

impl AnyLock {
    /// The machine of one client. `Strategy::check` must have accepted `spec`; `chance` is a random stream of this
    /// client alone.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None | Strategy::Atomic => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Shell::new(spec, chance, Naive)),
            Strategy::Mutex => Machine::Mutex(Shell::new(spec, chance, Mutex)),
            larger => Machine::Boxed(larger.visit(IntoBox { spec, chance })),
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

/// Puts the machine of one client into a box.
struct IntoBox {
    spec: Arc<Spec>,
    chance: Chance,
}

impl MachineVisitor for IntoBox {
    type Out = Box<dyn Large>;

    fn visit<L: LockMachine + Debug + Send + 'static>(
        self,
        make: impl Fn(Arc<Spec>, Chance) -> L + Clone + Send + 'static,
    ) -> Self::Out {
        Box::new(make(self.spec, self.chance))
    }
}

impl LockMachine for AnyLock {
    #[inline]
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

    fn no_quorum_attempts(&self) -> u32 {
        self.machine().no_quorum_attempts()
    }

    fn conflicts(&self) -> u32 {
        self.machine().conflicts()
    }

    fn awaits_vote(&self, call: CallId) -> bool {
        self.machine().awaits_vote(call)
    }

    /// Some of these locks do.
    fn servers_vote() -> bool {
        true
    }

    fn is_placed(&self, now: Nanos) -> bool {
        self.machine().is_placed(now)
    }
}
