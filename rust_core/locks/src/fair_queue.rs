//! `fair-queue`: a queue on the server, in order of arrival. A release hands the lock to the first waiter and wakes it.
//!
//! ```text
//!          Acquire           taken in time        Release, Cancel
//!    Idle ─────────▶ Take ─────────────────▶ Held ─────────────────▶ Leave ────▶ Idle
//!                   ▲ ▲ │ └── taken too late, Cancel ───────────────▶ ▲ ▲ │
//!         woken, or │ │ │ queued                                      │ │ │ was too late, and the
//!         time to   │ │ ▼                    Cancel, the longest wait │ │ │ policy allows another
//!         beat      └─│─ Queue ───────────────────────────────────────┘ │ ▼       (Queue ──── woken ──▶ Held)
//!                     └──────────────────────── Woke ───────────────── Pausing
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`).
//!
//! The script `queue_take` does all that a waiter needs: it joins the queue, shows that the waiter is alive (a beat),
//! and takes the lock when it is the waiter's turn. Between beats the waiter blocks in a pop of its own wake-up list,
//! over its own connection. Beats go over a shared connection, so that the pop may block for longer than a beat: a
//! waiter sends a beat every 2 s and a pop every 6 s.
//!
//! The script `queue_confirm` confirms a lock that was handed over, and tells its holder which client is first in the
//! queue: the successor. It prepares the successor's wake-up list under the holder's own name, where the list lasts no
//! longer than the holder's lease and the successor's place. The release that others wait for is then one `RENAME`: it
//! fails unless both still last, and otherwise it wakes the successor. The successor keeps its place as the first until
//! it has confirmed: once its prepared list is gone, the lock is its own and nobody overtakes it. If no successor is
//! known, or the prepared list is gone, the script `queue_leave` releases the lock and finds the next waiter. A client
//! that released its last lock before it could use the successor's name asks for none: if the work is that short, or
//! the server that busy, preparing a successor costs the server more than it saves.
//!
//! A handed-over lock belongs to the waiter from the release of the holder before. The waiter cannot know when that
//! was, but it was after the waiter's last beat. So the waiter holds the lock as soon as it is woken, for its lease or
//! `ALIVE` beats, whichever is shorter, counted from the send of that beat; and for the whole lease once that is
//! confirmed. A hand-over takes one round trip. If the lease is shorter than a beat, that time may already have ended;
//! then the waiter sends `queue_take` before it holds.
//!
//! Bounds: a dead waiter leaves the queue `ALIVE` beats after its last one. A lock that was handed to a dead waiter is
//! free after one lease, or two if its place lasts for longer than one. An expired lock is taken for the first waiter
//! by the next beat of any waiter. So a dead holder's lock is granted again within its lease and one and a quarter
//! beats (beats are spread by up to a quarter).
//!
//! Promises: order of arrival among those whose beats reach the server; never held past the lease, nor by a reply to an
//! earlier attempt; hands on no lock but its own. Of the policy, `max_wait` bounds the wait, kind `none` does not
//! queue, and `max_attempts` counts places in the queue. Does not promise safety when the server loses its data.

use crate::args::Args;
use crate::backoff::Next as Attempt;
use crate::calls::TakeEffect;
use crate::script_form::PendingScript;
use crate::shell::{After, Ending, Lock, Next, State, Turn, Undone};
use crate::{CallId, Command, Lease, Millis, Nanos, Refusal, Reply, Script, Spec, SpecError, Strategy, Token, Traits};

mod hand_over;

pub(crate) const TRAITS: Traits = Traits {
    name: "fair-queue",
    owns_connection: true,
    acknowledges_places: true,
    is_fifo: true,
    scripts: &[Script::QueueTake, Script::QueueConfirm, Script::QueueLeave],
    ..Traits::LEASE
};

/// `beat_ms`: the time between two signs of life of a waiter.
pub(crate) fn with(beat: Millis, args: &mut Args<'_>) -> Result<Strategy, SpecError> {
    let beat = Millis(args.count("beat_ms", beat.0, 10, 60_000)?);
    Ok(Strategy::FairQueue { beat })
}

/// How many beats long a waiter counts as alive after a beat: two of them may be missed.
const ALIVE: u64 = 3;

#[derive(Debug)]
pub(crate) struct FairQueue {
    beat: Millis,
    /// The blocking pop, possibly one of an earlier request.
    pop: Option<WakeupPop>,
    /// The pop's connection was lost since the last beat, and one more pop was tried. Then no other is tried before the
    /// next beat: if no connection can be had, each would be lost at once.
    was_cut: bool,
    /// The last hold was long enough for asking for a successor to pay off.
    wants_successor: bool,
    /// This client may be blocked in its pop, or was when it began to leave.
    may_block: bool,
    /// The end of the longest wait.
    end: Nanos,
    place: Place,
    hold: Hold,
}

/// What this client knows about its place in the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The server has acknowledged it.
    acknowledged: bool,
    /// The wake-up came since `queue_take` was sent: a reply that says "wait" is older than the wake-up.
    woken: bool,
    /// An earlier place lapsed, possibly together with a lock that had been handed over. The wake-up for that lock may
    /// still arrive, and must not be taken for one for the current place.
    stale_wakeup: bool,
}

#[derive(Clone, Copy, Debug)]
struct WakeupPop {
    call: CallId,
    token: Token,
}

/// What this client knows about its current hold.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    since: Nanos,
    /// The confirmation of a handed-over lock, until it is answered.
    confirming: Option<Confirming>,
    /// When the lock was confirmed, and the successor at that time.
    confirmed: Option<(Nanos, Option<Token>)>,
}

#[derive(Clone, Copy, Debug)]
struct Confirming {
    script: PendingScript,
    sent: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The script that joins, beats and takes.
    Take,
    /// This client has a place in the queue, and waits for its wake-up or the next beat.
    Queue,
    /// The script that leaves and hands on.
    Leave,
    /// Wakes the successor. It owns the lock from then on, and keeps the first place until it has received the wake-up.
    HandOver,
}

impl Lock for FairQueue {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Take;
    const UNDO: Step = Step::Leave;

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        turn.count_attempt();
        turn.draw_owner();
        (self.was_cut, self.may_block, self.place) = (false, false, Place::default());
        self.take(false)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        match step {
            Step::Take | Step::Queue => {
                let retry = &turn.spec().retry;
                let waits = self.place.acknowledged
                    || matches!(turn.backoff().wait_for_message(turn.now, retry), Attempt::TryAt(_));
                let alive = if waits { self.alive_ms() } else { 0 };
                turn.script(Script::QueueTake, [turn.lease_ms(), alive])
            }
            Step::Leave => {
                let lease_ms = self.handed_over_for(turn.spec()).ttl().0;
                turn.script(Script::QueueLeave, [lease_ms, self.may_block.into()])
            }
            Step::HandOver => Command::HandOver {
                key: turn.key(),
                token: turn.owner(),
                successor: self.successor().expect("only a known successor is woken"),
            },
        }
    }

    fn answer(&mut self, _step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match reply {
            Reply::Int(0) => {
                self.hold = Hold {
                    since: turn.now,
                    ..Hold::default()
                };
                Next::Granted(None)
            }
            Reply::Int(1) if self.place.acknowledged => self.queued(turn),
            Reply::Int(2) => {
                turn.out.queued();
                if self.place.acknowledged {
                    // The earlier place lapsed on the server, or the lock that was handed over did.
                    turn.count_attempt();
                    self.place.stale_wakeup = true;
                }
                self.queued(turn)
            }
            Reply::Int(-1) if !self.place.acknowledged => {
                let refusal = match turn.backoff().wait_for_message(turn.now, &turn.spec().retry) {
                    Attempt::GiveUp(refusal) => refusal,
                    Attempt::TryAt(_) => Refusal::Busy,
                };
                Next::Settle(Ending::Refused(refusal))
            }
            // Whatever the error says of this script, an earlier one may have left a place.
            other if self.place.acknowledged => Next::Failed(other.failure(), TakeEffect::Unknown),
            other => Next::failed(other),
        }
    }

    fn cancel(&mut self, _step: Step, _turn: &mut Turn<'_, Self>) -> Next<Step> {
        // Sent at once: the script follows `queue_take` on the same connection and undoes it.
        Next::Undo(After::CANCEL)
    }

    fn due(&mut self, _step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if turn.now >= self.end {
            return leave_as(Ending::Refused(Refusal::TimedOut));
        }
        self.was_cut = false;
        self.take(true)
    }

    fn release(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let held_for = turn.now.since(self.hold.since);
        match (self.hold.confirmed, self.hold.confirming) {
            (Some((confirmed, _)), _) => {
                let takes = confirmed.since(self.hold.since);
                // With a quarter to spare, because reply times vary.
                self.wants_successor = held_for >= Nanos(takes.0 + takes.0 / 4);
            }
            (None, Some(_)) => self.wants_successor = false,
            // The lock was taken by `queue_take` and not handed over.
            (None, None) => {}
        }
        if self.successor().is_some() && turn.now < turn.until() {
            Next::UndoBy(Step::HandOver, After::Release)
        } else {
            Next::Undo(After::Release)
        }
    }

    fn undone(&mut self, step: Step, reply: Reply, _turn: &mut Turn<'_, Self>) -> Undone<Step> {
        match (step, reply) {
            (Step::HandOver, Reply::Ok) => Undone::WasHeld,
            // The successor has gone, or the lease has ended: the script tells which.
            (Step::HandOver, Reply::Error(_)) => Undone::By(Step::Leave),
            // 1: also when the lock was handed to this client meanwhile, and the script handed it on. After an error
            // the place ends `ALIVE` beats after the last beat.
            (_, other) => Undone::of_script(other),
        }
    }

    fn on_side_call(&mut self, call: CallId, reply: Option<Reply>, turn: &mut Turn<'_, Self>) -> Option<Next<Step>> {
        if let Some(pop) = self.pop.take_if(|pop| pop.call == call) {
            if !matches!(turn.state(), State::Undoing(Step::Leave, _)) {
                self.may_block = false;
            }
            return Some(match reply {
                Some(reply) => self.pop_answered(pop.token, reply, turn),
                None => self.pop_lost(pop.token, turn),
            });
        }
        let confirming = self.hold.confirming.filter(|confirming| confirming.script.is(call))?;
        // The lease of the hand-over lasts, whatever happens to its confirmation.
        if let (State::Held, Some(reply)) = (turn.state(), reply) {
            self.confirmed(confirming, reply, turn);
        }
        Some(Next::Stay)
    }

    fn is_placed(&self, state: State<Step>, beat_sent: Nanos, now: Nanos) -> bool {
        // Counted from before the send, and by the driver's clock: one beat of margin lies between that and the lapse.
        state == State::Waiting(Step::Queue) && now < beat_sent.after(Nanos::from_millis(self.beat.0 * (ALIVE - 1)))
    }
}

impl FairQueue {
    pub(crate) fn new(beat: Millis) -> Self {
        Self {
            beat,
            pop: None,
            was_cut: false,
            wants_successor: true,
            may_block: false,
            end: Nanos::ZERO,
            place: Place::default(),
            hold: Hold::default(),
        }
    }

    const fn alive_ms(&self) -> u64 {
        self.beat.0 * ALIVE
    }

    fn successor(&self) -> Option<Token> {
        self.hold.confirmed.and_then(|(_, successor)| successor)
    }

    /// The lease of a handed-over lock. If its waiter has died, the lock is free again no later than any holder's, and
    /// no later than its place would have ended. All clients of a lock have the same lease and beat, so the waiter
    /// knows this length.
    fn handed_over_for(&self, spec: &Spec) -> Lease {
        let alive = Lease::new(self.alive_ms().cast_signed()).expect("a few beats are shorter than the longest lease");
        spec.lease.min(alive)
    }

    fn take(&mut self, acknowledged: bool) -> Next<Step> {
        (self.place.acknowledged, self.place.woken) = (acknowledged, false);
        Next::Ask(Step::Take)
    }

    /// The server has put this client into its queue.
    fn queued(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.end = match turn.backoff().wait_for_message(turn.now, &turn.spec().retry) {
            Attempt::TryAt(end) => end,
            Attempt::GiveUp(refusal) => return leave_as(Ending::Refused(refusal)),
        };
        if self.place.woken {
            return self.take(true);
        }
        if self.pop.is_none_or(|pop| pop.token != turn.owner()) {
            self.start_pop(turn);
        }
        // A beat, or up to a quarter more, so that waiters that came together do not stay in step.
        let beat = Nanos::from(self.beat);
        let beat_at = turn.now.after(beat).after(Nanos(turn.chance().below(beat.0 / 4 + 1)));
        Next::Wait(Step::Queue, beat_at.min(self.end))
    }
}

/// Leaves the queue, and then settles.
const fn leave_as(ending: Ending) -> Next<Step> {
    Next::Undo(After::Settle(ending))
}
