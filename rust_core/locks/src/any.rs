//! One machine type for all strategies, so that a driver can keep its clients in one flat vector.

use std::sync::Arc;

use crate::fair::Fair;
use crate::fair_queue::FairQueue;
use crate::fenced::Fenced;
use crate::layered::Layered;
use crate::multilock::Multilock;
use crate::mutex::Mutex;
use crate::naive::Naive;
use crate::none::NoLock;
use crate::notify::Notify;
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
use crate::renewal::Renewal;
use crate::replicated::Replicated;
use crate::semaphore::Semaphore;
use crate::session_lock::SessionLock;
use crate::shell::Shell;
use crate::watchdog::Watchdog;
use crate::{Actions, Chance, Event, LockMachine, Nanos, Spec, Strategy};

/// Any lock of the catalogue.
#[derive(Debug)]
pub struct AnyLock(Machine);

#[derive(Debug)]
enum Machine {
    None(NoLock),
    Naive(Shell<Naive>),
    Mutex(Shell<Mutex>),
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
            Strategy::Naive => Machine::Naive(Shell::new(spec, chance, Naive)),
            Strategy::Mutex => Machine::Mutex(Shell::new(spec, chance, Mutex)),
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

fn large(strategy: Strategy, spec: Arc<Spec>, mut chance: Chance) -> Box<dyn Large> {
    let (lease, servers) = (spec.lease, spec.servers);
    match strategy {
        Strategy::None | Strategy::Naive | Strategy::Mutex => unreachable!("{strategy:?} is small"),
        Strategy::Watchdog {
            renewals_per_ttl,
            max_hold,
        } => {
            let longest_hold = max_hold.map_or(Nanos::NEVER, Nanos::from);
            let renewal = Renewal::new(lease, renewals_per_ttl, longest_hold);
            Box::new(Shell::new(spec, chance, Watchdog { renewal }))
        }
        Strategy::Reentrant { count } => Box::new(Shell::new(spec, chance, Reentrant::new(count))),
        Strategy::ReadWrite { prefer } => {
            let lock = ReadWrite::new(prefer, &spec);
            Box::new(Shell::new(spec, chance, lock))
        }
        Strategy::Fair => {
            let lock = Fair::new(&mut chance);
            Box::new(Shell::new(spec, chance, lock))
        }
        Strategy::FairQueue { beat } => Box::new(Shell::new(spec, chance, FairQueue::new(beat))),
        Strategy::Notify { renews } => Box::new(Shell::new(spec, chance, Notify::new(Renewal::thrice(lease, renews)))),
        Strategy::Semaphore { permits } => Box::new(Shell::new(spec, chance, Semaphore { permits })),
        Strategy::Fenced { renews } => {
            let renewal = Renewal::thrice(lease, renews);
            Box::new(Shell::new(spec, chance, Fenced { renewal }))
        }
        Strategy::Replicated { replicas, timeout_ms } => {
            Box::new(Shell::new(spec, chance, Replicated { replicas, timeout_ms }))
        }
        Strategy::Redlock(rules) => Box::new(Shell::new(spec, chance, Redlock::new(rules, servers))),
        Strategy::Multilock(rules) => Box::new(Shell::new(spec, chance, Multilock::new(rules, servers))),
        Strategy::RedissonRedlock(rules) | Strategy::RedissonMultilock(rules) => {
            Box::new(Shell::new(spec, chance, Redisson::new(rules, servers)))
        }
        Strategy::PgAdvisory { scope, wait, session } => {
            let lock = PgAdvisory { scope, wait, session };
            Box::new(Shell::new(spec, chance, SessionLock::new(lock)))
        }
        Strategy::PgRow { wait } => Box::new(Shell::new(spec, chance, SessionLock::new(PgRow { wait }))),
        Strategy::PgLease => Box::new(Shell::new(spec, chance, PgLease)),
        Strategy::PgOptimistic => Box::new(Shell::new(spec, chance, Optimistic::<PgOptimistic>::new())),
        Strategy::PgSerializable => Box::new(Shell::new(spec, chance, Optimistic::<PgSerializable>::new())),
        Strategy::Layered => Box::new(Shell::new(spec, chance, Layered::default())),
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
