//! What all machines share about a command that has been sent: its id, the deadline of its reply, and what an error
//! reply says about its effect.

use crate::{Actions, CallId, ErrorKind, Nanos, ServerId};

/// The server of all strategies that use one server.
pub(crate) const SERVER: ServerId = ServerId(0);

/// The call ids of one client. The numbering lasts as long as the client and never restarts: a reused id would let a
/// late reply to an earlier attempt count for the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallIds(u64);

impl CallIds {
    /// The id that no call gets.
    pub(crate) const NONE: CallId = CallId(0);

    pub(crate) const fn fresh(&mut self) -> CallId {
        self.0 += 1;
        CallId(self.0)
    }
}

pub(crate) enum Deadline {
    Ahead,
    Passed,
}

/// Whether `deadline` has passed. If not, asks to be woken then: this wake-up came early.
pub(crate) fn check_deadline(now: Nanos, deadline: Nanos, out: &mut Actions) -> Deadline {
    if now >= deadline {
        return Deadline::Passed;
    }
    out.wake_at(deadline);
    Deadline::Ahead
}

/// What a reply says about what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Mine,
    /// Another client holds it.
    Theirs,
}

/// The effect of a command that takes a lock, as far as an error reply tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeEffect {
    Nothing,
    Unknown,
}

impl TakeEffect {
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
            | ErrorKind::CheckViolation
            | ErrorKind::Serialization
            | ErrorKind::Deadlock
            | ErrorKind::LockNotAvailable
            | ErrorKind::Canceled
            | ErrorKind::InFailedTransaction
            | ErrorKind::TooManyConnections => Self::Nothing,
            // A proxy that lost the server's reply reports an error of its own. A command that is not a script never
            // gets NOSCRIPT.
            ErrorKind::NoScript | ErrorKind::SessionEnded | ErrorKind::Other | ErrorKind::Unexpected => Self::Unknown,
        }
    }
}

/// Whether this error of a database means that the statement met another transaction and that nothing of it remains:
/// the statement can be sent again. `Canceled` counts too, because a statement about one row takes long only while it
/// waits for others.
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
        | ErrorKind::CheckViolation
        | ErrorKind::InFailedTransaction
        | ErrorKind::TooManyConnections
        | ErrorKind::SessionEnded
        | ErrorKind::Other
        | ErrorKind::Unexpected => false,
    }
}
