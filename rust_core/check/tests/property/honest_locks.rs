//! Correct locks are never accused of more than their holders' faults, however long their commands take and their
//! holders work.
//!
//! A model of one key on one server and of clients that set it, work and delete it, with a delay in each direction. A
//! client counts its lease from before the send, less `MARGIN`, which is longer than any delay.

use check::{Checker, ClientId, Event, Report, Rules, ViolationCounts};
use locks::{Key, Mode, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;

const CLIENTS: u32 = 4;
const TTL: u64 = 100;
const MARGIN: u64 = 25;
const STEPS: usize = 600;

/// How a release deletes the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delete {
    WhosesoeverItIs,
    OnlyMine,
}

/// What a holder does when its lease ends before its work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    GoesOn,
    StopsAtLeaseEnd,
}

#[derive(Clone, Copy)]
enum Step {
    Wait,
    Send,
    Set { sent: u64 },
    SetAnswered { sent: u64, granted: bool },
    Release,
    Delete,
    DeleteAnswered,
}

struct World {
    delete: Delete,
    work: Work,
    /// Delays in both directions and pauses between tries, up to 20; and holds, up to twice the lease.
    delays: Box<dyn Iterator<Item = u64>>,
    holds: Box<dyn Iterator<Item = u64>>,
    plan: BTreeMap<(u64, u64), (ClientId, Step)>,
    planned: u64,
    /// The client that set the key, and when the key expires.
    key: Option<(ClientId, u64)>,
    checker: Checker,
    now: u64,
}

impl World {
    fn run(delete: Delete, work: Work, delays: Vec<u64>, holds: Vec<u64>) -> Report {
        let mut world = Self {
            delete,
            work,
            delays: Box::new(delays.into_iter().cycle()),
            holds: Box::new(holds.into_iter().cycle()),
            plan: BTreeMap::new(),
            planned: 0,
            key: None,
            checker: Checker::new(CLIENTS, 1, Rules::default()),
            now: 0,
        };
        for client in 0..CLIENTS {
            world.after_delay(client, Step::Wait);
        }
        for _ in 0..STEPS {
            let ((at, _), (client, step)) = world.plan.pop_first().expect("every step plans the next");
            world.now = at.max(world.now + 1);
            world.take(client, step);
        }
        let end = Nanos(world.now);
        world.checker.finish(end)
    }

    fn take(&mut self, client: ClientId, step: Step) {
        let now = self.now;
        match step {
            Step::Wait => {
                self.tell(Event::Waiting {
                    client,
                    key: Key(0),
                    mode: Mode::Exclusive,
                });
                self.take(client, Step::Send);
            }
            Step::Send => self.after_delay(client, Step::Set { sent: now }),
            Step::Set { sent } => {
                let granted = self.key.is_none_or(|(_, expires)| expires <= now);
                if granted {
                    self.key = Some((client, now + TTL));
                }
                self.after_delay(client, Step::SetAnswered { sent, granted });
            }
            Step::SetAnswered { granted: false, .. } => self.after_delay(client, Step::Send),
            Step::SetAnswered { sent, granted: true } => {
                let (until, hold) = (sent + TTL - MARGIN, self.holds.next().expect("holds go round"));
                self.tell(Event::Granted {
                    client,
                    until: Nanos(until),
                    hold: Nanos(hold),
                    fence: None,
                });
                let end = match self.work {
                    Work::GoesOn => now + hold,
                    // Stamps are unique, so the end may move by one for each client.
                    Work::StopsAtLeaseEnd => (now + hold).min(until - u64::from(CLIENTS)),
                };
                self.at(end, client, Step::Release);
            }
            Step::Release => {
                self.tell(Event::Released { client });
                self.after_delay(client, Step::Delete);
            }
            Step::Delete => {
                self.key = self
                    .key
                    .filter(|&(owner, _)| self.delete == Delete::OnlyMine && owner != client);
                self.after_delay(client, Step::DeleteAnswered);
            }
            Step::DeleteAnswered => self.after_delay(client, Step::Wait),
        }
    }

    fn tell(&mut self, event: Event) {
        self.checker.on(Nanos(self.now), event);
    }

    fn after_delay(&mut self, client: ClientId, step: Step) {
        let at = self.now + self.delays.next().expect("delays go round");
        self.at(at, client, step);
    }

    fn at(&mut self, at: u64, client: ClientId, step: Step) {
        self.planned += 1;
        self.plan.insert((at, self.planned), (client, step));
    }
}

fn delays() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1_u64..=20, 1..60)
}

fn holds() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![3 => 0_u64..60, 1 => 60..2 * TTL], 1..40)
}

#[test]
fn in_the_model_an_unchecked_delete_after_an_overrun_gives_the_lock_twice() {
    let report = World::run(
        Delete::WhosesoeverItIs,
        Work::GoesOn,
        vec![3, 7, 1, 12, 5],
        vec![150, 20, 40],
    );
    assert!(report.counts.double_grants_after_overrun > 0, "{:?}", report.counts);
}

proptest! {
    #[test]
    fn without_an_overrun_nobody_is_accused(delays in delays(), holds in holds()) {
        for delete in [Delete::WhosesoeverItIs, Delete::OnlyMine] {
            let report = World::run(delete, Work::StopsAtLeaseEnd, delays.clone(), holds.clone());
            prop_assert_eq!(report.counts, ViolationCounts::default());
        }
    }

    #[test]
    fn a_lock_that_deletes_only_its_own_overruns_at_most(delays in delays(), holds in holds()) {
        let counts = World::run(Delete::OnlyMine, Work::GoesOn, delays, holds).counts;
        prop_assert_eq!((counts.double_grants, counts.double_grants_after_overrun), (0, 0));
    }

    #[test]
    fn double_grants_of_unchecked_deletes_are_all_kept_apart(delays in delays(), holds in holds()) {
        let counts = World::run(Delete::WhosesoeverItIs, Work::GoesOn, delays, holds).counts;
        prop_assert_eq!(counts.double_grants, 0);
    }
}
