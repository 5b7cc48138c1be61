//! Script tests of guarded works: one event after another at given times, and each command is compared. And properties of
//! many works on one resource.

mod many;

use std::num::NonZeroU64;

use locks::{
    Action, Actions, CallId, Command, ConnectionKind, ErrorKind, Fence, GuardKind, GuardRules, GuardedWork, Key, Nanos,
    Reply, Script, ScriptForm, ServerId, Statement, Token, Work, WorkEnd, WorkEvent, Write,
};

const GUARD: ServerId = ServerId(3);
const TIMEOUT: Nanos = Nanos::from_secs(1);
const THINK: Nanos = Nanos::from_millis(5);

/// A work, what it has sent, and how it has ended.
struct Story {
    work: GuardedWork,
    is_database: bool,
    now: Nanos,
    calls: Vec<CallId>,
    sent: Vec<Command>,
    end: Option<WorkEnd>,
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn rules(kind: GuardKind) -> GuardRules {
    GuardRules {
        kind,
        is_atomic: false,
        server: GUARD,
        is_database: false,
        reply_timeout: TIMEOUT,
    }
}

/// A work of this kind that has begun at 10 ms.
fn work(kind: GuardKind) -> Story {
    story(rules(kind), true)
}

fn story(rules: GuardRules, writes: bool) -> Story {
    let mut story = Story {
        work: GuardedWork::new(rules),
        is_database: rules.is_database,
        now: ms(10),
        calls: Vec::new(),
        sent: Vec::new(),
        end: None,
    };
    story.begins(writes);
    story
}

impl Story {
    fn begins(&mut self, writes: bool) {
        let work = Work {
            keys: [Key(4), Key(7)],
            writes,
            think: THINK,
            fence: NonZeroU64::new(9).map(Fence),
        };
        let mut out = Actions::default();
        self.work.begin(self.now, work, &mut out);
        self.take(out);
    }

    fn take(&mut self, mut out: Actions) {
        for action in out.drain() {
            let Action::Send {
                call,
                to: GUARD,
                over: ConnectionKind::Guard,
                command,
            } = action
            else {
                panic!("a work only sends, and only to its resource: {action:?}")
            };
            assert!(call.is_guarded() && !self.calls.contains(&call));
            self.calls.push(call);
            self.sent.push(command);
        }
    }

    fn event(mut self, event: WorkEvent) -> Self {
        assert_eq!(self.end, None, "nobody waits for this work any more");
        let mut out = Actions::default();
        self.end = self.work.on(self.now, event, &mut out);
        self.take(out);
        self
    }

    /// The call that was sent as this one, from 0, gets a reply.
    fn replied(self, number: usize, reply: Reply) -> Self {
        let call = self.calls[number];
        self.event(WorkEvent::Replied { call, reply })
    }

    fn answered(self, reply: Reply) -> Self {
        let last = self.calls.len() - 1;
        self.replied(last, reply)
    }

    fn loses(self) -> Self {
        let call = *self.calls.last().expect("something was sent");
        self.event(WorkEvent::Lost { call })
    }

    /// Time passes until the work wants to be woken, and it is.
    fn wakes(mut self) -> Self {
        self.now = self.work.wake_at();
        self.event(WorkEvent::Woke)
    }

    fn expect_sent(self, expected: &[(Script, Statement, u32, [u64; 2])]) -> Self {
        let command = |&(script, statement, key, numbers): &(Script, Statement, u32, [u64; 2])| {
            let (key, token) = (Key(key), Token::NONE);
            if self.is_database {
                Command::Sql {
                    statement,
                    key,
                    token,
                    numbers,
                }
            } else {
                let form = ScriptForm::Sha;
                Command::Run {
                    script,
                    form,
                    key,
                    token,
                    numbers,
                }
            }
        };
        assert_eq!(self.sent, expected.iter().map(command).collect::<Vec<_>>());
        self
    }

    fn expect_end(self, end: WorkEnd) -> Self {
        assert_eq!(self.end, Some(end));
        assert!(self.work.is_idle());
        assert_eq!(self.work.wake_at(), Nanos::NEVER);
        self
    }

    fn expect_writes(self, expected: &[(u32, i64, bool)]) {
        let write = |&(key, delta, is_known): &(u32, i64, bool)| Write {
            key: Key(key),
            delta,
            is_known,
        };
        let expected: Vec<_> = expected.iter().map(write).collect();
        assert_eq!(self.work.writes().collect::<Vec<_>>(), expected);
    }
}

const READ: (Script, Statement, u32, [u64; 2]) = (Script::GuardRead, Statement::ValueRead, 4, [0, 0]);

#[test]
fn a_counter_is_read_thought_about_and_written_as_an_absolute_value() {
    for is_database in [false, true] {
        let rules = GuardRules {
            is_database,
            ..rules(GuardKind::Counter)
        };
        let read = story(rules, true).expect_sent(&[READ]);
        assert_eq!(read.work.wake_at(), ms(10).after(TIMEOUT));
        let thinks = read.answered(Reply::Int(41));
        assert_eq!(thinks.work.wake_at(), ms(10).after(THINK), "from the reply on");
        thinks
            .wakes()
            .expect_sent(&[READ, (Script::GuardWrite, Statement::GuardWrite, 4, [42, 0])])
            .answered(Reply::Int(1))
            .expect_end(WorkEnd::Done)
            .expect_writes(&[(4, 1, true)]);
    }
}

#[test]
fn a_stock_is_taken_from_relatively_and_only_if_something_is_left() {
    work(GuardKind::Stock)
        .answered(Reply::Int(1))
        .wakes()
        .expect_sent(&[READ, (Script::GuardTake, Statement::GuardTake, 4, [0, 0])])
        .answered(Reply::Int(1))
        .expect_end(WorkEnd::Done)
        .expect_writes(&[(4, -1, true)]);
    for left in [0, -3] {
        let none_left = work(GuardKind::Stock).answered(Reply::Int(left));
        none_left
            .expect_sent(&[READ])
            .expect_end(WorkEnd::SoldOut)
            .expect_writes(&[]);
    }
}

#[test]
fn a_constraint_that_refuses_is_an_end_of_its_own() {
    let violation = Reply::Error(ErrorKind::CheckViolation);
    let refused = work(GuardKind::Stock)
        .answered(Reply::Int(1))
        .wakes()
        .answered(violation);
    refused.expect_end(WorkEnd::Refused).expect_writes(&[]);
}

#[test]
fn a_transfer_reads_both_accounts_and_moves_some_from_the_larger_to_the_smaller() {
    let second = (Script::GuardRead, Statement::ValueRead, 7, [0, 0]);
    let asked = work(GuardKind::Transfer).expect_sent(&[READ, second]);
    // The replies may come in any order.
    let read = asked.replied(1, Reply::Int(100)).replied(0, Reply::Int(3));
    let wrote = read.wakes();
    let numbers = wrote.sent[2..].iter().map(|command| match *command {
        Command::Run { key, numbers, .. } => (key.0, numbers[0].cast_signed()),
        _ => panic!("not a script: {command:?}"),
    });
    let [(4, smaller), (7, larger)] = numbers.collect::<Vec<_>>()[..] else {
        panic!("both are written")
    };
    let moved = smaller - 3;
    assert!((1..=7).contains(&moved));
    assert_eq!(smaller + larger, 103);
    let half = wrote.replied(3, Reply::Int(1));
    assert_eq!(half.end, None);
    half.replied(2, Reply::Int(1))
        .expect_end(WorkEnd::Done)
        .expect_writes(&[(4, moved, true), (7, -moved, true)]);
}

#[test]
fn of_a_transfer_with_one_lost_reply_the_other_write_is_known() {
    let read = work(GuardKind::Transfer)
        .replied(0, Reply::Int(1))
        .replied(1, Reply::Int(0));
    let written = read.wakes().replied(2, Reply::Int(1)).loses();
    written
        .expect_end(WorkEnd::Done)
        .expect_writes(&[(4, -1, true), (7, 1, false)]);
}

#[test]
fn a_fence_is_shown_at_the_read_and_at_the_write() {
    let read = (Script::GuardFencedRead, Statement::GuardFencedRead, 4, [9, 0]);
    let written = (Script::GuardFencedWrite, Statement::GuardFencedWrite, 4, [9, 6]);
    let writing = || work(GuardKind::FencedWrite).answered(Reply::Int(5)).wakes();
    writing()
        .expect_sent(&[read, written])
        .answered(Reply::Int(1))
        .expect_end(WorkEnd::Done);
    writing()
        .answered(Reply::Nil)
        .expect_end(WorkEnd::Stale)
        .expect_writes(&[]);
    work(GuardKind::FencedWrite)
        .answered(Reply::Nil)
        .expect_sent(&[read])
        .expect_end(WorkEnd::Stale)
        .expect_writes(&[]);
}

#[test]
fn an_atomic_step_thinks_first_and_reads_nothing() {
    for (kind, script, statement) in [
        (GuardKind::Counter, Script::GuardCount, Statement::GuardCount),
        (GuardKind::Stock, Script::GuardBuy, Statement::GuardBuy),
    ] {
        let atomic = || {
            let is_atomic = true;
            story(
                GuardRules {
                    is_atomic,
                    ..rules(kind)
                },
                true,
            )
        };
        assert_eq!(atomic().work.wake_at(), ms(10).after(THINK));
        let step = [(script, statement, 4, [0, 0])];
        let done = atomic().wakes().expect_sent(&step).answered(Reply::Int(1));
        done.expect_end(WorkEnd::Done);
    }
    let is_atomic = true;
    let stock = GuardRules {
        is_atomic,
        ..rules(GuardKind::Stock)
    };
    let refused = story(stock, true).wakes().answered(Reply::Nil);
    refused.expect_end(WorkEnd::SoldOut).expect_writes(&[]);
}

#[test]
fn a_reader_writes_nothing() {
    for kind in [GuardKind::Counter, GuardKind::Stock] {
        let read = story(rules(kind), false).answered(Reply::Int(0)).wakes();
        read.expect_sent(&[READ]).expect_end(WorkEnd::Done).expect_writes(&[]);
    }
}

#[test]
fn a_read_that_fails_or_gets_no_reply_abandons_the_work() {
    let read = || work(GuardKind::Counter);
    for abandoned in [
        read().answered(Reply::Error(ErrorKind::Other)),
        read().answered(Reply::Nil),
        read().loses(),
        read().wakes(),
    ] {
        abandoned
            .expect_sent(&[READ])
            .expect_end(WorkEnd::Abandoned)
            .expect_writes(&[]);
    }
}

#[test]
fn a_write_without_a_reply_may_have_been_carried_out_and_one_that_was_refused_was_not() {
    let wrote = || work(GuardKind::Counter).answered(Reply::Int(0)).wakes();
    for unknown in [
        wrote().loses(),
        wrote().wakes(),
        wrote().answered(Reply::Error(ErrorKind::SessionEnded)),
        wrote().answered(Reply::Other),
    ] {
        unknown.expect_end(WorkEnd::Done).expect_writes(&[(4, 1, false)]);
    }
    for refused in [Reply::Error(ErrorKind::ReadOnly), Reply::Nil] {
        wrote()
            .answered(refused)
            .expect_end(WorkEnd::Abandoned)
            .expect_writes(&[]);
    }
}

#[test]
fn a_script_that_the_server_has_forgotten_is_sent_as_source() {
    let forgotten = Reply::Error(ErrorKind::NoScript);
    let again = work(GuardKind::Counter).answered(forgotten);
    let source = again.sent[0].as_source().expect("it was sent by SHA-1");
    assert_eq!(again.sent[1], source);
    assert_eq!(again.work.wake_at(), ms(10).after(TIMEOUT), "the deadline stays");
    let done = again.answered(Reply::Int(0)).wakes().answered(Reply::Int(1));
    done.expect_end(WorkEnd::Done).expect_writes(&[(4, 1, true)]);
}

#[test]
fn a_work_that_is_given_up_has_written_nothing_unless_it_had_sent_its_write() {
    let mut reads = work(GuardKind::Counter);
    reads.work.abandon();
    reads.expect_writes(&[]);
    let mut thinks = work(GuardKind::Counter).answered(Reply::Int(0));
    thinks.work.abandon();
    thinks.expect_writes(&[]);
    let mut writes = work(GuardKind::Counter).answered(Reply::Int(0)).wakes();
    writes.work.abandon();
    writes.expect_writes(&[(4, 1, false)]);
}

#[test]
fn a_late_reply_to_an_earlier_work_changes_nothing() {
    let mut story = work(GuardKind::Counter);
    let early = story.calls[0];
    story.work.abandon();
    story.begins(true);
    let before = format!("{:?}", story.work);
    let story = story.event(WorkEvent::Replied {
        call: early,
        reply: Reply::Int(5),
    });
    assert_eq!(format!("{:?}", story.work), before);
    assert_eq!(story.end, None);
}

#[test]
fn an_early_wake_up_is_harmless() {
    let mut story = work(GuardKind::Counter).answered(Reply::Int(0));
    story.now = ms(11);
    let story = story.event(WorkEvent::Woke);
    assert_eq!((story.end, story.sent.len()), (None, 1));
}
