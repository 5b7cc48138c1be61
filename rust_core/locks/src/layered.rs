//! `layered`: a mutex on Redis, which keeps most waiters away from the database. Inside it a row of the database issues
//! a fence, and accepts the work's write only from the client with the newest fence.
//!
//! ```text
//!          Acquire              held           fence and value             Release, Cancel
//!    Idle ─────────▶ Take ───────────▶ Fence, Value ──────────▶ Held ───────────────────────▶ Write
//!     ▲              (the mutex)  ▲    │ too late, Cancel                                        │ written, or not
//!     │                           │    ▼                                                         ▼
//!     │                           └─ Release ◀── the policy allows another                    Leave
//!     └───────────────────────────────┴──────────────────────────────────────────── the mutex is released
//! ```
//! `Take` and `Release` are the steps of a mutex, and `Shell` has the states. Not drawn: an error, a lost call or a
//! reply timeout of the database releases the mutex with a command whose reply nobody awaits, and ends in `Idle` at
//! once. A statement that met another transaction is sent again until the reply timeout has passed.
//!
//! Promises what the mutex does. It also promises, even when Redis loses everything, that no write is acknowledged once
//! a later holder has its fence. `Expired` says that a write was refused for that reason. The write alone decides the
//! outcome of a release: if it was acknowledged and the reply about the mutex is lost, the lease frees the mutex.

use crate::calls::SERVER;
use crate::shell::{After, Ending, Lock, Next, NoReply, Turn};
use crate::{CallId, Command, ConnectionKind, Fence, Lasts, Nanos, Reply, Script, ServerId, Statement, Token, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "layered",
    database: Some(DATABASE),
    writes: true,
    fences: true,
    nodes: Some(2),
    scripts: &[Script::CompareAndDelete],
    statements: &[Statement::FenceTake, Statement::ValueRead, Statement::FencedWrite],
    ..Traits::LEASE
};

/// Server 0 has the mutex.
const DATABASE: ServerId = ServerId(1);

#[derive(Debug, Default)]
pub(crate) struct Layered {
    /// The calls that ask for fence and value, until they are answered.
    fence_call: Option<CallId>,
    value_call: Option<CallId>,
    fence: Option<Fence>,
    value: u64,
    /// The end of belief in the mutex.
    until: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Takes the mutex.
    Take,
    /// Takes a fence, which makes all earlier ones stale.
    Fence,
    Value,
    Write,
    /// Releases the mutex after the write. Whatever the reply, the write alone decides the outcome.
    Leave(Ending),
    /// Releases the mutex.
    Release,
}

impl Lock for Layered {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Take;
    const UNDO: Step = Step::Release;

    fn route(&self, step: Step) -> (ServerId, ConnectionKind) {
        let server = match step {
            Step::Take | Step::Leave(_) | Step::Release => SERVER,
            Step::Fence | Step::Value | Step::Write => DATABASE,
        };
        (server, ConnectionKind::SharedByClients)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        let about = |statement: Statement, numbers| statement.about(turn.key(), numbers);
        match step {
            Step::Take => turn.set_if_absent(),
            Step::Fence => about(Statement::FenceTake, [0, 0]),
            Step::Value => about(Statement::ValueRead, [0, 0]),
            Step::Write => {
                let fence = self.fence.expect("the lock was held, so it has a fence");
                about(Statement::FencedWrite, [fence.0.get(), self.value])
            }
            Step::Leave(_) | Step::Release => turn.compare_and_delete(),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Take | Step::Release => match Next::of_set(reply) {
                Next::Granted(_) if !turn.is_withdrawn() => self.taken(turn),
                next => next,
            },
            Step::Fence | Step::Value => self.entering(step, reply, turn),
            Step::Write => written(reply, turn),
            Step::Leave(ending) => Next::Settle(ending),
        }
    }

    fn step_of(&self, call: CallId) -> Option<Step> {
        if self.fence_call == Some(call) {
            Some(Step::Fence)
        } else if self.value_call == Some(call) {
            Some(Step::Value)
        } else {
            None
        }
    }

    fn no_reply(&mut self, step: Step, _why: NoReply, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Leave(ending) => Next::Settle(ending),
            Step::Take | Step::Fence | Step::Value | Step::Write | Step::Release => Next::Abandon(Ending::Unknown),
        }
    }

    fn cancel(&mut self, step: Step, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Take | Step::Release => Next::Withdraw,
            // An unused fence harms nobody.
            Step::Fence | Step::Value => Next::Ask(Step::Leave(Ending::Released)),
            // Its one settlement answers both requests.
            Step::Write | Step::Leave(_) => Next::Stay,
        }
    }

    fn release(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        Next::Ask(Step::Write)
    }
}

impl Layered {
    /// The mutex is taken. Fence and value are asked for in one write to the socket.
    fn taken(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.until = turn.spec().lease.until(turn.sent());
        if self.until <= turn.now {
            return Next::Undo(After::TooLate);
        }
        self.fence = None;
        self.fence_call = Some(self.ask(Step::Fence, turn));
        self.value_call = Some(self.ask(Step::Value, turn));
        Next::Await(Step::Fence, turn.reply_deadline())
    }

    fn ask(&self, step: Step, turn: &mut Turn<'_, Self>) -> CallId {
        let (to, over) = self.route(step);
        turn.send_to(to, over, self.command(step, turn))
    }

    fn entering(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (_, Reply::Error(kind)) if kind.is_contention() => {
                turn.count_conflict();
                // The server has undone the statement that met another transaction. The deadline of the first reply
                // bounds all repetitions.
                if step == Step::Fence {
                    self.fence_call = Some(self.ask(Step::Fence, turn));
                }
                // A value that was read before the fence was taken may be old: it is read again after the fence in any
                // case.
                self.value_call = Some(self.ask(Step::Value, turn));
                return Next::Stay;
            }
            (Step::Fence, reply) if reply.fence().is_some() => {
                (self.fence, self.fence_call) = (reply.fence(), None);
            }
            (Step::Value, Reply::Int(value @ 0..)) => {
                (self.value, self.value_call) = (value.cast_unsigned(), None);
            }
            // Also the reply without a row: the key has no row. Or another program has written the column.
            (_, other) => return Next::Abandon(Ending::Failed(other.failure())),
        }
        if self.fence_call.is_some() || self.value_call.is_some() {
            Next::Stay
        } else if self.until > turn.now {
            Next::Hold(Lasts::Until(self.until), self.fence)
        } else {
            Next::Undo(After::TooLate)
        }
    }
}

fn written(reply: Reply, turn: &mut Turn<'_, Layered>) -> Next<Step> {
    let ending = match reply {
        Reply::Error(kind) if kind.is_contention() => {
            turn.count_conflict();
            return Next::AskAgain(Step::Write);
        }
        // The id of the row; its value does not matter.
        Reply::Int(_) => Ending::Released,
        Reply::Nil => Ending::Expired,
        other => Ending::Failed(other.failure()),
    };
    Next::Ask(Step::Leave(ending))
}
