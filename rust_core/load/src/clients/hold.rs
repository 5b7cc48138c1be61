//! What happens between grant and release: nested entries, renewals, losses.

use check::Event as Judged;
use locks::{Event, Lasts, LockMachine, Nanos, Outcome};

use super::client::{Counted, Doing};
use super::{Clients, Ports};
use crate::recorder::Recorder;
use crate::spec::AfterLease;
use crate::transport::Transport;

pub(super) const fn end_of(lasts: Lasts) -> Nanos {
    match lasts {
        Lasts::Until(until) => until,
        Lasts::Session | Lasts::Unbounded => Nanos::NEVER,
    }
}

impl<L: LockMachine> Clients<L> {
    /// Handles the outcome of an entry.
    pub(super) fn entered<T: Transport>(&mut self, index: u32, now: Nanos, outcome: Outcome, to: &mut Ports<'_, T>) {
        match outcome {
            Outcome::Held { lasts, .. } => {
                self.list[index as usize].entries += 1;
                self.lasts(index, now, lasts, to.recorder);
                self.enter_or_hold(index, now, to);
            }
            // The earlier entries stand, but the work that asked for this one cannot go on.
            Outcome::Released
            | Outcome::Refused(_)
            | Outcome::Expired
            | Outcome::Conflict
            | Outcome::Failed(_)
            | Outcome::Unknown => {
                self.release_all(index, now, to);
            }
        }
    }

    fn release_all<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        client.entries = 1;
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.drop_work(index, to.recorder);
        self.dispatch(index, now, Event::Cancel, to);
    }

    /// Handles the outcome of leaving an entry that is not the last.
    pub(super) fn left<T: Transport>(&mut self, index: u32, now: Nanos, lasts: Lasts, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        assert!(
            client.entries > 1,
            "client {index} left its last entry, yet its lock is held"
        );
        client.entries -= 1;
        self.lasts(index, now, lasts, to.recorder);
        self.release(index, now, to);
    }

    /// At the end of a phase: the holder releases all entries.
    pub(crate) fn cut_short<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        if client.counted == Counted::Whole {
            client.counted = Counted::WithoutHold;
        }
        self.release_all(index, now, to);
    }

    /// Handles the renewal of a holder's lease.
    pub(crate) fn renewed(&mut self, index: u32, now: Nanos, lasts: Lasts, recorder: &mut Recorder) {
        recorder.renewed();
        self.lasts(index, now, lasts, recorder);
    }

    /// Handles the loss of a holder's lock.
    pub(super) fn lapsed(&mut self, index: u32, now: Nanos, recorder: &mut Recorder) {
        let client = &mut self.list[index as usize];
        if client.counted != Counted::No {
            recorder.lapsed();
        }
        recorder.knew(index, client.granted, client.until, now);
        client.until = client.until.min(now);
        self.report_loss(index, now, recorder);
        if self.params.after_lease == AfterLease::Stop {
            self.wake_at_end_of_lease(index);
        }
    }

    /// A release got no reply. If its session has ended, the lock may have been lost before the release.
    pub(super) fn check_session<T: Transport>(&self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        if self.params.strategy.holds_by_session() && to.transport.is_disconnected(index) {
            self.report_loss(index, now, to.recorder);
        }
    }

    /// Reports the loss of a session, so that the checker does not blame the grant that the server then made. A session
    /// that the lock itself closed during the hold is not a loss: the client goes on as the holder, and the lock is
    /// responsible.
    fn report_loss(&self, index: u32, now: Nanos, recorder: &mut Recorder) {
        if !self.hung_up.contains(&index) {
            self.tell(recorder, index, now, |client, _| Judged::LeaseLost { client });
        }
    }

    /// The lock closed the client's own connection, and its outcome, if there was one, is handled.
    pub(super) fn note_hang_up(&mut self, index: u32) {
        let client = &self.list[index as usize];
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
    fn lasts(&mut self, index: u32, now: Nanos, lasts: Lasts, recorder: &mut Recorder) {
        let until = end_of(lasts);
        let client = &mut self.list[index as usize];
        if until == client.until {
            return; // The entry was only counted, and its lease is unchanged.
        }
        let before = std::mem::replace(&mut client.until, until);
        self.tell(recorder, index, now, |client, _| Judged::Renewed { client, until });
        if self.params.after_lease == AfterLease::Stop && until < before {
            self.wake_at_end_of_lease(index);
        }
    }

    /// Wakes a holder that stops at the end of its lease.
    fn wake_at_end_of_lease(&mut self, index: u32) {
        let client = &mut self.list[index as usize];
        if client.doing == Doing::Holding && client.until < client.own_wake {
            client.own_wake = client.until;
            self.timers.arm(index, client.until);
        }
    }
}

#[cfg(test)]
mod tests;
