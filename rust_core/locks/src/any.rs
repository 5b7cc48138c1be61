//! One machine type for all strategies, so that a driver can keep its clients in one flat vector.

use std::sync::Arc;

use crate::fair::Fair;
use crate::fair_queue::FairQueue;
use crate::fenced::fenced;
use crate::layered::Layered;
use crate::leased::Leased;
use crate::multilock::Multilock;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::notify::notify;
use crate::optimistic::Optimistic;
use crate::pg_advisory::PgAdvisory;
use crate::pg_lease::PgLease;
use crate::pg_optimistic::PgOptimistic;
use crate::pg_row::PgRow;
use crate::pg_serializable::PgSerializable;
use crate::read_write::ReadWrite;
use crate::redisson::Redisson;
use crate::redlock::Redlock;
use crate::reentrant::Reentrant;
use crate::replicated::Replicated;
use crate::semaphore::Semaphore;
use crate::session_lock::SessionLock;
use crate::watchdog::watchdog;
use crate::{Actions, Chance, Event, LockMachine, Nanos, Spec, Strategy};

/// Any lock of the catalogue.
#[derive(Debug)]
pub struct AnyLock(Machine);

#[derive(Debug)]
enum Machine {
    None(NoLock),
    Naive(Naive),
    Mutex(Leased<Mutex>),
    /// A machine that needs more memory than a mutex. Boxed, so that the clients of every other cell stay small.
    Boxed(Box<dyn Large>),
}

trait Large: LockMachine + std::fmt::Debug + Send {}

impl<T: LockMachine + std::fmt::Debug + Send> Large for T {}

impl AnyLock {
    /// The machine of one client. `Strategy::check` must have accepted `spec`; `chance` is a random stream of this
    /// client alone.
    pub fn new(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Self {
        Self(match strategy {
            Strategy::None => Machine::None(NoLock::default()),
            Strategy::Naive => Machine::Naive(Naive::new(spec, chance)),
            Strategy::Mutex => Machine::Mutex(Leased::new(spec, chance, Mutex)),
            larger => Machine::Boxed(large(larger, spec, chance)),
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

fn large(strategy: Strategy, spec: Arc<Spec>, chance: Chance) -> Box<dyn Large> {
    match strategy {
        Strategy::None | Strategy::Naive | Strategy::Mutex => unreachable!("{strategy:?} is small"),
        Strategy::Watchdog {
            renewals_per_ttl,
            max_hold,
        } => {
            let longest_hold = max_hold.map_or(Nanos::NEVER, Nanos::from);
            Box::new(watchdog(spec, chance, renewals_per_ttl, longest_hold))
        }
        Strategy::Reentrant { count } => Box::new(Reentrant::new(spec, chance, count)),
        Strategy::ReadWrite { prefer } => {
            let protocol = ReadWrite::new(prefer, &spec);
            Box::new(Leased::new(spec, chance, protocol))
        }
        Strategy::Fair => Box::new(Fair::new(spec, chance)),
        Strategy::FairQueue { beat } => Box::new(FairQueue::new(spec, beat, chance)),
        Strategy::Notify { renews } => Box::new(notify(spec, chance, renews)),
        Strategy::Semaphore { permits } => Box::new(Leased::new(spec, chance, Semaphore { permits })),
        Strategy::Fenced { renews } => Box::new(fenced(spec, chance, renews)),
        Strategy::Replicated { replicas, timeout_ms } => {
            Box::new(Leased::new(spec, chance, Replicated { replicas, timeout_ms }))
        }
        Strategy::Redlock(rules) => Box::new(Redlock::new(rules, spec, chance)),
        Strategy::Multilock(rules) => Box::new(Multilock::new(rules, spec, chance)),
        Strategy::RedissonRedlock(rules) | Strategy::RedissonMultilock(rules) => {
            Box::new(Redisson::new(rules, spec, chance))
        }
        Strategy::PgAdvisory { scope, wait, session } => {
            let lock = PgAdvisory { scope, wait, session };
            Box::new(SessionLock::new(spec, chance, lock))
        }
        Strategy::PgRow { wait } => Box::new(SessionLock::new(spec, chance, PgRow { wait })),
        Strategy::PgLease => Box::new(Leased::new(spec, chance, PgLease)),
        Strategy::PgOptimistic => Box::new(Optimistic::<PgOptimistic>::new(spec, chance)),
        Strategy::PgSerializable => Box::new(Optimistic::<PgSerializable>::new(spec, chance)),
        Strategy::Layered => Box::new(Layered::new(spec, chance)),
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

    fn is_placed(&self, now: Nanos) -> bool {
        self.machine().is_placed(now)
    }
}
