//! The steps of the scripts. Times are milliseconds; a command is remembered under a label, for its reply.
//!
//! Each event must be followed by all actions that it causes, in order, before the next event.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, Event, Fence, Key, KeyList, Lasts, Lease,
    LockMachine, Mode, Nanos, Outcome, Reply, Retry, RetryKind, ScriptForm, ServerId, Spec, Strategy, Token,
};

pub(crate) const KEY: Key = Key(7);
pub(crate) const LEASE_MS: u64 = 10_000;
/// What the clock-skew margin leaves of `LEASE_MS`: less 1 % and 2 ms.
pub(crate) const BELIEF_MS: u64 = 9_898;
pub(crate) const REPLY_TIMEOUT_MS: u64 = 1_000;

/// A lease of 10 s, a reply timeout of 1 s, and one attempt.
pub(crate) fn one_attempt() -> Spec {
    Spec {
        servers: 1,
        lease: lease(LEASE_MS),
        reply_timeout: Nanos::from_millis(REPLY_TIMEOUT_MS),
        retry: Retry::NONE,
    }
}

/// As `one_attempt`, but tried again every 10 ms for 5 s.
pub(crate) fn every_10_ms() -> Spec {
    let retry = Retry {
        kind: RetryKind::Fixed,
        base: Nanos::from_millis(10),
        factor: 1.0,
        cap: Nanos::from_millis(10),
        max_attempts: None,
        max_wait: Nanos::from_secs(5),
    };
    Spec { retry, ..one_attempt() }
}

pub(crate) fn lease(ms: u64) -> Lease {
    Lease::new(i64::try_from(ms).expect("a test's lease is short")).expect("a test's lease is good")
}

pub(crate) fn script(strategy: Strategy, spec: Spec) -> Script {
    script_of(strategy, spec, Chance::seeded(1))
}

pub(crate) fn script_of(strategy: Strategy, spec: Spec, chance: Chance) -> Script {
    Script {
        lock: AnyLock::new(strategy, Arc::new(spec), chance),
        now: Nanos::ZERO,
        actions: VecDeque::new(),
        sent: Vec::new(),
        wake: None,
    }
}

pub(crate) struct Script {
    lock: AnyLock,
    now: Nanos,
    actions: VecDeque<Action>,
    sent: Vec<Sent>,
    wake: Option<Nanos>,
}

struct Sent {
    label: &'static str,
    call: CallId,
    command: Command,
}

/// Events.
impl Script {
    pub(crate) fn at(mut self, ms: u64) -> Self {
        let now = Nanos::from_millis(ms);
        assert!(now >= self.now, "the script goes back from {:?} to {now:?}", self.now);
        self.now = now;
        self
    }

    pub(crate) fn acquire(self) -> Self {
        self.acquire_as(Mode::Exclusive)
    }

    pub(crate) fn acquire_as(self, mode: Mode) -> Self {
        let keys = KEY.into();
        self.send_event(Event::Acquire { keys, mode })
    }

    pub(crate) fn acquire_all(self, keys: KeyList) -> Self {
        self.acquire_all_as(keys, Mode::Exclusive)
    }

    pub(crate) fn acquire_all_as(self, keys: KeyList, mode: Mode) -> Self {
        self.send_event(Event::Acquire { keys, mode })
    }

    /// The same work again, after a conflict.
    pub(crate) fn retry(self) -> Self {
        self.send_event(Event::Retry)
    }

    pub(crate) fn enter(self) -> Self {
        self.send_event(Event::Enter)
    }

    pub(crate) fn extend(self) -> Self {
        self.send_event(Event::Extend)
    }

    pub(crate) fn release(self) -> Self {
        self.send_event(Event::Release)
    }

    pub(crate) fn cancel(self) -> Self {
        self.send_event(Event::Cancel)
    }

    pub(crate) fn reply(self, label: &str, reply: Reply) -> Self {
        let call = self.remembered(label).call;
        self.send_event(Event::Replied { call, reply })
    }

    pub(crate) fn lose(self, label: &str) -> Self {
        let call = self.remembered(label).call;
        self.send_event(Event::Lost { call })
    }

    pub(crate) fn publish(self) -> Self {
        self.send_event(Event::Published { first: true })
    }

    /// A message that another client has already acted on.
    pub(crate) fn publish_to_others_first(self) -> Self {
        self.send_event(Event::Published { first: false })
    }

    pub(crate) fn disconnect(self) -> Self {
        self.send_event(Event::Disconnected)
    }

    /// A wake-up now, asked for or not.
    pub(crate) fn wake(self) -> Self {
        self.send_event(Event::Woke)
    }

    /// A wake-up at the time that was asked for.
    pub(crate) fn sleep(mut self) -> Self {
        self.now = self.wake.expect("a point was asked for").max(self.now);
        self.send_event(Event::Woke)
    }

    fn send_event(mut self, event: Event) -> Self {
        assert!(
            self.actions.is_empty(),
            "not expected before {event:?}: {:?}",
            self.actions
        );
        let mut out = Actions::default();
        self.lock.on(self.now, event, &mut out);
        self.actions.extend(out.drain());
        self
    }

    fn remembered(&self, label: &str) -> &Sent {
        self.sent
            .iter()
            .find(|sent| sent.label == label)
            .unwrap_or_else(|| panic!("no command is called {label}"))
    }
}

/// Expectations.
impl Script {
    /// A `SET` with a fresh token, guarded by the reply timeout.
    pub(crate) fn expect_set(self, label: &'static str) -> Self {
        let (mut script, command) = self.expect_send(label);
        let Command::SetNxPx { key: KEY, token, .. } = command else {
            panic!("not a SET of the key: {command:?}")
        };
        let earlier = script
            .sent
            .iter()
            .rev()
            .skip(1)
            .any(|sent| sent.command.token() == Some(token));
        assert!(!earlier, "a token used twice: {token:?}");
        script = script.expect_guard();
        script
    }

    /// A compare-and-delete with the token of the `SET` labelled `of`, guarded by the reply timeout.
    pub(crate) fn expect_release(self, label: &'static str, of: &str, form: ScriptForm) -> Self {
        self.expect_compare_and_delete(label, of, form).expect_guard()
    }

    /// A compare-and-delete whose reply nobody awaits.
    pub(crate) fn expect_unawaited_release(self, label: &'static str, of: &str) -> Self {
        self.expect_compare_and_delete(label, of, ScriptForm::Source)
    }

    fn expect_compare_and_delete(self, label: &'static str, of: &str, form: ScriptForm) -> Self {
        let token = self.token(of);
        self.expect_unguarded(label, Command::CompareAndDelete { key: KEY, token, form })
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// The tokens of all commands so far.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        self.sent.iter().filter_map(|sent| sent.command.token()).collect()
    }

    /// The token of the command labelled `of`.
    pub(crate) fn token(&self, of: &str) -> Token {
        let command = self.remembered(of).command;
        command.token().unwrap_or_else(|| panic!("no token in {command:?}"))
    }

    /// This command, guarded by the reply timeout.
    pub(crate) fn expect_command(self, label: &'static str, expected: Command) -> Self {
        self.expect_unguarded(label, expected).expect_guard()
    }

    /// This command, whose reply nobody awaits.
    pub(crate) fn expect_unguarded(self, label: &'static str, expected: Command) -> Self {
        let (script, command) = self.expect_send(label);
        assert_eq!(command, expected, "{label}");
        script
    }

    /// Any command over a shared connection to the first server.
    pub(crate) fn expect_send(self, label: &'static str) -> (Self, Command) {
        self.expect_send_to(label, ServerId(0), ConnectionKind::SharedByClients)
    }

    /// Any command to the first server, over the client's own connection or a shared one.
    pub(crate) fn expect_send_over(self, label: &'static str, owned: bool) -> Self {
        let via = if owned {
            ConnectionKind::Own
        } else {
            ConnectionKind::SharedByClients
        };
        self.expect_send_to(label, ServerId(0), via).0
    }

    /// Any command, guarded or not.
    pub(crate) fn expect_send_to(
        mut self,
        label: &'static str,
        server: ServerId,
        via: ConnectionKind,
    ) -> (Self, Command) {
        let action = self.actions.pop_front();
        let Some(Action::Send {
            call,
            to,
            over,
            command,
        }) = action
        else {
            panic!("{label} is not sent at {:?}, but {action:?}", self.now)
        };
        assert_eq!((to, over), (server, via), "the connection of {label}");
        assert!(
            self.sent.iter().all(|sent| sent.label != label),
            "the label {label} is given twice"
        );
        assert!(self.sent.iter().all(|sent| sent.call != call), "{call:?} is used twice");
        self.sent.push(Sent { label, call, command });
        (self, command)
    }

    pub(crate) fn expect_guard(self) -> Self {
        let point = self.now.after(Nanos::from_millis(REPLY_TIMEOUT_MS));
        self.expect_wake_at(point)
    }

    pub(crate) fn expect_wake_at(mut self, point: Nanos) -> Self {
        assert_eq!(self.actions.pop_front(), Some(Action::WakeAt(point)));
        self.wake = Some(point);
        self
    }

    /// The time that was asked for last.
    pub(crate) fn point(&self) -> Nanos {
        self.wake.expect("a point was asked for")
    }

    /// A pause of this many milliseconds.
    pub(crate) fn expect_pause(mut self, ms: RangeInclusive<u64>) -> Self {
        let Some(Action::WakeAt(point)) = self.actions.pop_front() else {
            panic!("no pause at {:?}", self.now)
        };
        let pause = point.since(self.now);
        let (shortest, longest) = (Nanos::from_millis(*ms.start()), Nanos::from_millis(*ms.end()));
        assert!((shortest..=longest).contains(&pause), "a pause of {pause:?}");
        self.wake = Some(point);
        self
    }

    pub(crate) fn expect_held_until(self, ms: u64) -> Self {
        self.expect_held(ms, None)
    }

    pub(crate) fn expect_fenced_until(self, ms: u64, fence: Fence) -> Self {
        self.expect_held(ms, Some(fence))
    }

    fn expect_held(self, ms: u64, fence: Option<Fence>) -> Self {
        let lasts = Lasts::Until(Nanos::from_millis(ms));
        self.expect(Outcome::Held { lasts, fence })
    }

    pub(crate) fn expect_renewed_until(self, ms: u64) -> Self {
        let lasts = Lasts::Until(Nanos::from_millis(ms));
        self.expect_action(Action::Renewed { lasts })
    }

    pub(crate) fn expect_lapsed(self) -> Self {
        self.expect_action(Action::Lapsed)
    }

    pub(crate) fn expect_queued(self) -> Self {
        self.expect_action(Action::Queued)
    }

    pub(crate) fn expect_hang_up(self) -> Self {
        self.expect_action(Action::HangUp)
    }

    pub(crate) fn expect(self, outcome: Outcome) -> Self {
        self.expect_action(Action::Settle(outcome))
    }

    fn expect_action(mut self, action: Action) -> Self {
        assert_eq!(self.actions.pop_front(), Some(action), "at {:?}", self.now);
        self
    }

    pub(crate) fn expect_nothing(self) -> Self {
        assert!(self.actions.is_empty(), "at {:?}: {:?}", self.now, self.actions);
        self
    }

    pub(crate) fn expect_attempts(self, attempts: u32) -> Self {
        assert_eq!(self.lock.attempts(), attempts);
        self
    }

    pub(crate) fn expect_conflicts(self, conflicts: u32) -> Self {
        assert_eq!(self.lock.conflicts(), conflicts);
        self
    }

    pub(crate) fn expect_no_quorum_attempts(self, no_quorum_attempts: u32) -> Self {
        assert_eq!(self.lock.no_quorum_attempts(), no_quorum_attempts);
        self
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.actions.is_empty(), "not expected at the end: {:?}", self.actions);
        }
    }
}
