//! The contract between a lock and its driver: the events, the actions, and the outcomes of a request.
//!
//! A machine serves one client and one lock name at a time, over and over: `Acquire` .. `Settle(Held)` .. `Release` ..
//! `Settle(Released)`. Every `Acquire`, `Retry`, `Enter`, `Release` and `Cancel` is answered by exactly one `Settle`.

use std::num::NonZeroU64;

use crate::{Actions, Command, KeyList, Nanos};

/// A lock name, as an index into the driver's table of names. A machine never reads the name itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// 128 random bits, drawn anew for every attempt; on the wire 32 lower-case hex digits. Two halves, because the
/// alignment of a `u128` would make every client of a cell a third larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    pub high: u64,
    pub low: u64,
}

impl Token {
    /// The token of a command that names no owner.
    pub const NONE: Self = Self { high: 0, low: 0 };
}

/// A number that grows with every grant of a key. A resource refuses a client that comes with an older number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub NonZeroU64);

/// One of the servers of a cell, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// One command sent by one client. A client never uses an id twice, not even across attempts: a late reply to an
/// earlier attempt must not count for the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Whether a holder shares the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Exclusive,
    /// Other clients may share the lock at the same time; only where `Strategy::shares`.
    Shared,
}

/// Which connection a command goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// Any connection to the server. Other clients send over it too.
    SharedByClients,
    /// This client's own connection, for commands that block on the server; only where `Strategy::owns_connection`.
    Own,
    /// A connection to the first server for subscriptions; only where `Strategy::subscribes`. Other clients may
    /// subscribe over it too, so a subscription may be confirmed at once because it already stands.
    Subscribing,
    /// This client's connection to the guarded resource. No lock uses it.
    Guard,
}

/// The lock of one client: it takes one lock, keeps it and releases it.
pub trait LockMachine {
    /// Handles one event and appends the resulting actions to `out`. The driver empties `out` before the next call.
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions);

    /// How often the current (or, when idle, the last) `Acquire` has tried to take the lock so far.
    fn attempts(&self) -> u32;

    /// Attempts of the current (or last) `Acquire` that took some of the servers and found so many of the others taken
    /// that no quorum was left. This client cannot see whether another client had a quorum.
    fn no_quorum_attempts(&self) -> u32 {
        0
    }

    /// Statements of the current (or last) request that the database ended because of other transactions: deadlocks,
    /// serialization failures, versions that had changed. A release is a request of its own. Locks whose release writes
    /// are the exception: there the count starts at the `Acquire`.
    fn conflicts(&self) -> u32 {
        0
    }

    /// Whether the reply to this call may still decide the current attempt to take the lock. Only a lock whose servers
    /// vote knows it: see `servers_vote`.
    fn awaits_vote(&self, _call: CallId) -> bool {
        false
    }

    /// Whether several servers decide each grant, each by its reply to a command that takes. A driver may then count
    /// the votes; for all other locks the compiler leaves that out.
    fn servers_vote() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether the place in the queue that `Queued` announced certainly still exists on the server at `now`.
    fn is_placed(&self, _now: Nanos) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Take the lock named `keys`. More than one key only where `Strategy::takes_many_keys`. Only when idle.
    Acquire { keys: KeyList, mode: Mode },
    /// Repeat the work whose release settled as `Conflict`: its next attempt. Settles like an acquire. Only right after
    /// that settlement; an `Acquire` begins another work instead.
    Retry,
    /// The holder enters once more; only where `Strategy::nests`, and only while the lock is held. Settles like an
    /// acquire. If the outcome is not `Held`, the earlier entries stand and must still be released.
    Enter,
    /// Renew the lease now; only where `Strategy::extends`, and only while the lock is held. Answered by `Renewed` or
    /// `Lapsed`, and by nothing if the server's reply says neither or is lost: then the lease runs on as it was.
    Extend,
    /// Release the lock, or leave its last entry. Only while the lock is held. Settles as `Held` when other entries
    /// remain and still hold. Any other outcome ends all entries. At the end of the lease or later it releases all
    /// entries.
    Release,
    /// Stop trying, and free what may have been taken; while the lock is held this is a `Release` of all entries.
    /// Settles like a release. It replaces the request under way, if there is one: a single `Settle` answers both.
    /// Allowed in any state; when idle it settles at once.
    Cancel,
    /// The reply to `call`.
    Replied { call: CallId, reply: Reply },
    /// No reply to `call` will come: its connection closed. The command may or may not have been carried out.
    Lost { call: CallId },
    /// A message came from a channel that this client subscribed to. `first`: no client that received the message
    /// earlier over the same subscription has sent anything because of it.
    Published { first: bool },
    /// This client's own connection, or the one it subscribes over, closed and is being reopened: its subscriptions are
    /// gone. Each call without a reply is reported by its own `Lost` as well.
    Disconnected,
    /// The time that `WakeAt` named has come. An early or repeated `Woke` is harmless.
    Woke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send `command` to the server `to`. Commands to one server over one connection arrive in the order of sending.
    Send {
        call: CallId,
        to: ServerId,
        over: ConnectionKind,
        command: Command,
    },
    /// Send `Woke` at this time. It replaces the time asked for before.
    WakeAt(Nanos),
    /// Close this client's own connection, or the one over which it subscribes to the current key's channel, and open
    /// it again: a command that blocks there must not delay later ones.
    HangUp,
    /// The server has acknowledged this client's place in its queue: any client that asks from now on comes later. Only
    /// while an `Acquire` is under way.
    Queued,
    /// The lease of the held lock was renewed. The new end is never in the past, and `Renewed` never follows the end of
    /// the lease before it.
    Renewed {
        lasts: Lasts,
    },
    /// The lock was lost: belief ends here. The lock must still be released.
    Lapsed,
    Settle(Outcome),
}

/// The outcome of an `Acquire`, `Enter`, `Release` or `Cancel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client holds the lock for as long as `lasts` says, which never ends in the past. Also the outcome of a
    /// `Release` that left other entries.
    Held { lasts: Lasts, fence: Option<Fence> },
    /// The lock was released, or nothing was taken.
    Released,
    /// The lock was not taken and this client left nothing on a server; `Refusal::TooLate` is the exception.
    Refused(Refusal),
    /// The release found that this client no longer held the lock.
    Expired,
    /// A release that writes the work's effect (`Strategy::writes`) wrote nothing, because another client changed what
    /// the work had read. The whole work has to be repeated: `Event::Retry` begins its next attempt.
    Conflict,
    /// The server replied with an error that another attempt would meet again.
    Failed(ErrorKind),
    /// A reply was lost: the lock may have been taken (the server then frees it within one lease, or when the session
    /// ends) or released.
    Unknown,
}

/// How long the holder may believe in the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Until this time: a lease counted from before the send, less the clock-skew margin.
    Until(Nanos),
    /// As long as the session of this client's own connection. On `Disconnected` the machine emits `Lapsed`.
    Session,
    /// No lock was taken, so nothing ends.
    Unbounded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another client held the lock, and the retry policy allows no further attempt.
    Busy,
    /// The longest wait of the retry policy passed.
    TimedOut,
    /// The lock was granted when nothing of the lease was left, or too few replicas confirmed it in time; it was
    /// released, or left to expire. For an `Enter`: the lease had ended.
    TooLate,
}

/// A reply, reduced to what locks need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`, or the confirmation of a subscription; from a database a row without a value, or no result at all
    Ok,
    /// A null of either protocol version; from a database: no row.
    Nil,
    /// A number: also what a blocking pop found, and what a database's row holds (true is 1).
    Int(i64),
    /// The id of a stream's entry that was added, or of the first entry that was read.
    Entry(EntryId),
    /// The token of another client, as a script returns it.
    Token(Token),
    /// A list that is not empty, such as the element of a blocking pop that is not a number.
    Items,
    Error(ErrorKind),
    /// Any other well-formed reply. No command of a lock expects it.
    Other,
}

impl Reply {
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    pub const fn is_nil(self) -> bool {
        matches!(self, Self::Nil)
    }

    pub const fn int(self) -> Option<i64> {
        if let Self::Int(number) = self {
            Some(number)
        } else {
            None
        }
    }

    pub const fn entry(self) -> Option<EntryId> {
        if let Self::Entry(entry) = self {
            Some(entry)
        } else {
            None
        }
    }

    pub const fn token(self) -> Option<Token> {
        if let Self::Token(token) = self {
            Some(token)
        } else {
            None
        }
    }

    pub const fn error(self) -> Option<ErrorKind> {
        if let Self::Error(kind) = self { Some(kind) } else { None }
    }

    /// The kind of failure that this reply is for a command that it does not answer.
    pub const fn failure(self) -> ErrorKind {
        if let Self::Error(kind) = self {
            kind
        } else {
            ErrorKind::Unexpected
        }
    }

    /// The fence in a counter that starts at 0: after the first grant it is 1. `None` also for a number that only
    /// another program can have written.
    pub fn fence(self) -> Option<Fence> {
        let count = u64::try_from(self.int()?).ok()?;
        NonZeroU64::new(count).map(Fence)
    }
}

/// The id of an entry of a stream, `<ms>-<seq>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    pub ms: u64,
    pub seq: u64,
}

/// The first word of an error reply, or the meaning of a database's SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    NoScript,
    ReadOnly,
    Loading,
    Moved,
    OutOfMemory,
    WrongType,
    /// `RENAME` of a key that does not exist.
    NoSuchKey,
    /// `XGROUP CREATE` of a group that already exists.
    BusyGroup,
    NoAuth,
    /// 40001: the transaction could not be placed among the others.
    Serialization,
    /// 23514: a constraint of the table refused the value.
    CheckViolation,
    /// 40P01
    Deadlock,
    /// 55P03: `NOWAIT`, or `lock_timeout` passed.
    LockNotAvailable,
    /// 57014: cancelled, `statement_timeout` passed, or `lock_timeout` passed just as the lock was granted.
    Canceled,
    /// 25P02, and a `COMMIT` that the server answered with `ROLLBACK`.
    InFailedTransaction,
    /// 53300
    TooManyConnections,
    /// 57P01, 57P02, 57P03, 25P03 and others after which the server closes the session.
    SessionEnded,
    Other,
    /// Not an error reply, but a reply that this command never gets.
    Unexpected,
}

impl ErrorKind {
    /// The database ended the statement, or its transaction, because of another transaction.
    pub const fn is_conflict(self) -> bool {
        matches!(self, Self::Serialization | Self::Deadlock)
    }

    /// The statement met another transaction or a lock that is taken: normal operation of a database lock.
    pub const fn is_contention(self) -> bool {
        matches!(self, Self::Serialization | Self::Deadlock | Self::LockNotAvailable)
    }
}
