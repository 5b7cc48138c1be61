//! The machine of each strategy, as its own type: a driver that is generic over it dispatches nothing on each event.

use std::fmt::Debug;
use std::sync::Arc;

use crate::fair::Fair;
use crate::fair_queue::FairQueue;
use crate::fenced::Fenced;
use crate::layered::Layered;
use crate::multilock::Multilock;
#[cfg(feature = "mutants")]
use crate::mutants::Mutated as Shell;
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
use crate::shell::Lock;
#[cfg(not(feature = "mutants"))]
use crate::shell::Shell;
use crate::watchdog::Watchdog;
use crate::{Chance, LockMachine, Nanos, Spec, Strategy};

/// What a driver does with the type of a strategy's machine: see `Strategy::visit`.
pub trait MachineVisitor {
    type Out;

    /// `make` makes the machine of one client. `Strategy::check` must have accepted the spec; the `Chance` is a random
    /// stream of this client alone.
    fn visit<L: LockMachine + Debug + Send + 'static>(
        self,
        make: impl Fn(Arc<Spec>, Chance) -> L + Clone + Send + 'static,
    ) -> Self::Out;
}

impl Strategy {
    /// Calls the visitor with the type of this strategy's machine.
    pub fn visit<V: MachineVisitor>(self, visitor: V) -> V::Out {
        match self {
            Self::None | Self::Atomic => visitor.visit(|_, _| NoLock::default()),
            Self::Naive => visitor.visit(shell(|_, _| Naive)),
            Self::Mutex => visitor.visit(shell(|_, _| Mutex)),
            Self::Watchdog {
                renewals_per_ttl,
                max_hold,
            } => {
                let longest_hold = max_hold.map_or(Nanos::NEVER, Nanos::from);
                visitor.visit(shell(move |spec, _| Watchdog {
                    renewal: Renewal::new(spec.lease, renewals_per_ttl, longest_hold),
                }))
            }
            Self::Reentrant { count } => visitor.visit(shell(move |_, _| Reentrant::new(count))),
            Self::ReadWrite { prefer } => visitor.visit(shell(move |spec, _| ReadWrite::new(prefer, spec))),
            Self::Fair => visitor.visit(shell(|_, chance| Fair::new(chance))),
            Self::FairQueue { beat } => visitor.visit(shell(move |_, _| FairQueue::new(beat))),
            Self::Notify { renews } => {
                visitor.visit(shell(move |spec, _| Notify::new(Renewal::thrice(spec.lease, renews))))
            }
            Self::Semaphore { permits } => visitor.visit(shell(move |_, _| Semaphore { permits })),
            Self::Fenced { renews } => visitor.visit(shell(move |spec, _| Fenced {
                renewal: Renewal::thrice(spec.lease, renews),
            })),
            Self::Replicated { replicas, timeout_ms } => {
                visitor.visit(shell(move |_, _| Replicated { replicas, timeout_ms }))
            }
            Self::Redlock(rules) => visitor.visit(shell(move |spec, _| Redlock::new(rules, spec.servers))),
            Self::Multilock(rules) => visitor.visit(shell(move |spec, _| Multilock::new(rules, spec.servers))),
            Self::RedissonRedlock(rules) | Self::RedissonMultilock(rules) => {
                visitor.visit(shell(move |spec, _| Redisson::new(rules, spec.servers)))
            }
            Self::PgAdvisory { scope, wait, session } => {
                visitor.visit(shell(move |_, _| SessionLock::new(PgAdvisory { scope, wait, session })))
            }
            Self::PgRow { wait } => visitor.visit(shell(move |_, _| SessionLock::new(PgRow { wait }))),
            Self::PgLease => visitor.visit(shell(|_, _| PgLease)),
            Self::PgOptimistic => visitor.visit(shell(|_, _| Optimistic::<PgOptimistic>::new())),
            Self::PgSerializable => visitor.visit(shell(|_, _| Optimistic::<PgSerializable>::new())),
            Self::Layered => visitor.visit(shell(|_, _| Layered::default())),
        }
    }
}

/// Makes a shell around the lock that `lock` makes.
fn shell<L: Lock>(
    lock: impl Fn(&Spec, &mut Chance) -> L + Clone + Send + 'static,
) -> impl Fn(Arc<Spec>, Chance) -> Shell<L> + Clone + Send + 'static {
    move |spec, mut chance| {
        let lock = lock(&spec, &mut chance);
        Shell::new(spec, chance, lock)
    }
}
