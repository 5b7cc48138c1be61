//! One client as the driver sees it: its lock, its current step, and the time stamps of its current acquire.

use locks::{Key, LockMachine, Mode, Nanos};

use super::workload::Stream;

/// The current step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
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
pub(crate) struct Client<L> {
    pub(super) lock: L,
    pub(super) stream: Stream,
    pub(super) doing: Doing,
    pub(super) counted: Counted,
    pub(super) mode: Mode,
    /// Entries of a nested grant that have not been left.
    pub(super) entries: u8,
    /// The key, or the first of several: see `Clients::key_sets`.
    pub(super) key: Key,
    pub(super) due: Nanos,
    /// When the first attempt was sent.
    pub(super) sent: Nanos,
    pub(super) granted: Nanos,
    /// The end of the lease; `NEVER` for a lock without one.
    pub(super) until: Nanos,
    pub(super) hold: Nanos,
    /// When the release was sent; `NEVER` before.
    pub(super) release_sent: Nanos,
    /// When its lock asked to be woken.
    pub(super) lock_wake: Nanos,
    /// When its hold or pause ends.
    pub(super) own_wake: Nanos,
}

/// When an acquire was due, and when its first attempt was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) due: Nanos,
    pub(crate) sent: Nanos,
}

/// What the lock has tried for the current request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    pub(crate) attempts: u32,
    pub(crate) no_quorum: u32,
    pub(crate) conflicts: u32,
}

impl<L: LockMachine> Client<L> {
    pub(crate) fn new(lock: L, stream: Stream) -> Self {
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

    pub(crate) fn asked(&self) -> Asked {
        Asked {
            due: self.due,
            sent: self.sent,
        }
    }

    pub(crate) fn tried(&self) -> Tried {
        Tried {
            attempts: self.lock.attempts(),
            no_quorum: self.lock.no_quorum_attempts(),
            conflicts: self.lock.conflicts(),
        }
    }

    /// Whether what it sends now ends its hold, and nothing that it sent before did.
    pub(crate) fn ends_hold(&self) -> bool {
        self.doing == Doing::Releasing && self.entries <= 1 && self.release_sent == Nanos::NEVER
    }

    /// Whether it has the lock, or may still have it.
    pub(crate) fn holds(&self) -> bool {
        matches!(self.doing, Doing::Entering | Doing::Holding | Doing::Releasing)
    }
}

#[cfg(test)]
mod tests {
    use locks::AnyLock;

    use super::*;

    #[test]
    fn a_client_takes_three_cache_lines() {
        assert_eq!(size_of::<Client<AnyLock>>(), 3 * 64);
    }
}
