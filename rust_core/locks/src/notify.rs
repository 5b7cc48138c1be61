//! `notify`: a refused client subscribes to the lock's channel, and tries again when a release is published there.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Asking ───────────────▶ Held ─────────────────▶ Undoing ─────▶ Idle
//!                   ▲ ▲ ▲ │ └── taken too late, Cancel ─────────────▶ ▲ │
//!           message │ │ │ │ busy                                        │ was too late, and the
//!        or timeout │ │ │ ├─────────▶ Subscribe ──── fails ──▶ Pausing ◀┘ policy allows another
//!                   │ │ │ │              │    ▲                 │
//!                   │ │ └─│── confirmed ─┘    │ disconnected    │ Woke
//!                   │ └───│───────────────────│─────────────────┘
//!                Listen ◀───── subscribed before the attempt
//!                     └── message, not as first ──▶ Yield ───── Woke, or message as first ──▶ Asking
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`; a Cancel while subscribing, listening,
//! yielding or pausing).
//!
//! No wake-up is lost: the machine waits for a message only after an attempt that was *sent* while the subscription
//! stood, and it remembers a message that overtakes the reply to that attempt.
//!
//! An attempt is a plain `SET NX PX`. The attempt before a wait is a script instead, which returns the rest of the
//! holder's lease. A client that is refused after a message does not need that script, because the new holder has
//! nearly all of its lease left. A dead holder publishes nothing, so each waiter also tries when the holder's lease
//! ends, plus a random part of the policy's `base`, so that the waiters do not come at once. If the lease was renewed
//! meanwhile, the waiter learns the new end and waits for that: while a holder renews, a waiter sends at most one
//! attempt per two thirds of a lease. If the holder dies, the waiter tries when its last renewed lease ends.
//!
//! The subscription outlives the request, and is given up only for a wait on another lock: a client that returns to the
//! same lock saves one command per wait, and a message that nobody waits for costs no command. If no subscription can
//! be had, the policy's pauses are used instead.
//!
//! A message wakes all waiters that share a subscription, in one process; but all except the first one try a tenth of
//! the policy's `base` later. By then the first one has its reply, which would otherwise come after the replies to the
//! vain attempts of all others.
//!
//! `Renewal` renews a held lock, if the strategy asks for it.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own. Of the
//! policy, `max_wait` bounds the wait, and kind `none` fails fast. Does not promise order: a release wakes all waiters,
//! and the first to arrive gets the lock. The attempts show the cost of waking all of them.

use crate::args::Args;
use crate::backoff::Next as Attempt;
use crate::calls::SERVER;
use crate::renewal::Renewal;
use crate::shell::{After, Ending, Lock, Next, NoReply, State, Turn};
use crate::{CallId, Command, ConnectionKind, Key, Nanos, Refusal, Reply, Script, SpecError, Strategy, Token, Traits};

pub(crate) const fn traits(renews: bool) -> Traits {
    Traits {
        name: "notify",
        subscribes: true,
        scripts: if renews {
            &[Script::NotifyAcquire, Script::NotifyRelease, Script::CompareAndExpire]
        } else {
            &[Script::NotifyAcquire, Script::NotifyRelease]
        },
        ..Traits::LEASE
    }
}

pub(crate) fn with(args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let renews = args.choice("renew", &[("off", false), ("ttl/3", true)])?;
    Ok(Strategy::Notify { renews })
}

#[derive(Debug)]
pub(crate) struct Notify {
    renewal: Option<Renewal>,
    subscription: Subscription,
    /// The subscription stood when the attempt was sent: a later release is not missed.
    subscribed_before: bool,
    /// A message came since the attempt was sent.
    message_came: bool,
    /// The end of the longest wait.
    end: Nanos,
}

/// The subscription outlives requests: see the file's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    /// The subscription is not confirmed yet.
    Asked {
        key: Key,
        call: CallId,
    },
    Stands {
        key: Key,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first attempt of a request, by plain `SET NX PX`, which costs the server less than the script.
    First,
    /// After a message, by plain `SET NX PX`. A refusal means that another client has taken the lock since that
    /// message, so nearly all of its lease is left.
    AfterMessage,
    /// Before a wait, by the script, which returns the rest of the holder's lease.
    ByScript,
    /// The subscription is not confirmed yet.
    Subscribe,
    /// Waits for a message, or for the end of the holder's lease.
    Listen,
    /// A message of a release came, but another client received it first.
    Yield,
    Release,
}

impl Lock for Notify {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::First;
    const UNDO: Step = Step::Release;

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        attempt_by(Step::First, turn)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::First | Step::AfterMessage | Step::Listen | Step::Yield => turn.set_if_absent(),
            Step::ByScript => turn.script(Script::NotifyAcquire, [turn.lease_ms(), 0]),
            Step::Subscribe => Command::Subscribe { key: turn.key() },
            Step::Release => turn.script(Script::NotifyRelease, [0, 0]),
        }
    }

    fn before_send(&mut self, _step: Step, turn: &Turn<'_, Self>) {
        self.subscribed_before = self.subscription == Subscription::Stands { key: turn.key() };
        self.message_came = false;
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            (Step::Subscribe, Reply::Ok) => match turn.backoff().wait_for_message(turn.now, &turn.spec().retry) {
                Attempt::TryAt(_) => attempt_by(Step::ByScript, turn),
                Attempt::GiveUp(refusal) => Next::Settle(Ending::Refused(refusal)),
            },
            (Step::Subscribe, other) => Next::Settle(Ending::Failed(other.failure())),
            (Step::ByScript, Reply::Int(0)) => Next::Granted(None),
            (Step::ByScript, Reply::Int(left @ 1..)) => self.refused(step, Some(left.cast_unsigned()), turn),
            (Step::ByScript, Reply::Int(-1)) | (Step::First | Step::AfterMessage, Reply::Nil) => {
                self.refused(step, None, turn)
            }
            (Step::ByScript, other) => Next::failed(other),
            (Step::First | Step::AfterMessage | Step::Listen | Step::Yield | Step::Release, other) => {
                Next::of_set(other)
            }
        }
    }

    fn no_reply(&mut self, step: Step, why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if step != Step::Subscribe {
            return Next::Abandon(Ending::Unknown);
        }
        if why == NoReply::TimedOut {
            // Later commands on that connection would get no reply either.
            self.subscription = Subscription::None;
            turn.out.hang_up();
        }
        // Waits without a subscription, as long as the policy says.
        Next::Busy
    }

    fn cancel(&mut self, step: Step, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            // Sent at once: the release follows the attempt on the same connection and undoes it.
            Step::First | Step::AfterMessage | Step::ByScript | Step::Release => Next::Undo(After::CANCEL),
            // Nothing is taken. A subscription that is under way can be used later.
            Step::Subscribe | Step::Listen | Step::Yield => Next::Settle(Ending::Released),
        }
    }

    fn due(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            Step::Listen if turn.now >= self.end => Next::Settle(Ending::Refused(Refusal::TimedOut)),
            Step::Listen => attempt_by(Step::ByScript, turn),
            Step::Yield | Step::First | Step::AfterMessage | Step::ByScript | Step::Subscribe | Step::Release => {
                attempt_by(Step::AfterMessage, turn)
            }
        }
    }

    fn published(&mut self, first: bool, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match turn.state() {
            State::Asking(Step::First | Step::AfterMessage | Step::ByScript) => {
                self.message_came = true;
                Next::Stay
            }
            State::Waiting(_) if first => attempt_by(Step::AfterMessage, turn),
            State::Waiting(Step::Listen) => {
                // How much later than the first receiver of a message the others try.
                let delay = Nanos(turn.spec().retry.base.0 / 10);
                Next::Wait(Step::Yield, turn.now.after(delay).min(self.end))
            }
            // This client does not wait for a message, or its next attempt comes soon anyway: at the confirmation or
            // after the pause.
            State::Asking(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Idle
            | State::Conflicted(_)
            | State::Held
            | State::Undoing(..) => Next::Stay,
        }
    }

    fn disconnected(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.subscription = Subscription::None;
        match turn.state() {
            State::Waiting(Step::Listen) => self.subscribe(turn),
            // This client does not listen. The reply to its current or next attempt finds no subscription, and
            // subscribes again. A subscription that was under way is reported by `Lost`.
            State::Asking(_)
            | State::Withdrawing(_)
            | State::Waiting(_)
            | State::Pausing
            | State::Idle
            | State::Conflicted(_)
            | State::Held
            | State::Undoing(..) => Next::Stay,
        }
    }

    /// Takes note of what becomes of the subscription, also when nobody waits for it.
    fn on_side_call(&mut self, call: CallId, reply: Option<Reply>, _turn: &mut Turn<'_, Self>) -> Option<Next<Step>> {
        if let Subscription::Asked { key, call: asked } = self.subscription
            && asked == call
        {
            self.subscription = match reply {
                Some(Reply::Ok) => Subscription::Stands { key },
                Some(_) | None => Subscription::None,
            };
        }
        None
    }

    fn renewal(&mut self) -> Option<&mut Renewal> {
        self.renewal.as_mut()
    }
}

impl Notify {
    pub(crate) const fn new(renewal: Option<Renewal>) -> Self {
        Self {
            renewal,
            subscription: Subscription::None,
            subscribed_before: false,
            message_came: false,
            end: Nanos::ZERO,
        }
    }

    /// Another client holds the lock, for `left` ms, or for at most one whole lease.
    fn refused(&mut self, step: Step, left: Option<u64>, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.end = match turn.backoff().wait_for_message(turn.now, &turn.spec().retry) {
            Attempt::TryAt(end) => end,
            Attempt::GiveUp(refusal) => return Next::Settle(Ending::Refused(refusal)),
        };
        match self.subscription {
            // The lock may have been released since.
            Subscription::Stands { key } if key == turn.key() && self.message_came => {
                attempt_by(Step::AfterMessage, turn)
            }
            Subscription::Stands { key } if key == turn.key() => {
                if self.subscribed_before && step != Step::First {
                    Next::Wait(Step::Listen, turn.now.after(listen_time(left, turn)).min(self.end))
                } else {
                    attempt_by(Step::ByScript, turn)
                }
            }
            // An earlier request started this subscription.
            Subscription::Asked { key, call } if key == turn.key() => Next::Expect(Step::Subscribe, call),
            Subscription::None | Subscription::Asked { .. } | Subscription::Stands { .. } => self.subscribe(turn),
        }
    }

    fn subscribe(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let over = ConnectionKind::Subscribing;
        match self.subscription {
            Subscription::Asked { key: old, .. } | Subscription::Stands { key: old } => {
                // A message does not name its lock. The reply to this does not matter.
                turn.send_to(SERVER, over, Command::Unsubscribe { key: old });
            }
            Subscription::None => {}
        }
        let key = turn.key();
        let call = turn.send_to(SERVER, over, Command::Subscribe { key });
        self.subscription = Subscription::Asked { key, call };
        Next::Expect(Step::Subscribe, call)
    }
}

fn attempt_by(step: Step, turn: &mut Turn<'_, Notify>) -> Next<Step> {
    turn.count_attempt();
    turn.draw_owner();
    Next::Ask(step)
}

/// How long to wait for a message: the rest of the holder's lease and a random part of the policy's base. A holder that
/// took the lock after a message has a whole lease. A key without an expiry is not a lock of ours, and nobody will
/// publish its release: the client checks it after one lease, too.
fn listen_time(left: Option<u64>, turn: &mut Turn<'_, Notify>) -> Nanos {
    let left = left.unwrap_or(turn.lease_ms());
    let base = turn.spec().retry.base.0;
    let spread = turn.chance().below(base.saturating_add(1));
    Nanos::from_millis(left).after(Nanos(spread))
}
