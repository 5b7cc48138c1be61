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

use crate::client::{Counted, Doing};
use crate::starts::ERROR_PAUSE;
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

/// The writes to each key in the whole trial, counted per row because a surplus in one row must not hide a loss in
/// another. Empty for a lock that writes nothing.
#[derive(Debug, Default)]
pub struct Writes {
    pub acknowledged: Vec<u64>,
    /// Writes that were sent and whose replies were lost or were errors.
    pub unknown: Vec<u64>,
}

impl Writes {
    pub(crate) fn to(keys: usize) -> Self {
        Self {
            acknowledged: vec![0; keys],
            unknown: vec![0; keys],
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.acknowledged, &other.acknowledged),
            (&mut self.unknown, &other.unknown),
        ] {
            ours.resize(theirs.len(), 0);
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
    }
}

impl Thread {
    /// Counts the reply to a release that writes. Counted in the whole trial, because the rows contain the writes of
    /// the whole trial.
    pub(crate) fn write_answered(&mut self, index: u32, outcome: Outcome) {
        // None of these locks takes several keys.
        let row = self.clients[index as usize].key.0 as usize;
        match outcome {
            Outcome::Released => {
                self.counters.acknowledged_writes += 1;
                self.writes.acknowledged[row] += 1;
            }
            // An optimistic lock has no fence: there `Expired` means that the session had ended and nothing was sent.
            Outcome::Expired => self.counters.stale_writes += u64::from(!self.params.strategy.is_optimistic()),
            Outcome::Failed(_) | Outcome::Unknown => {
                self.counters.unknown_writes += 1;
                self.writes.unknown[row] += 1;
            }
            // Nothing was written, or nothing has been written yet.
            Outcome::Conflict | Outcome::Held { .. } | Outcome::Refused(_) => {}
        }
    }

    /// At the end of the trial: a write that was sent and has no reply may have been carried out.
    pub(crate) fn count_unanswered_writes(&mut self) {
        if self.params.strategy.writes() {
            for client in self.clients.iter().filter(|client| client.doing == Doing::Releasing) {
                self.counters.unknown_writes += 1;
                self.writes.unknown[client.key.0 as usize] += 1;
            }
        }
    }

    /// Starts the work after an optimistic lock has read its value.
    pub(crate) fn begin_try(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        client.granted = now;
        client.counted = Counted::No;
        client.entries = 1;
        client.until = Nanos::NEVER;
        self.enter_or_hold(index, now);
    }

    /// Handles the reply to the write of a try.
    pub(crate) fn try_answered(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        let ended = match outcome {
            Outcome::Released => Ended::Granted,
            Outcome::Conflict => Ended::Refused,
            Outcome::Expired => Ended::Lost,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Held { .. } | Outcome::Refused(_) => panic!("a release settled with {outcome:?}"),
        };
        self.counters.all_grants += u64::from(ended == Ended::Granted);
        if self.counting {
            self.count_try(index, now, ended);
        }
        match ended {
            Ended::Granted => self.think(index, now),
            Ended::Refused => self.again(index, now),
            Ended::Timeout | Ended::Error | Ended::Lost | Ended::Unknown | Ended::Waiting => {
                self.pause(index, now.after(ERROR_PAUSE));
            }
        }
    }

    fn count_try(&mut self, index: u32, now: Nanos, ended: Ended) {
        let client = &self.clients[index as usize];
        let (granted, release_sent) = (client.granted, client.release_sent);
        self.histograms.record(Phase::Release, ended, now.since(release_sent));
        if ended == Ended::Refused {
            return; // The work is repeated, and its attempts are counted when it ends.
        }
        let attempts = self.count_attempts(index);
        if ended != Ended::Granted {
            return self.count_ungranted(index, now, ended, attempts);
        }
        self.histograms.record(Phase::Hold, ended, release_sent.since(granted));
        self.counters.conflicted_grants += u64::from(self.clients[index as usize].lock.conflicts() > 0);
        self.count_grant(index, granted, attempts);
    }

    /// Another client changed what the work had read. The work is repeated with the same keys, and its latency still
    /// counts from the original due time.
    fn again(&mut self, index: u32, now: Nanos) {
        if !self.running {
            // The work is dropped.
            self.clients[index as usize].doing = Doing::Cancelling;
            return self.dispatch(index, now, Event::Cancel);
        }
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Acquiring;
        client.entries = 0;
        client.release_sent = Nanos::NEVER;
        self.dispatch(index, now, Event::Retry);
    }
}

#[cfg(test)]
mod tests;
