//! Properties of the locks over several servers: whatever happens, in whatever order, within the contract of the driver.
//!
//! A driver that knows nothing of locks tells a machine arbitrary things, on up to six servers, and a watcher checks each
//! thing the machine wants: call ids are used once, a grant rests on answers of its own attempt by a quorum of servers or
//! all children, each give-back carries a token that was sent to its server before, and every request settles once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ErrorKind, Event, Key, Keys, Lane, Lasts, Lease, LockMachine,
    Mode, Nanos, Outcome, Reply, Retry, RetryKind, Script, ScriptForm, ServerId, Spec, Strategy as Lock, Token,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;

#[derive(Clone, Debug)]
enum Step {
    /// `Acquire` when idle, `Release` while held.
    Request(Vec<u32>),
    Cancel,
    /// To any call ever made, answered or not.
    Answer(Index, Reply),
    /// To one that has no answer, the reply that is the most likely to lead on.
    AnswerWell(Index),
    /// To one that has no answer: somebody else has it.
    AnswerBusy(Index),
    Lose(Index),
    Wake,
    /// On to the point asked for, and wake.
    Sleep,
    Pass(Nanos),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let errors = [
        ErrorKind::NoScript,
        ErrorKind::ReadOnly,
        ErrorKind::Loading,
        ErrorKind::Moved,
        ErrorKind::OutOfMemory,
        ErrorKind::WrongType,
        ErrorKind::NoAuth,
        ErrorKind::Other,
        ErrorKind::Unexpected,
    ];
    let reply = prop_oneof![
        4 => select(vec![Reply::Ok, Reply::Nil, Reply::Int(0), Reply::Int(1)]),
        1 => select(vec![Reply::Int(-1), Reply::Int(i64::MAX), Reply::Items, Reply::Other]),
        1 => select(errors.to_vec()).prop_map(Reply::Error),
    ];
    let pass = prop_oneof![0..1_000_000_u64, 0..60_000_000_u64, 0..20_000_000_000_u64].prop_map(Nanos);
    let step = prop_oneof![
        6 => prop::collection::vec(0..3_u32, 1..4).prop_map(Step::Request),
        1 => Just(Step::Cancel),
        3 => (any::<Index>(), reply).prop_map(|(which, reply)| Step::Answer(which, reply)),
        16 => any::<Index>().prop_map(Step::AnswerWell),
        4 => any::<Index>().prop_map(Step::AnswerBusy),
        1 => any::<Index>().prop_map(Step::Lose),
        1 => Just(Step::Wake),
        3 => Just(Step::Sleep),
        4 => pass.prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..200)
}

fn specs() -> impl Strategy<Value = Spec> {
    let lease = select(vec![3, 50, 10_000, 1 << 53]);
    let most = prop_oneof![Just(None), (1..4_u32).prop_map(Some)];
    let wait = select(vec![Nanos::ZERO, Nanos::from_millis(30), Nanos::from_millis(100)]);
    let retry = (select(RetryKind::ALL.to_vec()), most, wait);
    (1..=6_u16, lease, retry).prop_map(|(servers, lease, (kind, max_attempts, max_wait))| Spec {
        servers,
        lease: Lease::new(lease).expect("a good lease"),
        patience: Nanos::from_millis(20),
        retry: Retry {
            kind,
            base: Nanos::from_millis(1),
            factor: 2.0,
            cap: Nanos::from_millis(50),
            max_attempts,
            max_wait,
        },
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Acquiring,
    Held,
    /// Released or cancelled, and not settled.
    Letting,
}

struct Call {
    id: CallId,
    server: ServerId,
    command: Command,
    /// The first answer; `None` when it is lost.
    answer: Option<Option<Reply>>,
}

/// Tells the machine, and checks each thing it wants.
struct Watcher {
    strategy: Lock,
    servers: u16,
    lock: AnyLock,
    now: Nanos,
    phase: Phase,
    keys: Keys,
    calls: Vec<Call>,
    ids: BTreeSet<CallId>,
    /// Of the present attempt.
    token: Option<Token>,
    /// Where each token went that was to take something.
    taken: BTreeMap<Token, BTreeSet<ServerId>>,
    wake: Option<Nanos>,
}

impl Watcher {
    fn new(strategy: Lock, spec: Spec, seed: u64) -> Self {
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

    fn step(&mut self, step: &Step) {
        match step {
            Step::Request(keys) => self.request(keys),
            Step::Cancel => {
                self.phase = Phase::Letting;
                self.tell(Event::Cancel);
            }
            Step::Answer(which, reply) if !self.calls.is_empty() => self.answer(which.index(self.calls.len()), *reply),
            Step::AnswerWell(which) => {
                if let Some(at) = self.open(*which) {
                    self.answer(at, good(self.calls[at].command));
                }
            }
            Step::AnswerBusy(which) => {
                if let Some(at) = self.open(*which) {
                    self.answer(at, busy(self.calls[at].command));
                }
            }
            Step::Lose(which) => {
                if let Some(at) = self.open(*which) {
                    self.lose(at);
                }
            }
            Step::Wake => self.tell(Event::Woke),
            Step::Sleep => self.sleep(),
            Step::Pass(length) => self.now = self.now.after(*length),
            Step::Answer(..) => {} // Nothing was ever asked.
        }
    }

    fn request(&mut self, keys: &[u32]) {
        match self.phase {
            Phase::Idle => {
                self.phase = Phase::Acquiring;
                let keys: Vec<Key> = keys.iter().map(|&key| Key(key)).collect();
                let many = self.strategy.takes_many_keys();
                self.keys = Keys::new(if many { &keys } else { &keys[..1] }).expect("few keys");
                let (keys, mode) = (self.keys, Mode::Exclusive);
                self.tell(Event::Acquire { keys, mode });
            }
            Phase::Held => {
                self.phase = Phase::Letting;
                self.tell(Event::Release);
            }
            Phase::Acquiring | Phase::Letting => {} // The contract allows no second request.
        }
    }

    /// One that has no answer.
    fn open(&self, which: Index) -> Option<usize> {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|&at| self.calls[at].answer.is_none())
            .collect();
        (!open.is_empty()).then(|| *which.get(&open))
    }

    fn answer(&mut self, at: usize, reply: Reply) {
        let call = &mut self.calls[at];
        call.answer.get_or_insert(Some(reply));
        let call = call.id;
        self.tell(Event::Replied { call, reply });
    }

    fn lose(&mut self, at: usize) {
        self.calls[at].answer = Some(None);
        let call = self.calls[at].id;
        self.tell(Event::Lost { call });
    }

    fn sleep(&mut self) {
        if let Some(point) = self.wake.take() {
            self.now = self.now.max(point);
            self.tell(Event::Woke);
        }
    }

    fn tell(&mut self, event: Event) {
        let before = self.phase;
        let mut out = Actions::default();
        self.lock.on(self.now, event, &mut out);
        for action in out.drain() {
            match action {
                Action::Send {
                    call,
                    to,
                    over: Lane::Shared,
                    command,
                } => {
                    let at_rest = matches!(before, Phase::Idle | Phase::Held);
                    let told = matches!(event, Event::Replied { .. } | Event::Lost { .. } | Event::Woke);
                    if at_rest && told {
                        assert_eq!(gives_back(command), Some(ScriptForm::Source), "{event:?}: {command:?}");
                    }
                    self.sent(call, to, command);
                }
                Action::WakeAt(point) => self.wake = Some(point),
                Action::Settle(outcome) => self.settled(outcome),
                Action::Send { .. } | Action::HangUp | Action::Queued | Action::Renewed { .. } | Action::Lapsed => {
                    panic!("{:?} wants {action:?}", self.strategy)
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
                assert_eq!(self.phase, Phase::Acquiring, "{command:?} though nobody wants it");
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
            answer: None,
        });
    }

    fn settled(&mut self, outcome: Outcome) {
        self.phase = match (self.phase, outcome) {
            (Phase::Acquiring, Outcome::Held { lasts, fence: None }) => {
                self.granted(lasts);
                Phase::Held
            }
            (Phase::Acquiring, Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Unknown)
            | (Phase::Letting, Outcome::Released | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown) => {
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
                .filter(|call| is(call.command) && call.answer == Some(Some(good(call.command))));
            good.map(|call| (call.server, key_of(call.command)))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let takes = |command| gives_back(command).is_none() && !renews(command);
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

    /// Loses all that is unanswered, delivers the wake-ups, and finds the request settled.
    fn come_to_rest(&mut self, ending: Ending) {
        for _ in 0..1_000 {
            if matches!(self.phase, Phase::Idle | Phase::Held) {
                return;
            }
            while let Some(at) = (ending == Ending::Lost)
                .then(|| self.calls.iter().position(|call| call.answer.is_none()))
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
enum Ending {
    Lost,
    Silence,
}

fn gives_back(command: Command) -> Option<ScriptForm> {
    match command {
        Command::CompareAndDelete { form, .. }
        | Command::RunAll {
            script: Script::GiveBackAll,
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

fn locks_over_servers() -> Vec<Lock> {
    let mut locks: Vec<Lock> = Lock::ALL.into_iter().filter(|lock| lock.nodes().is_some()).collect();
    let sequential = [("fanout".to_owned(), locks::ArgValue::Text("sequential".to_owned()))];
    locks.push(Lock::named("redlock", &sequential).expect("a way to ask"));
    locks
}

/// A fixed seed, so that a test passes or fails for all alike; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` look further.
fn config() -> ProptestConfig {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match config.rng_seed {
        RngSeed::Random => ProptestConfig {
            rng_seed: RngSeed::Fixed(20_150_304),
            ..config
        },
        RngSeed::Fixed(_) => config,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_each_request_settles_once_and_by_a_quorum_of_its_own_calls(
        strategy in select(locks_over_servers()),
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
