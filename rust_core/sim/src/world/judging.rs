//! What the processes of a world tell their judges, in the world's time, and what the judge says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use check::{Event, LostUpdates, UpdateVerdict};
use locks::{Key, Nanos};

use super::Run;
use crate::clock::Skew;
use crate::machine::Tally;

/// More than a slow clock's nanosecond takes in the world's time: so much older may be what a process tells from now on.
const GRAIN: Nanos = Nanos(2);

impl Run {
    /// Takes what the processes told their judges. What a process will tell is not older than its clock.
    pub(super) fn listen(&mut self) {
        for (index, process) in self.processes.iter_mut().enumerate() {
            let (skew, merge, untold) = (process.skew, &mut self.merge, &mut self.untold);
            process.heard.take(|at, event| {
                *untold += 1;
                merge.push(index, skew.shows(at), in_true_time(event, skew));
            });
        }
        if self.untold > 0 {
            let reached = Nanos(self.time.now().0.saturating_sub(GRAIN.0));
            for index in 0..self.processes.len() {
                self.merge.watermark(index, reached);
            }
            self.judge();
        }
    }

    pub(super) fn judge(&mut self) {
        let (checker, heard, keeps) = (&mut self.checker, &mut self.heard, self.keeps_heard);
        let untold = &mut self.untold;
        self.merge.drain(|at, event| {
            *untold -= 1;
            if keeps {
                heard.push((at, event));
            }
            checker.on(at, event);
        });
    }

    /// Looks at what the clients of a process did in its last round.
    pub(super) fn note_breach(&mut self, index: usize) {
        let breach = |tally: &Rc<RefCell<Tally>>| tally.borrow().conduct.breach;
        if self.breach.is_none()
            && let Some(breach) = self.processes[index].tallies.iter().find_map(breach)
        {
            self.breach = Some((self.time.now(), format!("client {index} {breach}")));
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.breach.is_some()
            || !self.judged_by_writes
                && self.asked.promises_broken(self.checker.counts()) > 0
                && !self.network.borrow().wipes()
    }

    /// An acknowledged write that is missing. Writes under way may be visible or not.
    pub(super) fn lost_update(&mut self) -> Option<String> {
        if !self.asked.strategy.writes() {
            return None;
        }
        let none = LostUpdates {
            acknowledged: 0,
            unknown: 0,
        };
        let mut sums: BTreeMap<u32, LostUpdates> = BTreeMap::new();
        for process in &mut self.processes {
            process.driver.count_unanswered_writes();
            let written = process.driver.written();
            for (key, (&acknowledged, &unknown)) in (0..).zip(written.acknowledged.iter().zip(&written.unknown)) {
                let sum = sums.entry(key).or_insert(none);
                sum.acknowledged += acknowledged;
                sum.unknown += unknown;
            }
        }
        let network = self.network.borrow();
        sums.iter().find_map(|(&key, writes)| {
            let value = network.database.value(Key(key));
            let verdict = writes.judge(value);
            matches!(verdict, UpdateVerdict::Lost { .. } | UpdateVerdict::Surplus { .. }).then(|| {
                format!(
                    "key {key} is {value} after {writes:?}: {verdict:?}; seed {}",
                    self.asked.seed
                )
            })
        })
    }
}

/// The ends of leases by the world's time.
fn in_true_time(event: Event, skew: Skew) -> Event {
    match event {
        Event::Granted {
            client,
            until,
            hold,
            fence,
        } => Event::Granted {
            client,
            until: skew.shows(until),
            hold,
            fence,
        },
        Event::Renewed { client, until } => Event::Renewed {
            client,
            until: skew.shows(until),
        },
        other => other,
    }
}
