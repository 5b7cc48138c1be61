//! Mistakes in what a machine sends, and in what it makes of replies and times: the honest machine, with its actions and
//! its replies changed on their way.

use std::sync::Arc;

use super::{Mutant, chosen};
use crate::shell::{Lock, Shell};
use crate::{
    Action, Actions, CallId, Chance, Command, ConnectionKind, Event, Fence, Lasts, LockMachine, Nanos, Outcome, Reply,
    Script, ServerId, Spec, Statement, Token,
};

/// A shell with the chosen mistake, if it is one of those that show here.
#[derive(Debug)]
pub(crate) struct Mutated<L: Lock> {
    inner: Shell<L>,
    mutant: Option<Mutant>,
    spec: Arc<Spec>,
    actions: Actions,
    /// The calls without a reply, as the machine sent them.
    asked: Vec<(CallId, Command)>,
    /// All calls since the last `Acquire`: `ReusedCallIds` numbers these.
    calls: Vec<CallId>,
    /// The last command, and where it went.
    last: Option<(ServerId, ConnectionKind, Command)>,
    /// The last renewal, and where it went.
    renewal: Option<(ServerId, ConnectionKind, Command)>,
    /// How many calls were added to those of the machine. Their ids count down from the largest.
    added: u64,
    grants: u64,
}

impl<L: Lock> Mutated<L> {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, lock: L) -> Self {
        Self {
            inner: Shell::new(Arc::clone(&spec), chance, lock),
            mutant: chosen(),
            spec,
            actions: Actions::default(),
            asked: Vec::new(),
            calls: Vec::new(),
            last: None,
            renewal: None,
            added: 0,
            grants: 0,
        }
    }

    /// The event that the honest machine gets, if any.
    fn told(&mut self, event: Event, out: &mut Actions) -> Option<Event> {
        match event {
            Event::Acquire { .. } | Event::Retry => self.calls.clear(),
            Event::Disconnected if self.mutant == Some(Mutant::SessionEndIgnored) => return None,
            Event::Replied { call, reply } => {
                let call = self.named_by_machine(call)?;
                let reply = self.reply_to(call, reply, out);
                self.asked.retain(|&(asked, _)| asked != call);
                return Some(Event::Replied { call, reply });
            }
            Event::Lost { call } => {
                let call = self.named_by_machine(call)?;
                self.asked.retain(|&(asked, _)| asked != call);
                return Some(Event::Lost { call });
            }
            _ => {}
        }
        Some(event)
    }

    fn named_by_machine(&self, call: CallId) -> Option<CallId> {
        if self.mutant == Some(Mutant::ReusedCallIds) {
            return self.calls.get(call.0 as usize).copied();
        }
        Some(call)
    }

    fn reply_to(&mut self, call: CallId, reply: Reply, out: &mut Actions) -> Reply {
        let Some(mutant) = self.mutant else { return reply };
        let Some(&(_, command)) = self.asked.iter().find(|(asked, _)| *asked == call) else {
            return reply;
        };
        match (mutant, command, reply) {
            (Mutant::RefusalIgnored, Command::SetNxPx { .. }, Reply::Nil) => Reply::Ok,
            (Mutant::RenewalLossIgnored, renewal, Reply::Int(0)) if is_renewal(&renewal) => Reply::Int(1),
            (Mutant::RenewalRecreates, renewal, Reply::Int(0)) if is_renewal(&renewal) => {
                self.recreate(renewal, out);
                Reply::Int(1)
            }
            (Mutant::NoWait, Command::Wait { replicas, .. }, Reply::Int(_)) => Reply::Int(replicas.cast_signed()),
            // A key that is gone looks like one that does not expire, and one in its last millisecond must not look
            // like a grant: the client waits for a message.
            (
                Mutant::NoAttemptAfterSubscribing,
                Command::Run {
                    script: Script::NotifyAcquire,
                    ..
                },
                Reply::Int(-2 | 0),
            ) => Reply::Int(-1),
            _ => reply,
        }
    }

    /// Creates the key of a refused renewal anew, whoever holds it now.
    fn recreate(&mut self, renewal: Command, out: &mut Actions) {
        let (Command::Run { key, token, .. }, Some((to, over, _))) = (renewal, self.renewal) else {
            return;
        };
        let lease_ms = self.spec.lease.ttl().0;
        for command in [Command::Del { key }, Command::SetNxPx { key, token, lease_ms }] {
            let call = self.fresh();
            out.send_over(over, call, to, command);
        }
    }

    fn fresh(&mut self) -> CallId {
        self.added += 1;
        CallId(u64::MAX - self.added)
    }

    fn act(&mut self, now: Nanos, event: Event, action: Action, out: &mut Actions) {
        match action {
            Action::Send {
                call,
                to,
                over,
                command,
            } => self.send(event, (call, to, over), command, out),
            Action::WakeAt(at) => out.wake_at(at),
            Action::HangUp => out.hang_up(),
            Action::Queued => out.queued(),
            Action::Renewed { lasts } => out.renewed(self.lasts(now, lasts)),
            Action::Lapsed => out.lapsed(),
            Action::Settle(Outcome::Held { lasts, fence }) => {
                self.grants += 1;
                let (lasts, fence) = (self.lasts(now, lasts), self.fence(fence));
                out.settle(Outcome::Held { lasts, fence });
                self.held(out);
            }
            Action::Settle(outcome) => out.settle(outcome),
        }
    }

    fn send(
        &mut self,
        event: Event,
        (call, to, over): (CallId, ServerId, ConnectionKind),
        command: Command,
        out: &mut Actions,
    ) {
        self.last = Some((to, over, command));
        self.asked.push((call, command));
        self.calls.push(call);
        if is_renewal(&command) {
            self.renewal = Some((to, over, command));
        }
        let sent = self.command(event, command);
        let number = match self.mutant {
            Some(Mutant::ReusedCallIds) => CallId(self.calls.len() as u64 - 1),
            _ => call,
        };
        out.send_over(over, number, to, sent);
    }

    /// What is sent in place of this command.
    fn command(&self, event: Event, command: Command) -> Command {
        let Some(mutant) = self.mutant else { return command };
        match (mutant, command) {
            (Mutant::ReleaseUnchecked, Command::CompareAndDelete { key, .. }) => Command::Del { key },
            (Mutant::NoMinorityRelease, Command::CompareAndDelete { key, form, .. }) if event != Event::Release => {
                let token = Token::NONE;
                Command::CompareAndDelete { key, token, form }
            }
            (Mutant::SameToken, _) => with_token(command, Token { high: 1, low: 1 }),
            (Mutant::LongTtl, _) => with_lease(command, |ms| ms * 1_000),
            (Mutant::HalfTtl, _) => with_lease(command, |ms| ms.div_ceil(2)),
            (
                Mutant::ExtraPermit,
                Command::Run {
                    script: Script::SemaphoreTake,
                    form,
                    key,
                    token,
                    numbers: [permits, lease_ms],
                },
            ) => Command::Run {
                script: Script::SemaphoreTake,
                form,
                key,
                token,
                numbers: [permits + 1, lease_ms],
            },
            (Mutant::NoWait, Command::Wait { timeout_ms, .. }) => Command::Wait {
                replicas: 0,
                timeout_ms,
            },
            (
                Mutant::NoAttemptAfterSubscribing,
                Command::Run {
                    script: Script::NotifyAcquire,
                    key,
                    ..
                },
            ) => Command::TimeLeft { key },
            (Mutant::SharedAdvisoryLock, _) => {
                with_statement(command, Statement::AdvisoryLock, Statement::AdvisoryLockShared)
            }
            _ => command,
        }
    }

    /// What it sends besides, as a holder.
    fn held(&mut self, out: &mut Actions) {
        if let (Some(Mutant::EarlyCommit), Some((to, over, Command::Sql { key, .. }))) = (self.mutant, self.last) {
            let call = self.fresh();
            out.send_over(over, call, to, Statement::Commit.about(key, [0, 0]));
        }
    }

    /// What it sends besides, after what it sends for an event.
    fn afterwards(&mut self, event: Event, out: &mut Actions) {
        let is_release = matches!(event, Event::Release | Event::Cancel);
        if let (true, Some(Mutant::RenewalAfterRelease), Some((to, over, command))) =
            (is_release, self.mutant, self.renewal)
        {
            let call = self.fresh();
            out.send_over(over, call, to, command);
        }
    }

    fn lasts(&self, now: Nanos, lasts: Lasts) -> Lasts {
        match (self.mutant, lasts) {
            (Some(Mutant::LeaseFromReply), Lasts::Until(_)) => Lasts::Until(self.spec.lease.until(now)),
            (Some(Mutant::LeaseForEver), Lasts::Until(_)) => Lasts::Until(now.after(Nanos::from_secs(3_600))),
            _ => lasts,
        }
    }

    /// A counter that its server forgets after every seventh grant of a client.
    fn fence(&self, fence: Option<Fence>) -> Option<Fence> {
        if self.mutant == Some(Mutant::FenceStartsAnew) && self.grants.is_multiple_of(7) {
            return Reply::Int(1).fence();
        }
        fence
    }
}

impl<L: Lock> LockMachine for Mutated<L> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        let Some(told) = self.told(event, out) else { return };
        let mut actions = std::mem::take(&mut self.actions);
        self.inner.on(now, told, &mut actions);
        for action in actions.drain() {
            self.act(now, event, action, out);
        }
        self.actions = actions;
        self.afterwards(event, out);
    }

    fn attempts(&self) -> u32 {
        self.inner.attempts()
    }

    fn no_quorum_attempts(&self) -> u32 {
        self.inner.no_quorum_attempts()
    }

    fn conflicts(&self) -> u32 {
        self.inner.conflicts()
    }

    fn awaits_vote(&self, call: CallId) -> bool {
        self.inner.awaits_vote(call)
    }

    fn servers_vote() -> bool {
        Shell::<L>::servers_vote()
    }

    fn is_placed(&self, now: Nanos) -> bool {
        self.inner.is_placed(now)
    }
}

const fn is_renewal(command: &Command) -> bool {
    matches!(
        command,
        Command::Run {
            script: Script::CompareAndExpire,
            ..
        }
    )
}

fn with_token(command: Command, token: Token) -> Command {
    match command {
        Command::SetNxPx { key, lease_ms, .. } => Command::SetNxPx { key, token, lease_ms },
        Command::CompareAndDelete { key, form, .. } => Command::CompareAndDelete { key, token, form },
        other => other,
    }
}

fn with_lease(command: Command, change: impl Fn(u64) -> u64) -> Command {
    match command {
        Command::SetNxPx { key, token, lease_ms } => Command::SetNxPx {
            key,
            token,
            lease_ms: change(lease_ms),
        },
        other => other,
    }
}

fn with_statement(command: Command, old: Statement, new: Statement) -> Command {
    match command {
        Command::Sql {
            statement,
            key,
            token,
            numbers,
        } if statement == old => Command::Sql {
            statement: new,
            key,
            token,
            numbers,
        },
        other => other,
    }
}
