//! The contract between a lock and whoever drives it: what can happen, what can be asked for, how an attempt ends.
//!
//! A machine serves one client and one lock name at a time, over and over: `Acquire` .. `Settle(Held)` .. `Release` ..
//! `Settle(Released)`. Every `Acquire`, `Release` and `Cancel` is answered by exactly one `Settle`.

use crate::{Actions, Nanos};

/// A lock name, as an index into the driver's table of names: a machine never looks inside a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// 128 random bits, fresh for every attempt; on the wire 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u128);

/// One of the servers of a cell, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// One command sent by one client. Never used twice by a client, across attempts too: a late reply to an earlier
/// attempt must not count for the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// One attempt of one client to take, keep and give back one lock.
pub trait LockMachine {
    /// Tell it one thing that happened; it appends what it wants done to `out`. The driver empties `out` before the
    /// next call.
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions);

    /// How often the present (or, when idle, the last) `Acquire` has tried to take the lock so far.
    fn attempts(&self) -> u32;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Take the lock named `key`. Only when idle.
    Acquire { key: Key },
    /// Give it back. Only while held.
    Release,
    /// Stop trying and free what may have been taken; while held it is a `Release`. Settles like a release. It takes
    /// the place of the request under way, if there is one: a single `Settle` answers both. In any state; when idle it
    /// settles at once.
    Cancel,
    /// The answer to `call`.
    Replied { call: CallId, reply: Reply },
    /// No answer to `call` will come: its connection closed. The command may or may not have been carried out.
    Lost { call: CallId },
    /// A point asked for with `WakeAt` has come; early or twice is harmless.
    Woke,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send `command` to `to`; commands to one server over one connection arrive in the order of sending.
    Send {
        call: CallId,
        to: ServerId,
        command: Command,
    },
    /// Say `Woke` at this point. It takes the place of the point asked for before.
    WakeAt(Nanos),
    Settle(Outcome),
}

/// How an `Acquire`, `Release` or `Cancel` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lock is ours for as long as `lasts` says; its end is never in the past.
    Held { lasts: Lasts },
    /// Given back, or nothing was taken.
    Released,
    /// The lock was not taken, and nothing of ours is left on a server; but see `Refusal::TooLate`.
    Refused(Refusal),
    /// The release found that the lock was no longer ours.
    Expired,
    /// The server answered with an error that another try would meet again.
    Failed(ErrorKind),
    /// An answer was lost: the lock may have been taken (it then frees itself within one lease), or given back.
    Unknown,
}

/// How long the holder may believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// A lease, counted from before the send, less the drift allowance.
    Until(Nanos),
    /// No lock was taken at all, so nothing ends.
    Unbounded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else held it, and the retry policy allows no further attempt.
    Busy,
    /// The longest wait of the retry policy passed.
    TimedOut,
    /// It was granted, but too late for any of the lease to be left; it was given back, or left to end by itself.
    TooLate,
}

/// What a lock can ask of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET key token NX PX lease_ms`
    SetNxPx { key: Key, token: Token, lease_ms: u64 },
    /// Delete the key only when it holds `token`: Lua, or the server's own command where it has one.
    CompareAndDelete { key: Key, token: Token, form: ScriptForm },
    /// `SETNX key 1`
    SetNx { key: Key },
    /// `EXPIRE key seconds`
    Expire { key: Key, seconds: u64 },
    /// `DEL key`
    Del { key: Key },
}

/// How a script travels: by its SHA-1, or, after `NOSCRIPT`, as its whole text, which also caches it on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptForm {
    Sha,
    Source,
}

/// The Lua scripts, one file each in `src/lua`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    CompareAndDelete,
}

impl Script {
    pub const ALL: [Self; 1] = [Self::CompareAndDelete];

    pub const fn source(self) -> &'static str {
        match self {
            Self::CompareAndDelete => include_str!("lua/compare_and_delete.lua"),
        }
    }
}

/// An answer, reduced to what locks ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`
    Ok,
    /// A null of either protocol version.
    Nil,
    Int(i64),
    Error(ErrorKind),
    /// Anything else: well-formed, but no answer to what a lock asks.
    Other,
}

/// The first word of an error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    NoScript,
    ReadOnly,
    Loading,
    Moved,
    OutOfMemory,
    WrongType,
    NoAuth,
    Other,
    /// Not an error reply, but an answer of a shape that this command never gives.
    Unexpected,
}
