//! One client as the driver sees it: its lock, what it is doing, and the stamps of its present acquire.

use locks::{AnyLock, Key, LockMachine, Mode, Nanos};

use crate::workload::Stream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Waits for an arrival, or for the trial to begin.
    Idle,
    Acquiring,
    /// Holds, and enters once more.
    Entering,
    Holding,
    Releasing,
    /// Gives up an acquire at the end of a period.
    Cancelling,
    /// Thinks, or pauses after an error.
    Pausing,
}

/// What of a grant is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It began outside the window.
    No,
    /// It is measured to its end, wherever that falls.
    Whole,
    /// As `Whole`, but the end of a period cut its hold short: it would have been longer.
    WithoutHold,
}

/// Aligned, so that a client takes three cache lines and not four.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Client {
    pub(crate) lock: AnyLock,
    pub(crate) stream: Stream,
    pub(crate) doing: Doing,
    pub(crate) counted: Counted,
    pub(crate) mode: Mode,
    /// Entries of a nested grant that are not left.
    pub(crate) entries: u8,
    /// The first key, where it takes several: see `Thread::key_sets`.
    pub(crate) key: Key,
    pub(crate) due: Nanos,
    /// The first attempt's send.
    pub(crate) sent: Nanos,
    pub(crate) granted: Nanos,
    /// The end of the lease; `NEVER` for a lock without one.
    pub(crate) until: Nanos,
    pub(crate) hold: Nanos,
    /// `NEVER` until it was stamped.
    pub(crate) release_sent: Nanos,
    /// When its lock wants to be woken.
    pub(crate) lock_wake: Nanos,
    /// When its hold or pause is over.
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

    /// Reads a field of each of its cache lines.
    #[inline]
    pub(crate) fn touch(&self) {
        std::hint::black_box((self.granted, self.lock.attempts(), self.doing));
    }

    pub(crate) fn next_wake(&self) -> Nanos {
        self.lock_wake.min(self.own_wake)
    }

    /// Nothing of it is under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Idle | Doing::Pausing)
    }
}

/// What is counted for each client in the window.
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
