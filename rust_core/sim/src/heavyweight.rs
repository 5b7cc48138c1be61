//! The locks of a database: their holders, by session or by transaction, and their waiters, in order.

use locks::{ErrorKind, Key, Mode, Reply, Scope, Statement, Wait};

use crate::database::Backend;

#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// A lock that a session takes twice is listed twice.
    held: Vec<Held>,
    waiting: Vec<Waiting>,
    tickets: u64,
    served: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    what: What,
    mode: Mode,
    scope: Scope,
    by: Backend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Advisory(Key),
    Row(Key),
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    wanted: Held,
    ticket: u64,
}

impl Held {
    fn is_in_the_way_of(&self, other: &Self) -> bool {
        let share = self.mode == Mode::Shared && other.mode == Mode::Shared;
        self.what == other.what && self.by != other.by && !share
    }

    /// The reply to a statement that gets the lock.
    fn granted_reply(&self, wait: Wait) -> Reply {
        match (self.what, wait) {
            (What::Row(key), _) => Reply::Int(key.0.into()),
            (What::Advisory(_), Wait::Block) => Reply::Ok,
            (What::Advisory(_), Wait::Try | Wait::SkipLocked) => Reply::Int(1),
        }
    }
}

impl Locks {
    pub(crate) fn knows(statement: Statement) -> bool {
        let sql = statement.sql();
        sql.contains("advisory") || sql.contains("FOR ")
    }

    fn wanted(by: Backend, statement: Statement, key: Key) -> (Held, Wait) {
        let sql = statement.sql();
        let is_row = sql.contains("FOR ");
        let shared = sql.contains("_shared") || sql.contains("FOR SHARE");
        let by_session = !is_row && !sql.contains("xact");
        let held = Held {
            what: if is_row { What::Row(key) } else { What::Advisory(key) },
            mode: if shared { Mode::Shared } else { Mode::Exclusive },
            scope: if by_session { Scope::Session } else { Scope::Transaction },
            by,
        };
        let wait = if sql.contains("SKIP LOCKED") {
            Wait::SkipLocked
        } else if sql.contains("NOWAIT") || sql.contains("_try_") {
            Wait::Try
        } else {
            Wait::Block
        };
        (held, wait)
    }

    /// The reply; or none, and the ticket of the waiter.
    pub(crate) fn take(&mut self, by: Backend, statement: Statement, key: Key) -> (Option<Reply>, Option<u64>) {
        let (wanted, wait) = Self::wanted(by, statement, key);
        let has_it = self.held.iter().any(|held| held.by == by && held.what == wanted.what);
        let queued = self.waiting.iter().any(|other| other.wanted.is_in_the_way_of(&wanted));
        if !self.is_held_against(&wanted) && (has_it || !queued) {
            self.held.push(wanted);
            return (Some(wanted.granted_reply(wait)), None);
        }
        match (wait, wanted.what) {
            (Wait::SkipLocked, _) => (Some(Reply::Nil), None),
            (Wait::Try, What::Advisory(_)) => (Some(Reply::Int(0)), None),
            (Wait::Try, What::Row(_)) => (Some(Reply::Error(ErrorKind::LockNotAvailable)), None),
            (Wait::Block, _) if self.waits_for(by, &wanted, &mut Vec::new()) => {
                (Some(Reply::Error(ErrorKind::Deadlock)), None)
            }
            (Wait::Block, _) => {
                self.tickets += 1;
                let ticket = self.tickets;
                self.waiting.push(Waiting { wanted, ticket });
                (None, Some(ticket))
            }
        }
    }

    fn is_held_against(&self, wanted: &Held) -> bool {
        self.held.iter().any(|held| held.is_in_the_way_of(wanted))
    }

    /// Whether `wanted` can be granted only when `who` releases a lock.
    fn waits_for(&self, who: Backend, wanted: &Held, seen: &mut Vec<Backend>) -> bool {
        let in_the_way = self.held.iter().filter(|held| held.is_in_the_way_of(wanted));
        let blockers: Vec<Backend> = in_the_way.map(|held| held.by).collect();
        blockers.into_iter().any(|blocker| {
            if seen.contains(&blocker) {
                return false;
            }
            seen.push(blocker);
            let its = self.waiting.iter().find(|waiting| waiting.wanted.by == blocker);
            its.is_some_and(|its| {
                let against_who = |held: &Held| held.by == who && held.is_in_the_way_of(&its.wanted);
                self.held.iter().any(against_who) || self.waits_for(who, &its.wanted, seen)
            })
        })
    }

    /// Serves the first waiter that no holder blocks, and returns its reply. At every seventh the longest wait ends
    /// just as the lock is granted: a session lock then stays held, whatever the error says.
    pub(crate) fn serve(&mut self) -> Option<(Backend, Reply)> {
        let is_free = |&at: &usize| {
            let wanted = &self.waiting[at].wanted;
            let first = self.waiting[..at]
                .iter()
                .all(|other| !other.wanted.is_in_the_way_of(wanted));
            first && !self.is_held_against(wanted)
        };
        let at = (0..self.waiting.len()).find(is_free)?;
        let Waiting { wanted, .. } = self.waiting.remove(at);
        self.held.push(wanted);
        self.served += 1;
        let reply = match self.served % 14 {
            7 => Reply::Error(ErrorKind::LockNotAvailable),
            // The error of Postgres when the limit has passed and the wait is over by the time it checks.
            0 => Reply::Error(ErrorKind::Canceled),
            _ => wanted.granted_reply(Wait::Block),
        };
        Some((wanted.by, reply))
    }

    /// Whether the client was still waiting.
    pub(crate) fn leave(&mut self, by: Backend, ticket: u64) -> bool {
        let before = self.waiting.len();
        self.waiting
            .retain(|waiting| (waiting.wanted.by, waiting.ticket) != (by, ticket));
        self.waiting.len() < before
    }

    /// The reply to an unlock, or `None` for another statement.
    pub(crate) fn unlock(&mut self, by: Backend, statement: Statement, key: Key) -> Option<Reply> {
        if !statement.sql().contains("unlock") {
            return None;
        }
        let (wanted, _) = Self::wanted(by, statement, key);
        let at = self.held.iter().position(|held| *held == wanted);
        if let Some(at) = at {
            self.held.remove(at);
        }
        Some(Reply::Int(at.is_some().into()))
    }

    pub(crate) fn release_transaction(&mut self, by: Backend) {
        self.held.retain(|held| held.by != by || held.scope == Scope::Session);
    }

    /// The session has ended.
    pub(crate) fn forget(&mut self, by: Backend) {
        self.held.retain(|held| held.by != by);
        self.waiting.retain(|waiting| waiting.wanted.by != by);
    }
}
