//! The guarded work of a holder: it reads, thinks and writes between the grant and the release, over a connection of its
//! own. `locks::GuardedWork` has the steps; here are its timers, its end, and what is counted.
//!
//! ```text
//!    Holding: begin_work ──▶ reading ──▶ thinking ──▶ writing ──▶ release
//!                               └───────────┴── the lease has ended, and `after_lease` is stop: release, nothing written
//! ```
//! At the end of the trial a work that has not written is given up. A write that was sent is waited for: without its
//! reply, nobody could tell whether it was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use check::Event as Judged;
use locks::{Event, Fence, GuardKind, GuardedWork, Key, LockMachine, Mode, Nanos, Work, WorkEnd, WorkEvent};

use super::client::{Counted, Doing};
use super::trial_params::TrialParams;
use super::{Action, Actions, Clients, Ports};
use crate::recorder::Recorder;
use crate::spec::AfterLease;
use crate::transport::{Outgoing, Sender, Transport};

/// The highest fence that the resource of each key has accepted, over all threads. Empty unless works carry fences.
#[derive(Debug)]
pub(crate) struct Accepted {
    highest: Box<[AtomicU64]>,
}

impl Accepted {
    pub(crate) fn new(params: &TrialParams, keys: u32) -> Self {
        let fenced = params.guard.is_some_and(|rules| rules.kind == GuardKind::FencedWrite);
        let keys = if fenced { keys } else { 0 };
        Self {
            highest: (0..keys).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A write with a lower fence, sent from now on, must be refused.
    fn floor(&self, key: Key) -> u64 {
        let highest = self.highest.get(key.0 as usize);
        highest.map_or(0, |highest| highest.load(Ordering::Acquire))
    }

    fn accept(&self, key: Key, fence: u64) {
        if let Some(highest) = self.highest.get(key.0 as usize) {
            highest.fetch_max(fence, Ordering::AcqRel);
        }
    }
}

/// The guarded works of a thread's clients; none without a guard.
#[derive(Debug)]
pub(super) struct Guards {
    works: Vec<Guarded>,
    accepted: Option<Arc<Accepted>>,
    /// How many works concern each key just now. Empty unless works are atomic steps: all others are judged by beliefs.
    at_work: Vec<u32>,
}

#[derive(Debug)]
struct Guarded {
    work: GuardedWork,
    /// Of the present grant.
    fence: Option<Fence>,
    /// Below this fence its write must be refused: taken before the write was sent.
    floor: u64,
    /// Another work concerned the key when this one began, and the grant counts.
    is_contended: bool,
}

impl Guards {
    pub(super) const NONE: Self = Self {
        works: Vec::new(),
        accepted: None,
        at_work: Vec::new(),
    };

    #[inline]
    pub(super) fn are_any(&self) -> bool {
        !self.works.is_empty()
    }

    /// Keeps the fence of a grant for the write of its work.
    #[inline]
    pub(super) fn granted(&mut self, client: u32, fence: Option<Fence>) {
        if let Some(guarded) = self.works.get_mut(client as usize) {
            guarded.fence = fence;
        }
    }

    /// The resource of this key has accepted the fence of the client.
    fn accept(&self, key: Key, client: u32) {
        if let (Some(fence), Some(accepted)) = (self.works[client as usize].fence, &self.accepted) {
            accepted.accept(key, fence.0.get());
        }
    }

    /// Whether the client waits for the reply to its write.
    pub(super) fn is_writing(&self, client: u32) -> bool {
        let guarded = self.works.get(client as usize);
        guarded.is_some_and(|guarded| guarded.work.is_writing())
    }
}

impl<L: LockMachine> Clients<L> {
    /// Each work is guarded from now on, if the trial has a guard.
    pub(crate) fn guard_by(&mut self, accepted: &Arc<Accepted>) {
        if let Some(rules) = self.params.guard {
            let guarded = |_| Guarded {
                work: GuardedWork::new(rules),
                fence: None,
                floor: 0,
                is_contended: false,
            };
            self.guards = Guards {
                works: (0..self.list.len()).map(guarded).collect(),
                accepted: Some(Arc::clone(accepted)),
                at_work: vec![0; if rules.is_atomic { self.params.written_keys } else { 0 }],
            };
        }
    }

    /// Begins the work of a holder.
    pub(super) fn begin_work<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let client = &self.list[index as usize];
        let keys = match self.key_sets.get(index as usize).map(locks::KeyList::as_slice) {
            Some(&[first, second, ..]) => [first, second],
            _ => [client.key; 2],
        };
        let guarded = &mut self.guards.works[index as usize];
        if let Some(others) = self.guards.at_work.get_mut(client.key.0 as usize) {
            guarded.is_contended = *others > 0 && client.counted != Counted::No;
            *others += 1;
        }
        let work = Work {
            keys,
            writes: client.mode == Mode::Exclusive,
            think: client.hold,
            fence: guarded.fence,
        };
        let mut actions = self.spare.pop().unwrap_or_default();
        guarded.work.begin(now, work, &mut actions);
        self.carry_out(index, actions, to);
        self.go_on_working(index, now, to);
    }

    /// Passes an event to the work of a client.
    pub(super) fn work<T: Transport>(&mut self, index: u32, now: Nanos, event: WorkEvent, to: &mut Ports<'_, T>) {
        if self.stops_working(index, now, to) {
            return;
        }
        let mut actions = self.spare.pop().unwrap_or_default();
        let guarded = &mut self.guards.works[index as usize];
        let was_reading = guarded.work.is_reading();
        let end = guarded.work.on(now, event, &mut actions);
        if was_reading && end.is_none() && !guarded.work.is_reading() {
            // The resource has met this fence: it refuses lower ones from now on.
            self.guards.accept(self.list[index as usize].key, index);
        }
        self.carry_out(index, actions, to);
        match end {
            Some(end) => {
                self.count_work(index, Some(end), to.recorder);
                self.release(index, now, to);
            }
            None => self.go_on_working(index, now, to),
        }
    }

    /// A reply, or a loss, of a call of the guarded work.
    pub(super) fn work_answered<T: Transport>(&mut self, index: u32, now: Nanos, event: Event, to: &mut Ports<'_, T>) {
        let event = match event {
            Event::Replied { call, reply } => WorkEvent::Replied { call, reply },
            Event::Lost { call } => WorkEvent::Lost { call },
            _ => return,
        };
        // The call of a work that has ended: nobody waits for it.
        if !self.guards.works[index as usize].work.is_idle() {
            self.work(index, now, event, to);
        }
    }

    /// Sets the timer of a work that waits, and wakes it if its time has come.
    fn go_on_working<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let guarded = &mut self.guards.works[index as usize];
        if guarded.work.is_idle() {
            return;
        }
        let client = &mut self.list[index as usize];
        client.own_wake = guarded.work.wake_at();
        if self.params.after_lease == AfterLease::Stop && !guarded.work.is_writing() {
            client.own_wake = client.own_wake.min(client.until);
        }
        if client.own_wake <= now {
            self.work(index, now, WorkEvent::Woke, to);
        } else {
            let wake = client.own_wake;
            self.timers.arm(index, wake);
        }
    }

    /// Whether the work ends here with its lease, and writes nothing.
    fn stops_working<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) -> bool {
        let is_over = self.params.after_lease == AfterLease::Stop && now >= self.list[index as usize].until;
        if !is_over || self.guards.works[index as usize].work.is_writing() {
            return false;
        }
        self.tell(to.recorder, index, now, |client, _| Judged::Stopped { client });
        self.drop_work(index, to.recorder);
        to.recorder.work_was_abandoned();
        self.release(index, now, to);
        true
    }

    fn carry_out<T: Transport>(&mut self, index: u32, mut actions: Actions, to: &mut Ports<'_, T>) {
        if let Some(accepted) = self
            .guards
            .accepted
            .as_deref()
            .filter(|_| !actions.as_slice().is_empty())
        {
            // Taken before the bytes of a write leave: it was true when the server carried the write out.
            let key = self.list[index as usize].key;
            self.guards.works[index as usize].floor = accepted.floor(key);
        }
        for action in actions.as_slice() {
            let Action::Send {
                call,
                to: server,
                over,
                ref command,
            } = *action
            else {
                unreachable!("a guarded work only sends")
            };
            to.transport.send(Outgoing {
                sender: Sender {
                    client: index,
                    call,
                    doing: Doing::Holding,
                },
                to: server,
                over,
                command,
                ends_hold: false,
            });
        }
        actions.clear();
        self.spare.push(actions);
    }

    /// Ends a work that nobody wants any more. What it has sent may have been carried out.
    pub(super) fn drop_work(&mut self, index: u32, recorder: &mut Recorder) {
        let Some(guarded) = self.guards.works.get_mut(index as usize) else {
            return;
        };
        if !guarded.work.is_idle() {
            guarded.work.abandon();
            self.count_work(index, None, recorder);
        }
    }

    /// Counts what a work has done; `end` is `None` if it was cut short. In the whole trial, because the resource
    /// contains the writes of the whole trial.
    fn count_work(&mut self, index: u32, end: Option<WorkEnd>, recorder: &mut Recorder) {
        let key = self.list[index as usize].key;
        if let Some(others) = self.guards.at_work.get_mut(key.0 as usize) {
            *others -= 1;
        }
        let guarded = &self.guards.works[index as usize];
        for write in guarded.work.writes() {
            let row = write.key.0 as usize;
            if !write.is_known {
                recorder.write_unknown(row);
                continue;
            }
            recorder.guarded_write_acknowledged(row, write.delta);
            if guarded.fence.is_some_and(|fence| fence.0.get() < guarded.floor) {
                recorder.stale_write_was_accepted();
            }
            self.guards.accept(write.key, index);
        }
        // Works that find nothing left change nothing, so they put nothing to the test.
        if guarded.is_contended && end != Some(WorkEnd::SoldOut) {
            recorder.conflicted();
        }
        match end {
            Some(WorkEnd::Done) | None => {}
            Some(WorkEnd::SoldOut) => recorder.was_sold_out(),
            Some(WorkEnd::Refused) => recorder.write_was_refused(),
            Some(WorkEnd::Stale) => recorder.write_was_stale(),
            Some(WorkEnd::Abandoned) => recorder.work_was_abandoned(),
        }
    }
}

#[cfg(test)]
mod tests;
