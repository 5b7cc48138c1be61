//! What a client does next: start, hold, release, think; and what of it is counted.

use check::Event as Judged;
use locks::{Event, Lasts, LockMachine, Nanos, Outcome, Refusal};

use crate::client::Doing;
use crate::spec::AfterLease;
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

/// A client that met an error, or found no server, waits this long: a dead server must not be asked in a tight loop.
const ERROR_PAUSE: Nanos = Nanos::from_millis(10);

impl Thread {
    /// A period begins: every client that rests starts, or waits for an arrival.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.idle.clear();
        self.queue.clear();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.begin(now);
        }
        for client in 0..self.clients.len() as u32 {
            if self.clients[client as usize].is_at_rest() {
                self.free(client);
            }
        }
    }

    /// A client has nothing to do: in a closed loop it starts in this round, in an open one with the next arrival.
    fn free(&mut self, client: u32) {
        self.clients[client as usize].doing = Doing::Idle;
        self.clients[client as usize].own_wake = Nanos::NEVER;
        if !self.running {
            return;
        }
        if self.arrivals.is_none() || !self.queue.is_empty() {
            self.starting.push(client);
        } else {
            self.idle.push_back(client);
        }
    }

    /// Arrivals that have become due go to idle clients, or queue, or are dropped when too many are in flight.
    pub(crate) fn take_arrivals(&mut self, now: Nanos) {
        let Some(mut arrivals) = self.arrivals.take() else {
            return;
        };
        while let Some(due) = arrivals.pop(now) {
            if self.counting {
                self.counters.arrivals += 1;
                self.histograms.record(Phase::Lag, Ended::Granted, now.since(due));
            }
            // A client in `starting` has its arrival in `queue`: they are one.
            let busy = self.clients.len() - self.idle.len() - self.starting.len();
            if busy + self.queue.len() >= self.shared.max_in_flight as usize {
                self.counters.drops += u64::from(self.counting);
                continue;
            }
            self.queue.push_back(due);
            if let Some(client) = self.idle.pop_front() {
                self.starting.push(client);
            }
        }
        self.arrivals = Some(arrivals);
    }

    /// Starts the clients that are to start. Those that become free meanwhile start in the next round, so that a lock
    /// that answers at once cannot keep the loop to itself.
    pub(crate) fn start_waiting(&mut self, now: Nanos) {
        let mut starting = std::mem::take(&mut self.starting);
        for client in starting.drain(..) {
            self.start(client, now);
        }
        if self.starting.is_empty() {
            self.starting = starting;
        }
    }

    fn start(&mut self, index: u32, now: Nanos) {
        if !self.running {
            return;
        }
        if !self.can_reach_a_server(index) {
            self.pause(index, now.after(ERROR_PAUSE));
            return;
        }
        let due = if self.arrivals.is_some() {
            let Some(due) = self.queue.pop_front() else {
                self.idle.push_back(index);
                return;
            };
            due
        } else {
            now
        };
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Acquiring;
        client.counted = false;
        client.cut = false;
        client.due = due;
        client.sent = now;
        client.key = self.shared.keys.draw(&mut client.stream);
        client.hold = self.shared.hold.draw(&mut client.stream);
        client.release_sent = Nanos::NEVER;
        let key = client.key;
        if self.counting && self.arrivals.is_some() {
            self.histograms.record(Phase::Queue, Ended::Granted, now.since(due));
        }
        self.judge.tell(
            now,
            Judged::Waiting {
                client: self.first_client + index,
                key,
            },
        );
        self.tell(index, now, Event::Acquire { key });
    }

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
        if self.counting {
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
                client: self.first_client + index,
            },
        );
        if self.counting {
            self.count_ungranted(index, now, ended, attempts);
        }
        match ended {
            Ended::Error | Ended::Unknown => self.pause(index, now.after(ERROR_PAUSE)),
            Ended::Granted | Ended::Refused | Ended::Timeout | Ended::Lost => self.think(index, now),
        }
    }

    fn granted(&mut self, index: u32, now: Nanos, lasts: Lasts, attempts: u64) {
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Holding;
        client.granted = now;
        client.counted = self.counting;
        client.until = match lasts {
            Lasts::Until(until) => until,
            Lasts::Unbounded => Nanos::NEVER,
        };
        let (until, hold, response, service) =
            (client.until, client.hold, now.since(client.due), now.since(client.sent));
        let over = match self.shared.after_lease {
            AfterLease::Continue => now.after(hold),
            AfterLease::Stop => now.after(hold).min(until),
        };
        client.own_wake = over;
        self.judge.tell(
            now,
            Judged::Granted {
                client: self.first_client + index,
                until,
                hold,
            },
        );
        self.counters.all_grants += 1;
        if self.counting {
            self.counters.grants += 1;
            self.counters.refused_attempts += attempts.saturating_sub(1);
            self.counters.nominal_hold_ns += hold.0;
            self.histograms.record(Phase::Response, Ended::Granted, response);
            if self.arrivals.is_some() {
                self.histograms.record(Phase::Service, Ended::Granted, service);
            }
            self.timeline.grant(response);
            let figures = &mut self.figures[index as usize];
            figures.grants += 1;
            figures.wait_sum_ns += response.0;
            figures.wait_max_ns = figures.wait_max_ns.max(response.0);
        }
        if over <= now {
            self.release(index, now);
        } else {
            self.timers.arm(index, over);
        }
    }

    fn count_ungranted(&mut self, index: u32, now: Nanos, ended: Ended, attempts: u64) {
        let client = &self.clients[index as usize];
        let (response, service) = (now.since(client.due), now.since(client.sent));
        self.histograms.record(Phase::Response, ended, response);
        if self.arrivals.is_some() {
            self.histograms.record(Phase::Service, ended, service);
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
            Ended::Granted | Ended::Lost => unreachable!("a grant is counted where it is granted"),
        }
        let figures = &mut self.figures[index as usize];
        figures.wait_max_ns = figures.wait_max_ns.max(response.0);
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
                client: self.first_client + index,
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

    fn think(&mut self, index: u32, now: Nanos) {
        let think = self.shared.think.draw(&mut self.clients[index as usize].stream);
        if think == Nanos::ZERO {
            self.free(index);
        } else {
            self.pause(index, now.after(think));
        }
    }

    fn pause(&mut self, index: u32, until: Nanos) {
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Pausing;
        client.own_wake = until;
        self.timers.arm(index, until);
    }

    pub(crate) fn fire_timers(&mut self, now: Nanos) {
        while let Some(index) = self.timers.pop(now) {
            let client = &mut self.clients[index as usize];
            if client.own_wake <= now {
                let due = std::mem::replace(&mut client.own_wake, Nanos::NEVER);
                let doing = client.doing;
                if self.counting && self.arrivals.is_none() {
                    self.histograms.record(Phase::Lag, Ended::Granted, now.since(due));
                }
                match doing {
                    Doing::Holding => self.hold_over(index, now),
                    Doing::Pausing => self.free(index),
                    // The wish was for a hold or a pause that something else has ended since.
                    Doing::Idle | Doing::Acquiring | Doing::Releasing | Doing::Cancelling => {}
                }
            }
            if self.clients[index as usize].lock_wake <= now {
                self.clients[index as usize].lock_wake = Nanos::NEVER;
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
                    client: self.first_client + index,
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
                            client: self.first_client + index,
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

    /// Those who still wait when the window ends have waited all the same.
    pub(crate) fn count_unfinished(&mut self, end: Nanos) {
        self.counters.unfinished += self.queue.len() as u64;
        for (client, figures) in self.clients.iter().zip(&mut self.figures) {
            if client.doing == Doing::Acquiring {
                self.counters.unfinished += 1;
                self.counters.attempts += u64::from(client.lock.attempts());
                self.counters.refused_attempts += u64::from(client.lock.attempts().saturating_sub(1));
                figures.attempts += u64::from(client.lock.attempts());
                figures.wait_max_ns = figures.wait_max_ns.max(end.since(client.due).0);
            }
        }
    }
}
