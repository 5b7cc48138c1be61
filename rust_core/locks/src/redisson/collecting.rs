//! The acquire half of the lock: one child after another is asked, and asked again while it is busy.

use super::{Child, Pass, Redisson, Step, Why};
use crate::backoff::{Backoff, Next as Attempt};
use crate::calls::TakeEffect;
use crate::shell::{Ending, Next, Turn};
use crate::{ConnectionKind, Millis, Nanos, Reply, Retry, RetryKind};

impl Redisson {
    pub(super) fn begin_pass(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        turn.count_attempt();
        if turn.now >= self.budget_end {
            self.budget_end = match self.wait_budget(turn) {
                Some(budget) => turn.now.after(budget.into()),
                None => Nanos::NEVER,
            };
        }
        turn.draw_owner();
        self.pass = Pass::over(self.pass.keys);
        self.begin_child(turn)
    }

    /// `None` when the request does not wait.
    fn wait_budget(&self, turn: &Turn<'_, Self>) -> Option<Millis> {
        let budget = Millis(self.rules.wait_budget_ms * u64::from(self.children()));
        (turn.spec().retry.kind != RetryKind::None).then_some(budget)
    }

    /// While it collects children, Redisson gives each a lease of twice the wait budget.
    pub(super) fn collecting_ms(&self, turn: &Turn<'_, Self>) -> u64 {
        self.wait_budget(turn).map_or(turn.lease_ms(), |budget| 2 * budget.0)
    }

    fn begin_child(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let part = self.wait_budget(turn).map_or(Nanos::ZERO, |budget| {
            self.rules.children.part_of(Nanos::from(budget), self.children())
        });
        let deadline = turn.now.after(part).min(self.budget_end);
        self.child = Child {
            polls: Backoff::begin(turn.now),
            began: turn.now,
            deadline: deadline.min(self.began.after(turn.spec().retry.max_wait)),
        };
        self.ask()
    }

    pub(super) const fn ask(&mut self) -> Next<Step> {
        self.child.polls.attempt();
        Next::Ask(Step::Ask)
    }

    pub(super) fn asked(&mut self, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match reply {
            Reply::Ok => {
                self.pass.taken |= 1 << self.pass.at;
                self.next_child(turn)
            }
            Reply::Nil => self.busy(turn),
            other => {
                match TakeEffect::of(other.failure()) {
                    TakeEffect::Nothing => {}
                    TakeEffect::Unknown => self.send_unawaited_release(turn),
                }
                self.child_failed(Why::End(Ending::Failed(other.failure())), turn)
            }
        }
    }

    pub(super) fn child_timed_out(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.send_unawaited_release(turn);
        self.child_failed(Why::End(Ending::Unknown), turn)
    }

    /// Sends a release to a child whose `SET` was, or may yet be, carried out.
    fn send_unawaited_release(&self, turn: &mut Turn<'_, Self>) {
        let command = self.command_to(self.pass.at, Step::Release(Why::Cancel), turn);
        turn.send_to(
            self.server_of(self.pass.at),
            ConnectionKind::SharedByClients,
            command.unawaited(),
        );
    }

    fn busy(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.budget_end == Nanos::NEVER || turn.now >= self.child.deadline {
            return self.child_failed(Why::Again, turn);
        }
        let retry = Retry {
            max_attempts: None,
            max_wait: self.child.deadline.since(self.child.began),
            ..turn.spec().retry
        };
        let until = match self.child.polls.after_refusal(turn.now, &retry, turn.chance()) {
            Attempt::TryAt(at) => at,
            // The child does not fail before its deadline; otherwise a pass over the others would follow at once.
            Attempt::GiveUp(_) => self.child.deadline,
        };
        Next::Wait(Step::Poll, until)
    }

    pub(super) fn child_failed(&mut self, why: Why, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let children = self.children();
        let limit = self.rules.children.failed_limit(children);
        if children - self.pass.count() == limit {
            self.renew(turn)
        } else if self.pass.failed == limit {
            self.send_release(why, turn)
        } else {
            self.pass.failed += 1;
            self.next_child(turn)
        }
    }

    fn next_child(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let at = self.pass.at + 1;
        if turn.now >= self.budget_end {
            self.send_release(Why::Again, turn)
        } else if at == self.children() {
            self.renew(turn)
        } else {
            self.pass.at = at;
            self.begin_child(turn)
        }
    }
}
