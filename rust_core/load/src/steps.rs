//! What a client does next, from the answer to its acquire to the answer to its release.

use check::Event as Judged;
use locks::{Event, Lasts, LockMachine, Nanos, Outcome, Refusal};

use crate::client::Doing;
use crate::spec::AfterLease;
use crate::starts::ERROR_PAUSE;
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

impl Thread {
    /// The lock of a client answered what it was asked.
    pub(crate) fn settled(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        match self.clients[index as usize].doing {
            Doing::Acquiring => self.acquired(index, now, outcome),
            Doing::Releasing => self.released(index, now, outcome),
            Doing::Cancelling => self.free(index),
            Doing::Idle | Doing::Holding | Doing::Pausing => {
                panic!("client {index} was asked nothing, yet its lock settled {outcome:?}")
            }
        }
    }

    fn acquired(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        let attempts = u64::from(self.clients[index as usize].lock.attempts());
        if self.in_window(now) {
            self.counters.attempts += attempts;
            self.figures[index as usize].attempts += attempts;
        }
        let ended = match outcome {
            Outcome::Held { lasts } => return self.granted(index, now, lasts, attempts),
            Outcome::Refused(Refusal::Busy | Refusal::TooLate) => Ended::Refused,
            Outcome::Refused(Refusal::TimedOut) => Ended::Timeout,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Released | Outcome::Expired => panic!("an acquire was answered with {outcome:?}"),
        };
        self.judge.tell(
            now,
            Judged::GaveUp {
                client: self.number(index),
            },
        );
        if self.in_window(now) {
            self.count_ungranted(index, now, ended, attempts);
        }
        match ended {
            Ended::Error | Ended::Unknown => self.pause(index, now.after(ERROR_PAUSE)),
            Ended::Granted | Ended::Refused | Ended::Timeout | Ended::Lost => self.think(index, now),
        }
    }

    fn granted(&mut self, index: u32, now: Nanos, lasts: Lasts, attempts: u64) {
        let counted = self.in_window(now);
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Holding;
        client.granted = now;
        client.counted = counted;
        client.until = match lasts {
            Lasts::Until(until) => until,
            Lasts::Unbounded => Nanos::NEVER,
        };
        let (until, hold) = (client.until, client.hold);
        let over = match self.shared.after_lease {
            AfterLease::Continue => now.after(hold),
            AfterLease::Stop => now.after(hold).min(until),
        };
        client.own_wake = over;
        self.judge.tell(
            now,
            Judged::Granted {
                client: self.number(index),
                until,
                hold,
            },
        );
        self.counters.all_grants += 1;
        if counted {
            self.count_grant(index, now, attempts);
        }
        if over <= now {
            self.release(index, now);
        } else {
            self.timers.arm(index, over);
        }
    }

    /// The hold is over: give the lock back.
    fn release(&mut self, index: u32, now: Nanos) {
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Releasing;
        client.own_wake = Nanos::NEVER;
        self.tell(index, now, Event::Release);
    }

    /// The release is about to leave: belief and work end here. Called before the write.
    pub(crate) fn stamp_release(&mut self, index: u32, at: Nanos) {
        let client = &mut self.clients[index as usize];
        if client.doing != Doing::Releasing || client.release_sent != Nanos::NEVER {
            return; // Stamped already: the same release goes to several servers, or again after NOSCRIPT.
        }
        client.release_sent = at;
        if client.counted {
            let lost = at > client.until;
            self.counters.lost += u64::from(lost);
            if !client.cut {
                let ended = if lost { Ended::Lost } else { Ended::Granted };
                self.histograms.record(Phase::Hold, ended, at.since(client.granted));
            }
        }
        self.judge.tell(
            at,
            Judged::Released {
                client: self.number(index),
            },
        );
    }

    fn released(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        // A release that sent nothing, or that no connection took, was not stamped by a write.
        self.stamp_release(index, now);
        let client = &self.clients[index as usize];
        let ended = match outcome {
            Outcome::Released => Ended::Granted,
            Outcome::Expired => Ended::Lost,
            Outcome::Failed(_) => Ended::Error,
            Outcome::Unknown => Ended::Unknown,
            Outcome::Held { .. } | Outcome::Refused(_) => panic!("a release was answered with {outcome:?}"),
        };
        if client.counted {
            self.histograms
                .record(Phase::Release, ended, now.since(client.release_sent));
        }
        self.think(index, now);
    }

    pub(crate) fn fire_timers(&mut self, now: Nanos) {
        while let Some(index) = self.timers.pop(now) {
            let client = &mut self.clients[index as usize];
            if client.own_wake <= now {
                let due = std::mem::replace(&mut client.own_wake, Nanos::NEVER);
                let doing = client.doing;
                self.count_lateness(now.since(due));
                match doing {
                    Doing::Holding => self.hold_over(index, now),
                    Doing::Pausing => self.free(index),
                    // The wish was for a hold or a pause that something else has ended since.
                    Doing::Idle | Doing::Acquiring | Doing::Releasing | Doing::Cancelling => {}
                }
            }
            let client = &mut self.clients[index as usize];
            if client.lock_wake <= now {
                let due = std::mem::replace(&mut client.lock_wake, Nanos::NEVER);
                self.count_lateness(now.since(due));
                self.tell(index, now, Event::Woke);
            }
            let next = self.clients[index as usize].next_wake();
            if next != Nanos::NEVER {
                self.timers.arm(index, next);
            }
        }
    }

    fn hold_over(&mut self, index: u32, now: Nanos) {
        let client = &self.clients[index as usize];
        if self.shared.after_lease == AfterLease::Stop && now >= client.until {
            self.judge.tell(
                now,
                Judged::Stopped {
                    client: self.number(index),
                },
            );
        }
        self.release(index, now);
    }

    /// A period is over: waiters give up, holders give back, nobody starts.
    pub(crate) fn stop_clients(&mut self) {
        let now = crate::clock::now();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.end();
        }
        self.starting.clear();
        for index in 0..self.clients.len() as u32 {
            match self.clients[index as usize].doing {
                Doing::Acquiring => {
                    self.clients[index as usize].doing = Doing::Cancelling;
                    self.judge.tell(
                        now,
                        Judged::GaveUp {
                            client: self.number(index),
                        },
                    );
                    self.tell(index, now, Event::Cancel);
                }
                Doing::Holding => {
                    self.clients[index as usize].cut = true;
                    self.release(index, now);
                }
                Doing::Idle | Doing::Releasing | Doing::Cancelling | Doing::Pausing => {}
            }
        }
    }
}
