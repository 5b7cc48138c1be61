//! The lock itself, in a thread whose calls are answered by hand.

use std::sync::Arc;

use locks::{ErrorKind, Event, Key, Keys, Lease, Mode, Nanos, Reply, Retry, RetryKind, Spec, Strategy};

use crate::client::Doing;
use crate::control::Control;
use crate::judge::Judge;
use crate::setup;
use crate::spec::{AfterLease, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, TrialSpec};
use crate::stats::{Ended, Phase};
use crate::thread::Thread;

const MS: u64 = 1_000_000;
const CLIENT: u32 = 0;
const CONFLICT: Reply = Reply::Error(ErrorKind::Serialization);
const WRITTEN: Reply = Reply::Int(0);

fn spec() -> TrialSpec {
    TrialSpec {
        strategy: Strategy::PgSerializable,
        lock: Spec {
            servers: 1,
            lease: Lease::new(10_000).expect("it is a lease"),
            patience: Nanos::from_secs(1),
            retry: Retry {
                kind: RetryKind::Fixed,
                base: Nanos::from_millis(1),
                factor: 2.0,
                cap: Nanos::from_millis(1),
                max_attempts: None,
                max_wait: Nanos::from_secs(10),
            },
        },
        servers: Vec::new(),
        connections: Connections::Shared(1),
        client_name: String::new(),
        key_prefix: Vec::new(),
        keys: 1,
        key_choice: KeyChoice::Single,
        keys_per_grant: 1,
        key_order: KeyOrder::Random,
        read_share: 0.0,
        nesting: 1,
        hold: Distribution::Fixed(Nanos(MS)),
        think: Distribution::Fixed(Nanos::ZERO),
        after_lease: AfterLease::Continue,
        pace: Pace::Closed,
        concurrency: 1,
        warmup: Nanos::ZERO,
        duration: Nanos::from_secs(1),
        drain: Nanos::ZERO,
        dies: false,
        seed: 1,
        threads: 1,
        cores: Vec::new(),
        poll: Poll::Block,
    }
}

/// One client within an open window. Its connection is never opened, so that what it sends stays in `unsendable`.
struct Rig {
    thread: Thread,
    now: Nanos,
}

fn rig() -> Rig {
    let control = Arc::new(Control::new(1));
    let mut threads = setup::threads(&spec(), &control, vec![Judge::Deaf]).expect("the trial is sound");
    let mut thread = threads.remove(0);
    thread.running = true;
    thread.counting = true;
    thread.window_end = Nanos::NEVER;
    Rig {
        thread,
        now: Nanos::ZERO,
    }
}

impl Rig {
    fn at_ms(mut self, ms: u64) -> Self {
        self.now = Nanos(ms * MS);
        self.thread.fire_timers(self.now);
        self
    }

    fn begins(mut self) -> Self {
        let client = &mut self.thread.clients[CLIENT as usize];
        client.doing = Doing::Acquiring;
        (client.due, client.sent) = (self.now, self.now);
        client.hold = Nanos(MS);
        client.release_sent = Nanos::NEVER;
        let keys = Keys::one(Key(0));
        let mode = Mode::Exclusive;
        self.thread.tell(CLIENT, self.now, Event::Acquire { keys, mode });
        self
    }

    fn answered(mut self, reply: Reply) -> Self {
        let (client, call) = self.thread.unsendable.pop().expect("something was sent");
        self.thread.tell(client, self.now, Event::Replied { call, reply });
        self
    }

    fn loses_its_answer(mut self) -> Self {
        let (client, call) = self.thread.unsendable.pop().expect("something was sent");
        self.thread.tell(client, self.now, Event::Lost { call });
        self
    }

    /// From the read at 1 ms to a write at 2 ms that another was before, and the end of the transaction.
    fn meets_a_conflict(self) -> Self {
        let held = self.begins().at_ms(1).answered(Reply::Int(7));
        held.at_ms(2).answered(CONFLICT).answered(Reply::Ok)
    }

    fn doing(&self) -> Doing {
        self.thread.clients[CLIENT as usize].doing
    }

    fn recorded(mut self, phase: Phase) -> Vec<(Ended, u64)> {
        self.thread.histograms.finish();
        let filled = self.thread.histograms.filled();
        filled
            .filter(|row| row.0 == phase)
            .map(|(_, ended, histogram)| (ended, histogram.max() / MS))
            .collect()
    }
}

#[test]
fn a_work_is_granted_when_its_write_was_accepted_and_not_before() {
    let held = rig().begins().at_ms(1).answered(Reply::Int(7));
    assert_eq!((held.doing(), held.thread.counters.grants), (Doing::Holding, 0));
    let written = held.at_ms(2).answered(WRITTEN);
    let counters = written.thread.counters;
    assert_eq!(
        (counters.grants, counters.all_grants, counters.acknowledged_writes),
        (1, 1, 1)
    );
    assert_eq!((counters.conflicts, counters.conflicted_grants), (0, 0));
    assert_eq!(written.thread.clients[CLIENT as usize].doing, Doing::Idle);
}

#[test]
fn a_conflict_is_a_refused_attempt_of_a_work_that_goes_on() {
    let again = rig().meets_a_conflict();
    let counters = again.thread.counters;
    assert_eq!(again.doing(), Doing::Acquiring);
    assert_eq!(
        (counters.grants, counters.acknowledged_writes, counters.attempts),
        (0, 0, 0)
    );
    let granted = again.at_ms(5).answered(Reply::Int(8)).at_ms(7).answered(WRITTEN);
    let counters = granted.thread.counters;
    assert_eq!((counters.grants, counters.acknowledged_writes), (1, 1));
    assert_eq!((counters.attempts, counters.refused_attempts), (2, 1));
    assert_eq!((counters.conflicts, counters.conflicted_grants), (1, 1));
}

#[test]
fn a_response_runs_from_when_the_work_was_due_to_the_grant_of_its_last_try() {
    let granted = || {
        let again = rig().meets_a_conflict().at_ms(5).answered(Reply::Int(8));
        again.at_ms(7).answered(WRITTEN)
    };
    assert_eq!(granted().recorded(Phase::Response), [(Ended::Granted, 5)]);
    assert_eq!(granted().recorded(Phase::Hold), [(Ended::Granted, 2)]);
    let releases: Vec<_> = granted().recorded(Phase::Release).iter().map(|row| row.0).collect();
    assert_eq!(releases, [Ended::Granted, Ended::Refused]);
}

#[test]
fn a_write_without_an_answer_is_no_grant_and_may_be_there() {
    let lost = rig()
        .begins()
        .at_ms(1)
        .answered(Reply::Int(7))
        .at_ms(2)
        .loses_its_answer();
    let counters = lost.thread.counters;
    assert_eq!(
        (counters.grants, counters.acknowledged_writes, counters.unknown_writes),
        (0, 0, 1)
    );
    assert_eq!((counters.unknown, lost.doing()), (1, Doing::Pausing));
}

#[test]
fn a_write_that_nobody_answered_by_the_end_may_be_there() {
    let mut unanswered = rig().begins().at_ms(1).answered(Reply::Int(7)).at_ms(2);
    assert_eq!(unanswered.doing(), Doing::Releasing);
    unanswered.thread.count_unanswered_writes();
    assert_eq!(unanswered.thread.counters.unknown_writes, 1);
}

#[test]
fn a_session_that_ends_during_the_work_leaves_nothing_written() {
    let mut held = rig().begins().at_ms(1).answered(Reply::Int(7));
    held.thread.tell(CLIENT, held.now, Event::Disconnected);
    let counters = held.at_ms(2).thread.counters;
    assert_eq!(
        (
            counters.stale_writes,
            counters.unknown_writes,
            counters.acknowledged_writes
        ),
        (0, 0, 0)
    );
    assert_eq!((counters.grants, counters.lost, counters.refused_attempts), (0, 1, 1));
}

#[test]
fn a_write_after_the_window_counts_as_written_and_not_as_granted() {
    let mut held = rig().begins().at_ms(1).answered(Reply::Int(7));
    held.thread.count_unfinished(held.now);
    held.thread.window_end = held.now;
    held.thread.counting = false;
    held.thread.running = false;
    held.thread.cut_short(CLIENT, held.now);
    let counters = held.answered(WRITTEN).thread.counters;
    assert_eq!(
        (counters.acknowledged_writes, counters.all_grants, counters.grants),
        (1, 1, 0)
    );
    assert_eq!((counters.unfinished, counters.attempts), (1, 1));
}

#[test]
fn a_work_that_the_end_of_a_period_met_in_conflict_is_dropped() {
    let mut held = rig().begins().at_ms(1).answered(Reply::Int(7));
    held.thread.running = false;
    held.thread.cut_short(CLIENT, held.now);
    let mut dropped = held.answered(CONFLICT).answered(Reply::Ok);
    assert_eq!(dropped.doing(), Doing::Idle);
    dropped.thread.running = true;
    let next = dropped
        .at_ms(5)
        .begins()
        .at_ms(6)
        .answered(Reply::Int(7))
        .at_ms(7)
        .answered(WRITTEN);
    assert_eq!(
        (next.thread.counters.attempts, next.thread.counters.conflicted_grants),
        (1, 0)
    );
}
