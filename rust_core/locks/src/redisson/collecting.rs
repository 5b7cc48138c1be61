//! The acquire half of the machine: one child after another is asked, and asked again while it is busy.

use super::{Child, Pass, Redisson, State, Why};
use crate::backoff::{Backoff, Next};
use crate::calls::TakeEffect;
use crate::{Actions, Command, ErrorKind, KeyList, Millis, Nanos, Outcome, Reply, Retry, RetryKind, ScriptForm};

impl Redisson {
    pub(super) fn attempt(&mut self, now: Nanos, keys: KeyList, out: &mut Actions) {
        self.backoff.attempt();
        if now >= self.budget_end {
            self.budget_end = match self.wait_budget(keys) {
                Some(budget) => now.after(budget.into()),
                None => Nanos::NEVER,
            };
        }
        let token = self.chance.token();
        let pass = Pass {
            keys,
            token,
            at: 0,
            failed: 0,
            taken: 0,
        };
        self.begin_child(now, pass, out);
    }

    /// `None` when the request does not wait.
    fn wait_budget(&self, keys: KeyList) -> Option<Millis> {
        let children = u64::from(self.rules.count(keys, self.spec.servers));
        (self.spec.retry.kind != RetryKind::None).then_some(Millis(self.rules.wait_budget_ms * children))
    }

    fn begin_child(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        let children = self.rules.count(pass.keys, self.spec.servers);
        let part = self.wait_budget(pass.keys).map_or(Nanos::ZERO, |budget| {
            self.rules.children.part_of(Nanos::from(budget), children)
        });
        let deadline = now.after(part).min(self.budget_end);
        self.child = Child {
            polls: Backoff::begin(now),
            began: now,
            deadline: deadline.min(self.began.after(self.spec.retry.max_wait)),
        };
        self.ask(now, pass, out);
    }

    pub(super) fn ask(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        self.child.polls.attempt();
        // While it collects children, Redisson gives each a lease of twice the wait budget.
        let lease = self
            .wait_budget(pass.keys)
            .map_or(self.spec.lease.ttl().0, |budget| 2 * budget.0);
        let call = self.calls.fresh();
        let command = Command::SetNxPx {
            key: self.key_of(pass, pass.at),
            token: pass.token,
            lease_ms: lease,
        };
        out.send(call, self.server_of(pass, pass.at), command);
        out.wake_at(now.after(self.spec.reply_timeout));
        self.state = State::Asking { pass, call, sent: now };
    }

    pub(super) fn asked(&mut self, now: Nanos, pass: Pass, reply: Reply, out: &mut Actions) {
        match reply {
            Reply::Ok => {
                let taken = pass.taken | 1 << pass.at;
                self.next_child(now, Pass { taken, ..pass }, out);
            }
            Reply::Nil => self.busy(now, pass, out),
            Reply::Error(kind) => {
                match TakeEffect::of(kind) {
                    TakeEffect::Nothing => {}
                    TakeEffect::Unknown => self.send_unawaited_release(pass, out),
                }
                self.child_failed(now, pass, Why::End(Outcome::Failed(kind)), out);
            }
            Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.send_unawaited_release(pass, out);
                let outcome = Outcome::Failed(ErrorKind::Unexpected);
                self.child_failed(now, pass, Why::End(outcome), out);
            }
        }
    }

    pub(super) fn child_timed_out(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        self.send_unawaited_release(pass, out);
        self.child_failed(now, pass, Why::End(Outcome::Unknown), out);
    }

    /// Sends a release to a child whose `SET` was, or may yet be, carried out. Nobody awaits the reply.
    fn send_unawaited_release(&mut self, pass: Pass, out: &mut Actions) {
        let command = Command::CompareAndDelete {
            key: self.key_of(pass, pass.at),
            token: pass.token,
            form: ScriptForm::Source,
        };
        out.send(self.calls.fresh(), self.server_of(pass, pass.at), command);
    }

    fn busy(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        if self.budget_end == Nanos::NEVER || now >= self.child.deadline {
            return self.child_failed(now, pass, Why::Again, out);
        }
        let retry = Retry {
            max_attempts: None,
            max_wait: self.child.deadline.since(self.child.began),
            ..self.spec.retry
        };
        let until = match self.child.polls.after_refusal(now, &retry, &mut self.chance) {
            Next::TryAt(at) => at,
            // The child does not fail before its deadline; otherwise a pass over the others would follow at once.
            Next::GiveUp(_) => self.child.deadline,
        };
        self.state = State::Pausing { pass, until };
        out.wake_at(until);
    }

    pub(super) fn child_failed(&mut self, now: Nanos, pass: Pass, why: Why, out: &mut Actions) {
        let children = self.rules.count(pass.keys, self.spec.servers);
        let limit = self.rules.children.failed_limit(children);
        if children - pass.taken.count_ones() as u16 == limit {
            self.renew(now, pass, out);
        } else if pass.failed == limit {
            self.send_release(now, pass, why, out);
        } else {
            let failed = pass.failed + 1;
            self.next_child(now, Pass { failed, ..pass }, out);
        }
    }

    fn next_child(&mut self, now: Nanos, pass: Pass, out: &mut Actions) {
        let at = pass.at + 1;
        if now >= self.budget_end {
            self.send_release(now, pass, Why::Again, out);
        } else if at == self.rules.count(pass.keys, self.spec.servers) {
            self.renew(now, pass, out);
        } else {
            self.begin_child(now, Pass { at, ..pass }, out);
        }
    }
}
