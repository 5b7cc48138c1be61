//! Where answers go that an event loop waits for: a list, and a descriptor that can be read while the list is not empty.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::ticket::{Answer, Asked};

/// An answer to a request of this ticket.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub ticket: u64,
    pub asked: Asked,
    pub answer: Answer,
}

/// One for each event loop, whatever clients it uses.
#[derive(Debug)]
pub struct Port {
    wake: Wake,
    settled: Mutex<Vec<Settled>>,
}

impl Port {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            wake: Wake::new()?,
            settled: Mutex::default(),
        })
    }

    /// The descriptor to watch for reading.
    pub fn descriptor(&self) -> RawFd {
        self.wake.0.as_raw_fd()
    }

    /// Swaps `into`, which must be empty, with the answers that have come.
    pub fn swap(&self, into: &mut Vec<Settled>) {
        // Before the list is emptied: an answer that comes in between wakes once more.
        self.wake.clear();
        std::mem::swap(&mut *self.list(), into);
    }

    /// True when the descriptor has to be woken, which once a batch is enough.
    pub(super) fn push(&self, ticket: u64, asked: Asked, answer: Answer) -> bool {
        let mut settled = self.list();
        settled.push(Settled { ticket, asked, answer });
        settled.len() == 1
    }

    pub(super) fn wake(&self) {
        self.wake.wake();
    }

    fn list(&self) -> MutexGuard<'_, Vec<Settled>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counter of the kernel that can be read once it was written.
#[derive(Debug)]
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn wake(&self) {
        // Fails only if the counter is full: then it can be read already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // Fails only if nothing was written.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_of_a_batch_wakes_and_the_others_do_not() {
        let port = Port::new().expect("the kernel has counters");
        assert!(port.push(1, Asked::Lock, Answer::Held));
        assert!(!port.push(2, Asked::Lock, Answer::Busy));
        let mut settled = Vec::new();
        port.swap(&mut settled);
        assert_eq!(settled.iter().map(|one| one.ticket).collect::<Vec<_>>(), [1, 2]);
        assert!(port.push(3, Asked::Loss, Answer::Lost), "a new batch");
    }
}
