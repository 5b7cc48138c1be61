//! The lease protocol: what one lock with a lease sends to its server, and what the replies mean. `Leased` does the
//! rest.

use crate::{Command, ErrorKind, Fence, Key, Lane, Mode, Reply, ScriptForm, Token};

/// Commands name scripts by SHA-1; after `NOSCRIPT` `Leased` sends them as source.
pub(crate) trait Recipe {
    /// The connection of all commands.
    const LANE: Lane = Lane::Shared;
    /// Whether the lock supports `Mode::Shared`.
    const SHARES: bool = false;
    /// Whether all attempts of one acquire use the same token, because the server identifies a waiter by it. No attempt
    /// follows one whose reply is missing, so a late command of an earlier attempt cannot be mistaken for a current
    /// one.
    const ONE_TOKEN: bool = false;

    fn take(&self, claim: Claim, lease_ms: u64) -> Command;

    /// The meaning of a reply to `take` that is not an error.
    fn taken(&self, reply: Reply) -> Answer;

    /// Whether this error, which shows that nothing was taken, only means that another client holds the lock.
    fn refuses_by(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// A second command whose reply decides whether the lock is granted; most locks have none.
    fn confirm(&self) -> Option<Command> {
        None
    }

    /// The meaning of a reply to `confirm` that is not an error. `Busy` when what was taken has to be released.
    fn confirmed(&self, _reply: Reply) -> Answer {
        Answer::Odd
    }

    fn give_back(&self, claim: Claim) -> Command;

    /// The meaning of a reply to `release` that is not an error; `None` for a reply that this command never gets.
    fn given_back(&self, reply: Reply) -> Option<Was> {
        match reply {
            Reply::Int(1) => Some(Was::Ours),
            Reply::Int(0) => Some(Was::NotOurs),
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
    fn is_given_back_again(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// The command that removes what refused attempts left on the server, once no further attempt follows; most locks
    /// leave nothing.
    fn forget(&self, _claim: Claim) -> Option<Command> {
        None
    }
}

/// What an attempt tries to own. Each attempt has a fresh token, except with `LeaseProtocol::ONE_TOKEN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

impl Claim {
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
pub(crate) enum Answer {
    Granted(Option<Fence>),
    Busy,
    /// A reply that this command never gets.
    Odd,
}

impl Answer {
    /// The reply to a `SET NX`.
    pub(crate) const fn of_set(reply: Reply) -> Self {
        match reply {
            Reply::Ok => Self::Granted(None),
            Reply::Nil => Self::Busy,
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Self::Odd
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
            | Reply::Other => Self::Odd,
        }
    }
}

/// What the reply to a release says about the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    Ours,
    NotOurs,
}
