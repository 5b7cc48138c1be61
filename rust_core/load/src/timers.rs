//! The times at which a thread must do something for a client, earliest first.
//!
//! A client has one time. Asking for a later one than is already set costs nothing: the earlier one fires, and the
//! client then sets its real time. So the reply timeout of each call, set anew at every send, is hardly ever written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use locks::Nanos;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The time at which each client will really be fired; other entries of the heap are obsolete.
    armed: Vec<Nanos>,
}

impl Timers {
    pub(crate) fn new(clients: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(clients * 2),
            armed: vec![Nanos::NEVER; clients],
        }
    }

    /// Fires `client` at `at` or earlier.
    #[inline]
    pub(crate) fn arm(&mut self, client: u32, at: Nanos) {
        let armed = &mut self.armed[client as usize];
        if at < *armed {
            *armed = at;
            self.heap.push(Reverse((at, client)));
        }
    }

    /// The earliest time, which may be obsolete; firing it then does nothing.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at)
    }

    /// The next client whose time has come; it is no longer armed.
    #[inline]
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&Reverse((at, client))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let armed = &mut self.armed[client as usize];
            if *armed == at {
                *armed = Nanos::NEVER;
                return Some(client);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_fired_in_order_of_their_points() {
        let mut timers = Timers::new(3);
        timers.arm(0, Nanos(30));
        timers.arm(1, Nanos(10));
        timers.arm(2, Nanos(20));
        assert_eq!(timers.next(), Nanos(10));
        assert_eq!(timers.pop(Nanos(25)), Some(1));
        assert_eq!(timers.pop(Nanos(25)), Some(2));
        assert_eq!(timers.pop(Nanos(25)), None);
        assert_eq!(timers.pop(Nanos(30)), Some(0));
        assert_eq!(timers.next(), Nanos::NEVER);
    }

    #[test]
    fn a_later_point_is_free_and_an_earlier_one_replaces() {
        let mut timers = Timers::new(1);
        timers.arm(0, Nanos(50));
        timers.arm(0, Nanos(90));
        assert_eq!(timers.heap.len(), 1, "the later point is not written");
        timers.arm(0, Nanos(20));
        assert_eq!(timers.pop(Nanos(20)), Some(0));
        assert_eq!(timers.pop(Nanos(100)), None, "the entry at 50 is a left-over");
    }
}
