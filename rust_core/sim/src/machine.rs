//! A lock under observation: what it did is counted, and mistakes of its driver are put in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use locks::{Action, Actions, CallId, Event, Lasts, Lease, LockMachine, Nanos, Outcome, Refusal};

use crate::clock::Time;
use crate::conditions::Mistake;
use crate::conduct::Conduct;

/// What one client did.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) acquires: u64,
    /// The calls since the last `Acquire`: `ReusedCallIds` numbers these.
    pub(crate) calls: Vec<CallId>,
    /// When it was last granted the lock, or an optimistic lock wrote.
    pub(crate) served: Option<Nanos>,
    queued: bool,
    /// Its last request has ended, and it holds nothing.
    pub(crate) is_idle: bool,
    pub(crate) holds: bool,
    pub(crate) conduct: Conduct,
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }
}

#[derive(Debug)]
pub(crate) struct Observed<L> {
    inner: L,
    actions: Actions,
    tally: Rc<RefCell<Tally>>,
    time: Time,
    lease: Lease,
    mistake: Mistake,
    is_optimistic: bool,
}

impl<L: LockMachine> Observed<L> {
    pub(crate) fn new(
        inner: L,
        tally: Rc<RefCell<Tally>>,
        time: Time,
        lease: Lease,
        (mistake, is_optimistic): (Mistake, bool),
    ) -> Self {
        Self {
            inner,
            actions: Actions::default(),
            tally,
            time,
            lease,
            mistake,
            is_optimistic,
        }
    }

    fn lasts(&self, now: Nanos, lasts: Lasts) -> Lasts {
        match lasts {
            Lasts::Until(_) if self.mistake == Mistake::LeaseFromReply => Lasts::Until(self.lease.until(now)),
            Lasts::Until(_) | Lasts::Session | Lasts::Unbounded => lasts,
        }
    }

    fn observe(&self, now: Nanos, action: Action, out: &mut Actions) {
        let tally = &mut *self.tally.borrow_mut();
        match action {
            Action::Send {
                call,
                to,
                over,
                command,
            } => out.send_over(over, call, to, command),
            Action::WakeAt(at) => out.wake_at(at),
            Action::HangUp => {
                tally.count("hung up");
                out.hang_up();
            }
            Action::Queued => {
                let again = std::mem::replace(&mut tally.queued, true);
                tally.count(if again { "queued again" } else { "queued" });
                out.queued();
            }
            Action::Renewed { lasts } => {
                tally.count("renewed");
                out.renewed(self.lasts(now, lasts));
            }
            Action::Lapsed => {
                tally.count("lapsed");
                out.lapsed();
            }
            Action::Settle(outcome) => {
                tally.count(name(outcome));
                tally.holds = matches!(outcome, Outcome::Held { .. });
                tally.is_idle = !tally.holds;
                let serves = match outcome {
                    Outcome::Held { .. } => !self.is_optimistic,
                    Outcome::Released => self.is_optimistic,
                    _ => false,
                };
                if serves {
                    tally.served = Some(self.time.now());
                }
                out.settle(match outcome {
                    Outcome::Held { lasts, fence } => Outcome::Held {
                        lasts: self.lasts(now, lasts),
                        fence,
                    },
                    other => other,
                });
            }
        }
    }
}

const fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Held { .. } => "held",
        Outcome::Released => "released",
        Outcome::Refused(Refusal::Busy) => "busy",
        Outcome::Refused(Refusal::TimedOut) => "timed out",
        Outcome::Refused(Refusal::TooLate) => "too late",
        Outcome::Expired => "expired",
        Outcome::Failed(_) => "failed",
        Outcome::Conflict => "conflict",
        Outcome::Unknown => "unknown",
    }
}

impl<L: LockMachine> LockMachine for Observed<L> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        if event == Event::Disconnected && self.mistake == Mistake::NotTold {
            return;
        }
        if let Event::Acquire { .. } | Event::Retry = event {
            let tally = &mut *self.tally.borrow_mut();
            tally.acquires += 1;
            (tally.is_idle, tally.holds) = (false, false);
            tally.calls.clear();
            tally.queued = false;
        }
        self.tally.borrow_mut().conduct.told(event);
        let mut actions = std::mem::take(&mut self.actions);
        self.inner.on(now, event, &mut actions);
        self.tally.borrow_mut().conduct.did(actions.as_slice());
        for action in actions.drain() {
            self.observe(now, action, out);
        }
        self.actions = actions;
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
        L::servers_vote()
    }

    fn is_placed(&self, now: Nanos) -> bool {
        self.inner.is_placed(now)
    }
}
