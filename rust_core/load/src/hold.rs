//! What happens between grant and release: nested entries, renewals, losses.

use check::{ClientId, Event as Judged};
use locks::{Event, Key, Lasts, Nanos, Outcome};

use crate::client::{Counted, Doing};
use crate::spec::AfterLease;
use crate::thread::Thread;

pub(crate) const fn end_of(lasts: Lasts) -> Nanos {
    match lasts {
        Lasts::Until(until) => until,
        Lasts::Session | Lasts::Unbounded => Nanos::NEVER,
    }
}

impl Thread {
    /// Handles the outcome of an entry.
    pub(crate) fn entered(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        match outcome {
            Outcome::Held { lasts, .. } => {
                self.clients[index as usize].entries += 1;
                self.lasts(index, now, lasts);
                self.enter_or_hold(index, now);
            }
            // The earlier entries stand, but the work that asked for this one cannot go on.
            Outcome::Released
            | Outcome::Refused(_)
            | Outcome::Expired
            | Outcome::Conflict
            | Outcome::Failed(_)
            | Outcome::Unknown => {
                self.release_all(index, now);
            }
        }
    }

    fn release_all(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        client.entries = 1;
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.dispatch(index, now, Event::Cancel);
    }

    /// Handles the outcome of leaving an entry that is not the last.
    pub(crate) fn left(&mut self, index: u32, now: Nanos, lasts: Lasts) {
        let client = &mut self.clients[index as usize];
        assert!(
            client.entries > 1,
            "client {index} left its last entry, yet its lock is held"
        );
        client.entries -= 1;
        self.lasts(index, now, lasts);
        self.release(index, now);
    }

    /// At the end of a phase: the holder releases all entries.
    pub(crate) fn cut_short(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.counted == Counted::Whole {
            client.counted = Counted::WithoutHold;
        }
        self.release_all(index, now);
    }

    /// Handles the renewal of a holder's lease.
    pub(crate) fn renewed(&mut self, index: u32, now: Nanos, lasts: Lasts) {
        self.counters.renewals += u64::from(self.counting);
        self.lasts(index, now, lasts);
    }

    /// Handles the loss of a holder's lock.
    pub(crate) fn lapsed(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.counted != Counted::No {
            self.counters.lapsed += 1;
        }
        client.until = client.until.min(now);
        self.report_loss(index, now);
        if self.params.after_lease == AfterLease::Stop {
            self.wake_at_end_of_lease(index);
        }
    }

    /// A release got no reply. If its session has ended, the lock may have been lost before the release.
    pub(crate) fn check_session(&mut self, index: u32, now: Nanos) {
        if self.params.strategy.holds_by_session() && self.disconnected.contains(&index) {
            self.report_loss(index, now);
        }
    }

    /// Reports the loss of a session, so that the checker does not blame the grant that the server then made. A session
    /// that the lock itself closed during the hold is not a loss: the client goes on as the holder, and the lock is
    /// responsible.
    fn report_loss(&mut self, index: u32, now: Nanos) {
        if !self.hung_up.contains(&index) {
            self.judge_each(index, now, |client, _| Judged::LeaseLost { client });
        }
    }

    /// The lock closed the client's own connection, and its outcome, if there was one, is handled.
    pub(crate) fn hung_up(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let is_held = match client.doing {
            Doing::Entering | Doing::Holding => true,
            Doing::Releasing => client.release_sent == Nanos::NEVER,
            Doing::Idle | Doing::Acquiring | Doing::Cancelling | Doing::Pausing => false,
        };
        if is_held && self.params.strategy.holds_by_session() {
            self.hung_up.push(index);
        }
    }

    /// Sets a new end of the hold.
    fn lasts(&mut self, index: u32, now: Nanos, lasts: Lasts) {
        let until = end_of(lasts);
        let client = &mut self.clients[index as usize];
        if until == client.until {
            return; // The entry was only counted, and its lease is unchanged.
        }
        let before = std::mem::replace(&mut client.until, until);
        self.judge_each(index, now, |client, _| Judged::Renewed { client, until });
        if self.params.after_lease == AfterLease::Stop && until < before {
            self.wake_at_end_of_lease(index);
        }
    }

    /// Wakes a holder that stops at the end of its lease.
    fn wake_at_end_of_lease(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.doing == Doing::Holding && client.until < client.own_wake {
            client.own_wake = client.until;
            self.timers.arm(index, client.until);
        }
    }

    /// Reports a step of a client to the checker, once for each of its keys. To the checker each key is a client of its
    /// own, because exclusion concerns one key, whatever else was taken with it.
    #[inline]
    pub(crate) fn judge_each(&mut self, index: u32, at: Nanos, event: impl Fn(ClientId, Key) -> Judged) {
        let number = self.number(index);
        match self.key_sets.get(index as usize) {
            None => self.judge.record(at, event(number, self.clients[index as usize].key)),
            Some(keys) => {
                let first = number * self.params.keys_per_grant();
                for (client, &key) in (first..).zip(keys.as_slice()) {
                    self.judge.record(at, event(client, key));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
