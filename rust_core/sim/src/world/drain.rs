//! The end of a world whose lock depends on a session.
//!
//! A grant beside a holder whose session has ended is judged only when that holder notices. A world that simply ended
//! would take a holder that had no time to notice for one that kept its session. So it drains, as a trial does: nobody
//! begins a request, who waits gives up, who holds releases, and the judge hears how each hold ended.

use locks::Nanos;

use super::Run;
use crate::process::Process;

/// More than a round, a release and its reply, and until a session's end is noticed.
const WITHIN: Nanos = Nanos::from_secs(2);

/// The drain of a world, once it has begun.
#[derive(Debug)]
pub(super) struct Drain {
    /// The latest end.
    until: Nanos,
    /// Whether each process knows of it. One that is stopped does not before it goes on.
    told: Vec<bool>,
}

impl Run {
    /// Begins to drain a world that is over; false if it drains already, or need not.
    pub(super) fn begins_drain(&mut self) -> bool {
        if self.drain.is_some() || !self.asked.strategy.holds_by_session() {
            return false;
        }
        let now = self.time.now();
        self.drain = Some(Drain {
            until: now.max(self.network.borrow().calm_from()).after(WITHIN),
            told: vec![false; self.processes.len()],
        });
        for index in 0..self.processes.len() {
            if !self.absent.contains(&index) {
                let stopped_until = self.network.borrow().stopped_until[index];
                self.due[index] = now.max(self.processes[index].free_at).max(stopped_until);
            }
        }
        true
    }

    /// Whether a world that is over goes on: what happens next, happens at `at`.
    pub(super) fn drains(&mut self, at: Nanos) -> bool {
        self.drain.as_ref().is_some_and(|drain| at <= drain.until) && !self.is_settled()
    }

    /// A process that has run gives up what it does.
    pub(super) fn perhaps_stops(&mut self, index: usize) {
        let Some(drain) = &mut self.drain else { return };
        if !std::mem::replace(&mut drain.told[index], true) {
            let process = &mut self.processes[index];
            process.restarts = false;
            process.driver.stop();
        }
    }

    /// Whether all have ended what they did, and the judge has heard of it.
    fn is_settled(&mut self) -> bool {
        let told = self.drain.as_ref().map_or(&[][..], |drain| &drain.told);
        let mut processes = self.processes.iter_mut().zip(told).enumerate();
        let is_at_rest = |(index, (process, &told)): (usize, (&mut Process, &bool))| {
            self.absent.contains(&index) || told && process.driver.is_at_rest()
        };
        self.untold == 0 && !self.checker.has_undecided() && processes.all(is_at_rest)
    }
}
