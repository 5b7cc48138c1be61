//! Auto-renewal: renews the lease of a lock while it is held. The lock inside is any that is `Renewable`.
//!
//! ```text
//!           held                time has come               1, before the end
//!    Off ─────────▶ Due ─────────────────────────▶ Asked ──────────────────────▶ Due
//!     ▲             │                                │ ├── error, lost, timeout ─▶ Due
//!     │             └── the end, or 0, or 1 too late ┴─┴─▶ Over
//!     └── Release, Cancel: from anywhere
//! ```
//! Not drawn: a renewal whose script the server does not know is sent again as source. After the longest hold, `Due`
//! sends nothing more and leads to `Over`.
//!
//! Promises: belief is prolonged only by a reply that came before the earlier belief ended; a lost lock is never taken
//! again; the lease never grows after a release was sent; clients that were granted together are not renewed in step.
//! Does not promise to notice a loss before the reply to the next renewal or the end of the lease.

use crate::grant::Grant;
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Lasts, LockMachine, Nanos, Reply, Script, ScriptForm, Spec,
};

/// A lock of one key and one lease, under one token on one server, which receives every reply to what is sent for it.
/// Only a reply grants it, and only a `Release` or a `Cancel` ends the grant.
pub(crate) trait Renewable: LockMachine {
    fn spec(&self) -> &Spec;

    fn chance(&mut self) -> &mut Chance;

    fn granted(&self) -> Option<Grant>;

    /// Records a renewal.
    fn prolong(&mut self, until: Nanos);

    /// Sends over the connection of the lock's own commands, so that the server carries out a later release after it.
    fn send(&mut self, command: Command, out: &mut Actions) -> CallId;
}

#[derive(Debug)]
pub(crate) struct AutoRenewal<L> {
    lock: L,
    /// The time between renewals; `None`: never renewed.
    every: Option<Nanos>,
    longest_hold: Nanos,
    renewal: Renewal,
    /// No renewal is sent from this time on.
    last_call: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum Renewal {
    /// Nothing is held.
    Off,
    Due(Nanos),
    Asked(Asked),
    /// Held without renewals, or lost.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
}

impl<L: Renewable> AutoRenewal<L> {
    /// Renews `per_ttl` times per lease, or never when that is `None`; no hold is renewed beyond `longest_hold`.
    pub(crate) fn new(lock: L, per_ttl: Option<u32>, longest_hold: Nanos) -> Self {
        let ttl = Nanos::from(lock.spec().lease.ttl());
        Self {
            lock,
            every: per_ttl.map(|times| Nanos(ttl.0 / u64::from(times))),
            longest_hold,
            renewal: Renewal::Off,
            last_call: Nanos::NEVER,
        }
    }

    /// Passes the event to the lock, and starts the renewals if that made it held.
    fn pass_on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        self.lock.on(now, event, out);
        match (self.renewal, self.lock.granted(), self.every) {
            (Renewal::Off, Some(grant), Some(every)) => {
                self.last_call = now.after(self.longest_hold);
                // At least half an interval, because a fresh lease needs no renewal; the rest is random, so that
                // clients that were granted together do not stay in step.
                let half = Nanos(every.0 / 2);
                let drawn = Nanos(self.lock.chance().below(every.since(half).0 + 1));
                self.plan(now.after(half).after(drawn), grant.until, out);
            }
            (Renewal::Off, Some(_), None) => self.renewal = Renewal::Over,
            // Nothing is held yet, or the renewals are running.
            (Renewal::Off, None, _) | (Renewal::Due(_) | Renewal::Asked(_) | Renewal::Over, _, _) => {}
        }
    }

    /// The machine wakes at the end of belief too: nothing else reports that.
    fn plan(&mut self, at: Nanos, until: Nanos, out: &mut Actions) {
        let at = if at < self.last_call { at } else { Nanos::NEVER };
        self.renewal = Renewal::Due(at);
        out.wake_at(at.min(until));
    }

    fn woke(&mut self, now: Nanos, grant: Grant, out: &mut Actions) {
        match self.renewal {
            Renewal::Due(_) | Renewal::Asked(_) if now >= grant.until => self.lapse(out),
            Renewal::Due(at) if now >= at => self.ask(now, grant, ScriptForm::Sha, out),
            Renewal::Due(at) => out.wake_at(at.min(grant.until)),
            Renewal::Asked(asked) => {
                let given_up = asked.sent.after(self.lock.spec().reply_timeout);
                if now >= given_up {
                    self.try_later(now, asked, grant, out);
                } else {
                    out.wake_at(given_up.min(grant.until));
                }
            }
            // The wake-up was for something that is settled.
            Renewal::Off | Renewal::Over => {}
        }
    }

    fn ask(&mut self, now: Nanos, grant: Grant, form: ScriptForm, out: &mut Actions) {
        let lease_ms = self.lock.spec().lease.ttl().0;
        let command = grant.attempt.run(Script::CompareAndExpire, form, [lease_ms, 0]);
        let call = self.lock.send(command, out);
        self.renewal = Renewal::Asked(Asked { call, sent: now, form });
        out.wake_at(now.after(self.lock.spec().reply_timeout).min(grant.until));
    }

    fn answered(&mut self, now: Nanos, asked: Asked, grant: Grant, reply: Reply, out: &mut Actions) {
        match reply {
            // Whatever the reply says, belief has ended, and a late reply revives nothing.
            _ if now >= grant.until => self.lapse(out),
            Reply::Int(1) => {
                let until = self.lock.spec().lease.until(asked.sent);
                self.lock.prolong(until);
                out.renewed(Lasts::Until(until));
                self.try_later(now, asked, Grant { until, ..grant }, out);
            }
            Reply::Int(0) => self.lapse(out),
            Reply::Error(ErrorKind::NoScript) if asked.form == ScriptForm::Sha => {
                self.ask(now, grant, ScriptForm::Source, out);
            }
            // Neither a renewal nor a loss: the lease runs on, and there is time for another try.
            Reply::Error(_)
            | Reply::Ok
            | Reply::Nil
            | Reply::Int(_)
            | Reply::Entry(_)
            | Reply::Token(_)
            | Reply::Items
            | Reply::Other => {
                self.try_later(now, asked, grant, out);
            }
        }
    }

    fn try_later(&mut self, now: Nanos, asked: Asked, grant: Grant, out: &mut Actions) {
        let every = self.every.expect("a renewal was sent, so there is an interval");
        self.plan(asked.sent.after(every).max(now), grant.until, out);
    }

    fn lapse(&mut self, out: &mut Actions) {
        self.renewal = Renewal::Over;
        out.lapsed();
    }

    /// The renewal with this call, and the grant that it renews.
    fn asked(&self, call: CallId) -> Option<(Asked, Grant)> {
        match self.renewal {
            Renewal::Asked(asked) if asked.call == call => Some((asked, self.lock.granted()?)),
            // A renewal that was given up, or a call of the lock inside.
            Renewal::Asked(_) | Renewal::Off | Renewal::Due(_) | Renewal::Over => None,
        }
    }
}

impl<L: Renewable> LockMachine for AutoRenewal<L> {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            // From here on no renewal is sent, so none can follow the release.
            Event::Release | Event::Cancel => {
                self.renewal = Renewal::Off;
                self.lock.on(now, event, out);
            }
            Event::Replied { call, reply } => match self.asked(call) {
                Some((asked, grant)) => self.answered(now, asked, grant, reply, out),
                None => self.pass_on(now, event, out),
            },
            Event::Lost { call } => match self.asked(call) {
                Some((asked, grant)) => self.try_later(now, asked, grant, out),
                None => self.pass_on(now, event, out),
            },
            Event::Woke => match self.lock.granted() {
                Some(grant) => self.woke(now, grant, out),
                None => self.lock.on(now, event, out),
            },
            Event::Acquire { .. } | Event::Enter | Event::Published { .. } | Event::Disconnected => {
                self.lock.on(now, event, out);
            }
        }
    }

    fn attempts(&self) -> u32 {
        self.lock.attempts()
    }
}
