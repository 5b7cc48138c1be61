//! Locks whose release writes the work's effect: what was written, and, for optimistic locks, whether the work counts
//! as a grant.
//!
//! ```text
//!              Held              Release           Released: a grant, counted with the stamps of this try
//!    Acquiring ────▶ Holding ─────────────▶ Releasing ──────────────────────────────────────────────────▶ think
//!        ▲                                   │   │ Failed, Unknown, Expired: no grant
//!        └────── Conflict: the same work ────┘   └──────────────────────────────────▶ pause
//! ```
//! A try is not a grant, so the checker is not told of it, and its hold counts only if its write was accepted.

use locks::{Event, LockMachine, Nanos, Outcome};

use super::client::{Counted, Doing};
use super::{Clients, ERROR_PAUSE, Ports};
use crate::recorder::{Ended, Phase, Recorder};
use crate::transport::Transport;

impl<L: LockMachine> Clients<L> {
    /// Counts the reply to a release that writes. Counted in the whole trial, because the rows contain the writes of
    /// the whole trial.
    pub(crate) fn write_answered(&self, index: u32, outcome: Outcome, recorder: &mut Recorder) {
        // None of these locks takes several keys.
        let row = self.list[index as usize].key.0 as usize;
        match outcome {
            Outcome::Released => {
                recorder.write_acknowledged(row);
            }
            // An optimistic lock has no fence: there `Expired` means that the session had ended and nothing was sent.
            Outcome::Expired if self.params.strategy.is_optimistic() => {}
            Outcome::Expired => recorder.write_was_stale(),
            Outcome::Failed(_) | Outcome::Unknown => recorder.write_unknown(row),
            // Nothing was written, or nothing has been written yet.
            Outcome::Conflict | Outcome::Held { .. } | Outcome::Refused(_) => {}
        }
    }

    /// At the end of the trial: a write that was sent and has no reply may have been carried out.
    pub(crate) fn count_unanswered_writes(&mut self, recorder: &mut Recorder) {
        for index in 0..self.list.len() as u32 {
            self.drop_work(index, recorder);
        }
        if self.params.strategy.writes() {
            for client in self.list.iter().filter(|client| client.doing == Doing::Releasing) {
                recorder.write_unknown(client.key.0 as usize);
            }
        }
    }

    /// Starts the work after an optimistic lock has read its value.
    pub(super) fn begin_try<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        client.granted = now;
        client.counted = Counted::No;
        client.entries = 1;
        client.until = Nanos::NEVER;
        self.enter_or_hold(index, now, to);
    }

    /// Handles the reply to the write of a try.
    pub(super) fn try_answered<T: Transport>(
        &mut self,
        index: u32,
        now: Nanos,
        outcome: Outcome,
        to: &mut Ports<'_, T>,
    ) {
        let ended = match outcome {
            Outcome::Released => Ended::Granted,
            Outcome::Conflict => Ended::Refused,
            Outcome::Expired => Ended::Lost,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Held { .. } | Outcome::Refused(_) => panic!("a release settled with {outcome:?}"),
        };
        if ended == Ended::Granted {
            let client = &self.list[index as usize];
            let response = client.granted.since(client.asked().due);
            to.recorder.granted();
            to.recorder.granted_early(response);
        }
        if to.recorder.is_counting() {
            self.count_try(index, now, ended, to.recorder);
        }
        match ended {
            Ended::Granted => self.think(index, now),
            Ended::Refused => self.again(index, now, to),
            Ended::Timeout | Ended::Error | Ended::Lost | Ended::Unknown | Ended::Waiting => {
                self.pause(index, now.after(ERROR_PAUSE));
            }
        }
    }

    fn count_try(&self, index: u32, now: Nanos, ended: Ended, recorder: &mut Recorder) {
        let client = &self.list[index as usize];
        let (granted, release_sent) = (client.granted, client.release_sent);
        recorder.record(Phase::Release, ended, now.since(release_sent));
        if ended == Ended::Refused {
            return; // The work is repeated, and its attempts are counted when it ends.
        }
        let (asked, tried) = (client.asked(), client.tried());
        let attempts = recorder.attempts(index, tried);
        if ended != Ended::Granted {
            return recorder.ungranted(index, asked, now, ended, attempts);
        }
        recorder.record(Phase::Hold, ended, release_sent.since(granted));
        recorder.grant(index, asked, granted, client.hold, attempts);
        if tried.conflicts > 0 {
            recorder.conflicted();
        }
    }

    /// Another client changed what the work had read. The work is repeated with the same keys, and its latency still
    /// counts from the original due time.
    fn again<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        if !self.running {
            // The work is dropped.
            self.list[index as usize].doing = Doing::Cancelling;
            return self.dispatch(index, now, Event::Cancel, to);
        }
        let client = &mut self.list[index as usize];
        client.doing = Doing::Acquiring;
        client.entries = 0;
        client.release_sent = Nanos::NEVER;
        self.dispatch(index, now, Event::Retry, to);
    }
}

#[cfg(test)]
mod tests;
