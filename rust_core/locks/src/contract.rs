//! The contract between a lock and whoever drives it: what can happen, what can be asked for, how an attempt ends.
//!
//! A machine serves one client and one lock name at a time, over and over: `Acquire` .. `Settle(Held)` .. `Release` ..
//! `Settle(Released)`. Every `Acquire`, `Release` and `Cancel` is answered by exactly one `Settle`.

use std::num::NonZeroU64;

use crate::{Actions, Command, Keys, Nanos};

/// A lock name, as an index into the driver's table of names: a machine never looks inside a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// 128 random bits, fresh for every attempt; on the wire 32 lower-case hex digits. In two halves, since the alignment of
/// a `u128` would make every client of a cell a third larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    pub high: u64,
    pub low: u64,
}

impl Token {
    /// For a command that names no owner.
    pub const NONE: Self = Self { high: 0, low: 0 };
}

/// A number that grows with every grant of a key, for a resource that refuses whoever comes with an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub NonZeroU64);

/// One of the servers of a cell, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// One command sent by one client. Never used twice by a client, across attempts too: a late reply to an earlier
/// attempt must not count for the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// How a holder wants the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Exclusive,
    /// Beside others that share it; only where `Strategy::shares`.
    Shared,
}

/// Which connection a command goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Any that leads to the server; other clients' commands go over it too.
    Shared,
    /// This client's own, for what blocks on the server; only where `Strategy::owns_connection`.
    Own,
    /// One to subscribe and unsubscribe over, to the first server; only where `Strategy::subscribes`. Other clients may
    /// subscribe over it too, and one that comes to a channel for which a subscription stands may be told so at once.
    Subscribing,
}

/// One attempt of one client to take, keep and give back one lock.
pub trait LockMachine {
    /// Tell it one thing that happened; it appends what it wants done to `out`. The driver empties `out` before the
    /// next call.
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions);

    /// How often the present (or, when idle, the last) `Acquire` has tried to take the lock so far.
    fn attempts(&self) -> u32;

    /// Attempts of the present (or the last) `Acquire` that got some of the servers, and that others kept from a quorum by
    /// what they held of the rest. Whether one of them had a quorum cannot be seen from here.
    fn split_votes(&self) -> u32 {
        0
    }

    /// Statements of the present, or the last, request that the database ended because of what others did meanwhile:
    /// deadlocks, serialization failures, versions that had changed. A release is a request of its own, but for locks
    /// whose release writes: there all counts from the `Acquire`.
    fn conflicts(&self) -> u32 {
        0
    }

    /// Whether a place in the queue, of which `Queued` told, lasts on the server at `now` for certain.
    fn is_placed(&self, _now: Nanos) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Take the lock named `keys`; more than one only where `Strategy::takes_many_keys`. Only when idle.
    Acquire { keys: Keys, mode: Mode },
    /// The holder enters once more; only where `Strategy::nests`, and only while held. Settles as an acquire; when not as
    /// `Held`, the entries before it stand, and are still to be released.
    Enter,
    /// Give it back, or leave the last entry. Only while held. Settles as `Held` when other entries are left, and they
    /// still hold; any other settlement ends all of them. At the end of the lease or later it releases all entries.
    Release,
    /// Stop trying and free what may have been taken; while held it is a `Release` of all entries. Settles like a
    /// release. It takes the place of the request under way, if there is one: a single `Settle` answers both. In any
    /// state; when idle it settles at once.
    Cancel,
    /// The answer to `call`.
    Replied { call: CallId, reply: Reply },
    /// No answer to `call` will come: its connection closed. The command may or may not have been carried out.
    Lost { call: CallId },
    /// A message came from a channel that this client had subscribed to. `first`: nobody who heard it before, over the
    /// same subscription, has sent anything for it.
    Published { first: bool },
    /// This client's own connection, or the one that it subscribes over, closed, and is being opened again: what it had
    /// subscribed to is forgotten. Comes besides the `Lost` of its unanswered calls.
    Disconnected,
    /// A point asked for with `WakeAt` has come; early or twice is harmless.
    Woke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send `command` to `to`; commands to one server over one connection arrive in the order of sending.
    Send {
        call: CallId,
        to: ServerId,
        over: Lane,
        command: Command,
    },
    /// Say `Woke` at this point. It takes the place of the point asked for before.
    WakeAt(Nanos),
    /// Close this client's own connection, or the one over which it wants the present key's channel, and open it again:
    /// what blocks there must not hold up what follows.
    HangUp,
    /// The server has acknowledged our place in its queue: whoever asks from now on comes after us. Only while an
    /// `Acquire` is under way.
    Queued,
    /// The lease of what is held was set anew. Its end is never in the past, and it never comes when the lease before
    /// it had passed.
    Renewed {
        lasts: Lasts,
    },
    /// What is held is no longer ours: belief ends here. It is still to be released.
    Lapsed,
    Settle(Outcome),
}

/// How an `Acquire`, `Enter`, `Release` or `Cancel` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lock is ours for as long as `lasts` says; its end is never in the past. Also after a `Release` that left
    /// other entries.
    Held { lasts: Lasts, fence: Option<Fence> },
    /// Given back, or nothing was taken.
    Released,
    /// The lock was not taken, and nothing of ours is left on a server; but see `Refusal::TooLate`.
    Refused(Refusal),
    /// The release found that the lock was no longer ours.
    Expired,
    /// Of a release that carries the work's effect (`Strategy::writes`): another has changed what the work had read, so
    /// nothing was written. The whole work is to be done again; the next `Acquire` is its next attempt.
    Conflict,
    /// The server answered with an error that another try would meet again.
    Failed(ErrorKind),
    /// An answer was lost: the lock may have been taken (it then frees itself within one lease, or with its session), or
    /// given back.
    Unknown,
}

/// How long the holder may believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// A lease, counted from before the send, less the drift allowance.
    Until(Nanos),
    /// As long as the session of this client's own connection: a machine that hears `Disconnected` says `Lapsed`.
    Session,
    /// No lock was taken at all, so nothing ends.
    Unbounded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else held it, and the retry policy allows no further attempt.
    Busy,
    /// The longest wait of the retry policy passed.
    TimedOut,
    /// It was granted, but too late for any of the lease to be left, or too few replicas had it in time; it was given
    /// back, or left to end by itself. Of an `Enter`: the lease was over.
    TooLate,
}

/// An answer, reduced to what locks ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`, or the confirmation of a subscription; of a database a row without a value, or no result at all
    Ok,
    /// A null of either protocol version; of a database: no row.
    Nil,
    /// A number; also the one that a blocking pop found, and what a database's row holds (true is 1).
    Int(i64),
    /// The id of a stream's entry: of the one added, or of the first one read.
    Entry(EntryId),
    /// The token of another, as a script answers it.
    Token(Token),
    /// A list with something in it, such as what a blocking pop found that is no number.
    Items,
    Error(ErrorKind),
    /// Anything else: well-formed, but no answer to what a lock asks.
    Other,
}

/// The id of an entry of a stream, `<ms>-<seq>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    pub ms: u64,
    pub seq: u64,
}

/// The first word of an error reply, or what a database's SQLSTATE stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    NoScript,
    ReadOnly,
    Loading,
    Moved,
    OutOfMemory,
    WrongType,
    /// `RENAME` of a key that is not there.
    NoSuchKey,
    /// `XGROUP CREATE` of a group that is there already.
    BusyGroup,
    NoAuth,
    /// 40001: the transaction could not be placed among the others.
    Serialization,
    /// 40P01
    Deadlock,
    /// 55P03: `NOWAIT`, or `lock_timeout` passed.
    LockNotAvailable,
    /// 57014: cancelled, or `statement_timeout` passed, or `lock_timeout` just as the lock was granted.
    Canceled,
    /// 25P02, and a `COMMIT` that was answered with `ROLLBACK`.
    InFailedTransaction,
    /// 53300
    TooManyConnections,
    /// 57P01, 57P02, 57P03, 25P03 and others after which the server closes the session.
    SessionEnded,
    Other,
    /// Not an error reply, but an answer of a shape that this command never gives.
    Unexpected,
}

impl ErrorKind {
    /// The database ended the statement, or its transaction, because of what another did meanwhile.
    pub const fn is_conflict(self) -> bool {
        matches!(self, Self::Serialization | Self::Deadlock)
    }

    /// The statement met another transaction or a lock that is taken: that is how locks of a database work.
    pub const fn is_contention(self) -> bool {
        matches!(self, Self::Serialization | Self::Deadlock | Self::LockNotAvailable)
    }
}
