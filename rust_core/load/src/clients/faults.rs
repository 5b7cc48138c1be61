//! Planned faults of clients: one that crashes, one that acts on nothing for a while, one whose renewals are lost.

use check::Event as Judged;
use locks::{Event, LockMachine, Nanos, Outcome};

use super::client::{Counted, Doing};
use super::{Clients, Ports};
use crate::recorder::Ended;
use crate::transport::Transport;

/// The clients that faults concern just now.
#[derive(Debug)]
pub(super) struct Disturbed<L> {
    /// Clients that act on nothing.
    held_up: Vec<HeldUp>,
    /// Clients whose renewals are lost.
    unrenewed: Vec<u32>,
    /// A machine for each planned crash.
    fresh: Vec<L>,
}

/// A client that acts on nothing, and what it would have acted on.
#[derive(Debug)]
struct HeldUp {
    client: u32,
    until: Nanos,
    events: Vec<Event>,
}

impl<L> Disturbed<L> {
    pub(super) const fn with(fresh: Vec<L>) -> Self {
        Self {
            held_up: Vec::new(),
            unrenewed: Vec::new(),
            fresh,
        }
    }

    /// Keeps an event of a client that acts on nothing; false for every other client.
    #[inline]
    pub(super) fn keeps(&mut self, client: u32, event: Event) -> bool {
        !self.held_up.is_empty() && self.keep(client, event)
    }

    #[cold]
    fn keep(&mut self, client: u32, event: Event) -> bool {
        let held_up = self.held_up.iter_mut().find(|held_up| held_up.client == client);
        held_up.map(|held_up| held_up.events.push(event)).is_some()
    }

    /// Until when the client acts on nothing; `None` for every other client.
    #[inline]
    pub(super) fn held_up_until(&self, client: u32) -> Option<Nanos> {
        let held_up = self.held_up.iter().find(|held_up| held_up.client == client);
        held_up.map(|held_up| held_up.until)
    }

    /// Whether what the client sends as a holder is lost.
    #[inline]
    pub(super) fn is_unrenewed(&self, client: u32) -> bool {
        self.unrenewed.contains(&client)
    }
}

impl<L: LockMachine> Clients<L> {
    /// Whether the client acts on nothing just now.
    pub(crate) fn is_held_up(&self, client: u32) -> bool {
        self.disturbed.held_up_until(client).is_some()
    }

    /// Machines for the clients that crash, one for each planned crash.
    pub(crate) fn begin_anew_with(&mut self, fresh: Vec<L>) {
        self.disturbed = Disturbed::with(fresh);
    }

    /// From now on the client acts on nothing: its replies and its timers wait. Its lease runs on.
    pub(crate) fn hold_up(&mut self, client: u32, until: Nanos) {
        if self.disturbed.held_up_until(client).is_none() {
            self.disturbed.held_up.push(HeldUp {
                client,
                until,
                events: Vec::new(),
            });
        }
    }

    /// The client goes on: first with the timers that became due, then with what arrived meanwhile.
    pub(crate) fn go_on<T: Transport>(&mut self, client: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let place = self
            .disturbed
            .held_up
            .iter()
            .position(|held_up| held_up.client == client);
        let Some(place) = place else { return };
        let HeldUp { events, .. } = self.disturbed.held_up.swap_remove(place);
        let next = self.list[client as usize].next_wake();
        if next != Nanos::NEVER {
            self.timers.arm(client, next);
        }
        self.fire_timers(now, to);
        for event in events {
            self.dispatch(client, now, event, to);
        }
    }

    /// Whether the renewals of this client are lost from now on.
    pub(crate) fn drop_renewals(&mut self, client: u32, drops: bool) {
        self.disturbed.unrenewed.retain(|known| *known != client);
        if drops {
            self.disturbed.unrenewed.push(client);
        }
    }

    /// The client dies with all that it knows, and begins anew at `until`, with a machine that has never been used. What
    /// it has written stays written; nothing of it is released or renewed.
    pub(crate) fn crash<T: Transport>(&mut self, index: u32, now: Nanos, until: Nanos, to: &mut Ports<'_, T>) {
        let Some(fresh) = self.disturbed.fresh.pop() else {
            return;
        };
        let doing = self.list[index as usize].doing;
        self.dies(index, now, to);
        self.drop_work(index, to.recorder);
        self.hung_up.retain(|client| *client != index);
        for held_up in &mut self.disturbed.held_up {
            if held_up.client == index {
                held_up.events.clear();
            }
        }
        let client = &mut self.list[index as usize];
        client.lock = fresh;
        client.lock_wake = Nanos::NEVER;
        client.counted = Counted::No;
        client.entries = 0;
        match doing {
            // It waits for its turn or for work, and has nothing to forget.
            Doing::Idle => {}
            Doing::Pausing => {
                let until = client.own_wake.max(until);
                self.pause(index, until);
            }
            _ => self.pause(index, until),
        }
    }

    /// What the death of a client means to the judge and to the figures.
    fn dies<T: Transport>(&mut self, index: u32, now: Nanos, to: &mut Ports<'_, T>) {
        let is_optimistic = self.params.strategy.is_optimistic();
        let client = &self.list[index as usize];
        let (doing, until) = (client.doing, client.until);
        let is_released = client.release_sent != Nanos::NEVER;
        let holds = matches!(doing, Doing::Entering | Doing::Holding) || (doing == Doing::Releasing && !is_released);
        let left = if holds && self.params.strategy.has_lease() {
            until.since(now)
        } else {
            Nanos::ZERO
        };
        to.recorder.crashed(index, left);
        if matches!(doing, Doing::Idle | Doing::Pausing) {
            return;
        }
        to.recorder.in_doubt();
        self.tell(to.recorder, index, now, |client, _| Judged::Died { client });
        if doing == Doing::Releasing && self.params.strategy.writes() {
            self.write_answered(index, Outcome::Unknown, to.recorder);
        }
        if doing == Doing::Acquiring || (is_optimistic && doing != Doing::Cancelling) {
            let client = &self.list[index as usize];
            let (asked, tried) = (client.asked(), client.tried());
            let attempts = to.recorder.attempts(index, tried);
            to.recorder.ungranted(index, asked, now, Ended::Unknown, attempts);
        }
    }
}

#[cfg(test)]
mod tests;
