//! Sends events to a machine, and checks each action.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, Event, Key, KeyList, Lasts, LockMachine, Mode,
    Nanos, Outcome, Reply, Script, ScriptForm, ServerId, Spec, Strategy as Lock, Token,
};
use proptest::sample::Index;

use crate::Step;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Acquiring,
    Held,
    /// Released or cancelled, and not settled.
    Releasing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Open,
    /// The first reply.
    Replied(Reply),
    Lost,
}

struct Call {
    id: CallId,
    server: ServerId,
    command: Command,
    state: CallState,
}

pub(crate) struct Watcher {
    strategy: Lock,
    servers: u16,
    lock: AnyLock,
    now: Nanos,
    phase: Phase,
    keys: KeyList,
    calls: Vec<Call>,
    ids: BTreeSet<CallId>,
    /// The token of the current attempt.
    token: Option<Token>,
    /// The servers to which each token went in a command that takes.
    taken: BTreeMap<Token, BTreeSet<ServerId>>,
    wake: Option<Nanos>,
}

impl Watcher {
    pub(crate) fn new(strategy: Lock, spec: Spec, seed: u64) -> Self {
        Self {
            strategy,
            servers: spec.servers,
            lock: AnyLock::new(strategy, Arc::new(spec), Chance::seeded(seed)),
            now: Nanos::ZERO,
            phase: Phase::Idle,
            keys: Key(0).into(),
            calls: Vec::new(),
            ids: BTreeSet::new(),
            token: None,
            taken: BTreeMap::new(),
            wake: None,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Request(keys) => self.request(keys),
            Step::Cancel => {
                self.phase = Phase::Releasing;
                self.send_event(Event::Cancel);
            }
            Step::Reply(which, reply) if !self.calls.is_empty() => self.reply_to(which.index(self.calls.len()), *reply),
            Step::ReplyWell(which) => {
                if let Some(at) = self.open(*which) {
                    self.reply_to(at, good(self.calls[at].command));
                }
            }
            Step::ReplyBusy(which) => {
                if let Some(at) = self.open(*which) {
                    self.reply_to(at, busy(self.calls[at].command));
                }
            }
            Step::Lose(which) => {
                if let Some(at) = self.open(*which) {
                    self.lose(at);
                }
            }
            Step::Wake => self.send_event(Event::Woke),
            Step::Sleep => self.sleep(),
            Step::Pass(length) => self.now = self.now.after(*length),
            Step::Reply(..) => {} // Nothing was ever sent.
        }
    }

    fn request(&mut self, keys: &[u32]) {
        match self.phase {
            Phase::Idle => {
                self.phase = Phase::Acquiring;
                let keys: Vec<Key> = keys.iter().map(|&key| Key(key)).collect();
                let many = self.strategy.takes_many_keys();
                self.keys = KeyList::new(if many { &keys } else { &keys[..1] }).expect("few keys");
                let (keys, mode) = (self.keys, Mode::Exclusive);
                self.send_event(Event::Acquire { keys, mode });
            }
            Phase::Held => {
                self.phase = Phase::Releasing;
                self.send_event(Event::Release);
            }
            Phase::Acquiring | Phase::Releasing => {} // The contract allows no second request.
        }
    }

    /// An open call.
    fn open(&self, which: Index) -> Option<usize> {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|&at| self.calls[at].state == CallState::Open)
            .collect();
        (!open.is_empty()).then(|| *which.get(&open))
    }

    fn reply_to(&mut self, at: usize, reply: Reply) {
        let call = &mut self.calls[at];
        if call.state == CallState::Open {
            call.state = CallState::Replied(reply);
        }
        let call = call.id;
        self.send_event(Event::Replied { call, reply });
    }

    fn lose(&mut self, at: usize) {
        self.calls[at].state = CallState::Lost;
        let call = self.calls[at].id;
        self.send_event(Event::Lost { call });
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
        for action in out.drain() {
            match action {
                Action::Send {
                    call,
                    to,
                    over: ConnectionKind::SharedByClients,
                    command,
                } => {
                    let at_rest = matches!(before, Phase::Idle | Phase::Held);
                    let may_act = matches!(event, Event::Replied { .. } | Event::Lost { .. } | Event::Woke);
                    if at_rest && may_act {
                        assert_eq!(releases(command), Some(ScriptForm::Source), "{event:?}: {command:?}");
                    }
                    self.sent(call, to, command);
                }
                Action::WakeAt(point) => self.wake = Some(point),
                Action::Settle(outcome) => self.settled(outcome),
                Action::Send { .. } | Action::HangUp | Action::Queued | Action::Renewed { .. } | Action::Lapsed => {
                    panic!("{:?} emits {action:?}", self.strategy)
                }
            }
        }
    }

    fn sent(&mut self, id: CallId, server: ServerId, command: Command) {
        assert!(self.ids.insert(id), "{id:?} is used again");
        assert!(server.0 < self.servers, "{server:?} of {}", self.servers);
        let token = command.token().expect("each command has a token");
        match command {
            Command::SetNxPx { .. }
            | Command::RunAll {
                script: Script::TakeAll,
                ..
            } => {
                assert_eq!(self.phase, Phase::Acquiring, "{command:?} although no request is open");
                let fresh = !self.taken.contains_key(&token);
                assert!(
                    fresh || self.token == Some(token),
                    "{token:?} of an earlier attempt is used again"
                );
                self.token = Some(token);
                self.taken.entry(token).or_default().insert(server);
            }
            _ => {
                let known = self.taken.get(&token).is_some_and(|servers| servers.contains(&server));
                let all = matches!(self.strategy, Lock::RedissonRedlock(_) | Lock::RedissonMultilock(_));
                assert!(known || all, "{command:?} to {server:?}, which was not sent the token");
            }
        }
        self.calls.push(Call {
            id,
            server,
            command,
            state: CallState::Open,
        });
    }

    fn settled(&mut self, outcome: Outcome) {
        self.phase = match (self.phase, outcome) {
            (Phase::Acquiring, Outcome::Held { lasts, fence: None }) => {
                self.granted(lasts);
                Phase::Held
            }
            (Phase::Acquiring, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown)
            | (Phase::Releasing, Outcome::Released | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown) => {
                Phase::Idle
            }
            (phase, outcome) => panic!("{outcome:?} is no end of {phase:?}"),
        };
    }

    fn granted(&self, lasts: Lasts) {
        let Lasts::Until(end) = lasts else {
            panic!("held {lasts:?}")
        };
        assert!(end > self.now, "held until {end:?} at {:?}", self.now);
        let mine: Vec<&Call> = self
            .calls
            .iter()
            .filter(|call| call.command.token() == self.token)
            .collect();
        let good_to = |is: fn(Command) -> bool| {
            let good = mine
                .iter()
                .filter(|call| is(call.command) && call.state == CallState::Replied(good(call.command)));
            good.map(|call| (call.server, key_of(call.command)))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let takes = |command| releases(command).is_none() && !renews(command);
        let quorum = usize::from(self.servers / 2 + 1);
        match self.strategy {
            Lock::RedissonMultilock(_) => {
                let all = self.keys.sorted().as_slice().len();
                assert_eq!((good_to(takes), good_to(renews)), (all, all));
            }
            _ => assert!(
                good_to(takes) >= quorum,
                "held by {} of {}",
                good_to(takes),
                self.servers
            ),
        }
    }

    /// Loses all open calls, delivers the wake-ups, and checks that the request settles.
    pub(crate) fn come_to_rest(&mut self, ending: Ending) {
        for _ in 0..1_000 {
            if matches!(self.phase, Phase::Idle | Phase::Held) {
                return;
            }
            while let Some(at) = (ending == Ending::Lost)
                .then(|| self.calls.iter().position(|call| call.state == CallState::Open))
                .flatten()
            {
                self.lose(at);
            }
            self.sleep();
        }
        panic!("{:?} never settles", self.phase);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Lost,
    Silence,
}

fn releases(command: Command) -> Option<ScriptForm> {
    match command {
        Command::CompareAndDelete { form, .. }
        | Command::RunAll {
            script: Script::ReleaseAll,
            form,
            ..
        } => Some(form),
        _ => None,
    }
}

fn renews(command: Command) -> bool {
    matches!(
        command,
        Command::Run {
            script: Script::CompareAndExpire,
            ..
        }
    )
}

fn key_of(command: Command) -> Option<Key> {
    match command {
        Command::SetNxPx { key, .. } | Command::Run { key, .. } => Some(key),
        _ => None,
    }
}

fn good(command: Command) -> Reply {
    match command {
        Command::SetNxPx { .. } => Reply::Ok,
        _ => Reply::Int(1),
    }
}

fn busy(command: Command) -> Reply {
    match command {
        Command::SetNxPx { .. } => Reply::Nil,
        _ => Reply::Int(0),
    }
}
