//! Progress: whether a wanted key is granted again, and whether every client is served.
//!
//! A key stalls when nobody holds it or is granted it for longer than `Rules::granted_within`, while one client waits
//! for it all the time and every driver runs. A lock without deadlocks grants it by then, whatever was lost: the lease
//! of a possible holder has ended, and the waiters have asked again. L. Lamport: A New Solution of Dijkstra's
//! Concurrent Programming Problem, CACM 17(8), 1974, has the property.
//!
//! A client starves when it still waits at the end of the window, has waited for at least half of it, and at least
//! `PASSED_OVER` grants went to clients that had begun to wait after it.
//!
//! A grant was freed by a lease when a client waited for the key ever since its last release, and was granted it only
//! when the lease of that earlier holder had ended: as if the release had done nothing.

use crate::ClientId;
use crate::checker::Checker;
use crate::report::ViolationKind;
use crate::table::{Client, NO_LEASE_LEFT, NOBODY, State};
use locks::Nanos;

/// In a long queue nobody overtakes a waiter; by chance a waiter is overtaken a few times.
const PASSED_OVER: u64 = 20;

/// The resolution of the stored rest of a lease: a shift is all that a release has to pay for it.
const UNIT_BITS: u32 = 10;

/// The rest of a lease that ends at `until`, rounded up, if it is more than `at_least`.
#[inline]
pub(crate) fn lease_left(at: Nanos, until: Nanos, at_least: Nanos) -> u32 {
    let left = until.since(at);
    if until == Nanos::NEVER || left <= at_least {
        return NO_LEASE_LEFT;
    }
    u32::try_from((left.0 >> UNIT_BITS) + 1).unwrap_or(NO_LEASE_LEFT)
}

/// Whether the rest of a lease had passed this long after the release.
#[inline]
pub(crate) const fn lease_was_over(left: u32, since_release: Nanos) -> bool {
    left != NO_LEASE_LEFT && since_release.0 >= (left as u64) << UNIT_BITS
}

impl Checker {
    /// Judges the key with the record at `place`, which a client waits for, and which may have been free for too long.
    #[cold]
    #[inline(never)]
    pub(crate) fn judge_stall(&mut self, at: Nanos, place: u32) {
        let shared = self
            .crowds
            .get(place as usize)
            .is_some_and(|crowd| !crowd.sharers.is_empty());
        let record = &mut self.keys[place];
        let first = record.waiters.head;
        if first == NOBODY || shared || !record.holders.is_empty() {
            return;
        }
        let since = record
            .freed
            .max(self.clients[first as usize].since)
            .max(self.driver_stalled_until);
        let lasted = at.since(since);
        if lasted > self.granted_within {
            // A later wait is another stall.
            record.freed = at;
            record.wanted = false;
            self.note_waiting(ViolationKind::StalledKey, at, lasted, None, first);
        }
    }

    /// Judges all keys that clients wait for when the trial ends.
    #[cold]
    pub(crate) fn judge_stalls(&mut self, at: Nanos) {
        if self.granted_within == Nanos::NEVER {
            return;
        }
        for id in 0..self.clients.len() {
            let client = &self.clients[id];
            if client.state == State::Waiting && client.prev == NOBODY {
                self.judge_stall(at, client.place);
            }
        }
    }

    /// Judges all clients that wait when the window ends.
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

    /// Judges the waiters of one key, from the `last` of them on: see `turns` for how often each was overtaken.
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
                // A client that has lost its place stands behind all that came meanwhile.
                if fifo.has_kept_its_place(id) {
                    self.note_waiting(ViolationKind::StarvedClient, end, waited, None, id);
                }
            }
            Some(_) | None => self.log.count(ViolationKind::StarvedClient),
        }
    }

    /// Whether the key with the record at `place` may have been free for too long. Usually it was not, and this check is
    /// cheap.
    #[inline]
    pub(crate) fn may_have_stalled(&self, at: Nanos, place: u32) -> bool {
        at.since(self.keys[place].freed) > self.granted_within
    }
}
