//! Counts the steps of clients within the window.

use locks::{LockMachine, Nanos};

use crate::client::Counted;
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

impl Thread {
    /// Counts the attempts of an acquire that has ended, with any outcome, and returns them.
    pub(crate) fn count_attempts(&mut self, index: u32) -> u64 {
        let lock = &self.clients[index as usize].lock;
        let attempts = u64::from(lock.attempts());
        self.counters.no_quorum += u64::from(lock.no_quorum_attempts());
        self.counters.conflicts += u64::from(lock.conflicts());
        self.counters.attempts += attempts;
        self.figures[index as usize].attempts += attempts;
        attempts
    }

    pub(crate) fn count_grant(&mut self, index: u32, now: Nanos, attempts: u64) {
        let client = &self.clients[index as usize];
        let (response, service) = (now.since(client.due), now.since(client.sent));
        self.counters.grants += 1;
        self.counters.refused_attempts += attempts.saturating_sub(1);
        self.counters.nominal_hold_ns += client.hold.0;
        if self.was_due_within(client.due) {
            self.histograms.record(Phase::Response, Ended::Granted, response);
            if self.arrivals.is_some() {
                self.histograms.record(Phase::Service, Ended::Granted, service);
            }
        }
        self.timeline.grant(response);
        let figures = &mut self.figures[index as usize];
        figures.grants += 1;
        figures.wait_sum_ns += response.0;
        figures.wait_max_ns = figures.wait_max_ns.max(response.0);
    }

    pub(crate) fn count_ungranted(&mut self, index: u32, now: Nanos, ended: Ended, attempts: u64) {
        let client = &self.clients[index as usize];
        let (response, service) = (now.since(client.due), now.since(client.sent));
        if self.was_due_within(client.due) {
            self.histograms.record(Phase::Response, ended, response);
            if self.arrivals.is_some() {
                self.histograms.record(Phase::Service, ended, service);
            }
        }
        match ended {
            Ended::Refused | Ended::Timeout => {
                self.counters.refused_attempts += attempts;
                self.counters.refused += u64::from(ended == Ended::Refused);
                self.counters.timeouts += u64::from(ended == Ended::Timeout);
                self.timeline.refusal();
            }
            Ended::Error | Ended::Unknown => {
                self.counters.refused_attempts += attempts.saturating_sub(1);
                self.counters.errors += u64::from(ended == Ended::Error);
                self.counters.unknown += u64::from(ended == Ended::Unknown);
                self.timeline.error();
            }
            Ended::Lost => {
                self.counters.refused_attempts += attempts;
                self.counters.lost += 1;
            }
            Ended::Granted | Ended::Waiting => {
                unreachable!("{ended:?} is counted elsewhere")
            }
        }
        let figures = &mut self.figures[index as usize];
        figures.wait_max_ns = figures.wait_max_ns.max(response.0);
    }

    /// Counts a release whose reply was "not held". A hold that outlived its lease was already counted when its release
    /// was sent.
    pub(crate) fn count_not_held(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        if client.counted != Counted::No {
            self.counters.lost += u64::from(client.release_sent <= client.until);
        }
    }

    /// Records how late a timer of a hold, a pause or a retry fired. In an open loop the lag is that of arrivals only.
    pub(crate) fn count_lag(&mut self, late: Nanos) {
        if self.counting && self.arrivals.is_none() {
            self.histograms.record(Phase::SendDelay, Ended::Granted, late);
        }
    }
}
