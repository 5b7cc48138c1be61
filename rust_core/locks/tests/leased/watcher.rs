//! Sends events to a machine, as far as a driver may, and checks each action.

use std::collections::BTreeSet;
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, Event, Key, Lasts, LockMachine, Mode, Nanos,
    Outcome, Reply, Script, ScriptForm, Spec, Strategy, Token,
};
use proptest::sample::Index;

use crate::answers::{form, good, grants, takes};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `Acquire` when idle, `Release` while held.
    Request {
        key: u32,
        shared: bool,
    },
    Enter,
    Cancel,
    /// A reply to any call ever made, answered or not.
    Reply(Index, Reply),
    /// The most successful reply, to the newest call.
    ReplyWell,
    Lose(Index),
    Publish(bool),
    Disconnect,
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
    Entering,
    /// Leaves one entry, and others remain.
    Leaving,
    /// Leaves the last entry, or was cancelled.
    Releasing,
}

/// How often each event occurred, so that a test can check that it occurred at all.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) grants: u32,
    pub(crate) entries: u32,
    pub(crate) renewals: u32,
    pub(crate) lapses: u32,
}

pub(crate) struct Watcher {
    strategy: Strategy,
    spec: Spec,
    lock: AnyLock,
    now: Nanos,
    phase: Phase,
    key: Key,
    calls: Vec<Call>,
    /// The index in `calls` where the current request begins.
    present: usize,
    answered: BTreeSet<CallId>,
    /// The tokens of earlier requests.
    spent: BTreeSet<Token>,
    /// The tokens of the current request.
    tokens: BTreeSet<Token>,
    /// The end of belief; `None` when nothing is believed.
    until: Option<Nanos>,
    entries: u32,
    wake: Option<Nanos>,
    pub(crate) seen: Seen,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    id: CallId,
    sent: Nanos,
    command: Command,
}

impl Watcher {
    pub(crate) fn new(strategy: Strategy, spec: Spec, seed: u64) -> Self {
        Self {
            strategy,
            spec,
            lock: AnyLock::new(strategy, Arc::new(spec), Chance::seeded(seed)),
            now: Nanos::ZERO,
            phase: Phase::Idle,
            key: Key(0),
            calls: Vec::new(),
            present: 0,
            answered: BTreeSet::new(),
            spent: BTreeSet::new(),
            tokens: BTreeSet::new(),
            until: None,
            entries: 0,
            wake: None,
            seen: Seen::default(),
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Request { key, shared } => self.request(Key(*key), *shared),
            Step::Enter => {
                if self.phase == Phase::Held && self.strategy.nests() {
                    self.phase = Phase::Entering;
                    self.send_event(Event::Enter);
                }
            }
            Step::Cancel => {
                self.phase = Phase::Releasing;
                self.until = None;
                self.send_event(Event::Cancel);
            }
            Step::Reply(which, reply) => {
                if let Some(call) = self.pick(*which) {
                    self.reply_to(call, *reply);
                }
            }
            Step::ReplyWell => {
                if let Some(&call) = self.calls.last() {
                    self.reply_to(call.id, good(call.command));
                }
            }
            Step::Lose(which) => {
                if let Some(call) = self.pick(*which) {
                    self.answered.insert(call);
                    self.send_event(Event::Lost { call });
                }
            }
            &Step::Publish(first) => self.send_event(Event::Published { first }),
            Step::Disconnect => self.send_event(Event::Disconnected),
            Step::Wake => self.send_event(Event::Woke),
            Step::Sleep => self.sleep(),
            Step::Pass(length) => self.now = self.now.after(*length),
        }
    }

    fn request(&mut self, key: Key, shared: bool) {
        match self.phase {
            Phase::Idle => {
                (self.phase, self.key, self.present) = (Phase::Acquiring, key, self.calls.len());
                self.spent.append(&mut self.tokens);
                let mode = if shared && self.strategy.shares() {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                };
                self.send_event(Event::Acquire { keys: key.into(), mode });
            }
            Phase::Held => {
                self.phase = if self.entries > 1 {
                    Phase::Leaving
                } else {
                    Phase::Releasing
                };
                self.send_event(Event::Release);
            }
            // The contract allows no second request.
            Phase::Acquiring | Phase::Entering | Phase::Leaving | Phase::Releasing => {}
        }
    }

    fn pick(&self, which: Index) -> Option<CallId> {
        (!self.calls.is_empty()).then(|| which.get(&self.calls).id)
    }

    fn reply_to(&mut self, call: CallId, reply: Reply) {
        self.answered.insert(call);
        self.send_event(Event::Replied { call, reply });
    }

    fn sleep(&mut self) {
        if let Some(point) = self.wake.take() {
            self.now = self.now.max(point);
            self.send_event(Event::Woke);
        }
    }

    fn send_event(&mut self, event: Event) {
        let mut out = Actions::default();
        self.lock.on(self.now, event, &mut out);
        for action in out.drain() {
            let at_rest = self.phase == Phase::Idle && !matches!(event, Event::Cancel);
            match action {
                Action::Send {
                    call, over, command, ..
                } => self.sent(call, over, command),
                Action::WakeAt(point) => self.wake = Some(point),
                Action::Renewed { lasts } => self.renewed(event, lasts),
                Action::Lapsed => self.lapsed(),
                Action::Settle(outcome) => self.settled(event, outcome),
                Action::HangUp if self.strategy.subscribes() => {}
                Action::HangUp | Action::Queued => panic!("{:?} emits {action:?}", self.strategy),
            }
            assert!(!at_rest, "{event:?} when idle led to {action:?}");
        }
    }

    fn sent(&mut self, id: CallId, over: ConnectionKind, command: Command) {
        assert!(self.calls.iter().all(|call| call.id != id), "{id:?} is used again");
        let subscribes = matches!(command, Command::Subscribe { .. } | Command::Unsubscribe { .. });
        let way = match self.strategy {
            _ if subscribes => ConnectionKind::Subscribing,
            strategy if strategy.owns_connection() => ConnectionKind::Own,
            _ => ConnectionKind::SharedByClients,
        };
        assert_eq!(over, way, "{command:?}");
        assert!(
            !subscribes || self.phase == Phase::Acquiring,
            "{command:?} in {:?}",
            self.phase
        );
        if let Some(token) = command.token() {
            assert!(!self.spent.contains(&token), "{token:?} of an earlier request");
            // Only a command that takes has a new token. Only a waiting writer, or a command sent as source, repeats
            // one.
            let fresh = self.tokens.insert(token);
            let again = self.strategy.shares() || form(command) == Some(ScriptForm::Source);
            assert!(
                fresh == takes(command) || (!fresh && again),
                "{command:?}, fresh: {fresh}"
            );
        }
        if let Command::Run { script, key, .. } = command {
            assert!(self.strategy.scripts().contains(&script), "{script:?} is not announced");
            assert_eq!(key, self.key);
            // The lease of my token never grows after a release was sent, nor after the end of belief.
            let believes = self.until.is_some_and(|until| self.now < until);
            let renews = script == Script::CompareAndExpire || script == Script::ReentrantEnter;
            let may = matches!(self.phase, Phase::Held | Phase::Entering) && believes;
            assert!(
                !renews || may,
                "{script:?} in {:?}, believed until {:?}",
                self.phase,
                self.until
            );
        }
        let sent = self.now;
        self.calls.push(Call { id, sent, command });
    }

    fn settled(&mut self, event: Event, outcome: Outcome) {
        self.phase = match (self.phase, outcome) {
            (Phase::Acquiring, Outcome::Held { lasts, fence }) => {
                assert_eq!(fence.is_some(), self.strategy.fences());
                self.held(event, lasts);
                (self.entries, self.seen.grants) = (1, self.seen.grants + 1);
                Phase::Held
            }
            (Phase::Entering, Outcome::Held { lasts, fence: None }) => {
                self.held(event, lasts);
                (self.entries, self.seen.entries) = (self.entries + 1, self.seen.entries + 1);
                Phase::Held
            }
            // The earlier entries must still be released.
            (Phase::Entering, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown) => Phase::Held,
            (Phase::Leaving, Outcome::Held { lasts, fence: None }) => {
                assert_eq!(Some(lasts), self.until.map(Lasts::Until), "leaving is no renewal");
                assert!(self.until > Some(self.now), "held with an end in the past");
                self.entries -= 1;
                Phase::Held
            }
            (Phase::Acquiring, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown)
            | (
                Phase::Leaving | Phase::Releasing,
                Outcome::Released | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown,
            ) => {
                self.until = None;
                Phase::Idle
            }
            (phase, outcome) => panic!("{outcome:?} is no end of {phase:?}"),
        };
    }

    /// A grant rests on a reply to the newest call, and its lease counts from the send of that call, or of the call
    /// that it confirms.
    fn held(&mut self, event: Event, lasts: Lasts) {
        let Lasts::Until(until) = lasts else {
            panic!("held {lasts:?}")
        };
        assert!(
            until > self.now,
            "held with an end in the past: {until:?} at {:?}",
            self.now
        );
        if self.strategy.scripts() == [Script::CompareAndDelete] && self.phase == Phase::Entering {
            return; // Counted by the client: no command was sent, and the lease is unchanged.
        }
        let Event::Replied { call, reply } = event else {
            panic!("held by {event:?}")
        };
        let newest = self.calls[self.present..].last().expect("a call of this request");
        assert_eq!(call, newest.id, "held by an answer to an earlier call");
        assert!(
            grants(newest.command, reply),
            "held by {reply:?} to {:?}",
            newest.command
        );
        let began = match newest.command {
            Command::Wait { .. } => self.calls[self.calls.len() - 2].sent,
            _ => newest.sent,
        };
        assert_eq!(until, self.spec.lease.until(began));
        self.until = Some(until);
    }

    fn renewed(&mut self, event: Event, lasts: Lasts) {
        assert_eq!(self.phase, Phase::Held, "renewed");
        let Event::Replied { call, reply } = event else {
            panic!("renewed by {event:?}")
        };
        let Some(asked) = self.calls.iter().find(|asked| asked.id == call) else {
            panic!("renewed by {call:?}")
        };
        assert_eq!(reply, Reply::Int(1));
        assert!(self.until > Some(self.now), "revived: belief ended at {:?}", self.until);
        let until = self.spec.lease.until(asked.sent);
        assert_eq!(lasts, Lasts::Until(until));
        assert!(until > self.now && Some(until) >= self.until, "renewed until {until:?}");
        self.until = Some(until);
        self.seen.renewals += 1;
    }

    fn lapsed(&mut self) {
        assert!(
            matches!(self.phase, Phase::Held | Phase::Entering),
            "lapsed in {:?}",
            self.phase
        );
        assert!(self.until.take().is_some(), "lapsed, but nothing is believed");
        self.seen.lapses += 1;
    }

    /// Loses all open calls, or leaves them open, delivers the wake-ups, and checks that the request settles.
    pub(crate) fn come_to_rest(&mut self, lost: bool) {
        for _ in 0..8 {
            if matches!(self.phase, Phase::Idle | Phase::Held) {
                return;
            }
            let open = self.calls.iter().map(|call| call.id);
            let open: Vec<CallId> = open.filter(|call| lost && !self.answered.contains(call)).collect();
            for call in open {
                self.send_event(Event::Lost { call });
            }
            self.sleep();
        }
        panic!("{:?} never settles", self.phase);
    }
}
