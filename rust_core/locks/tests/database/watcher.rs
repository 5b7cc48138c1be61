//! Sends events to a machine, as far as a driver may, and checks each action.

use std::collections::BTreeSet;
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, Event, Key, KeyList, Lasts, LockMachine, Mode,
    Nanos, Outcome, Reply, ServerId, Spec, Statement, Strategy,
};
use proptest::sample::Index;

use crate::session::{Call, Open, begins, good, grants, was_sent_again};

const WRITES: [Statement; 3] = [
    Statement::VersionWrite,
    Statement::SerializableWrite,
    Statement::FencedWrite,
];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `Acquire` when idle, `Release` while held.
    Request {
        key: u32,
        keys: usize,
        shared: bool,
    },
    Cancel,
    /// A reply to any call ever made, answered or not.
    Reply(Index, Reply),
    /// The most successful reply, to the oldest open call of the request.
    ReplyWell,
    /// The connection of a call closes.
    Lose(Index),
    /// The client's own connection closes.
    Close,
    Wake,
    /// Moves to the time that was asked for, and wakes the machine.
    Sleep,
    Pass(Nanos),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Acquiring,
    Held,
    /// Released, or cancelled.
    Releasing,
}

pub(crate) struct Watcher {
    strategy: Strategy,
    spec: Spec,
    lock: AnyLock,
    now: Nanos,
    phase: Phase,
    calls: Vec<Call>,
    /// The index in `calls` where the current request begins, and the index of its newest attempt.
    present: usize,
    attempt: usize,
    lost: BTreeSet<CallId>,
    connection: u64,
    open: Open,
    lapsed: bool,
    conflicted: bool,
    wake: Option<Nanos>,
    pub(crate) grants: u32,
    pub(crate) releases: u32,
    pub(crate) lapses: u32,
}

impl Watcher {
    pub(crate) fn new(strategy: Strategy, spec: Spec, seed: u64) -> Self {
        let servers = strategy.nodes().unwrap_or(1);
        let spec = Spec { servers, ..spec };
        Self {
            strategy,
            spec,
            lock: AnyLock::new(strategy, Arc::new(spec), Chance::seeded(seed)),
            now: Nanos::ZERO,
            phase: Phase::Idle,
            calls: Vec::new(),
            present: 0,
            attempt: 0,
            lost: BTreeSet::new(),
            connection: 0,
            open: Open::default(),
            lapsed: false,
            conflicted: false,
            wake: None,
            grants: 0,
            releases: 0,
            lapses: 0,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Request { key, keys, shared } => self.request(*key, *keys, *shared),
            Step::Cancel => {
                if self.phase == Phase::Idle {
                    self.present = self.calls.len();
                }
                self.phase = Phase::Releasing;
                self.send_event(Event::Cancel);
            }
            Step::Reply(which, reply) => {
                if let Some(at) = self.pick(*which) {
                    self.reply_to(at, *reply);
                }
            }
            Step::ReplyWell => {
                let is_open = |at: &usize| self.calls[*at].reply.is_none() && !self.lost.contains(&self.calls[*at].id);
                if let Some(at) = (self.present..self.calls.len()).find(is_open) {
                    self.reply_to(at, good(self.calls[at].command));
                }
            }
            Step::Lose(which) => match self.pick(*which).map(|at| self.calls[at]) {
                Some(call) if call.over == ConnectionKind::Own && call.connection == self.connection => self.close(),
                Some(call) => self.lose(call.id),
                None => {}
            },
            Step::Close => self.close(),
            Step::Wake => self.send_event(Event::Woke),
            Step::Sleep => self.sleep(),
            Step::Pass(length) => self.now = self.now.after(*length),
        }
    }

    fn request(&mut self, key: u32, keys: usize, shared: bool) {
        match self.phase {
            Phase::Idle => {
                self.phase = Phase::Acquiring;
                (self.present, self.attempt) = (self.calls.len(), self.calls.len());
                let count = if self.strategy.takes_many_keys() { keys } else { 1 };
                let all: Vec<Key> = (key..).take(count).map(Key).collect();
                let mode = if shared && self.strategy.shares() {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                };
                let keys = KeyList::new(&all).expect("few keys");
                let again = self.conflicted && !shared;
                let event = Event::Acquire { keys, mode };
                self.send_event(if again { Event::Retry } else { event });
            }
            Phase::Held => {
                self.phase = Phase::Releasing;
                self.send_event(Event::Release);
            }
            Phase::Acquiring | Phase::Releasing => {} // The contract allows no second request.
        }
    }

    fn pick(&self, which: Index) -> Option<usize> {
        (!self.calls.is_empty()).then(|| which.index(self.calls.len()))
    }

    fn reply_to(&mut self, at: usize, reply: Reply) {
        let Call {
            id: call,
            command,
            connection,
            ..
        } = self.calls[at];
        let first = self.calls[at].reply.is_none() && !self.lost.contains(&call);
        if first {
            self.calls[at].reply = Some(reply);
            if let (Command::Sql { statement, .. }, true) = (command, connection == self.connection) {
                self.open.answered(statement, reply);
            }
        }
        self.send_event(Event::Replied { call, reply });
    }

    fn lose(&mut self, call: CallId) {
        self.lost.insert(call);
        self.send_event(Event::Lost { call });
    }

    /// The client's own connection closes: its calls are lost one by one, and then the machine receives `Disconnected`.
    fn close(&mut self) {
        self.open.closed();
        let closed = self.connection;
        self.connection += 1;
        self.lose_all(closed);
        self.send_event(Event::Disconnected);
    }

    fn lose_all(&mut self, closed: u64) {
        let gone = |call: &&Call| call.over == ConnectionKind::Own && call.connection == closed && call.reply.is_none();
        let gone: Vec<CallId> = self.calls.iter().filter(gone).map(|call| call.id).collect();
        for call in gone {
            self.lose(call);
        }
    }

    fn sleep(&mut self) {
        if let Some(point) = self.wake.take() {
            self.now = self.now.max(point);
            self.send_event(Event::Woke);
        }
    }

    fn send_event(&mut self, event: Event) {
        let before = self.phase;
        let mut out = Actions::default();
        self.lock.on(self.now, event, &mut out);
        let actions: Vec<Action> = out.drain().collect();
        if !matches!(event, Event::Acquire { .. } | Event::Release | Event::Cancel) {
            let session_lost = before == Phase::Held && event == Event::Disconnected && actions == [Action::Lapsed];
            let at_rest = matches!(before, Phase::Idle | Phase::Held);
            assert!(
                !at_rest || session_lost || actions.is_empty(),
                "{event:?} in {before:?} led to {actions:?}"
            );
        }
        let hangs_up = actions.contains(&Action::HangUp);
        for action in actions {
            match action {
                Action::Send {
                    call,
                    to,
                    over,
                    command,
                } => self.sent(call, to, over, command),
                Action::WakeAt(point) => self.wake = Some(point),
                Action::HangUp => {
                    assert!(self.strategy.owns_connection(), "{:?} hangs up", self.strategy);
                    self.open.closed();
                }
                Action::Lapsed => self.lapsed(),
                Action::Settle(outcome) => self.settled(event, outcome),
                Action::Renewed { .. } | Action::Queued => panic!("{:?} emits {action:?}", self.strategy),
            }
        }
        self.nothing_is_open_while_it_pauses();
        if hangs_up {
            let closed = self.connection;
            self.connection += 1;
            self.lose_all(closed);
            self.send_event(Event::Disconnected);
        }
    }

    fn nothing_is_open_while_it_pauses(&self) {
        let is_open = |call: &Call| call.reply.is_none() && !self.lost.contains(&call.id);
        let pauses = self.phase == Phase::Acquiring && !self.calls[self.present..].iter().any(is_open);
        assert!(
            !pauses || self.open.nothing(),
            "{:?} pauses with {:?}",
            self.strategy,
            self.open
        );
    }

    fn sent(&mut self, id: CallId, to: ServerId, over: ConnectionKind, command: Command) {
        assert!(self.calls.iter().all(|call| call.id != id), "{id:?} is used again");
        if let Command::Sql { statement, .. } = command {
            assert!(
                self.strategy.statements().contains(&statement),
                "{statement:?} is not announced"
            );
            assert_eq!(Some(to), self.strategy.database());
            assert_eq!(
                over == ConnectionKind::Own,
                self.strategy.owns_connection(),
                "{statement:?} over {over:?}"
            );
            if over == ConnectionKind::Own {
                self.open.sent(statement);
            }
            assert!(
                !WRITES.contains(&statement) || self.phase == Phase::Releasing,
                "{statement:?}"
            );
        } else {
            assert_eq!((self.strategy, to), (Strategy::Layered, ServerId(0)), "{command:?}");
        }
        if begins(command) {
            self.attempt = self.calls.len();
        }
        let connection = self.connection;
        self.calls.push(Call {
            id,
            over,
            command,
            connection,
            reply: None,
        });
    }

    fn lapsed(&mut self) {
        assert_eq!(self.phase, Phase::Held, "lapsed");
        assert!(self.strategy.holds_by_session() && !self.lapsed);
        self.lapsed = true;
        self.lapses += 1;
    }

    fn settled(&mut self, event: Event, outcome: Outcome) {
        self.conflicted = outcome == Outcome::Conflict;
        self.phase = match (self.phase, outcome) {
            (Phase::Acquiring, Outcome::Held { lasts, fence }) => {
                assert_eq!(fence.is_some(), self.strategy.fences());
                self.granted(event, lasts);
                self.grants += 1;
                Phase::Held
            }
            (Phase::Acquiring, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown)
            | (Phase::Releasing, Outcome::Released | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown) => {
                Phase::Idle
            }
            (Phase::Releasing, Outcome::Conflict) if self.strategy.is_optimistic() => Phase::Idle,
            (phase, outcome) => panic!("{outcome:?} is no end of {phase:?}"),
        };
        if self.phase == Phase::Idle {
            assert!(self.open.nothing(), "{outcome:?} with {:?}", self.open);
            assert!(!self.lapsed || outcome == Outcome::Expired, "lapsed, and {outcome:?}");
            self.lapsed = false;
            self.released(outcome);
        }
    }

    /// The outcome of a release that writes agrees with the reply to the write.
    fn released(&mut self, outcome: Outcome) {
        self.releases += u32::from(outcome == Outcome::Released);
        let write = self.calls[self.present..]
            .iter()
            .rev()
            .find(|call| matches!(call.command, Command::Sql { statement, .. } if WRITES.contains(&statement)));
        let Some(write) = write else { return };
        match outcome {
            Outcome::Released => assert!(matches!(write.reply, Some(Reply::Int(_))), "{write:?}"),
            Outcome::Conflict => assert!(matches!(write.reply, Some(Reply::Nil | Reply::Error(_))), "{write:?}"),
            Outcome::Expired => assert_eq!(write.reply, Some(Reply::Nil), "{write:?}"),
            Outcome::Failed(_) | Outcome::Unknown => {}
            Outcome::Held { .. } | Outcome::Refused(_) => panic!("{write:?}, and then {outcome:?}"),
        }
    }

    /// A grant rests only on replies to the newest attempt, over the connection that is open.
    fn granted(&self, event: Event, lasts: Lasts) {
        let Event::Replied { call, .. } = event else {
            panic!("held by {event:?}")
        };
        let newest = &self.calls[self.attempt..];
        assert!(
            newest.iter().any(|asked| asked.id == call),
            "held by an answer to an earlier attempt"
        );
        for (place, asked) in newest.iter().enumerate() {
            let later = newest[place + 1..].iter().map(|call| call.command);
            if self.strategy == Strategy::Layered && was_sent_again(asked.command, asked.reply, later) {
                continue;
            }
            let stands = asked.over == ConnectionKind::SharedByClients || asked.connection == self.connection;
            assert!(stands, "held by {asked:?}, of a connection that is gone");
            let granted = asked.reply.is_some_and(|reply| match asked.command {
                Command::SetNxPx { .. } => reply == Reply::Ok,
                command => grants(command, reply),
            });
            assert!(granted, "held by {asked:?}");
        }
        match lasts {
            Lasts::Until(until) => {
                assert_eq!(self.strategy, Strategy::Layered);
                assert!(until > self.now && until <= self.now.after(self.spec.lease.ttl().into()));
            }
            Lasts::Session => assert!(self.strategy.holds_by_session()),
            Lasts::Unbounded => assert!(self.strategy.is_optimistic()),
        }
    }

    /// Loses all open calls, or leaves them open, delivers the wake-ups, and checks that the request settles.
    pub(crate) fn come_to_rest(&mut self, lost: bool) {
        for _ in 0..8 {
            if matches!(self.phase, Phase::Idle | Phase::Held) {
                return;
            }
            if lost {
                let is_open = |call: &&Call| call.reply.is_none() && call.over == ConnectionKind::SharedByClients;
                let open: Vec<CallId> = self.calls.iter().filter(is_open).map(|call| call.id).collect();
                for call in open {
                    self.lose(call);
                }
                self.close();
            }
            self.sleep();
        }
        panic!("{:?} never settles", self.phase);
    }
}
