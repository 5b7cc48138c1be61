//! When a client starts: at once in a closed loop, with an arrival in an open one, or after a pause when it thinks or
//! met an error.

use check::Event as Judged;
use locks::{Event, Nanos};

use crate::client::{Counted, Doing};
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

/// The pause of a client that met an error or found no server: a dead server must not be asked in a tight loop.
pub(crate) const ERROR_PAUSE: Nanos = Nanos::from_millis(10);

impl Thread {
    /// Starts the work: every client at rest starts, or waits for an arrival.
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

    /// The client has nothing to do: in a closed loop it starts in this round, in an open one with the next arrival.
    pub(crate) fn free(&mut self, client: u32) {
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

    /// Arrivals that are due go to idle clients, or queue, or are dropped when too many are in flight.
    pub(crate) fn take_arrivals(&mut self, now: Nanos) {
        let Some(mut arrivals) = self.arrivals.take() else {
            return;
        };
        while let Some(due) = arrivals.pop(now) {
            let counted = self.counting && self.was_due_within(due);
            if counted {
                self.counters.arrivals += 1;
                self.histograms.record(Phase::SendDelay, Ended::Granted, now.since(due));
            }
            // A client in `starting` and its arrival in `queue` count as one.
            let busy = self.clients.len() - self.idle.len() - self.starting.len();
            if busy + self.queue.len() >= self.params.max_in_flight as usize {
                self.counters.drops += u64::from(counted);
                continue;
            }
            self.queue.push_back(due);
            if let Some(client) = self.idle.pop_front() {
                self.starting.push(client);
            }
        }
        self.arrivals = Some(arrivals);
    }

    /// Starts the clients in `starting`. Clients that become free meanwhile start in the next round, so that a lock
    /// that answers at once cannot block the loop.
    pub(crate) fn start_waiting(&mut self, now: Nanos) {
        if self.starting.len() > 1 {
            self.touch_starting();
        }
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
        if self.counting && self.arrivals.is_some() && self.was_due_within(due) {
            self.histograms.record(Phase::Queue, Ended::Granted, now.since(due));
        }
        self.judge_each(index, now, |client, key| Judged::Waiting { client, key, mode });
        self.dispatch(index, now, Event::Acquire { keys, mode });
    }

    pub(crate) fn think(&mut self, index: u32, now: Nanos) {
        let think = self.params.think.draw(&mut self.clients[index as usize].stream);
        if think == Nanos::ZERO {
            self.free(index);
        } else {
            self.pause(index, now.after(think));
        }
    }

    pub(crate) fn pause(&mut self, index: u32, until: Nanos) {
        let client = &mut self.clients[index as usize];
        client.doing = Doing::Pausing;
        client.own_wake = until;
        self.timers.arm(index, until);
    }
}
