//! Every statement of every database lock meets another transaction: what follows is what `on_conflict` says.

use std::collections::BTreeSet;
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, ArgValue, CallId, Chance, Command, ErrorKind, Event, Key, LockMachine, Mode, Nanos,
    OnConflict, Outcome, Reply, Spec, Statement, Strategy,
};

use crate::words::every_10_ms;

const CONFLICTS: [ErrorKind; 2] = [ErrorKind::Serialization, ErrorKind::Deadlock];

/// All database locks, in all variants that send different statements.
fn locks() -> Vec<(Strategy, Mode)> {
    let text = |name: &str, value: &str| (name.to_owned(), ArgValue::Text(value.to_owned()));
    let mut found = Vec::new();
    for (name, arguments) in [
        ("pg-advisory", vec![text("scope", "session"), text("wait", "block")]),
        ("pg-advisory", vec![text("scope", "session"), text("wait", "try")]),
        ("pg-advisory", vec![text("scope", "transaction"), text("wait", "block")]),
        ("pg-advisory", vec![text("scope", "transaction"), text("wait", "try")]),
        ("pg-row", vec![text("wait", "block")]),
        ("pg-row", vec![text("wait", "nowait")]),
        ("pg-row", vec![text("wait", "skip-locked")]),
        ("pg-lease", vec![]),
        ("pg-optimistic", vec![]),
        ("pg-serializable", vec![]),
        ("layered", vec![]),
    ] {
        let strategy = Strategy::named(name, &arguments).expect("it is in the catalogue");
        found.push((strategy, Mode::Exclusive));
        if strategy.shares() {
            found.push((strategy, Mode::Shared));
        }
    }
    found
}

/// A lock, and a server that grants everything except one statement the first time it is sent.
struct Play {
    lock: AnyLock,
    now: Nanos,
    /// The statement that meets another transaction, and how.
    victim: Option<(Statement, ErrorKind)>,
    /// All statements that were sent, in order.
    sent: Vec<Statement>,
    waiting: Vec<(CallId, Command)>,
    wake: Option<Nanos>,
    settled: Vec<Outcome>,
    hung_up: bool,
}

impl Play {
    fn of(strategy: Strategy, victim: Option<(Statement, ErrorKind)>) -> Self {
        let servers = if strategy == Strategy::Layered { 2 } else { 1 };
        let spec = Spec {
            servers,
            ..every_10_ms()
        };
        Self {
            lock: AnyLock::new(strategy, Arc::new(spec), Chance::seeded(7)),
            now: Nanos(0),
            victim,
            sent: Vec::new(),
            waiting: Vec::new(),
            wake: None,
            settled: Vec::new(),
            hung_up: false,
        }
    }

    fn send_event(&mut self, event: Event) {
        let mut out = Actions::default();
        self.lock.on(self.now, event, &mut out);
        for action in out.drain() {
            match action {
                Action::Send { call, command, .. } => {
                    if let Command::Sql { statement, .. } = command {
                        self.sent.push(statement);
                    }
                    self.waiting.push((call, command));
                }
                Action::WakeAt(at) => self.wake = Some(at),
                Action::HangUp => self.hung_up = true,
                Action::Settle(outcome) => self.settled.push(outcome),
                Action::Queued | Action::Renewed { .. } | Action::Lapsed => {}
            }
        }
    }

    fn reply(&mut self, command: &Command) -> Reply {
        let Command::Sql { statement, .. } = *command else {
            return if matches!(command, Command::SetNxPx { .. }) {
                Reply::Ok
            } else {
                Reply::Int(1)
            };
        };
        if let Some((_, kind)) = self.victim.take_if(|(victim, _)| *victim == statement) {
            return Reply::Error(kind);
        }
        match statement {
            Statement::AdvisoryLock
            | Statement::AdvisoryLockShared
            | Statement::TransactionLock
            | Statement::TransactionLockShared
            | Statement::Commit
            | Statement::Rollback => Reply::Ok,
            _ => Reply::Int(1),
        }
    }

    /// Replies to everything, and advances the time when nothing else is awaited, until the request has settled.
    fn settle(&mut self) -> Outcome {
        for _ in 0..50 {
            if let Some(outcome) = self.settled.pop() {
                return outcome;
            }
            if self.waiting.is_empty() {
                self.now = self.wake.take().expect("it waits for something");
                self.send_event(Event::Woke);
                continue;
            }
            let (call, command) = self.waiting.remove(0);
            self.now = self.now.after(Nanos(1_000));
            let reply = self.reply(&command);
            self.send_event(Event::Replied { call, reply });
        }
        panic!("it does not settle: {:?}", self.sent);
    }

    /// An acquire and a release, and the work again after a conflict.
    fn grant(&mut self, mode: Mode) -> Outcome {
        let keys = Key(0).into();
        self.send_event(Event::Acquire { keys, mode });
        loop {
            assert!(matches!(self.settle(), Outcome::Held { .. }), "{:?}", self.sent);
            self.send_event(Event::Release);
            let outcome = self.settle();
            if outcome != Outcome::Conflict {
                return outcome;
            }
            self.send_event(Event::Retry);
        }
    }

    fn times(&self, statement: Statement) -> usize {
        self.sent.iter().filter(|sent| **sent == statement).count()
    }
}

#[test]
fn what_follows_a_conflict_is_what_its_statement_says() {
    let mut tried = BTreeSet::new();
    for (strategy, mode) in locks() {
        let mut usual = Play::of(strategy, None);
        usual.grant(mode);
        for statement in usual.sent.iter().copied().collect::<BTreeSet<_>>() {
            for kind in CONFLICTS {
                let mut play = Play::of(strategy, Some((statement, kind)));
                let outcome = play.grant(mode);
                let context = format!("{strategy:?}, {statement:?}, {kind:?}: {:?}, {outcome:?}", play.sent);
                match statement.on_conflict() {
                    OnConflict::NextAttempt | OnConflict::SentAgain => {
                        assert_eq!(play.times(statement), usual.times(statement) + 1, "{context}");
                        assert_eq!(outcome, Outcome::Released, "{context}");
                        assert!(!play.hung_up, "{context}");
                    }
                    OnConflict::EndsTheLock => {
                        assert_eq!(play.sent, usual.sent, "{context}");
                        assert_eq!(outcome, Outcome::Released, "{context}");
                        assert!(!play.hung_up, "{context}");
                    }
                    OnConflict::NotExpected => {
                        assert_eq!(outcome, Outcome::Failed(kind), "{context}");
                        assert!(play.hung_up, "{context}");
                    }
                }
                tried.insert(statement);
            }
        }
    }
    // Further rows of an attempt are handled like the first one, only an undo sends a rollback, and no lock sends what
    // guarded works do.
    let others = Statement::ALL.iter().filter(|statement| !tried.contains(statement));
    let others: Vec<_> = others.map(|statement| format!("{statement:?}")).collect();
    assert!(
        others
            .iter()
            .all(|name| name.ends_with("Also") || name.starts_with("Guard") || name == "Rollback"),
        "not tried: {others:?}"
    );
}

#[test]
fn a_conflict_is_counted_for_the_request_that_met_it() {
    for (strategy, victim) in [
        (Strategy::PgLease, Statement::LeaseTake),
        (Strategy::Layered, Statement::FenceTake),
    ] {
        let mut play = Play::of(strategy, Some((victim, ErrorKind::Serialization)));
        play.send_event(Event::Acquire {
            keys: Key(0).into(),
            mode: Mode::Exclusive,
        });
        play.settle();
        assert_eq!(play.lock.conflicts(), 1, "{victim:?}");
        play.send_event(Event::Release);
        play.settle();
        assert_eq!(play.lock.conflicts(), 0, "{victim:?}: it is counted already");
    }
    for (strategy, victim) in [
        (Strategy::PgLease, Statement::LeaseRelease),
        (Strategy::Layered, Statement::FencedWrite),
    ] {
        let mut play = Play::of(strategy, Some((victim, ErrorKind::Serialization)));
        play.grant(Mode::Exclusive);
        assert_eq!(play.lock.conflicts(), 1, "{victim:?}");
    }
}
