//! What the session locks of a database share: taking, retrying, undoing, releasing, and reporting that the session has
//! ended. The `SessionStatements` of a lock say what it sends and what the replies mean.
//!
//! ```text
//!          Acquire           all granted           Release, Cancel
//!    Idle ─────────▶ Take ──────────────▶ Held ─────────────────────▶ Release ─────▶ Idle
//!                    │ ▲ │                  │ Disconnected
//!            refused │ │ │ failed, refused  └──▶ Lapsed ── Release, Cancel: nothing is sent ──▶ Idle
//!      (nothing is   ▼ │ ▼ (something is left), Cancel
//!              left) │ │ Undo ─────▶ Idle
//!                    │ │Woke │ undone, and the policy allows another
//!                   Pausing ◀┘
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal that leaves nothing; a lost reply; a reply that does not come in
//! time and a Cancel of a blocking statement, both with a `HangUp`, because what the server may still do ends with the
//! session).
//!
//! Promises: never held by a reply to an earlier attempt, nor by one to a call whose connection was closed; an attempt
//! holds all of its keys or none; a refused attempt leaves neither a lock nor an open transaction in the session, while
//! it pauses or after it has settled. Each request settles within the reply timeout of its last call; while it waits in
//! the server's queue, within its longest wait and the reply timeout.
//! Does not promise that server and holder learn of a session's end at the same time, in either order.

use crate::calls::{SERVER, Taken};
use crate::shell::{After, Ending, Lock, Next, NoReply, State, Turn, Undone};
use crate::{
    CallId, Command, ConnectionKind, ErrorKind, Key, KeyList, Lasts, Mode, Nanos, OnConflict, Refusal, Reply, ServerId,
    Statement,
};

/// What one session lock sends to its server, and what the replies mean.
pub(crate) trait SessionStatements: std::fmt::Debug {
    const MANY_KEYS: bool = false;

    fn connection(&self) -> ConnectionKind {
        ConnectionKind::Own
    }

    /// Whether the statements wait in the server's queue.
    fn blocks(&self) -> bool;

    /// Takes the first of the keys.
    fn take(&self, mode: Mode) -> Statement;

    /// Takes a further key.
    fn take_also(&self, mode: Mode) -> Statement;

    /// The meaning of a reply to a statement that takes, unless it is an error; `None` for one that it never gets.
    fn take_reply(&self, reply: Reply) -> Option<Taken>;

    /// Whether a refusal leaves something that has to be undone.
    fn refusal_leaves_something(&self) -> bool;

    /// The statement that removes everything of an attempt, in whatever state it is.
    fn undo(&self, mode: Mode) -> Statement;

    /// Whether `reply` confirms the `undo`.
    fn undone(&self, reply: Reply) -> bool;

    fn release(&self, mode: Mode) -> Statement;

    /// The meaning of a reply to `release`. After a failure the lock may still be held.
    fn released(&self, reply: Reply) -> Undone<Step>;
}

#[derive(Debug)]
pub(crate) struct SessionLock<S> {
    statements: S,
    keys: KeyList,
    mode: Mode,
    /// The call of the first key; the calls of the other keys follow in the order of the keys.
    first: CallId,
    /// The calls without a reply: one bit per key.
    open: u8,
    /// The lock was held, but the session has ended.
    lapsed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The statement of the key with this bit.
    Take(u8),
    Undo,
    Release,
}

impl<S: SessionStatements> Lock for SessionLock<S> {
    type Step = Step;
    type Owner = ();
    const FIRST: Step = Step::Take(1);
    const UNDO: Step = Step::Undo;
    const SHARES: bool = true;
    const MANY_KEYS: bool = S::MANY_KEYS;

    fn request(&mut self, keys: KeyList, mode: Mode) {
        (self.keys, self.mode, self.lapsed) = (keys, mode, false);
    }

    /// Asks for all keys in one write to the socket.
    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        turn.count_attempt();
        self.open = 0;
        let keys = self.keys;
        for (at, &key) in keys.as_slice().iter().enumerate() {
            let statement = match at {
                0 => self.statements.take(self.mode),
                _ => self.statements.take_also(self.mode),
            };
            let call = self.send(statement, key, turn);
            if at == 0 {
                self.first = call;
            }
            self.open |= 1 << at;
        }
        Next::Await(Step::Take(1), self.deadline(Step::Take(1), turn))
    }

    fn route(&self, _step: Step) -> (ServerId, ConnectionKind) {
        (SERVER, self.statements.connection())
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        let statement = match step {
            Step::Take(_) => self.statements.take(self.mode),
            Step::Undo => self.statements.undo(self.mode),
            Step::Release => self.statements.release(self.mode),
        };
        statement.about(turn.key(), [0, 0])
    }

    /// The server itself ends a wait in its queue, and reports that.
    fn deadline(&self, step: Step, turn: &Turn<'_, Self>) -> Nanos {
        match step {
            Step::Take(_) if self.statements.blocks() => {
                let queued = turn.now.max(turn.backoff().ends(&turn.spec().retry));
                queued.after(turn.spec().reply_timeout)
            }
            Step::Take(_) | Step::Undo | Step::Release => turn.reply_deadline(),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if let Reply::Error(kind) = reply {
            return self.failed(kind, turn);
        }
        match self.statements.take_reply(reply) {
            Some(Taken::Mine) => {
                if let Step::Take(bit) = step {
                    self.open &= !bit;
                }
                if self.open > 0 {
                    Next::Stay
                } else {
                    Next::Hold(Lasts::Session, None)
                }
            }
            Some(Taken::Theirs) if self.statements.refusal_leaves_something() => Next::Undo(After::Again),
            Some(Taken::Theirs) => Next::Busy,
            None => undo_as(Ending::Failed(ErrorKind::Unexpected)),
        }
    }

    fn step_of(&self, call: CallId) -> Option<Step> {
        let at = call
            .0
            .checked_sub(self.first.0)
            .filter(|&at| at < KeyList::MOST as u64)?;
        let bit = 1 << at;
        (self.open & bit != 0).then_some(Step::Take(bit))
    }

    fn no_reply(&mut self, _step: Step, why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match why {
            NoReply::Lost => Next::Settle(Ending::Unknown),
            NoReply::TimedOut => self.close_session(Ending::Unknown, turn),
        }
    }

    fn cancel(&mut self, _step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.statements.blocks() {
            // The statement may stand in the queue for long, and may still be granted.
            self.close_session(Ending::Unknown, turn)
        } else {
            // Sent at once: the undo follows the calls on the same connection and undoes them.
            Next::Undo(After::CANCEL)
        }
    }

    fn release(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.lapsed {
            // The lock ended with the session, and the new session holds nothing to release.
            Next::Settle(Ending::Expired)
        } else {
            Next::UndoBy(Step::Release, After::Release)
        }
    }

    fn undone(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Undone<Step> {
        let undone = match step {
            Step::Take(_) | Step::Undo if self.statements.undone(reply) => Undone::WasHeld,
            Step::Take(_) | Step::Undo => Undone::Failed(reply.failure()),
            Step::Release => match reply.error() {
                Some(kind) if kind.is_conflict() && self.release_ends_by_conflict() => {
                    turn.count_conflict();
                    Undone::WasHeld
                }
                Some(_) | None => self.statements.released(reply),
            },
        };
        if let Undone::Failed(_) = undone {
            self.hang_up(turn);
        }
        undone
    }

    fn undo_unanswered(&mut self, why: NoReply, turn: &mut Turn<'_, Self>) {
        if why == NoReply::TimedOut {
            self.hang_up(turn);
        }
    }

    fn disconnected(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        // While a call is awaited, `Lost` reports it. This may be the end of a connection that this client closed
        // itself, or of another session than the holder's.
        if turn.state() == State::Held && !self.lapsed && self.statements.connection() == ConnectionKind::Own {
            self.lapsed = true;
            turn.out.lapsed();
        }
        Next::Stay
    }
}

impl<S: SessionStatements> SessionLock<S> {
    pub(crate) const fn new(statements: S) -> Self {
        Self {
            statements,
            keys: KeyList::one(Key(0)),
            mode: Mode::Exclusive,
            first: CallId(0),
            open: 0,
            lapsed: false,
        }
    }

    fn send(&self, statement: Statement, key: Key, turn: &mut Turn<'_, Self>) -> CallId {
        turn.send_to(SERVER, self.statements.connection(), statement.about(key, [0, 0]))
    }

    /// Handles an error reply to a call that takes. The session may hold the lock all the same: the server's limit and
    /// the grant can coincide.
    fn failed(&mut self, kind: ErrorKind, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match kind {
            // Cancelled by an administrator, by a limit of the server, or by this client's own limit just as the lock
            // came; Postgres does not tell which. In such a statement only the wait takes long.
            ErrorKind::LockNotAvailable | ErrorKind::Canceled if self.statements.blocks() => {
                undo_as(Ending::Refused(Refusal::TimedOut))
            }
            ErrorKind::LockNotAvailable => Next::Undo(After::Again),
            ErrorKind::Deadlock | ErrorKind::Serialization => {
                turn.count_conflict();
                Next::Undo(After::Again)
            }
            ErrorKind::SessionEnded => self.close_session(Ending::Failed(kind), turn),
            other => undo_as(Ending::Failed(other)),
        }
    }

    fn release_ends_by_conflict(&self) -> bool {
        self.statements.release(self.mode).on_conflict() == OnConflict::EndsTheLock
    }

    /// Settles an attempt, and closes the session: what it holds, or may still be granted, ends with it. A session that
    /// other clients use stays open; there the attempt is undone.
    fn close_session(&self, ending: Ending, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.hang_up(turn) {
            Next::Settle(ending)
        } else {
            Next::Abandon(ending)
        }
    }

    /// Closes a session of this client alone. Returns whether it was one.
    fn hang_up(&self, turn: &mut Turn<'_, Self>) -> bool {
        let owned = self.statements.connection() == ConnectionKind::Own;
        if owned {
            turn.out.hang_up();
        }
        owned
    }
}

/// Undoes the attempt, and then settles.
const fn undo_as(ending: Ending) -> Next<Step> {
    Next::Undo(After::Settle(ending))
}
