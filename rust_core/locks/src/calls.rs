//! What the machines share about a command that is on its way: its number, how long its answer is waited for, and what
//! an error says about its effect.

use crate::{Actions, CallId, ErrorKind, Nanos, ServerId};

/// The one server of the strategies that need no other.
pub(crate) const SERVER: ServerId = ServerId(0);

/// The call ids of one client. Lives as long as the client, and never starts again: an id that came back with the next
/// attempt would let a late answer to the last one count for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls(u64);

impl Calls {
    pub(crate) const fn fresh(&mut self) -> CallId {
        self.0 += 1;
        CallId(self.0)
    }
}

pub(crate) enum Wait {
    GoesOn,
    Over,
}

/// Whether to wait on for an answer until `deadline`. Asks for the point again when this one came early.
pub(crate) fn wait(now: Nanos, deadline: Nanos, out: &mut Actions) -> Wait {
    if now >= deadline {
        return Wait::Over;
    }
    out.wake_at(deadline);
    Wait::GoesOn
}

/// What a command that takes a lock has done when it was answered by an error.
pub(crate) enum Effect {
    Nothing,
    Unknown,
}

impl Effect {
    pub(crate) const fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::ReadOnly
            | ErrorKind::Loading
            | ErrorKind::Moved
            | ErrorKind::OutOfMemory
            | ErrorKind::WrongType
            | ErrorKind::NoSuchKey
            | ErrorKind::BusyGroup
            | ErrorKind::NoAuth
            | ErrorKind::Serialization
            | ErrorKind::Deadlock
            | ErrorKind::LockNotAvailable
            | ErrorKind::Canceled
            | ErrorKind::InFailedTransaction
            | ErrorKind::TooManyConnections => Self::Nothing,
            // A proxy that lost the server's answer says so with an error of its own; and what is no script never
            // answers NOSCRIPT.
            ErrorKind::NoScript | ErrorKind::SessionEnded | ErrorKind::Other | ErrorKind::Unexpected => Self::Unknown,
        }
    }
}

/// Whether an error of a database says that a statement met others, and that nothing of it is left: it can be tried again.
/// One that was cancelled has waited for them: nothing else of a statement about one row takes long.
pub(crate) const fn is_conflict(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Serialization | ErrorKind::Deadlock | ErrorKind::LockNotAvailable | ErrorKind::Canceled => true,
        ErrorKind::NoScript
        | ErrorKind::ReadOnly
        | ErrorKind::Loading
        | ErrorKind::Moved
        | ErrorKind::OutOfMemory
        | ErrorKind::WrongType
        | ErrorKind::NoSuchKey
        | ErrorKind::BusyGroup
        | ErrorKind::NoAuth
        | ErrorKind::InFailedTransaction
        | ErrorKind::TooManyConnections
        | ErrorKind::SessionEnded
        | ErrorKind::Other
        | ErrorKind::Unexpected => false,
    }
}
