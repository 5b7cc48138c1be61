//! The times at which a thread must do something for a client, earliest first.
//!
//! A client has one time. Asking for a later one than is already set costs nothing: the earlier one fires, and the
//! client then sets its real time. So the reply timeout of each call, set anew at every send, is hardly ever written.
//!
//! Of ten thousand clients in backoff only few are due soon. These stand in a small heap, in their exact order; all
//! others wait in the unordered lists of a wheel, where setting a time and moving it forward are a few stores. No
//! published wheel was found that keeps the order to the nanosecond: they fire by ticks.
//!
//! Promises: exact times, in order, and of equal times the lower client first. Each client is in one place only, so
//! that a time which was moved forward leaves nothing behind. No allocation after construction.

use locks::Nanos;

mod heap;
#[cfg(test)]
mod tests;
mod wheel;

use heap::Heap;
use wheel::{Wheel, tick};

#[derive(Debug)]
pub(crate) struct Timers {
    /// One of each client, then those of the wheel.
    nodes: Box<[Node]>,
    /// The clients with the earliest times. Empty only if no client has a time.
    soon: Heap,
    /// The other clients: all have later times than the first in `soon`.
    wheel: Wheel,
    /// No client in the wheel has an earlier tick.
    wheel_from: u64,
}

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its time; `NEVER` if it has none.
    at: Nanos,
    /// In the wheel its neighbours in a list. In `soon`, `prev` is its place and `next` is `IN_SOON`.
    prev: u32,
    next: u32,
}

const IN_SOON: u32 = u32::MAX;

impl Timers {
    pub(crate) fn new(clients: usize) -> Self {
        let node = |index| Node {
            at: Nanos::NEVER,
            prev: index,
            next: index,
        };
        Self {
            nodes: (0..(clients + Wheel::NODES) as u32).map(node).collect(),
            soon: Heap::new(clients),
            wheel: Wheel::new(clients),
            wheel_from: u64::MAX,
        }
    }

    /// Fires `client` at `at` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, client: u32, at: Nanos) {
        let before = self.nodes[client as usize];
        if at < before.at {
            self.move_forward(client, before, at);
        }
    }

    fn move_forward(&mut self, client: u32, before: Node, at: Nanos) {
        self.nodes[client as usize].at = at;
        if before.at != Nanos::NEVER {
            if before.next == IN_SOON {
                return self.soon.move_forward(&mut self.nodes, client);
            }
            self.wheel.remove(&mut self.nodes, client);
        }
        if at <= self.next() {
            self.soon.push(&mut self.nodes, client);
        } else {
            self.add(client);
        }
    }

    /// Adds a client whose time is later than the first in `soon`, or whose tick is the earliest.
    fn add(&mut self, client: u32) {
        let tick = tick(self.nodes[client as usize].at);
        if self.wheel.has_passed(tick) {
            self.soon.push(&mut self.nodes, client);
        } else {
            self.wheel.add(&mut self.nodes, client, tick);
            self.wheel_from = self.wheel_from.min(tick);
        }
    }

    /// The earliest time.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.soon.first().map_or(Nanos::NEVER, |(at, _)| at)
    }

    /// The next client whose time has come; it is no longer armed.
    #[inline]
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<u32> {
        let (at, client) = self.soon.first()?;
        if at > now {
            return None;
        }
        self.soon.pop(&mut self.nodes);
        self.nodes[client as usize].at = Nanos::NEVER;
        if self.wheel_from <= tick(self.next()) {
            self.refill();
        }
        Some(client)
    }

    /// Moves the earliest clients from the wheel to `soon`, until none in the wheel can be earlier than the first.
    fn refill(&mut self) {
        while let Some(slot) = self.wheel.first() {
            self.wheel_from = self.wheel.begin(slot);
            if tick(self.next()) < self.wheel_from {
                return;
            }
            self.wheel.pass_to(self.wheel_from);
            let mut taken = self.wheel.take_all(&mut self.nodes, slot);
            while let Some(client) = taken {
                taken = self.wheel.after(&self.nodes, client);
                self.add(client);
            }
        }
        self.wheel_from = u64::MAX;
    }
}
