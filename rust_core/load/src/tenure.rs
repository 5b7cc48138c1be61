//! What happens to a lock between its grant and its release: nested entries, leases set anew, losses.

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
    /// An entry was answered.
    pub(crate) fn entered(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        match outcome {
            Outcome::Held { lasts, .. } => {
                self.clients[index as usize].entries += 1;
                self.lasts(index, now, lasts);
                self.enter_or_hold(index, now);
            }
            // The entries before it stand, but the work that asked for this one cannot go on.
            Outcome::Released
            | Outcome::Refused(_)
            | Outcome::Expired
            | Outcome::Conflict
            | Outcome::Failed(_)
            | Outcome::Unknown => {
                self.give_all_back(index, now);
            }
        }
    }

    fn give_all_back(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        client.entries = 1;
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.tell(index, now, Event::Cancel);
    }

    /// An entry was left, and others are not.
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

    /// The end of a period: the holder gives all entries back.
    pub(crate) fn cut_short(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.counted == Counted::Whole {
            client.counted = Counted::WithoutHold;
        }
        self.give_all_back(index, now);
    }

    /// The lease of a holder was set anew.
    pub(crate) fn renewed(&mut self, index: u32, now: Nanos, lasts: Lasts) {
        self.counters.renewals += u64::from(self.counting);
        self.lasts(index, now, lasts);
    }

    /// A holder was told that its lock is no longer its own.
    pub(crate) fn lapsed(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.counted != Counted::No {
            self.counters.lapsed += 1;
        }
        client.until = client.until.min(now);
        self.tell_of_loss(index, now);
        if self.shared.after_lease == AfterLease::Stop {
            self.wake_at_end_of_lease(index);
        }
    }

    /// A release was not answered. If its session has ended, what was held may have ended before.
    pub(crate) fn look_for_session(&mut self, index: u32, now: Nanos) {
        if self.shared.strategy.holds_by_session() && self.disconnected.contains(&index) {
            self.tell_of_loss(index, now);
        }
    }

    /// Whoever lost a session may not be blamed for the grant that the server then made. A session that the lock itself
    /// closed while it was held is not lost: the client goes on as the holder, and the lock answers for it.
    fn tell_of_loss(&mut self, index: u32, now: Nanos) {
        if !self.hung_up.contains(&index) {
            self.judge_each(index, now, |client, _| Judged::LeaseLost { client });
        }
    }

    /// The lock of a client closed the client's own connection, and what it settled besides is settled.
    pub(crate) fn hung_up(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let is_held = match client.doing {
            Doing::Entering | Doing::Holding => true,
            Doing::Releasing => client.release_sent == Nanos::NEVER,
            Doing::Idle | Doing::Acquiring | Doing::Cancelling | Doing::Pausing => false,
        };
        if is_held && self.shared.strategy.holds_by_session() {
            self.hung_up.push(index);
        }
    }

    /// What is held lasts until another point now.
    fn lasts(&mut self, index: u32, now: Nanos, lasts: Lasts) {
        let until = end_of(lasts);
        let client = &mut self.clients[index as usize];
        if until == client.until {
            return; // An entry that is only counted.
        }
        let before = std::mem::replace(&mut client.until, until);
        self.judge_each(index, now, |client, _| Judged::Renewed { client, until });
        if self.shared.after_lease == AfterLease::Stop && until < before {
            self.wake_at_end_of_lease(index);
        }
    }

    /// A holder that stops at the end of its lease is looked at again then.
    fn wake_at_end_of_lease(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.doing == Doing::Holding && client.until < client.own_wake {
            client.own_wake = client.until;
            self.timers.arm(index, client.until);
        }
    }

    /// Tells the checker of a step of a client, once for each key that it names. There each of them is a client of its
    /// own: exclusion is a matter of one key, whatever else was taken with it.
    #[inline]
    pub(crate) fn judge_each(&mut self, index: u32, at: Nanos, event: impl Fn(ClientId, Key) -> Judged) {
        let number = self.number(index);
        match self.key_sets.get(index as usize) {
            None => self.judge.tell(at, event(number, self.clients[index as usize].key)),
            Some(keys) => {
                let first = number * self.shared.keys_per_grant();
                for (client, &key) in (first..).zip(keys.as_slice()) {
                    self.judge.tell(at, event(client, key));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
