//! Properties of the locks on one server: they hold whatever happens, in whatever order, within the contract of the
//! driver.
//!
//! A driver without knowledge of locks sends arbitrary events to a machine (replies of any kind to any call ever made,
//! repeated ones too, losses, wake-ups at any time), and a watcher checks each action.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, EntryId, Event, Key, Lasts, Lease, LockMachine,
    Mode, Nanos, Outcome, Reply, Script, Spec, Strategy as Lock, Token,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use support::{ERRORS, REPLY_TIMEOUT, config, retries};

#[derive(Clone, Debug)]
enum Step {
    /// `Acquire` when idle, `Release` while held.
    Request(Key),
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

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reply = prop_oneof![
        4 => select(vec![Reply::Ok, Reply::Nil, Reply::Int(0), Reply::Int(1)]),
        2 => select(vec![Reply::Int(2), Reply::Items, Reply::Int(-1), Reply::Int(40), Reply::Int(i64::MAX), Reply::Token(Token { high: 1, low: 2 })]),
        1 => select(vec![Reply::Entry(ENTRY), Reply::Other]),
        1 => select(ERRORS.to_vec()).prop_map(Reply::Error),
    ];
    let pass = prop_oneof![0..3_000_000_u64, 0..200_000_000_u64, 0..20_000_000_000_u64].prop_map(Nanos);
    let step = prop_oneof![
        6 => (0..3_u32).prop_map(|key| Step::Request(Key(key))),
        1 => Just(Step::Cancel),
        5 => (any::<Index>(), reply).prop_map(|(which, reply)| Step::Reply(which, reply)),
        6 => Just(Step::ReplyWell),
        1 => any::<Index>().prop_map(Step::Lose),
        1 => any::<bool>().prop_map(Step::Publish),
        1 => Just(Step::Disconnect),
        1 => Just(Step::Wake),
        3 => Just(Step::Sleep),
        4 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..120)
}

const ENTRY: EntryId = EntryId { ms: 3, seq: 1 };

fn specs() -> impl Strategy<Value = Spec> {
    let retry = retries(vec![Nanos::ZERO, Nanos::from_millis(100), Nanos::NEVER]);
    (select(vec![1, 3, 50, 10_000, 1 << 53]), retry).prop_map(|(lease, retry)| Spec {
        servers: 1,
        lease: Lease::new(lease).expect("a good lease"),
        reply_timeout: REPLY_TIMEOUT,
        retry,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Acquiring,
    Held,
    /// Released or cancelled, and not settled.
    Releasing,
}

/// Sends events to the machine, and checks each action.
struct Watcher {
    strategy: Lock,
    lock: AnyLock,
    now: Nanos,
    phase: Phase,
    calls: Vec<(CallId, Command)>,
    /// The index in `calls` where the current request begins.
    present: usize,
    answered: BTreeSet<CallId>,
    tokens: BTreeSet<Token>,
    /// The tokens of earlier requests.
    spent: BTreeSet<Token>,
    wake: Option<Nanos>,
}

impl Watcher {
    fn new(strategy: Lock, spec: Spec, seed: u64) -> Self {
        Self {
            strategy,
            lock: AnyLock::new(strategy, Arc::new(spec), Chance::seeded(seed)),
            now: Nanos::ZERO,
            phase: Phase::Idle,
            calls: Vec::new(),
            present: 0,
            answered: BTreeSet::new(),
            tokens: BTreeSet::new(),
            spent: BTreeSet::new(),
            wake: None,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Request(key) => self.request(*key),
            Step::Cancel => {
                self.phase = Phase::Releasing;
                self.send_event(Event::Cancel);
            }
            Step::Reply(which, reply) => {
                if let Some(call) = self.pick(*which) {
                    self.reply_to(call, *reply);
                }
            }
            Step::ReplyWell => {
                let newest = self.calls.iter().rev();
                let well = newest.filter_map(|&(call, command)| Some((call, good(command)?)));
                if let Some((call, reply)) = { well }.next() {
                    self.reply_to(call, reply);
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

    fn request(&mut self, key: Key) {
        match self.phase {
            Phase::Idle => {
                self.phase = Phase::Acquiring;
                self.present = self.calls.len();
                self.spent.clone_from(&self.tokens);
                self.send_event(Event::Acquire {
                    keys: key.into(),
                    mode: Mode::Exclusive,
                });
            }
            Phase::Held => {
                self.phase = Phase::Releasing;
                self.send_event(Event::Release);
            }
            Phase::Acquiring | Phase::Releasing => {} // The contract allows no second request.
        }
    }

    fn pick(&self, which: Index) -> Option<CallId> {
        (!self.calls.is_empty()).then(|| which.get(&self.calls).0)
    }

    fn reply_to(&mut self, call: CallId, reply: Reply) {
        self.answered.insert(call);
        self.send_event(Event::Replied { call, reply });
    }

    fn may_send(&self, over: ConnectionKind) -> bool {
        match over {
            ConnectionKind::SharedByClients => true,
            ConnectionKind::Own => self.strategy.owns_connection(),
            ConnectionKind::Subscribing => self.strategy.subscribes(),
            ConnectionKind::Guard => false,
        }
    }

    /// A lock that was handed over by a wake-up is held at once, and confirmed meanwhile.
    fn is_about_a_wakeup(&self, phase: Phase, action: &Action) -> bool {
        let is_of_one = match action {
            Action::Send { command, .. } => confirms(command),
            Action::Renewed { .. } | Action::Lapsed => true,
            _ => false,
        };
        is_of_one && phase == Phase::Held && matches!(self.strategy, Lock::FairQueue { .. })
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
            let at_rest = matches!(before, Phase::Idle | Phase::Held);
            assert!(
                !at_rest || actions.iter().all(|action| self.is_about_a_wakeup(before, action)),
                "{event:?} at rest ({before:?}) led to {actions:?}"
            );
        }
        for action in actions {
            match action {
                Action::Send {
                    call, command, over, ..
                } => {
                    assert!(self.may_send(over), "{command:?}");
                    self.sent(call, command);
                }
                Action::WakeAt(point) => self.wake = Some(point),
                Action::Settle(outcome) => self.settled(event, outcome),
                Action::HangUp => assert!(
                    self.strategy.owns_connection() || self.strategy.subscribes(),
                    "{:?} hangs up",
                    self.strategy
                ),
                Action::Queued => {
                    assert!(self.strategy.acknowledges_places(), "{:?} queues", self.strategy);
                    assert_eq!(self.phase, Phase::Acquiring, "queued");
                }
                Action::Renewed { .. } | Action::Lapsed => panic!("{:?} emits {action:?}", self.strategy),
            }
        }
    }

    fn sent(&mut self, call: CallId, command: Command) {
        assert!(
            self.calls.iter().all(|&(earlier, _)| earlier != call),
            "{call:?} is used again"
        );
        match command {
            Command::SetNxPx { token, .. } => assert!(self.tokens.insert(token), "{token:?} is used again"),
            Command::CompareAndDelete { token, .. } => assert!(self.tokens.contains(&token), "{token:?} is not mine"),
            // The same token may be sent again, but only within one request.
            Command::Run {
                script: Script::QueueTake | Script::NotifyAcquire,
                token,
                ..
            }
            | Command::AddTicket { token, .. } => {
                assert!(!self.spent.contains(&token), "{token:?} is used again");
                self.tokens.insert(token);
            }
            Command::Run { token, .. } | Command::AwaitWakeup { token, .. } | Command::HandOver { token, .. } => {
                assert!(self.tokens.contains(&token), "{token:?} is not mine");
            }
            // A reader has one name for all requests.
            Command::ReadTicket { .. } => {}
            other => assert_eq!(other.token(), None, "{:?} sends {other:?}", self.strategy),
        }
        assert_ne!(self.strategy, Lock::None, "`none` sends nothing");
        self.calls.push((call, command));
    }

    fn settled(&mut self, event: Event, outcome: Outcome) {
        self.phase = match (self.phase, outcome) {
            (Phase::Acquiring, Outcome::Held { lasts, .. }) => {
                self.granted(event, lasts);
                Phase::Held
            }
            (Phase::Acquiring, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown)
            | (Phase::Releasing, Outcome::Released | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown) => {
                Phase::Idle
            }
            (phase, outcome) => panic!("{outcome:?} is no end of {phase:?}"),
        };
    }

    fn granted(&self, event: Event, lasts: Lasts) {
        match (self.strategy, lasts) {
            (Lock::None, Lasts::Unbounded) => {}
            (_, Lasts::Until(end)) => {
                assert!(
                    end > self.now,
                    "held with an end in the past: {end:?} at {:?}",
                    self.now
                );
                let present = &self.calls[self.present..];
                let mut latest = present.last();
                // A wake-up grants, and is confirmed in the same step.
                let is_woken = latest.is_some_and(|(_, command)| confirms(command));
                if is_woken {
                    let mut pops = present
                        .iter()
                        .filter(|(_, command)| matches!(command, Command::AwaitWakeup { .. }));
                    latest = pops.next_back();
                }
                let &(last, command) = latest.expect("a grant follows a call of its request");
                let Event::Replied { call, reply } = event else {
                    panic!("held by {event:?}")
                };
                assert_eq!(call, last, "held by an answer to an earlier attempt");
                let granted = match self.strategy {
                    Lock::Naive => matches!(reply, Reply::Int(0 | 1)),
                    Lock::FairQueue { .. } if is_woken => matches!(reply, Reply::Int(1..)),
                    Lock::FairQueue { .. } => reply == Reply::Int(0),
                    Lock::Notify { .. } => Some(reply) == good(command),
                    Lock::None | Lock::Mutex | Lock::Fair => reply == Reply::Ok,
                    other => panic!("{other:?} is not plain"),
                };
                assert!(granted, "held by {reply:?}");
            }
            (strategy, lasts) => panic!("{strategy:?} is held {lasts:?}"),
        }
    }

    /// Loses all open calls, delivers the wake-ups, and checks that the request settles.
    fn come_to_rest(&mut self, answers: Ending) {
        for _ in 0..8 {
            if matches!(self.phase, Phase::Idle | Phase::Held) {
                return;
            }
            if answers == Ending::Lost {
                let calls = self.calls.iter().map(|&(call, _)| call);
                let open: Vec<CallId> = calls.filter(|call| !self.answered.contains(call)).collect();
                for call in open {
                    self.send_event(Event::Lost { call });
                }
            }
            self.sleep();
        }
        panic!("{:?} never settles", self.phase);
    }
}

fn confirms(command: &Command) -> bool {
    matches!(command, Command::Run { script, .. } if *script == Script::QueueConfirm)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Lost,
    Silence,
}

/// The reply that lets the request succeed; `None` if nobody waits for one.
fn good(command: Command) -> Option<Reply> {
    match command {
        Command::SetNxPx { .. }
        | Command::Subscribe { .. }
        | Command::CreateQueue { .. }
        | Command::HandOver { .. } => Some(Reply::Ok),
        Command::Run {
            script: Script::QueueTake | Script::NotifyAcquire,
            ..
        } => Some(Reply::Int(0)),
        Command::CompareAndDelete { .. }
        | Command::Run { .. }
        | Command::SetNx { .. }
        | Command::Expire { .. }
        | Command::Del { .. } => Some(Reply::Int(1)),
        Command::AddTicket { .. } | Command::ReadTicket { .. } => Some(Reply::Entry(ENTRY)),
        Command::AwaitWakeup { .. } => Some(Reply::Items),
        Command::Unsubscribe { .. }
        | Command::AckTicket { .. }
        | Command::DropTicket { .. }
        | Command::TrimQueue { .. } => None,
        other => panic!("no lock sends {other:?}"),
    }
}

/// The locks that only take and release. `leased` tests the others.
fn plain() -> Vec<Lock> {
    let names = ["none", "naive", "mutex", "fair", "fair-queue", "notify"];
    let is_plain = |lock: &Lock| names.contains(&lock.name());
    Lock::ALL.into_iter().filter(is_plain).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_each_request_settles_once_and_by_its_own_calls(
        strategy in select(plain()),
        spec in specs(),
        seed: u64,
        steps in steps(),
        ending in select(vec![Ending::Lost, Ending::Silence]),
    ) {
        let mut watcher = Watcher::new(strategy, spec, seed);
        for step in &steps {
            watcher.step(step);
        }
        watcher.come_to_rest(ending);
    }
}
