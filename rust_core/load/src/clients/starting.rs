//! Clients begin: at the start of the work, when they have become free, with an arrival, and when more load is asked for.

use locks::{LockMachine, Nanos};

use super::stages::Stages;
use super::starts::Arrived;
use super::{Clients, Doing, Ports};
use crate::live::Load;
use crate::recorder::Recorder;
use crate::transport::Transport;

impl<L: LockMachine> Clients<L> {
    /// Starts the work: every client at rest starts, or waits for an arrival.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.running = true;
        self.stages_begin = now;
        self.follow_stages(now);
        self.starts.begin(now);
        for index in 0..self.list.len() as u32 {
            if self.list[index as usize].is_at_rest() {
                self.free(index);
            }
        }
    }

    /// How much load there is from now on. Who is above the number of clients finishes what it does; who comes below it
    /// starts.
    pub(crate) fn set_load(&mut self, load: Load, now: Nanos) {
        if let Some(rate_per_s) = load.rate_per_s {
            self.starts.set_rate(rate_per_s / f64::from(self.thread.of), now);
        }
        if let Some(clients) = load.clients {
            self.stages = None;
            self.next_stage = Nanos::NEVER;
            self.set_active(clients);
        }
    }

    /// In a closed loop these stages say how many clients work, from the begin on.
    pub(crate) fn follow(&mut self, stages: Option<Stages>) {
        if !self.starts.is_open_loop() {
            self.stages = stages;
        }
    }

    /// So many clients work now as the stages say.
    pub(crate) fn follow_stages(&mut self, now: Nanos) {
        let Some(stages) = &self.stages else { return };
        let since = now.since(self.stages_begin).0 as f64;
        let (clients, next) = (stages.clients(since), stages.next_change(since));
        self.next_stage = self.stages_begin.after(Nanos(next.ceil() as u64));
        self.set_active(clients);
    }

    #[inline]
    pub(crate) fn next_stage(&self) -> Nanos {
        self.next_stage
    }

    /// So many clients of the trial work from now on.
    fn set_active(&mut self, clients: u32) {
        let active = self.thread.share(clients).1.min(self.list.len() as u32);
        let before = std::mem::replace(&mut self.active, active);
        for index in before..active {
            if self.running && self.list[index as usize].doing == Doing::Idle {
                self.starts.free(index);
            }
        }
    }

    /// The client has nothing to do: in a closed loop it starts in this round, in an open one with the next arrival.
    pub(super) fn free(&mut self, index: u32) {
        let client = &mut self.list[index as usize];
        client.doing = Doing::Idle;
        client.own_wake = Nanos::NEVER;
        if self.running && index < self.active {
            self.starts.free(index);
        }
    }

    /// Arrivals that are due go to idle clients, or queue, or are dropped when too many are in flight.
    pub(crate) fn take_arrivals(&mut self, now: Nanos, recorder: &mut Recorder) {
        while let Some((due, arrived)) = self.starts.next_arrival(now, self.list.len()) {
            recorder.arrived(due, now, arrived == Arrived::Dropped);
        }
    }

    /// Starts the clients whose turn it is. Clients that become free meanwhile start in the next round, so that a lock
    /// that answers at once cannot block the loop.
    pub(crate) fn start_waiting<T: Transport>(&mut self, now: Nanos, to: &mut Ports<'_, T>) {
        if self.starts.starting().len() > 1 {
            self.touch_starting(to.recorder);
        }
        let mut starting = self.starts.take_starting();
        for index in starting.drain(..) {
            self.start(index, now, to);
        }
        self.starts.reuse(starting);
    }

    fn touch_starting(&self, recorder: &Recorder) {
        for &index in self.starts.starting() {
            if let Some(key) = self.params.keys.peek(&self.list[index as usize].stream) {
                recorder.touch_judge(self.first + index, key);
            }
        }
    }
}
