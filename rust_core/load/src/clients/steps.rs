//! The steps of a client: the request, the outcome of its acquire, the hold, the release and its outcome.

use check::Event as Judged;
use locks::{Event, Fence, Lasts, LockMachine, Nanos, Outcome, Refusal, WorkEvent};

use super::client::{Counted, Doing};
use super::hold::end_of;
use super::{Clients, ERROR_PAUSE, Ports};
use crate::recorder::{Ended, Phase, Recorder};
use crate::spec::AfterLease;
use crate::transport::Transport;

impl<L: LockMachine> Clients<L> {
    pub(super) fn start<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        // It may have been told to start twice, or to start no more.
        if !self.running || index >= self.active || self.list[index as usize].doing != Doing::Idle {
            return;
        }
        if let Some(until) = self.disturbed.held_up_until(index) {
            self.pause(index, until);
            return;
        }
        if !to.transport.can_reach_a_server(index) {
            self.pause(index, now.after(ERROR_PAUSE));
            return;
        }
        let Some(due) = self.starts.take_work(index, now) else {
            return;
        };
        let client = &mut self.list[index as usize];
        client.doing = Doing::Acquiring;
        client.counted = Counted::No;
        client.entries = 0;
        client.due = due;
        client.sent = now;
        let keys = self.params.draw_keys(&mut client.stream);
        client.key = keys.as_slice()[0];
        client.mode = self.params.draw_mode(&mut client.stream);
        client.hold = self.params.hold.draw(&mut client.stream);
        client.release_sent = Nanos::NEVER;
        let mode = client.mode;
        if let Some(set) = self.key_sets.get_mut(index as usize) {
            *set = keys;
        }
        if self.starts.is_open_loop() {
            to.recorder.queued(due, now);
        }
        self.tell(to.recorder, index, now, |client, key| Judged::Waiting {
            client,
            key,
            mode,
        });
        self.dispatch(index, now, Event::Acquire { keys, mode }, to);
    }

    pub(super) fn think(&mut self, index: u32, now: Nanos) {
        let think = self.params.think.draw(&mut self.list[index as usize].stream);
        if think == Nanos::ZERO {
            self.free(index);
        } else {
            self.pause(index, now.after(think));
        }
    }

    pub(super) fn pause(&mut self, index: u32, until: Nanos) {
        let client = &mut self.list[index as usize];
        client.doing = Doing::Pausing;
        client.own_wake = until;
        self.timers.arm(index, until);
    }

    /// Handles the outcome of a client's request.
    pub(super) fn settled<T: Transport>(&mut self, index: u32, now: Nanos, outcome: &Outcome, to: &mut Ports<'_, T>) {
        let in_doubt = matches!(outcome, Outcome::Unknown | Outcome::Failed(_) | Outcome::Expired);
        if in_doubt {
            to.recorder.in_doubt();
        }
        match self.list[index as usize].doing {
            Doing::Acquiring => self.acquired(index, now, outcome, to),
            Doing::Entering => self.entered(index, now, *outcome, to),
            Doing::Releasing => self.released(index, now, outcome, to),
            Doing::Cancelling => self.free(index),
            Doing::Idle | Doing::Holding | Doing::Pausing => {
                panic!("client {index} has no open request, but its lock settled {outcome:?}")
            }
        }
    }

    fn acquired<T: Transport>(&mut self, index: u32, now: Nanos, outcome: &Outcome, to: &mut Ports<'_, T>) {
        if matches!(outcome, Outcome::Held { .. }) && self.params.strategy.is_optimistic() {
            return self.begin_try(index, now, to);
        }
        let client = &self.list[index as usize];
        let attempts = to.recorder.attempts(index, client.tried());
        let ended = match *outcome {
            Outcome::Held { lasts, fence } => {
                self.guards.granted(index, fence);
                self.granted(index, now, (lasts, fence), attempts, to.recorder);
                return self.enter_or_hold(index, now, to);
            }
            Outcome::Refused(Refusal::Busy | Refusal::TooLate) => Ended::Refused,
            Outcome::Refused(Refusal::TimedOut) => Ended::Timeout,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Released | Outcome::Expired | Outcome::Conflict => {
                panic!("an acquire settled with {outcome:?}")
            }
        };
        self.tell(to.recorder, index, now, |client, _| Judged::GaveUp { client });
        to.recorder
            .ungranted(index, self.list[index as usize].asked(), now, ended, attempts);
        match ended {
            Ended::Error | Ended::Unknown => self.pause(index, now.after(ERROR_PAUSE)),
            Ended::Granted | Ended::Refused | Ended::Timeout | Ended::Lost | Ended::Waiting => self.think(index, now),
        }
    }

    /// The grant, as the judge and the figures see it: stamped `now`.
    pub(crate) fn granted(
        &mut self,
        index: u32,
        now: Nanos,
        (lasts, fence): (Lasts, Option<Fence>),
        attempts: u64,
        recorder: &mut Recorder,
    ) {
        let counted = recorder.is_counting();
        let client = &mut self.list[index as usize];
        client.granted = now;
        client.counted = if counted { Counted::Whole } else { Counted::No };
        client.entries = 1;
        client.until = end_of(lasts);
        let (until, hold) = (client.until, client.hold);
        self.tell(recorder, index, now, |client, _| Judged::Granted {
            client,
            until,
            hold,
            fence,
        });
        recorder.granted();
        let asked = self.list[index as usize].asked();
        if counted {
            recorder.grant(index, asked, now, hold, attempts);
            if L::servers_vote() {
                recorder.decided(until.since(now));
            }
        } else {
            recorder.granted_early(now.since(asked.due));
        }
    }

    /// Enters as often as the workload says, then holds.
    pub(super) fn enter_or_hold<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        if client.entries < self.params.nesting {
            client.doing = Doing::Entering;
            self.dispatch(index, now, Event::Enter, to);
            return;
        }
        client.doing = Doing::Holding;
        if self.guards.are_any() {
            return self.begin_work(index, now, to);
        }
        // The hold includes the time of the entries.
        let over = client.granted.after(client.hold);
        client.own_wake = match self.params.after_lease {
            AfterLease::Continue => over,
            AfterLease::Stop => over.min(client.until),
        };
        let over = client.own_wake;
        if over <= now {
            self.release(index, now, to);
        } else {
            self.timers.arm(index, over);
        }
    }

    /// The hold has ended: releases the lock, one entry after another.
    pub(super) fn release<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &mut self.list[index as usize];
        if now >= client.until {
            // All entries end with the lease: see `Event::Release`. What is sent now may free the lock.
            client.entries = 1;
        }
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.dispatch(index, now, Event::Release, to);
    }

    /// Stamps a release before it is written: belief and work end here.
    pub(crate) fn stamp_release(&mut self, index: u32, at: Nanos, recorder: &mut Recorder) {
        let client = &mut self.list[index as usize];
        if !client.ends_hold() {
            return; // Other entries remain, or the release is already stamped: it goes to several servers, or again after NOSCRIPT.
        }
        client.release_sent = at;
        if at > client.until {
            recorder.knew(index, client.granted, client.until, at);
        }
        if client.counted != Counted::No {
            let lost = at > client.until;
            if lost {
                recorder.lost();
            }
            let ended = match (client.counted, lost) {
                (Counted::Whole, false) => Some(Ended::Granted),
                (Counted::Whole, true) => Some(Ended::Lost),
                // The full length of a hold that was cut short is unknown. Leaving it out would mostly leave out long
                // holds.
                (Counted::WithoutHold, true) => Some(Ended::Waiting),
                (Counted::WithoutHold, false) | (Counted::No, _) => None,
            };
            if let Some(ended) = ended {
                recorder.record(Phase::Hold, ended, at.since(client.granted));
            }
        }
        self.tell(recorder, index, at, |client, _| Judged::Released { client });
    }

    fn released<T: Transport>(&mut self, index: u32, now: Nanos, outcome: &Outcome, to: &mut Ports<'_, T>) {
        if let Outcome::Held { lasts, .. } = *outcome {
            return self.left(index, now, lasts, to);
        }
        // Whichever entry was to be left, all entries are over. What the lock wants to send now is not written yet.
        self.list[index as usize].entries = 1;
        // The next grant is held by another session.
        self.hung_up.retain(|client| *client != index);
        let client = &self.list[index as usize];
        if client.counted != Counted::No {
            to.recorder.conflicts(client.lock.conflicts());
        }
        // A release that sent nothing, or that no connection took, was not stamped by a write.
        self.stamp_release(index, now, to.recorder);
        if self.params.strategy.writes() {
            self.write_answered(index, *outcome, to.recorder);
            if self.params.strategy.is_optimistic() {
                return self.try_answered(index, now, *outcome, to);
            }
        }
        let ended = match *outcome {
            Outcome::Released => Ended::Granted,
            Outcome::Expired => {
                self.count_not_held(index, to.recorder);
                self.report_denied_release(index, now, to.recorder);
                Ended::Lost
            }
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => {
                self.check_session(index, now, to);
                Ended::Unknown
            }
            Outcome::Held { .. } | Outcome::Refused(_) | Outcome::Conflict => {
                panic!("a release settled with {outcome:?}")
            }
        };
        let client = &self.list[index as usize];
        if client.counted != Counted::No {
            to.recorder
                .record(Phase::Release, ended, now.since(client.release_sent));
        }
        self.think(index, now);
    }

    /// Counts a release whose reply was "not held". A hold that outlived its lease was already counted when its release
    /// was sent.
    fn count_not_held(&self, index: u32, recorder: &mut Recorder) {
        let client = &self.list[index as usize];
        if client.counted != Counted::No && client.release_sent <= client.until {
            recorder.lost();
        }
    }

    /// Reports a release whose reply was "not held". Read before the lease ended, the reply was also sent before that.
    /// Locks that end with a session, and locks whose write decides, may be lost before their lease ends, so they are
    /// left out.
    fn report_denied_release(&self, index: u32, now: Nanos, recorder: &mut Recorder) {
        let strategy = self.params.strategy;
        let client = &self.list[index as usize];
        if now < client.until && strategy.has_lease() && !strategy.writes() {
            self.tell(recorder, index, now, |client, _| Judged::DeniedRelease { client });
        }
    }

    pub(super) fn hold_over<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        if self.guards.are_any() {
            return self.work(index, now, WorkEvent::Woke, to);
        }
        let client = &mut self.list[index as usize];
        let over = client.granted.after(client.hold);
        if self.params.after_lease == AfterLease::Stop && now < over {
            if now < client.until {
                // The lease that was to end here has been renewed.
                client.own_wake = over.min(client.until);
                return;
            }
            self.tell(to.recorder, index, now, |client, _| Judged::Stopped { client });
        }
        self.release(index, now, to);
    }
}

#[cfg(test)]
mod tests;
