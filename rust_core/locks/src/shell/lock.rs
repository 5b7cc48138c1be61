//! A lock as the shell sees it: what it sends, what each answer means, and how it undoes what it took.

use std::fmt::Debug;

use crate::calls::{SERVER, TakeEffect};
use crate::renewal::Renewal;
use crate::{
    CallId, Chance, Command, ConnectionKind, ErrorKind, Fence, KeyList, Lasts, Lease, Mode, Nanos, Outcome, Refusal,
    Reply, ServerId, Spec, Token,
};

use super::{State, Turn};

/// A lock, described by its *steps*: each is a command whose reply the lock awaits, or a time for which it waits. The
/// shell calls one method for each thing that happens, and carries out the `Next` that the method returns.
pub(crate) trait Lock: Debug + Sized {
    type Step: Copy + Debug;
    /// `Token`, or `()` for a lock whose commands name no owner.
    type Owner: Owner;

    /// The command that takes the lock, unless `begin` and `attempt` say otherwise.
    const FIRST: Self::Step;
    /// The command that undoes an attempt and releases a held lock.
    const UNDO: Self::Step;
    /// Whether the lock supports `Mode::Shared`.
    const SHARES: bool = false;
    /// Whether one `Acquire` may name several keys.
    const MANY_KEYS: bool = false;
    /// See `LockMachine::servers_vote`.
    const SERVERS_VOTE: bool = false;
    /// Whether a release belongs to the request of its `Acquire`, so that conflicts are counted across both.
    const RELEASE_ENDS_THE_REQUEST: bool = false;

    /// Takes note of what an `Acquire` asks for. `Turn::key` is the key, or the first one.
    fn request(&mut self, _keys: KeyList, _mode: Mode) {}

    /// The first attempt of a request, which owns what it takes under a fresh token.
    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        turn.count_attempt();
        turn.draw_owner();
        Next::Ask(Self::FIRST)
    }

    /// A further attempt, after a pause.
    fn attempt(&mut self, turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        self.begin(turn)
    }

    /// The command of a step. Scripts are named by SHA-1; after `NOSCRIPT` the shell sends them as source.
    fn command(&self, step: Self::Step, turn: &Turn<'_, Self>) -> Command;

    /// The command of a step is about to be sent, perhaps again.
    fn before_send(&mut self, _step: Self::Step, _turn: &Turn<'_, Self>) {}

    /// The server of a step's command, and the connection to it.
    fn route(&self, _step: Self::Step) -> (ServerId, ConnectionKind) {
        (SERVER, ConnectionKind::SharedByClients)
    }

    /// When the reply to a command that is sent now is given up.
    fn deadline(&self, _step: Self::Step, turn: &Turn<'_, Self>) -> Nanos {
        turn.reply_deadline()
    }

    /// The lease that the server counts.
    fn lease(&self, spec: &Spec) -> Lease {
        spec.lease
    }

    /// The meaning of the reply to a step that does not undo.
    fn answer(&mut self, step: Self::Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Self::Step>;

    /// The reply to a step that does not undo was lost, or did not come in time.
    fn no_reply(&mut self, _step: Self::Step, _why: NoReply, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        Next::Abandon(Ending::Unknown)
    }

    /// Whether a script that the server does not know may still be sent again as source.
    fn may_resend(&self, _step: Self::Step, _turn: &Turn<'_, Self>) -> bool {
        true
    }

    /// The request was cancelled at this step. By default the reply says whether there is anything to undo; the
    /// wake-up that was asked for at the send still bounds the wait for it.
    fn cancel(&mut self, _step: Self::Step, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        Next::Withdraw
    }

    /// The time that a step waits for has come.
    fn due(&mut self, step: Self::Step, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        unreachable!("{step:?} waits for no time")
    }

    /// Whether something may have been taken at this step that the lock can undo without harm to others.
    fn can_undo(&self, _step: Self::Step, _turn: &Turn<'_, Self>) -> bool {
        true
    }

    /// The meaning of the reply to a step that undoes.
    fn undone(&mut self, _step: Self::Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Undone<Self::Step> {
        Undone::of_script(reply)
    }

    /// The reply to a step that undoes was lost, or did not come in time.
    fn undo_unanswered(&mut self, _why: NoReply, _turn: &mut Turn<'_, Self>) {}

    /// The attempt ends, and no other one follows: removes what it left beside the lock.
    fn clean_up(&mut self, _left: Left, _turn: &mut Turn<'_, Self>) {}

    /// The holder releases.
    fn release(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        Next::Undo(After::Release)
    }

    /// The holder cancels: all of its entries are released.
    fn release_all(&mut self, turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        self.release(turn)
    }

    /// The holder enters once more.
    fn enter(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        panic!("Enter, but it does not nest")
    }

    /// The step that awaits this call, for a lock that awaits several calls at once.
    fn step_of(&self, _call: CallId) -> Option<Self::Step> {
        None
    }

    /// The reply to a call that `Turn::send` sent beside the steps, or its loss (`None`). Returns `None` for a call of
    /// a step, or one that was given up.
    fn on_side_call(
        &mut self,
        _call: CallId,
        _reply: Option<Reply>,
        _turn: &mut Turn<'_, Self>,
    ) -> Option<Next<Self::Step>> {
        None
    }

    fn published(&mut self, _first: bool, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        Next::Stay
    }

    fn disconnected(&mut self, _turn: &mut Turn<'_, Self>) -> Next<Self::Step> {
        Next::Stay
    }

    /// What renews the lease while the lock is held, if anything does.
    fn renewal(&mut self) -> Option<&mut Renewal> {
        None
    }

    fn no_quorum_attempts(&self) -> u32 {
        0
    }

    /// Whether the attempt, at this step, awaits the vote of a server that was asked by this call beside the steps.
    fn awaits_vote(&self, _step: Self::Step, _call: CallId) -> bool {
        false
    }

    /// Whether the announced place in the server's queue certainly still exists. `sent`: see `Turn::sent`.
    fn is_placed(&self, _state: State<Self::Step>, _sent: Nanos, _now: Nanos) -> bool {
        false
    }
}

/// The steps of a lock that is taken by one command and released by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseStep {
    Take,
    Release,
}

/// In whose name an attempt takes the lock.
pub(crate) trait Owner: Copy + Debug + Send + 'static {
    const NOBODY: Self;

    fn drawn(chance: &mut Chance) -> Self;

    fn token(self) -> Token;
}

impl Owner for Token {
    const NOBODY: Self = Self::NONE;

    fn drawn(chance: &mut Chance) -> Self {
        chance.token()
    }

    fn token(self) -> Token {
        self
    }
}

impl Owner for () {
    const NOBODY: Self = ();

    fn drawn(_chance: &mut Chance) -> Self {}

    fn token(self) -> Token {
        Token::NONE
    }
}

/// What the shell does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<S> {
    Stay,
    /// Sends the command of this step, and awaits its reply. The lease counts from now.
    Ask(S),
    /// As `Ask`, but the lease still counts from the step before, and the reply timeout from that of its reply.
    Confirm(S),
    /// Sends the command of this step again. The deadline of the first reply bounds all repetitions.
    AskAgain(S),
    /// Awaits, until this time, the replies to calls that the lock has sent itself: see `Lock::step_of`.
    Await(S, Nanos),
    /// Awaits the reply to a call that was sent earlier.
    Expect(S, CallId),
    /// Goes on awaiting the same reply, but as another step.
    Become(S),
    /// Waits until this time.
    Wait(S, Nanos),
    /// The reply to the current step is awaited only to learn what has to be undone.
    Withdraw,
    /// The server granted a lease. It is held if anything is left of it, and otherwise undone.
    Granted(Option<Fence>),
    Hold(Lasts, Option<Fence>),
    /// The request that was made while the lock was held settles, and the lock is still held until this time.
    KeepHolding(Nanos, Outcome),
    /// Nothing is taken because another client holds the lock. The retry policy decides.
    Busy,
    /// As `Busy`, but the lock has asked the policy itself: the next attempt begins at this time.
    Pause(Nanos),
    /// An attempt that another client's made fail: the whole work is repeated by `Event::Retry`.
    Conflict,
    Undo(After),
    UndoBy(S, After),
    /// The command that takes failed.
    Failed(ErrorKind, TakeEffect),
    /// Settles now, and undoes in case that the current command was, or will be, carried out.
    Abandon(Ending),
    /// Settles; nothing is taken.
    Settle(Ending),
}

impl<S> Next<S> {
    /// The reply to `SET NX`.
    pub(crate) const fn of_set(reply: Reply) -> Self {
        match reply {
            Reply::Ok => Self::Granted(None),
            Reply::Nil => Self::Busy,
            other => Self::failed(other),
        }
    }

    /// The reply to a script that returns 1 or nil.
    pub(crate) const fn of_script(reply: Reply) -> Self {
        match reply {
            Reply::Int(1) => Self::Granted(None),
            Reply::Nil => Self::Busy,
            other => Self::failed(other),
        }
    }

    /// The reply to a command that returns a fence or nil.
    pub(crate) fn of_fence(reply: Reply) -> Self {
        match reply.fence() {
            Some(fence) => Self::Granted(Some(fence)),
            None if reply.is_nil() => Self::Busy,
            // Also a number that only another program can have written.
            None => Self::failed(reply),
        }
    }

    /// An error, or a reply that the command never gets.
    pub(crate) const fn failed(reply: Reply) -> Self {
        let kind = reply.failure();
        Self::Failed(kind, TakeEffect::of(kind))
    }
}

/// Why no reply comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// The connection closed.
    Lost,
    TimedOut,
}

/// What follows when the reply to an undo has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The holder has finished its work: the reply says whether the lock was still held.
    Release,
    /// The grant came when its lease had practically ended, or was not confirmed.
    TooLate,
    /// Another attempt, if the retry policy allows one.
    Again,
    Settle(Ending),
}

impl After {
    /// The request was cancelled.
    pub(crate) const CANCEL: Self = Self::Settle(Ending::Released);
}

/// An outcome that leaves the lock idle, in two bytes: the records of clients have no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Released,
    Expired,
    Unknown,
    Refused(Refusal),
    Failed(ErrorKind),
}

impl From<Ending> for Outcome {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Released => Self::Released,
            Ending::Expired => Self::Expired,
            Ending::Unknown => Self::Unknown,
            Ending::Refused(refusal) => Self::Refused(refusal),
            Ending::Failed(kind) => Self::Failed(kind),
        }
    }
}

/// The meaning of a reply to a step that undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undone<S> {
    WasHeld,
    WasLost,
    /// An error, or a reply that the command never gets. If the lock still exists, its lease frees it.
    Failed(ErrorKind),
    /// Another transaction was in the way: sent again until the reply timeout has passed.
    SentAgain,
    /// Undone by another command.
    By(S),
}

impl<S> Undone<S> {
    /// The reply to a script, or a `DEL`, that returns 1 if the lock was held and otherwise 0.
    pub(crate) const fn of_script(reply: Reply) -> Self {
        match reply {
            Reply::Int(1) => Self::WasHeld,
            Reply::Int(0) => Self::WasLost,
            other => Self::Failed(other.failure()),
        }
    }

    /// The reply to a `COMMIT`. The answer `ROLLBACK` means that the transaction had failed earlier, and its locks
    /// ended then.
    pub(crate) const fn of_commit(reply: Reply) -> Self {
        match reply {
            Reply::Ok => Self::WasHeld,
            Reply::Error(ErrorKind::InFailedTransaction) => Self::WasLost,
            other => Self::Failed(other.failure()),
        }
    }
}

/// What an attempt that ends has left on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing was taken.
    Nothing,
    /// What was taken is being released, and the reply is awaited.
    Undoing,
    /// A command that undoes was sent earlier, or nobody awaits its reply.
    Unclear,
}
