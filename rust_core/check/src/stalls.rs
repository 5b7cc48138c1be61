//! Progress: whether a key that is wanted is granted again, and whether everybody is.
//!
//! A key stalls when nobody holds it or is granted it for longer than `Rules::granted_within`, while one client waits for it
//! all the while, and every driver runs. A lock that is free of deadlock grants it by then, whatever it has lost: the lease of whoever may still
//! have it is over, and those who wait have asked again. L. Lamport: A New Solution of Dijkstra's Concurrent Programming
//! Problem, CACM 17(8), 1974, has the property.
//!
//! A client starves when it still waits at the end of the window, has waited for at least half of it, and at least
//! `PASSED_OVER` grants went to clients that had begun to wait after it.
//!
//! A grant was freed by a lease when somebody waited for the key ever since its last release, and was granted it only when
//! the lease of that earlier holder had ended: as if the release had done nothing.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::{Client, NO_LEASE_LEFT, NOBODY, State};
use locks::Nanos;

/// Who waits in a long queue is passed by nobody; who is passed by chance is passed a few times.
const PASSED_OVER: u64 = 20;

/// How fine what is left of a lease is kept: a shift is all that a release has to pay for it.
const UNIT_BITS: u32 = 10;

/// What is left of a lease that ends at `until`, rounded up, if more than `at_least` is.
#[inline]
pub(crate) fn lease_left(at: Nanos, until: Nanos, at_least: Nanos) -> u32 {
    let left = until.since(at);
    if until == Nanos::NEVER || left <= at_least {
        return NO_LEASE_LEFT;
    }
    u32::try_from((left.0 >> UNIT_BITS) + 1).unwrap_or(NO_LEASE_LEFT)
}

/// Whether what was left of a lease was over this long after the release.
#[inline]
pub(crate) const fn lease_was_over(left: u32, since_release: Nanos) -> bool {
    left != NO_LEASE_LEFT && since_release.0 >= (left as u64) << UNIT_BITS
}

impl Checker {
    /// Somebody waits for `key`, which may have been free for too long.
    #[cold]
    #[inline(never)]
    pub(crate) fn judge_stall(&mut self, at: Nanos, key: usize) {
        let shared = self.crowds.get(key).is_some_and(|crowd| !crowd.sharers.is_empty());
        let record = &mut self.keys[key];
        let first = record.waiters.head;
        if first == NOBODY || shared || !record.holders.is_empty() {
            return;
        }
        let since = record
            .freed
            .max(self.clients[first as usize].since)
            .max(self.stood_until);
        let lasted = at.since(since);
        if lasted > self.granted_within {
            // What comes after is another stall.
            record.freed = at;
            record.wanted = false;
            self.note_waiting(ViolationKind::StalledKey, at, lasted, None, first);
        }
    }

    /// Of all who wait when the trial ends.
    #[cold]
    pub(crate) fn judge_stalls(&mut self, at: Nanos) {
        if self.granted_within == Nanos::NEVER {
            return;
        }
        for id in 0..self.clients.len() {
            let client = &self.clients[id];
            if client.state == State::Waiting && client.prev == NOBODY {
                self.judge_stall(at, client.key as usize);
            }
        }
    }

    /// Of all who wait when the window ends.
    #[cold]
    pub(crate) fn judge_starvation(&mut self, end: Nanos) {
        let half = Nanos(end.since(self.window_began).0 / 2);
        for id in 0..self.clients.len() as ClientId {
            let client = &self.clients[id as usize];
            if client.state == State::Waiting && client.next == NOBODY {
                self.judge_queue(end, half, id);
            }
        }
    }

    /// Of those who wait for one key, from the `last` of them on: see `turns` for how often each was passed.
    fn judge_queue(&mut self, end: Nanos, half: Nanos, last: ClientId) {
        let (mut id, mut passed) = (last, 0);
        while id != NOBODY {
            let client = &self.clients[id as usize];
            let Client { prev, since, .. } = *client;
            passed += u64::from(client.overtaken_within(self.window));
            let waited = end.since(since.max(self.window_began));
            if passed >= PASSED_OVER && waited >= half {
                self.starved(end, end.since(since), id);
            }
            id = prev;
        }
    }

    fn starved(&mut self, end: Nanos, waited: Nanos, id: ClientId) {
        match &self.fifo {
            Some(fifo) if fifo.is_promised() => {
                // Who has lost its place stands behind all that came meanwhile.
                if fifo.has_kept_its_place(id) {
                    self.note_waiting(ViolationKind::StarvedClient, end, waited, None, id);
                }
            }
            Some(_) | None => self.log.count(ViolationKind::StarvedClient),
        }
    }

    /// Whether `key` may have been free for too long; mostly it is not, and that is seen at once.
    #[inline]
    pub(crate) fn may_have_stalled(&self, at: Nanos, key: usize) -> bool {
        at.since(self.keys[key].freed) > self.granted_within
    }
}
