//! Who starts when: in a closed loop at once, in an open one with the next arrival.

use std::collections::VecDeque;

use locks::Nanos;

use super::arrivals::Arrivals;

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Queued,
    /// Too many were in flight.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Starts {
    /// `None` in a closed loop.
    arrivals: Option<Arrivals>,
    max_in_flight: usize,
    /// Open loop: clients without work, and due times without a client.
    idle: VecDeque<u32>,
    queue: VecDeque<Nanos>,
    /// Clients that start in this round.
    starting: Vec<u32>,
}

impl Starts {
    pub(crate) fn new(arrivals: Option<Arrivals>, max_in_flight: u32) -> Self {
        Self {
            arrivals,
            max_in_flight: max_in_flight as usize,
            idle: VecDeque::new(),
            queue: VecDeque::new(),
            starting: Vec::new(),
        }
    }

    pub(crate) fn is_open_loop(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Arrivals come at this rate from now on.
    pub(crate) fn set_rate(&mut self, per_s: f64, now: Nanos) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.set_rate(per_s, now);
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.idle.clear();
        self.queue.clear();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.begin(now);
        }
    }

    /// Nobody starts any more.
    pub(crate) fn end(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.end();
        }
        self.starting.clear();
    }

    /// When the next arrival is due; `NEVER` in a closed loop.
    pub(crate) fn next_due(&self) -> Nanos {
        self.arrivals.as_ref().map_or(Nanos::NEVER, Arrivals::next_due)
    }

    /// The client has nothing to do.
    pub(crate) fn free(&mut self, client: u32) {
        if self.arrivals.is_none() || !self.queue.is_empty() {
            self.starting.push(client);
        } else {
            self.idle.push_back(client);
        }
    }

    /// Gives the next arrival that is due to an idle client of `clients`, or queues or drops it.
    pub(crate) fn next_arrival(&mut self, now: Nanos, clients: usize) -> Option<(Nanos, Arrived)> {
        let due = self.arrivals.as_mut()?.pop(now)?;
        // A client in `starting` and its arrival in `queue` count as one.
        let busy = clients - self.idle.len() - self.starting.len();
        if busy + self.queue.len() >= self.max_in_flight {
            return Some((due, Arrived::Dropped));
        }
        self.queue.push_back(due);
        if let Some(client) = self.idle.pop_front() {
            self.starting.push(client);
        }
        Some((due, Arrived::Queued))
    }

    /// When the work that the client takes now was due; `None`, and it is idle, when there is none.
    pub(crate) fn take_work(&mut self, client: u32, now: Nanos) -> Option<Nanos> {
        if self.arrivals.is_none() {
            return Some(now);
        }
        let due = self.queue.pop_front();
        if due.is_none() {
            self.idle.push_back(client);
        }
        due
    }

    pub(crate) fn starting(&self) -> &[u32] {
        &self.starting
    }

    pub(crate) fn take_starting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.starting)
    }

    /// Gives the memory of `take_starting` back, unless others are to start already.
    pub(crate) fn reuse(&mut self, empty: Vec<u32>) {
        if self.starting.is_empty() {
            self.starting = empty;
        }
    }

    /// The due times of arrivals that no client has taken.
    pub(crate) fn queued(&self) -> impl Iterator<Item = Nanos> {
        self.queue.iter().copied()
    }

    /// For tests: an arrival that no client has taken.
    #[cfg(test)]
    pub(crate) fn enqueue(&mut self, due: Nanos) {
        self.queue.push_back(due);
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::streams;
    use super::*;
    use crate::spec::ArrivalKind;

    /// An arrival each millisecond for this many clients.
    fn open_loop(clients: u32, max_in_flight: u32) -> Starts {
        let arrivals = Arrivals::new(ArrivalKind::Constant, 1_000.0, streams(1, 0, 1).remove(0));
        let mut starts = Starts::new(arrivals, max_in_flight);
        starts.begin(Nanos::ZERO);
        (0..clients).for_each(|client| starts.free(client));
        starts
    }

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_free_client_of_a_closed_loop_starts_at_once() {
        let mut starts = Starts::new(None, 1);
        starts.free(3);
        assert_eq!(starts.starting(), [3]);
        assert_eq!(starts.take_work(3, ms(7)), Some(ms(7)));
        assert_eq!(starts.next_due(), Nanos::NEVER);
    }

    #[test]
    fn arrivals_go_to_idle_clients_then_queue_then_are_dropped() {
        let mut starts = open_loop(1, 2);
        assert_eq!(starts.next_due(), ms(1));
        let arrived: Vec<_> = std::iter::from_fn(|| starts.next_arrival(ms(3), 1)).collect();
        let expected = [
            (ms(1), Arrived::Queued),
            (ms(2), Arrived::Queued),
            (ms(3), Arrived::Dropped),
        ];
        assert_eq!(arrived, expected);
        assert_eq!(starts.take_starting(), [0]);
        assert_eq!(starts.take_work(0, ms(3)), Some(ms(1)), "the oldest first");
        starts.free(0);
        assert_eq!(starts.take_starting(), [0], "work waits for it");
        assert_eq!(starts.take_work(0, ms(4)), Some(ms(2)));
        assert_eq!(starts.take_work(0, ms(4)), None);
        assert_eq!(starts.next_arrival(ms(4), 1), Some((ms(4), Arrived::Queued)));
        assert_eq!(starts.starting(), [0], "who found no work is idle");
    }

    #[test]
    fn nobody_starts_after_the_end() {
        let mut starts = open_loop(1, 1);
        assert_eq!(starts.next_arrival(ms(1), 1), Some((ms(1), Arrived::Queued)));
        starts.end();
        assert_eq!(starts.starting(), [0; 0]);
        assert_eq!(starts.next_due(), Nanos::NEVER);
    }
}
