//! One lock of a program: what its threads and its event loop see of it while the loop of the client works on it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use locks::{Lease, Mode, Nanos, Retry};

use super::port::Port;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    Held,
    Released,
    /// The release found that the lock was no longer held.
    Expired,
    Extended,
    /// The lock was lost. Also told without a request, as soon as it happens.
    Lost,
    /// Another client held the lock for all of the wait.
    Busy,
    /// Of several servers too few replied for a majority to grant.
    NoQuorum,
    /// The grant came when the lease had practically ended.
    TooLate,
    /// A server replied with an error: see `Ticket::text`.
    Failed,
    /// No connection to a server was open. Nothing was sent. See `Ticket::text`.
    Unreachable,
    /// A reply was lost.
    Unknown,
    /// The client was closed.
    Closed,
    /// More locks at once than the client has room for.
    NoRoom,
}

impl Answer {
    /// Indexed by their numbers.
    pub const NAMES: [&str; 13] = [
        "held",
        "released",
        "expired",
        "extended",
        "lost",
        "busy",
        "no quorum",
        "too late",
        "failed",
        "unreachable",
        "unknown",
        "closed",
        "no room",
    ];
}

/// Which request an answer belongs to: an extension may be under way beside the end of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To acquire or to release.
    Lock,
    Extension,
    /// Nobody: the loss of the lock.
    Loss,
}

/// What a program wants to lock.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// At most `wire::GivenNames::LONGEST` bytes.
    pub name: Box<[u8]>,
    pub lease: Lease,
    /// How long to try; zero: one attempt.
    pub wait: Nanos,
    /// The pauses between attempts, and how many there are; `wait` takes the place of its `max_wait`. `None`: pauses
    /// with full jitter, from 1 ms to 50 ms.
    pub retry: Option<Retry>,
    pub mode: Mode,
}

/// A retry policy without its `max_wait`, in a form that has an order.
pub(super) type RetryBits = [u64; 5];

impl Wanted {
    pub(super) fn retry_bits(&self) -> Option<RetryBits> {
        self.retry.map(|retry| {
            let most = retry.max_attempts.map_or(u64::MAX, u64::from);
            [
                retry.kind as u64,
                retry.base.0,
                retry.factor.to_bits(),
                retry.cap.0,
                most,
            ]
        })
    }
}

/// One lock, from its request to its end.
#[derive(Debug)]
pub struct Ticket {
    id: u64,
    pub(super) wanted: Wanted,
    pub(super) port: Option<Arc<Port>>,
    /// Its place in the client; known to the loop alone.
    pub(super) slot: AtomicU32,
    /// The end of belief; 0 before the grant, `NEVER` for a lock of a session.
    until: AtomicU64,
    /// 0: no fence.
    fence: AtomicU64,
    /// How long the holder had left when the lock was refused; `NEVER`: not known.
    holder_left: AtomicU64,
    is_lost: AtomicBool,
    is_over: AtomicBool,
    cell: Mutex<Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    lock: Option<Answer>,
    extension: Option<Answer>,
    text: Option<String>,
    /// Threads that wait for any of it.
    waiting: Vec<Thread>,
}

impl Ticket {
    pub(super) const NOWHERE: u32 = u32::MAX;

    /// With a `port` its answers go there, and otherwise to the threads that wait.
    pub fn new(wanted: Wanted, port: Option<Arc<Port>>) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            wanted,
            port,
            slot: AtomicU32::new(Self::NOWHERE),
            until: AtomicU64::new(0),
            fence: AtomicU64::new(0),
            holder_left: AtomicU64::new(Nanos::NEVER.0),
            is_lost: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            cell: Mutex::default(),
        }
    }

    /// No other ticket of the process has it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// When the holder must stop to believe, on `CLOCK_MONOTONIC`; `None` for a lock without a lease.
    pub fn until(&self) -> Option<Nanos> {
        let until = Nanos(self.until.load(Ordering::Acquire));
        (until != Nanos::NEVER).then_some(until)
    }

    pub fn fence(&self) -> Option<u64> {
        Some(self.fence.load(Ordering::Acquire)).filter(|&fence| fence != 0)
    }

    /// How long the holder had left when the lock was refused, if the server told.
    pub fn holder_left(&self) -> Option<Nanos> {
        Some(Nanos(self.holder_left.load(Ordering::Acquire))).filter(|&left| left != Nanos::NEVER)
    }

    /// Whether the lock was lost while it was held.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Whether nothing of the lock is left to do.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The words of the last error about it.
    pub fn text(&self) -> Option<String> {
        self.cell().text.clone()
    }

    /// Takes an answer that has come; otherwise the calling thread is unparked when one comes. `Asked::Loss` is never
    /// taken away.
    pub(super) fn take(&self, asked: Asked) -> Option<Answer> {
        let cell = &mut *self.cell();
        let found = match asked {
            Asked::Lock => cell.lock.take(),
            Asked::Extension => cell.extension.take(),
            Asked::Loss => (self.is_lost() || self.is_over()).then_some(Answer::Lost),
        };
        let this = std::thread::current();
        let known = cell.waiting.iter().position(|thread| thread.id() == this.id());
        match (found, known) {
            (None, None) => cell.waiting.push(this),
            (Some(_), Some(at)) => drop(cell.waiting.swap_remove(at)),
            (None, Some(_)) | (Some(_), None) => {}
        }
        found
    }

    /// Whether `take` would find an answer.
    pub(super) fn has(&self, asked: Asked) -> bool {
        match asked {
            Asked::Lock => self.cell().lock.is_some(),
            Asked::Extension => self.cell().extension.is_some(),
            Asked::Loss => self.is_lost() || self.is_over(),
        }
    }

    /// Gives an answer to whoever waits for it. True when a port has to be woken for it.
    pub(super) fn answer(&self, asked: Asked, answer: Answer) -> bool {
        if let Some(port) = &self.port {
            return port.push(self.id, asked, answer);
        }
        let cell = &mut *self.cell();
        match asked {
            Asked::Lock => cell.lock = Some(answer),
            Asked::Extension => cell.extension = Some(answer),
            Asked::Loss => {}
        }
        cell.waiting.drain(..).for_each(|thread| thread.unpark());
        false
    }

    pub(super) fn refused(&self, holder_left: Nanos) {
        self.holder_left.store(holder_left.0, Ordering::Release);
    }

    pub(super) fn granted(&self, until: Nanos, fence: Option<u64>) {
        self.fence.store(fence.unwrap_or(0), Ordering::Release);
        self.renewed(until);
    }

    pub(super) fn renewed(&self, until: Nanos) {
        self.until.store(until.0, Ordering::Release);
    }

    /// True when it was not lost before.
    pub(super) fn lose(&self) -> bool {
        !self.is_lost.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn say(&self, text: String) {
        self.cell().text = Some(text);
    }

    fn cell(&self) -> MutexGuard<'_, Cell> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
