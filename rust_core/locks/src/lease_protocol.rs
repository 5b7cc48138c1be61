//! The lease protocol: what one lock with a lease sends to its server, and what the replies mean. `Leased` does the
//! rest.

use crate::{Command, ConnectionKind, ErrorKind, Fence, Key, Mode, Reply, ScriptForm, Token};

/// Commands name scripts by SHA-1; after `NOSCRIPT` `Leased` sends them as source.
pub(crate) trait LeaseProtocol {
    /// The connection of all commands.
    const CONNECTION: ConnectionKind = ConnectionKind::SharedByClients;
    /// Whether the lock supports `Mode::Shared`.
    const SHARES: bool = false;
    /// Whether all attempts of one acquire use the same token, because the server identifies a waiter by it. No attempt
    /// follows one whose reply is missing, so a late command of an earlier attempt cannot be mistaken for a current
    /// one.
    const ONE_TOKEN: bool = false;

    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command;

    /// The meaning of a reply to `take` that is not an error.
    fn take_reply(&self, reply: Reply) -> TakeReply;

    /// Whether this error, which shows that nothing was taken, only means that another client holds the lock.
    fn is_refusal(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// A second command whose reply decides whether the lock is granted; most locks have none.
    fn confirm(&self) -> Option<Command> {
        None
    }

    /// The meaning of a reply to `confirm` that is not an error. `Busy` when what was taken has to be released.
    fn confirm_reply(&self, _reply: Reply) -> TakeReply {
        TakeReply::Unexpected
    }

    fn release(&self, attempt: LeaseAttempt) -> Command;

    /// The meaning of a reply to `release` that is not an error; `None` for a reply that this command never gets.
    fn release_reply(&self, reply: Reply) -> Option<ReleaseReply> {
        match reply {
            Reply::Int(1) => Some(ReleaseReply::WasHeld),
            Reply::Int(0) => Some(ReleaseReply::WasLost),
            Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => None,
        }
    }

    /// Whether this error, which shows that nothing was released, only means that another transaction was in the way.
    /// Then the command is sent again until the reply timeout has passed.
    fn retries_release(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// The command that removes what refused attempts left on the server, once no further attempt follows; most locks
    /// leave nothing.
    fn clean_up(&self, _claim: LeaseAttempt) -> Option<Command> {
        None
    }
}

/// What an attempt tries to own. Each attempt has a fresh token, except with `LeaseProtocol::ONE_TOKEN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseAttempt {
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

impl LeaseAttempt {
    /// `SET key token NX PX lease_ms`: the command that takes most locks.
    pub(crate) const fn set_if_absent(self, lease_ms: u64) -> Command {
        Command::SetNxPx {
            key: self.key,
            token: self.token,
            lease_ms,
        }
    }

    /// The command that releases those locks.
    pub(crate) const fn compare_and_delete(self) -> Command {
        Command::CompareAndDelete {
            key: self.key,
            token: self.token,
            form: ScriptForm::Sha,
        }
    }
}

/// The meaning of a reply to a command that takes a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeReply {
    Granted(Option<Fence>),
    Busy,
    /// A reply that this command never gets.
    Unexpected,
}

impl TakeReply {
    /// The reply to a `SET NX`.
    pub(crate) const fn of_set(reply: Reply) -> Self {
        match reply {
            Reply::Ok => Self::Granted(None),
            Reply::Nil => Self::Busy,
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Self::Unexpected
            }
        }
    }

    /// The reply to a script that returns 1 or nil.
    pub(crate) const fn of_script(reply: Reply) -> Self {
        match reply {
            Reply::Int(1) => Self::Granted(None),
            Reply::Nil => Self::Busy,
            Reply::Ok
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Error(_)
            | Reply::Other => Self::Unexpected,
        }
    }
}

/// What the reply to a release says about the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseReply {
    WasHeld,
    WasLost,
}
