//! The steps of a client, from the outcome of its acquire to the outcome of its release.

use check::Event as Judged;
use locks::{Event, Fence, Lasts, LockMachine, Nanos, Outcome, Refusal};

use crate::client::{Counted, Doing};
use crate::hold::end_of;
use crate::spec::AfterLease;
use crate::starts::ERROR_PAUSE;
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

impl Thread {
    /// Handles the outcome of a client's request.
    pub(crate) fn settled(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        let in_doubt = matches!(outcome, Outcome::Unknown | Outcome::Failed(_) | Outcome::Expired);
        self.counters.unsettled += u64::from(in_doubt);
        match self.clients[index as usize].doing {
            Doing::Acquiring => self.acquired(index, now, outcome),
            Doing::Entering => self.entered(index, now, outcome),
            Doing::Releasing => self.released(index, now, outcome),
            Doing::Cancelling => self.free(index),
            Doing::Idle | Doing::Holding | Doing::Pausing => {
                panic!("client {index} has no open request, but its lock settled {outcome:?}")
            }
        }
    }

    fn acquired(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        if matches!(outcome, Outcome::Held { .. }) && self.params.strategy.is_optimistic() {
            return self.begin_try(index, now);
        }
        let attempts = if self.counting {
            self.count_attempts(index)
        } else {
            u64::from(self.clients[index as usize].lock.attempts())
        };
        let ended = match outcome {
            Outcome::Held { lasts, fence } => return self.granted(index, now, lasts, fence, attempts),
            Outcome::Refused(Refusal::Busy | Refusal::TooLate) => Ended::Refused,
            Outcome::Refused(Refusal::TimedOut) => Ended::Timeout,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Released | Outcome::Expired | Outcome::Conflict => {
                panic!("an acquire settled with {outcome:?}")
            }
        };
        self.judge_each(index, now, |client, _| Judged::GaveUp { client });
        if self.counting {
            self.count_ungranted(index, now, ended, attempts);
        }
        match ended {
            Ended::Error | Ended::Unknown => self.pause(index, now.after(ERROR_PAUSE)),
            Ended::Granted | Ended::Refused | Ended::Timeout | Ended::Lost | Ended::Waiting => self.think(index, now),
        }
    }

    pub(crate) fn granted(&mut self, index: u32, now: Nanos, lasts: Lasts, fence: Option<Fence>, attempts: u64) {
        let counted = self.counting;
        let client = &mut self.clients[index as usize];
        client.granted = now;
        client.counted = if counted { Counted::Whole } else { Counted::No };
        client.entries = 1;
        client.until = end_of(lasts);
        let (until, hold) = (client.until, client.hold);
        self.judge_each(index, now, |client, _| Judged::Granted {
            client,
            until,
            hold,
            fence,
        });
        self.counters.all_grants += 1;
        if counted {
            self.count_grant(index, now, attempts);
        }
        self.enter_or_hold(index, now);
    }

    /// Enters as often as the workload says, then holds.
    pub(crate) fn enter_or_hold(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.entries < self.params.nesting {
            client.doing = Doing::Entering;
            self.dispatch(index, now, Event::Enter);
            return;
        }
        client.doing = Doing::Holding;
        // The hold includes the time of the entries.
        let over = client.granted.after(client.hold);
        client.own_wake = match self.params.after_lease {
            AfterLease::Continue => over,
            AfterLease::Stop => over.min(client.until),
        };
        let over = client.own_wake;
        if over <= now {
            self.release(index, now);
        } else {
            self.timers.arm(index, over);
        }
    }

    /// The hold has ended: releases the lock, one entry after another.
    pub(crate) fn release(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        if now >= client.until {
            // All entries end with the lease: see `Event::Release`. What is sent now may free the lock.
            client.entries = 1;
        }
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.dispatch(index, now, Event::Release);
    }

    /// Stamps a release before it is written: belief and work end here.
    pub(crate) fn stamp_release(&mut self, index: u32, at: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.doing != Doing::Releasing || client.entries > 1 || client.release_sent != Nanos::NEVER {
            return; // Other entries remain, or the release is already stamped: it goes to several servers, or again after NOSCRIPT.
        }
        client.release_sent = at;
        if client.counted != Counted::No {
            let lost = at > client.until;
            self.counters.lost += u64::from(lost);
            let ended = match (client.counted, lost) {
                (Counted::Whole, false) => Some(Ended::Granted),
                (Counted::Whole, true) => Some(Ended::Lost),
                // The full length of a hold that was cut short is unknown. Leaving it out would mostly leave out long
                // holds.
                (Counted::WithoutHold, true) => Some(Ended::Waiting),
                (Counted::WithoutHold, false) | (Counted::No, _) => None,
            };
            if let Some(ended) = ended {
                self.histograms.record(Phase::Hold, ended, at.since(client.granted));
            }
        }
        self.judge_each(index, at, |client, _| Judged::Released { client });
    }

    fn released(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        if let Outcome::Held { lasts, .. } = outcome {
            return self.left(index, now, lasts);
        }
        // Whichever entry was to be left, all entries are over. What the lock wants to send now is not written yet.
        self.clients[index as usize].entries = 1;
        // The next grant is held by another session.
        self.hung_up.retain(|client| *client != index);
        let client = &self.clients[index as usize];
        if client.counted != Counted::No {
            self.counters.conflicts += u64::from(client.lock.conflicts());
        }
        // A release that sent nothing, or that no connection took, was not stamped by a write.
        self.stamp_release(index, now);
        if self.params.strategy.writes() {
            self.write_answered(index, outcome);
            if self.params.strategy.is_optimistic() {
                return self.try_answered(index, now, outcome);
            }
        }
        let ended = match outcome {
            Outcome::Released => Ended::Granted,
            Outcome::Expired => {
                self.count_not_held(index);
                self.report_denied_release(index, now);
                Ended::Lost
            }
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => {
                self.check_session(index, now);
                Ended::Unknown
            }
            Outcome::Held { .. } | Outcome::Refused(_) | Outcome::Conflict => {
                panic!("a release settled with {outcome:?}")
            }
        };
        let client = &self.clients[index as usize];
        if client.counted != Counted::No {
            self.histograms
                .record(Phase::Release, ended, now.since(client.release_sent));
        }
        self.think(index, now);
    }

    /// Reports a release whose reply was "not held". Read before the lease ended, the reply was also sent before that.
    /// Locks that end with a session, and locks whose write decides, may be lost before their lease ends, so they are
    /// left out.
    fn report_denied_release(&mut self, index: u32, now: Nanos) {
        let strategy = self.params.strategy;
        let client = &self.clients[index as usize];
        if now < client.until && strategy.has_lease() && !strategy.writes() {
            self.judge_each(index, now, |client, _| Judged::DeniedRelease { client });
        }
    }

    pub(crate) fn fire_timers(&mut self, now: Nanos) {
        while let Some(index) = self.timers.pop(now) {
            let client = &mut self.clients[index as usize];
            if client.own_wake <= now {
                let due = std::mem::replace(&mut client.own_wake, Nanos::NEVER);
                let doing = client.doing;
                self.count_lag(now.since(due));
                match doing {
                    Doing::Holding => self.hold_over(index, now),
                    Doing::Pausing => self.free(index),
                    // The timer was for a hold or a pause that has already ended.
                    Doing::Idle | Doing::Acquiring | Doing::Entering | Doing::Releasing | Doing::Cancelling => {}
                }
            }
            let client = &mut self.clients[index as usize];
            if client.lock_wake <= now {
                let due = std::mem::replace(&mut client.lock_wake, Nanos::NEVER);
                self.count_lag(now.since(due));
                self.dispatch(index, now, Event::Woke);
            }
            let next = self.clients[index as usize].next_wake();
            if next != Nanos::NEVER {
                self.timers.arm(index, next);
            }
        }
    }

    fn hold_over(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        let over = client.granted.after(client.hold);
        if self.params.after_lease == AfterLease::Stop && now < over {
            if now < client.until {
                // The lease that was to end here has been renewed.
                client.own_wake = over.min(client.until);
                return;
            }
            self.judge_each(index, now, |client, _| Judged::Stopped { client });
        }
        self.release(index, now);
    }

    /// Ends the work: waiting clients cancel, holders release, nobody starts.
    pub(crate) fn stop_clients(&mut self) {
        let now = crate::clock::now();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.end();
        }
        self.starting.clear();
        // If a connection broke, or a reply was lost, a place may have lapsed on the server before its client knows.
        let undisturbed = self.counters.reconnects == 0 && self.counters.lost_calls == 0;
        for index in 0..self.clients.len() as u32 {
            match self.clients[index as usize].doing {
                Doing::Acquiring => {
                    let client = &mut self.clients[index as usize];
                    client.doing = Doing::Cancelling;
                    let placed = undisturbed && client.lock.is_placed(now);
                    self.judge_each(index, now, |client, _| Judged::CutOff { client, placed });
                    self.dispatch(index, now, Event::Cancel);
                }
                Doing::Entering | Doing::Holding => self.cut_short(index, now),
                Doing::Idle | Doing::Releasing | Doing::Cancelling | Doing::Pausing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
