//! The shell, around a lock that only notes what it is told.

use std::sync::Arc;

use super::{Ending, Left, Lock, Next, Shell, Turn};
use crate::{
    Action, Actions, CallId, Chance, Command, ErrorKind, Event, Key, Lasts, Lease, LockMachine, Mode, Nanos, Outcome,
    Refusal, Reply, Retry, RetryKind, Script, ScriptForm, Spec, Token,
};

const MS: u64 = 1_000_000;
const TIMEOUT: u64 = 20;
/// A lease of 100 ms, less 1 % and 2 ms.
const BELIEF: u64 = 97;

/// Takes by a script and releases by another one. If it `writes`, the release writes before, and may meet a conflict.
#[derive(Debug, Default)]
struct Probe {
    writes: bool,
    cleaned: Vec<Left>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Take,
    Write,
    Undo,
}

impl Lock for Probe {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Take;
    const UNDO: Step = Step::Undo;

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Take => turn.script(Script::SemaphoreTake, [1, turn.lease_ms()]),
            Step::Write => Command::SetNx { key: turn.key() },
            Step::Undo => turn.compare_and_delete(),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (Step::Write, Reply::Nil) => Next::Conflict,
            (Step::Write, _) => Next::Settle(Ending::Released),
            (Step::Take | Step::Undo, reply) => Next::of_script(reply),
        }
    }

    fn clean_up(&mut self, left: Left, _turn: &mut Turn<'_, Self>) {
        self.cleaned.push(left);
    }

    fn release(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.writes {
            Next::Ask(Step::Write)
        } else {
            Next::Undo(super::After::Release)
        }
    }
}

struct Rig {
    shell: Shell<Probe>,
    now: Nanos,
    sent: Vec<(CallId, Command)>,
    wake: Nanos,
    /// What the last event settled as.
    settled: Option<Outcome>,
}

/// Pauses for 10 ms, the first time for a part of it, and tries three times.
fn rig() -> Rig {
    let retry = Retry {
        kind: RetryKind::Fixed,
        base: Nanos::from_millis(10),
        max_attempts: Some(3),
        ..Retry::NONE
    };
    let spec = Spec {
        servers: 1,
        lease: Lease::new(100).expect("a good lease"),
        reply_timeout: Nanos::from_millis(TIMEOUT),
        retry,
    };
    Rig {
        shell: Shell::new(Arc::new(spec), Chance::seeded(1), Probe::default()),
        now: Nanos::ZERO,
        sent: Vec::new(),
        wake: Nanos::NEVER,
        settled: None,
    }
}

impl Rig {
    fn at(mut self, ms: u64) -> Self {
        self.now = Nanos(ms * MS);
        self
    }

    fn on(mut self, event: Event) -> Self {
        let mut out = Actions::default();
        self.shell.on(self.now, event, &mut out);
        self.settled = None;
        for action in out.drain() {
            match action {
                Action::Send { call, command, .. } => self.sent.push((call, command)),
                Action::WakeAt(at) => self.wake = at,
                Action::Settle(outcome) => self.settled = Some(outcome),
                other => panic!("no lock asked for {other:?}"),
            }
        }
        self
    }

    fn acquire(self) -> Self {
        let (keys, mode) = (Key(4).into(), Mode::Exclusive);
        self.on(Event::Acquire { keys, mode })
    }

    /// Replies to the call that was sent as this one, from 0.
    fn reply(self, which: usize, reply: Reply) -> Self {
        let call = self.sent[which].0;
        self.on(Event::Replied { call, reply })
    }

    fn lose(self, which: usize) -> Self {
        let call = self.sent[which].0;
        self.on(Event::Lost { call })
    }

    /// Moves to the time that was asked for.
    fn sleep(mut self) -> Self {
        self.now = self.wake;
        self.on(Event::Woke)
    }

    fn expect(self, settled: impl Into<Option<Outcome>>, sent: usize) -> Self {
        assert_eq!(
            (self.settled, self.sent.len()),
            (settled.into(), sent),
            "{:?}",
            self.sent
        );
        self
    }

    fn cleaned(self, left: &[Left]) {
        assert_eq!(self.shell.lock.cleaned, left);
    }
}

fn held(until_ms: u64) -> Outcome {
    Outcome::Held {
        lasts: Lasts::Until(Nanos(until_ms * MS)),
        fence: None,
    }
}

const NOTHING: Option<Outcome> = None;
const UNKNOWN_SCRIPT: Reply = Reply::Error(ErrorKind::NoScript);

#[test]
fn only_the_reply_to_the_awaited_call_counts_and_no_id_is_used_twice() {
    let second = rig()
        .acquire()
        .reply(0, Reply::Nil)
        .expect(NOTHING, 1)
        .sleep()
        .expect(NOTHING, 2);
    // A reply to the first attempt, which is over.
    let second = second
        .reply(0, Reply::Int(1))
        .expect(NOTHING, 2)
        .lose(0)
        .expect(NOTHING, 2);
    let freed = second
        .reply(1, Reply::Int(1))
        .on(Event::Release)
        .reply(1, Reply::Int(0))
        .expect(NOTHING, 3);
    let again = freed.reply(2, Reply::Int(1)).expect(Outcome::Released, 3).acquire();
    let again = again.reply(2, Reply::Int(1)).expect(NOTHING, 4);
    assert!(again.sent.is_sorted_by(|a, b| a.0 < b.0), "{:?}", again.sent);
}

#[test]
fn a_reply_that_does_not_come_is_given_up_at_its_deadline_and_not_before() {
    let early = rig().acquire().at(TIMEOUT - 1).on(Event::Woke).expect(NOTHING, 1);
    assert_eq!(early.wake, Nanos::from_millis(TIMEOUT));
    let given_up = early.sleep().expect(Outcome::Unknown, 2);
    // Nobody awaits the reply to this, so nobody could send it again.
    assert_eq!(given_up.sent[1].1.form(), ScriptForm::Source);
    given_up
        .reply(0, Reply::Int(1))
        .expect(NOTHING, 2)
        .cleaned(&[Left::Unclear]);
    let releasing = rig().acquire().reply(0, Reply::Int(1)).at(50).on(Event::Release);
    assert_eq!(releasing.wake, Nanos::from_millis(50 + TIMEOUT));
    releasing.sleep().expect(Outcome::Unknown, 2).cleaned(&[Left::Undoing]);
}

#[test]
fn a_lease_counts_from_the_send() {
    rig().acquire().at(19).reply(0, Reply::Int(1)).expect(held(BELIEF), 1);
    let late = rig().acquire().at(BELIEF).reply(0, Reply::Int(1)).expect(NOTHING, 2);
    let pausing = late
        .reply(1, Reply::Int(1))
        .expect(NOTHING, 2)
        .sleep()
        .expect(NOTHING, 3);
    assert_eq!(pausing.shell.attempts(), 2);
    pausing.cleaned(&[]);
}

#[test]
fn an_unknown_script_is_sent_once_more_as_source_and_its_lease_counts_from_there() {
    let again = rig().acquire().at(5).reply(0, UNKNOWN_SCRIPT).expect(NOTHING, 2);
    assert_eq!(
        again.sent[1].1,
        again.sent[0].1.as_source().expect("it was sent by its SHA-1")
    );
    assert_eq!(
        (again.shell.attempts(), again.wake),
        (1, Nanos::from_millis(5 + TIMEOUT))
    );
    let taken = again
        .reply(0, Reply::Int(1))
        .expect(NOTHING, 2)
        .at(6)
        .reply(1, Reply::Int(1))
        .expect(held(5 + BELIEF), 2);
    let freed = taken.on(Event::Release).reply(2, UNKNOWN_SCRIPT).expect(NOTHING, 4);
    freed.reply(3, Reply::Int(1)).expect(Outcome::Released, 4);
    let twice = rig().acquire().reply(0, UNKNOWN_SCRIPT).reply(1, UNKNOWN_SCRIPT);
    twice
        .expect(Outcome::Failed(ErrorKind::NoScript), 3)
        .cleaned(&[Left::Unclear]);
}

#[test]
fn a_cancel_waits_for_the_reply_and_undoes_what_was_taken() {
    let withdrawn = || {
        rig()
            .acquire()
            .on(Event::Cancel)
            .expect(NOTHING, 1)
            .on(Event::Cancel)
            .expect(NOTHING, 1)
    };
    withdrawn()
        .reply(0, Reply::Nil)
        .expect(Outcome::Released, 1)
        .cleaned(&[Left::Nothing]);
    withdrawn()
        .reply(0, Reply::Error(ErrorKind::OutOfMemory))
        .expect(Outcome::Released, 1);
    for taken in [Reply::Int(1), UNKNOWN_SCRIPT, Reply::Other] {
        let undoing = withdrawn().reply(0, taken).expect(NOTHING, 2);
        undoing
            .reply(1, Reply::Int(0))
            .expect(Outcome::Released, 2)
            .cleaned(&[Left::Undoing]);
    }
    withdrawn().lose(0).expect(Outcome::Unknown, 2);
    withdrawn().sleep().expect(Outcome::Unknown, 2);
}

#[test]
fn a_cancel_elsewhere_settles_once() {
    rig().on(Event::Cancel).expect(Outcome::Released, 0).cleaned(&[]);
    let pausing = rig()
        .acquire()
        .reply(0, Reply::Nil)
        .on(Event::Cancel)
        .expect(Outcome::Released, 1);
    pausing.cleaned(&[Left::Nothing]);
    let held = rig()
        .acquire()
        .reply(0, Reply::Int(1))
        .on(Event::Cancel)
        .expect(NOTHING, 2)
        .on(Event::Cancel);
    held.expect(NOTHING, 2)
        .reply(1, Reply::Int(0))
        .expect(Outcome::Expired, 2);
    let late = rig()
        .acquire()
        .at(BELIEF)
        .reply(0, Reply::Int(1))
        .on(Event::Cancel)
        .expect(NOTHING, 2);
    late.reply(1, Reply::Int(1))
        .expect(Outcome::Released, 2)
        .cleaned(&[Left::Unclear]);
}

#[test]
fn the_policy_ends_the_attempts() {
    let mut last = rig().acquire();
    for attempt in 0..2 {
        last = last.reply(attempt, Reply::Nil).expect(NOTHING, attempt + 1).sleep();
    }
    last = last.reply(2, Reply::Nil).expect(Outcome::Refused(Refusal::Busy), 3);
    assert_eq!(last.shell.attempts(), 3);
    // The attempts of each request are counted from its own beginning.
    assert_eq!(last.acquire().shell.attempts(), 1);
}

/// The work was done, and its write met another one.
fn conflicted() -> Rig {
    let mut rig = rig();
    rig.shell.lock.writes = true;
    let written = rig
        .acquire()
        .reply(0, Reply::Int(1))
        .on(Event::Release)
        .expect(NOTHING, 2);
    written.reply(1, Reply::Nil).expect(Outcome::Conflict, 2)
}

#[test]
fn a_retry_goes_on_with_the_work_after_a_pause_and_an_acquire_begins_another() {
    let pausing = conflicted().on(Event::Retry).expect(NOTHING, 2);
    assert!(pausing.wake <= Nanos::from_millis(10), "{:?}", pausing.wake);
    let second = pausing.sleep().expect(NOTHING, 3);
    assert_eq!(second.shell.attempts(), 2);
    let last = second
        .reply(2, Reply::Int(1))
        .on(Event::Release)
        .reply(3, Reply::Nil)
        .on(Event::Retry)
        .sleep();
    let over = last
        .reply(4, Reply::Int(1))
        .on(Event::Release)
        .reply(5, Reply::Nil)
        .expect(Outcome::Conflict, 6);
    over.on(Event::Retry).expect(Outcome::Refused(Refusal::Busy), 6);
    let other = conflicted().acquire().expect(NOTHING, 3);
    assert_eq!(other.shell.attempts(), 1);
}

#[test]
#[should_panic(expected = "Retry, but the last request did not settle as a conflict")]
fn work_that_was_cancelled_after_a_conflict_is_not_repeated() {
    let dropped = conflicted().on(Event::Cancel).expect(Outcome::Released, 2);
    dropped.on(Event::Retry);
}
