//! What one lock with a lease asks of its server, and what the answers mean. `Leased` does the rest.

use crate::{Command, ErrorKind, Fence, Key, Lane, Mode, Reply, ScriptForm, Token};

/// Scripts are named by their SHA-1 here; after `NOSCRIPT` the machine sends them as source by itself.
pub(crate) trait Recipe {
    /// The way of all its commands.
    const LANE: Lane = Lane::Shared;
    /// Whether it understands `Mode::Shared`.
    const SHARES: bool = false;
    /// Whether all attempts of one acquire bring the same token, since the server knows a waiter by it. No attempt
    /// follows one whose answer is open, so no late command of an earlier one can be taken for it.
    const ONE_TOKEN: bool = false;

    fn take(&self, claim: Claim, lease_ms: u64) -> Command;

    /// Of anything but an error.
    fn taken(&self, reply: Reply) -> Answer;

    /// Whether this error, which shows that nothing was taken, says no more than that another was in the way.
    fn refuses_by(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// What has to be answered too before the lock counts as granted; nothing for most.
    fn confirm(&self) -> Option<Command> {
        None
    }

    /// As `taken`; `Busy` when what was taken has to be given back.
    fn confirmed(&self, _reply: Reply) -> Answer {
        Answer::Odd
    }

    fn give_back(&self, claim: Claim) -> Command;

    /// Of anything but an error; `None` for an answer that this command never gives.
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

    /// Whether this error, which shows that nothing was given back, says no more than that another was in the way: then
    /// the command is sent again, as long as its answer is waited for.
    fn is_given_back_again(&self, _kind: ErrorKind) -> bool {
        false
    }

    /// What takes away the trace that a refused attempt left, once no other follows; most leave none.
    fn forget(&self, _claim: Claim) -> Option<Command> {
        None
    }
}

/// What an attempt wants to own. The token is fresh for each attempt, but for `Recipe::ONE_TOKEN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) token: Token,
}

impl Claim {
    /// `SET key token NX PX lease_ms`: how most locks are taken.
    pub(crate) const fn set_if_absent(self, lease_ms: u64) -> Command {
        Command::SetNxPx {
            key: self.key,
            token: self.token,
            lease_ms,
        }
    }

    /// How those are given back.
    pub(crate) const fn compare_and_delete(self) -> Command {
        Command::CompareAndDelete {
            key: self.key,
            token: self.token,
            form: ScriptForm::Sha,
        }
    }
}

/// What the answer of a command that takes a lock means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Option<Fence>),
    Busy,
    /// An answer that this command never gives.
    Odd,
}

impl Answer {
    /// Of a `SET NX`.
    pub(crate) const fn of_set(reply: Reply) -> Self {
        match reply {
            Reply::Ok => Self::Granted(None),
            Reply::Nil => Self::Busy,
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Error(_) | Reply::Other => {
                Self::Odd
            }
        }
    }

    /// Of a script that answers 1 or nil.
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

/// What a command that gives a lock back has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    Ours,
    NotOurs,
}
