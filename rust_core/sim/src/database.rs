//! A model of one Postgres for the statements of locks: sessions that do one thing after another, transactions, and a
//! table of rows. `heavyweight.rs` has its locks and their waiters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use locks::{Command, ErrorKind, Key, Nanos, Opens, Reply, Statement, Token};

use crate::conditions::Mistake;
use crate::heavyweight::Locks;
use crate::network::{Asker, Link};

/// The owner of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    Own(Link),
    /// The backend that all clients share.
    Shared,
}

#[derive(Debug)]
pub(crate) struct Database {
    rows: BTreeMap<Key, Row>,
    sessions: BTreeMap<Backend, BackendSession>,
    ended: BTreeSet<Backend>,
    pub(crate) locks: Locks,
    pub(crate) effects: Vec<DatabaseEffect>,
    pub(crate) mistake: Mistake,
}

/// What the world has to do after a statement.
#[derive(Debug)]
pub(crate) enum DatabaseEffect {
    /// To whom, the reply, and to which command.
    Replies(Asker, Reply, Command),
    /// The session waits in a queue, until this ticket is served or times out.
    Waits(Backend, u64),
}

#[derive(Debug, Default)]
struct BackendSession {
    /// The statements that have arrived and not begun; the first of them waits when the session does.
    queue: VecDeque<(Asker, Statement, Key, Token, [u64; 2])>,
    waits: bool,
    transaction: Option<Transaction>,
}

#[derive(Debug, Default)]
struct Transaction {
    failed: bool,
    /// The writes of a row as the transaction sees them.
    snapshot: Option<(Key, u64)>,
}

#[derive(Debug, Default)]
struct Row {
    fence: i64,
    version: u64,
    value: u64,
    owner: Option<Token>,
    expires: Nanos,
    writes: u64,
}

impl Database {
    pub(crate) fn new(mistake: Mistake) -> Self {
        Self {
            rows: BTreeMap::new(),
            sessions: BTreeMap::new(),
            ended: BTreeSet::new(),
            locks: Locks::default(),
            effects: Vec::new(),
            mistake,
        }
    }

    pub(crate) fn has_ended(&self, backend: Backend) -> bool {
        self.ended.contains(&backend)
    }

    pub(crate) fn value(&self, key: Key) -> u64 {
        self.rows.get(&key).map_or(0, |row| row.value)
    }

    pub(crate) fn arrives(&mut self, now: Nanos, backend: Backend, from: Asker, command: Command) {
        let Command::Sql {
            statement,
            key,
            token,
            numbers,
        } = command
        else {
            panic!("{command:?} for a database")
        };
        if self.has_ended(backend) {
            return;
        }
        let session = self.sessions.entry(backend).or_default();
        session.queue.push_back((from, statement, key, token, numbers));
        self.work(now, backend);
    }

    /// The session ends, and with it everything that it holds and waits for.
    pub(crate) fn end(&mut self, now: Nanos, backend: Backend) {
        if self.ended.insert(backend) {
            self.sessions.remove(&backend);
            self.locks.forget(backend);
            self.serve(now);
        }
    }

    /// The longest wait for a lock has passed.
    pub(crate) fn time_out(&mut self, now: Nanos, backend: Backend, ticket: u64) {
        if self.locks.leave(backend, ticket) {
            self.fail(backend);
            self.send_reply(backend, Reply::Error(ErrorKind::LockNotAvailable));
            self.serve(now);
            self.work(now, backend);
        }
    }

    fn session(&mut self, backend: Backend) -> &mut BackendSession {
        self.sessions.entry(backend).or_default()
    }

    /// Carries out the queued statements as far as possible.
    fn work(&mut self, now: Nanos, backend: Backend) {
        while let Some(session) = self.sessions.get_mut(&backend).filter(|session| !session.waits) {
            let Some(&(_, statement, key, token, numbers)) = session.queue.front() else {
                return;
            };
            if statement.opens() != Opens::Nothing {
                session.transaction.get_or_insert_default();
            }
            match self.execute(now, backend, statement, key, token, numbers) {
                Some(reply) => {
                    if let Reply::Error(_) = reply {
                        self.fail(backend);
                    } else if statement.commits() {
                        self.close(backend);
                    }
                    self.send_reply(backend, reply);
                    self.serve(now);
                }
                None => self.session(backend).waits = true,
            }
        }
    }

    /// Replies to the first statement in the session's queue.
    fn send_reply(&mut self, backend: Backend, reply: Reply) {
        let session = self.session(backend);
        session.waits = false;
        let (from, statement, key, token, numbers) = session.queue.pop_front().expect("it was asked");
        let command = Command::Sql {
            statement,
            key,
            token,
            numbers,
        };
        self.effects.push(DatabaseEffect::Replies(from, reply, command));
    }

    /// Serves the waiters whose turn it is.
    fn serve(&mut self, now: Nanos) {
        while let Some((backend, reply)) = self.locks.serve() {
            if let Reply::Error(_) = reply {
                self.fail(backend);
            }
            self.send_reply(backend, reply);
            self.work(now, backend);
        }
    }

    /// An error ends a transaction's locks at once; the failure is remembered until the transaction ends.
    fn fail(&mut self, backend: Backend) {
        if let Some(transaction) = &mut self.session(backend).transaction {
            transaction.failed = true;
            self.locks.release_transaction(backend);
        }
    }

    fn close(&mut self, backend: Backend) {
        self.session(backend).transaction = None;
        self.locks.release_transaction(backend);
    }

    fn execute(
        &mut self,
        now: Nanos,
        backend: Backend,
        statement: Statement,
        key: Key,
        token: Token,
        numbers: [u64; 2],
    ) -> Option<Reply> {
        let failed = self
            .session(backend)
            .transaction
            .as_ref()
            .is_some_and(|open| open.failed);
        match statement {
            Statement::Rollback => {
                self.close(backend);
                return Some(Reply::Ok);
            }
            Statement::Commit if failed => {
                self.close(backend);
                return Some(Reply::Error(ErrorKind::InFailedTransaction));
            }
            Statement::Commit => return Some(Reply::Ok),
            _ if failed => return Some(Reply::Error(ErrorKind::InFailedTransaction)),
            _ => {}
        }
        if let Some(reply) = self.locks.unlock(backend, statement, key) {
            return Some(reply);
        }
        if Locks::knows(statement) {
            let (reply, ticket) = self.locks.take(backend, statement, key);
            self.effects
                .extend(ticket.map(|ticket| DatabaseEffect::Waits(backend, ticket)));
            return reply;
        }
        Some(self.read_or_write(now, backend, statement, key, token, numbers))
    }

    fn read_or_write(
        &mut self,
        now: Nanos,
        backend: Backend,
        statement: Statement,
        key: Key,
        token: Token,
        [first, second]: [u64; 2],
    ) -> Reply {
        let unguarded = self.mistake == Mistake::UnguardedWrite;
        let row = self.rows.entry(key).or_default();
        let written = |row: &mut Row, value: u64| {
            row.value = value;
            row.writes += 1;
            Reply::Int(key.0.into())
        };
        match statement {
            Statement::LeaseTake if row.expires <= now => {
                (row.owner, row.expires) = (Some(token), now.after(Nanos::from_millis(first)));
                row.fence += i64::from(self.mistake != Mistake::FenceComesAgain || row.fence % 8 < 7);
                Reply::Int(row.fence)
            }
            Statement::LeaseRelease if row.owner == Some(token) || self.mistake == Mistake::DeleteWithoutCompare => {
                (row.owner, row.expires) = (None, Nanos::ZERO);
                Reply::Int(key.0.into())
            }
            Statement::VersionRead => Reply::Int(row.version.cast_signed()),
            Statement::VersionWrite if row.version == first || unguarded => {
                row.version = first + 1;
                written(row, first + 1)
            }
            Statement::ValueRead => Reply::Int(row.value.cast_signed()),
            Statement::FenceTake => {
                row.fence += 1;
                Reply::Int(row.fence)
            }
            Statement::FencedWrite if row.fence.cast_unsigned() == first || unguarded => written(row, second + 1),
            Statement::LeaseTake | Statement::LeaseRelease | Statement::VersionWrite | Statement::FencedWrite => {
                Reply::Nil
            }
            Statement::SerializableRead => {
                let (value, snapshot) = (row.value, Some((key, row.writes)));
                let transaction = &mut self.session(backend).transaction;
                transaction.as_mut().expect("it is opened").snapshot = snapshot;
                Reply::Int(value.cast_signed())
            }
            // The first to commit wins.
            Statement::SerializableWrite => {
                let seen = self.sessions[&backend]
                    .transaction
                    .as_ref()
                    .and_then(|open| open.snapshot);
                if seen == Some((key, row.writes)) || unguarded {
                    written(row, first + 1)
                } else {
                    Reply::Error(ErrorKind::Serialization)
                }
            }
            other => panic!("the model does not know {other:?}"),
        }
    }
}
