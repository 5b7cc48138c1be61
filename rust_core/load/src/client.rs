//! One client as the driver sees it: its lock, its current step, and the time stamps of its current acquire.

use locks::{AnyLock, Key, LockMachine, Mode, Nanos};

use crate::workload::Stream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Waits for an arrival, or for the start of the trial.
    Idle,
    Acquiring,
    /// Holds the lock, and enters it once more.
    Entering,
    Holding,
    Releasing,
    /// Cancels an acquire at the end of a phase.
    Cancelling,
    /// Thinks, or pauses after an error.
    Pausing,
}

/// How much of a grant is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Nothing: the grant began outside the window.
    No,
    /// All of it, up to its end, which may lie outside the window.
    Whole,
    /// As `Whole`, but the end of a phase cut the hold short, so the hold is not counted.
    WithoutHold,
}

/// Aligned, so that a client takes three cache lines instead of four.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Client {
    pub(crate) lock: AnyLock,
    pub(crate) stream: Stream,
    pub(crate) doing: Doing,
    pub(crate) counted: Counted,
    pub(crate) mode: Mode,
    /// Entries of a nested grant that have not been left.
    pub(crate) entries: u8,
    /// The key, or the first of several: see `Thread::key_sets`.
    pub(crate) key: Key,
    pub(crate) due: Nanos,
    /// When the first attempt was sent.
    pub(crate) sent: Nanos,
    pub(crate) granted: Nanos,
    /// The end of the lease; `NEVER` for a lock without one.
    pub(crate) until: Nanos,
    pub(crate) hold: Nanos,
    /// When the release was sent; `NEVER` before.
    pub(crate) release_sent: Nanos,
    /// When its lock asked to be woken.
    pub(crate) lock_wake: Nanos,
    /// When its hold or pause ends.
    pub(crate) own_wake: Nanos,
}

impl Client {
    pub(crate) fn new(lock: AnyLock, stream: Stream) -> Self {
        Self {
            lock,
            stream,
            doing: Doing::Idle,
            counted: Counted::No,
            mode: Mode::Exclusive,
            entries: 0,
            key: Key(0),
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            granted: Nanos::ZERO,
            until: Nanos::NEVER,
            hold: Nanos::ZERO,
            release_sent: Nanos::NEVER,
            lock_wake: Nanos::NEVER,
            own_wake: Nanos::NEVER,
        }
    }

    /// Reads one field of each of its cache lines.
    #[inline]
    pub(crate) fn touch(&self) {
        std::hint::black_box((self.granted, self.lock.attempts(), self.doing));
    }

    pub(crate) fn next_wake(&self) -> Nanos {
        self.lock_wake.min(self.own_wake)
    }

    /// Whether nothing of this client is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Idle | Doing::Pausing)
    }
}

/// The figures of one client in the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFigures {
    pub(crate) grants: u64,
    pub(crate) attempts: u64,
    pub(crate) wait_sum_ns: u64,
    pub(crate) wait_max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_takes_three_cache_lines() {
        assert_eq!(size_of::<Client>(), 3 * 64);
    }
}
