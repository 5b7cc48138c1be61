//! What a lock can ask of the shell while it handles one event.

use std::sync::Arc;

use crate::backoff::{Backoff, Next};
use crate::calls::{CallIds, SERVER};
use crate::{Actions, CallId, Chance, Command, ConnectionKind, Key, Lasts, Nanos, Script, ScriptForm, ServerId, Spec};

use super::{Lock, Owner, State};

/// What the shell keeps for every lock. 104 bytes for a lock with a token, because a client of the most measured locks
/// has to fit into three cache lines.
#[derive(Debug)]
pub(crate) struct Core<L: Lock> {
    pub(super) spec: Arc<Spec>,
    pub(super) chance: Chance,
    pub(super) calls: CallIds,
    pub(super) backoff: Backoff,
    pub(super) owner: L::Owner,
    /// When the command that the lease counts from was sent.
    pub(super) sent: Nanos,
    /// The deadline of the awaited reply, the end of a pause or a wait, or, while the lock is held, the end of belief.
    pub(super) until: Nanos,
    /// The awaited call; `CallIds::NONE` when there is none.
    pub(super) call: CallId,
    pub(super) key: Key,
    /// How the awaited command was sent.
    pub(super) form: ScriptForm,
    pub(super) state: State<L::Step>,
}

/// One event, as a lock handles it.
#[derive(Debug)]
pub(crate) struct Turn<'a, L: Lock> {
    pub(super) core: &'a mut Core<L>,
    pub(crate) now: Nanos,
    pub(crate) out: &'a mut Actions,
}

impl<L: Lock> Turn<'_, L> {
    pub(crate) fn spec(&self) -> &Spec {
        &self.core.spec
    }

    pub(crate) const fn state(&self) -> State<L::Step> {
        self.core.state
    }

    pub(crate) const fn key(&self) -> Key {
        self.core.key
    }

    pub(crate) const fn owner(&self) -> L::Owner {
        self.core.owner
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        self.core.spec.lease.ttl().0
    }

    /// When the command that the lease counts from was sent.
    pub(crate) const fn sent(&self) -> Nanos {
        self.core.sent
    }

    /// The end of belief, while the lock is held.
    pub(crate) const fn until(&self) -> Nanos {
        self.core.until
    }

    /// When the reply to a command that is sent now is given up.
    pub(crate) fn reply_deadline(&self) -> Nanos {
        self.now.after(self.core.spec.reply_timeout)
    }

    pub(crate) const fn is_withdrawn(&self) -> bool {
        matches!(self.core.state, State::Withdrawing(_))
    }

    pub(crate) const fn backoff(&self) -> &Backoff {
        &self.core.backoff
    }

    pub(crate) const fn chance(&mut self) -> &mut Chance {
        &mut self.core.chance
    }

    /// Counts an attempt, at its start.
    pub(crate) const fn count_attempt(&mut self) {
        self.core.backoff.attempt();
    }

    /// Counts a statement that met another transaction. Nobody asks for the conflicts of a request that was cancelled.
    pub(crate) const fn count_conflict(&mut self) {
        if !self.is_withdrawn() {
            self.core.backoff.conflict();
        }
    }

    /// What the retry policy says after an attempt that ends now without the lock.
    pub(crate) fn after_refusal(&mut self) -> Next {
        let core = &mut *self.core;
        core.backoff.after_refusal(self.now, &core.spec.retry, &mut core.chance)
    }

    /// What the retry policy says after an attempt whose grant came too late.
    pub(crate) fn after_late_grant(&mut self) -> Next {
        let core = &mut *self.core;
        core.backoff
            .after_late_grant(self.now, &core.spec.retry, &mut core.chance)
    }

    /// Draws a fresh token: a late command of an earlier attempt must not be mistaken for one of this attempt.
    pub(crate) fn draw_owner(&mut self) {
        self.core.owner = L::Owner::drawn(&mut self.core.chance);
    }

    /// Sends a command beside the steps: see `Lock::on_side_call`.
    pub(crate) fn send(&mut self, command: Command) -> CallId {
        self.send_to(SERVER, ConnectionKind::SharedByClients, command)
    }

    #[inline]
    pub(crate) fn send_to(&mut self, to: ServerId, over: ConnectionKind, command: Command) -> CallId {
        let call = self.core.calls.fresh();
        self.out.send_over(over, call, to, command);
        call
    }

    /// A script about the key and its owner.
    pub(crate) fn script(&self, script: Script, numbers: [u64; 2]) -> Command {
        Command::by_sha(script, self.core.key, self.core.owner.token(), numbers)
    }

    /// The lease of the held lock was renewed.
    pub(crate) fn prolong(&mut self, until: Nanos) {
        self.core.until = until;
        self.out.renewed(Lasts::Until(until));
    }
}

impl<L: Lock<Owner = crate::Token>> Turn<'_, L> {
    /// `SET key token NX PX lease_ms`: the command that takes most locks.
    pub(crate) fn set_if_absent(&self) -> Command {
        Command::SetNxPx {
            key: self.core.key,
            token: self.core.owner,
            lease_ms: self.lease_ms(),
        }
    }

    /// The command that releases those locks.
    pub(crate) const fn compare_and_delete(&self) -> Command {
        Command::compare_and_delete(self.core.key, self.core.owner)
    }
}
