//! Auto-renewal: the part of a lock that renews its lease while it is held.
//!
//! ```text
//!           held                time has come               1, before the end
//!    Off ─────────▶ Due ─────────────────────────▶ Asked ──────────────────────▶ Due
//!                   │                                │ ├── error, lost, timeout ─▶ Due
//!                   └── the end, or 0, or 1 too late ┴─┴─▶ Off
//! ```
//! Not drawn: a renewal whose script the server does not know is sent again as source. After the longest hold, `Due`
//! sends nothing more and leads to `Off`. From a release or a cancel on, the shell asks it nothing: so no renewal can
//! follow the release.
//!
//! Promises: belief is prolonged only by a reply that came before the earlier belief ended; a lost lock is never taken
//! again; the lease never grows after a release was sent; clients that were granted together are not renewed in step.
//! Does not promise to notice a loss before the reply to the next renewal or the end of the lease.

use crate::script_form::PendingScript;
use crate::shell::{Lock, Turn};
use crate::{CallId, Command, Lease, Nanos, Reply, Script};

#[derive(Debug)]
pub(crate) struct Renewal {
    /// The time between renewals.
    every: Nanos,
    longest_hold: Nanos,
    state: State,
    /// No renewal is sent from this time on.
    last_call: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing has been held yet, or it was lost.
    Off,
    Due(Nanos),
    Asked(Asked),
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    script: PendingScript,
    sent: Nanos,
}

impl Renewal {
    /// Renews `per_ttl` times per lease; no hold is renewed beyond `longest_hold`.
    pub(crate) fn new(lease: Lease, per_ttl: u32, longest_hold: Nanos) -> Self {
        Self {
            every: Nanos(Nanos::from(lease.ttl()).0 / u64::from(per_ttl)),
            longest_hold,
            state: State::Off,
            last_call: Nanos::NEVER,
        }
    }

    /// Three times per lease, if the strategy asks for it.
    pub(crate) fn thrice(lease: Lease, renews: bool) -> Option<Self> {
        renews.then(|| Self::new(lease, 3, Nanos::NEVER))
    }

    /// The lock is held from now on.
    pub(crate) fn start<L: Lock>(&mut self, turn: &mut Turn<'_, L>) {
        self.last_call = turn.now.after(self.longest_hold);
        // At least half an interval, because a fresh lease needs no renewal; the rest is random, so that clients that
        // were granted together do not stay in step.
        let half = Nanos(self.every.0 / 2);
        let drawn = Nanos(turn.chance().below(self.every.since(half).0 + 1));
        self.plan(turn.now.after(half).after(drawn), turn);
    }

    /// Also asks to be woken at the end of belief: nothing else reports that.
    fn plan<L: Lock>(&mut self, at: Nanos, turn: &mut Turn<'_, L>) {
        let at = if at < self.last_call { at } else { Nanos::NEVER };
        self.state = State::Due(at);
        turn.out.wake_at(at.min(turn.until()));
    }

    pub(crate) fn woke<L: Lock>(&mut self, turn: &mut Turn<'_, L>) {
        match self.state {
            State::Due(_) | State::Asked(_) if turn.now >= turn.until() => self.lapse(turn),
            State::Due(at) if turn.now >= at => self.ask(renew(turn), turn),
            State::Due(at) => turn.out.wake_at(at.min(turn.until())),
            State::Asked(asked) => {
                let given_up = asked.sent.after(turn.spec().reply_timeout);
                if turn.now >= given_up {
                    self.try_later(asked, turn);
                } else {
                    turn.out.wake_at(given_up.min(turn.until()));
                }
            }
            // The wake-up was for something that is settled.
            State::Off => {}
        }
    }

    /// The holder asks for a renewal now, whatever was planned, also beyond the longest hold.
    pub(crate) fn extend<L: Lock>(&mut self, turn: &mut Turn<'_, L>) {
        match self.state {
            State::Due(_) | State::Asked(_) if turn.now >= turn.until() => self.lapse(turn),
            State::Due(_) => self.ask(renew(turn), turn),
            // The reply to the renewal under way answers this one, too; or the lock was lost, and its holder was told.
            State::Asked(_) | State::Off => {}
        }
    }

    fn ask<L: Lock>(&mut self, command: Command, turn: &mut Turn<'_, L>) {
        let script = PendingScript::new(turn.send(command), command);
        self.state = State::Asked(Asked { script, sent: turn.now });
        turn.out.wake_at(turn.reply_deadline().min(turn.until()));
    }

    /// The reply to a call, or its loss (`None`), while the lock is held.
    pub(crate) fn on_reply<L: Lock>(&mut self, call: CallId, reply: Option<Reply>, turn: &mut Turn<'_, L>) {
        match (self.state, reply) {
            (State::Asked(asked), Some(reply)) if asked.script.is(call) => self.answered(asked, reply, turn),
            (State::Asked(asked), None) if asked.script.is(call) => self.try_later(asked, turn),
            // A call that was given up.
            (State::Asked(_) | State::Off | State::Due(_), _) => {}
        }
    }

    fn answered<L: Lock>(&mut self, asked: Asked, reply: Reply, turn: &mut Turn<'_, L>) {
        // Whatever the reply says: if belief has ended, a late reply revives nothing.
        if turn.now >= turn.until() || reply == Reply::Int(0) {
            return self.lapse(turn);
        }
        if let Some(source) = asked.script.source_after(reply, || renew(turn)) {
            return self.ask(source, turn);
        }
        if reply == Reply::Int(1) {
            turn.prolong(turn.spec().lease.until(asked.sent));
        }
        // Any other reply is neither a renewal nor a loss: the lease runs on, and there is time for another try.
        self.try_later(asked, turn);
    }

    fn try_later<L: Lock>(&mut self, asked: Asked, turn: &mut Turn<'_, L>) {
        self.plan(asked.sent.after(self.every).max(turn.now), turn);
    }

    fn lapse<L: Lock>(&mut self, turn: &mut Turn<'_, L>) {
        self.state = State::Off;
        turn.out.lapsed();
    }
}

fn renew<L: Lock>(turn: &Turn<'_, L>) -> Command {
    turn.script(Script::CompareAndExpire, [turn.lease_ms(), 0])
}
