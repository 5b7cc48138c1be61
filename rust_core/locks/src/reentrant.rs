//! `reentrant`: a lock whose holder may enter it again; it is released with the last entry. The entries are counted on
//! the server, in a list that has the owner's token once per entry and whose lease each entry renews; or by the client,
//! on top of a `mutex`. The two differ in commands per grant.
//!
//! ```text
//!               Enter            Entering            counted by the client: all at once
//!            ┌─────────▶ the reply decides ───┐
//!          Held ◀─────────────────────────────┤
//!            ├─────────▶ the reply decides ───┘
//!            │  Release          Leaving       not the last entry
//!            └── Release of the last entry, Cancel ──▶ Releasing, as in `Leased`
//! ```
//! `Leased` leads to `Held` and away from it. An entry that fails leaves the earlier ones as they were; a release that
//! does not settle as `Held` ends all of them.
//!
//! Promises: exclusion between owners while no work outlives the lease and the server keeps its data; one token for all
//! entries of a grant, so another owner's release is refused; an entry never takes a lock that was lost; a dead
//! holder's lock is free again one lease after its last entry. Leaving an entry and releasing the lock work even on a
//! server that has no memory for anything new.

use std::sync::Arc;

use crate::auto_renewal::Renewable;
use crate::calls::{Deadline, TakeEffect, check_deadline};
use crate::lease_protocol::{LeaseAttempt, LeaseProtocol, ReleaseReply, TakeReply};
use crate::leased::{Grant, Leased};
use crate::{
    Actions, CallId, Chance, Command, ErrorKind, Event, Lasts, LockMachine, Nanos, Outcome, Refusal, Reply, Script,
    ScriptForm, Spec,
};

/// Where the entries are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Server,
    Local,
}

#[derive(Debug)]
pub(crate) struct Reentrant {
    lock: Leased<Counted>,
    /// The entries that were settled as held.
    entries: u64,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Any call under way belongs to `Leased`.
    InLeased,
    Entering(PendingScript),
    Leaving(PendingScript),
}

#[derive(Clone, Copy, Debug)]
struct PendingScript {
    call: CallId,
    sent: Nanos,
    form: ScriptForm,
}

/// The lease protocol of the first entry, and of the release of all entries.
#[derive(Debug)]
struct Counted {
    count: Count,
    /// The largest number that the server may have counted, which includes an entry whose reply was lost.
    at_most: u64,
}

impl Counted {
    fn leave(attempt: LeaseAttempt, entries: u64) -> Command {
        run(Script::ReentrantLeave, attempt, entries)
    }
}

fn run(script: Script, attempt: LeaseAttempt, number: u64) -> Command {
    Command::Run {
        script,
        form: ScriptForm::Sha,
        key: attempt.key,
        token: attempt.token,
        numbers: [number, 0],
    }
}

impl LeaseProtocol for Counted {
    fn take(&self, attempt: LeaseAttempt, lease_ms: u64) -> Command {
        match self.count {
            Count::Server => run(Script::ReentrantTake, attempt, lease_ms),
            Count::Local => attempt.set_if_absent(lease_ms),
        }
    }

    fn take_reply(&self, reply: Reply) -> TakeReply {
        match self.count {
            Count::Server => TakeReply::of_script(reply),
            Count::Local => TakeReply::of_set(reply),
        }
    }

    fn release(&self, attempt: LeaseAttempt) -> Command {
        match self.count {
            Count::Server => Self::leave(attempt, self.at_most),
            Count::Local => attempt.compare_and_delete(),
        }
    }

    fn release_reply(&self, reply: Reply) -> Option<ReleaseReply> {
        match (self.count, reply) {
            (Count::Server, Reply::Int(0)) | (Count::Local, Reply::Int(1)) => Some(ReleaseReply::WasHeld),
            (Count::Server, Reply::Nil) | (Count::Local, Reply::Int(0)) => Some(ReleaseReply::WasLost),
            (
                Count::Server | Count::Local,
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Error(_)
                | Reply::Other,
            ) => None,
        }
    }
}

impl Reentrant {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance, count: Count) -> Self {
        let counted = Counted { count, at_most: 1 };
        Self {
            lock: Leased::new(spec, chance, counted),
            entries: 0,
            step: Step::InLeased,
        }
    }

    fn enter(&mut self, now: Nanos, out: &mut Actions) {
        let grant = self.current_grant("Enter");
        match self.lock.protocol.count {
            _ if now >= grant.until => out.settle(Outcome::Refused(Refusal::TooLate)),
            Count::Local => {
                self.entries += 1;
                out.settle(held(grant));
            }
            Count::Server => {
                self.lock.protocol.at_most += 1;
                let command = run(Script::ReentrantEnter, grant.attempt, self.lock.spec.lease.ttl().0);
                self.step = Step::Entering(self.send(now, command, ScriptForm::Sha, out));
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        let grant = self.current_grant("Release");
        match self.lock.protocol.count {
            // All entries end with the lease.
            _ if self.entries == 1 || now >= grant.until => self.lock.on(now, Event::Release, out),
            Count::Local => {
                self.entries -= 1;
                out.settle(held(grant));
            }
            Count::Server => {
                let command = Counted::leave(grant.attempt, 1);
                self.step = Step::Leaving(self.send(now, command, ScriptForm::Sha, out));
            }
        }
    }

    /// The current grant. Panics when nothing is held, or a request is under way.
    fn current_grant(&self, request: &str) -> Grant {
        match (self.step, self.lock.held()) {
            (Step::InLeased, Some(grant)) => grant,
            (Step::InLeased, None) => panic!("{request}, but nothing is held"),
            (Step::Entering(_) | Step::Leaving(_), _) => panic!("{request}, but the last request is not settled"),
        }
    }

    fn send(&mut self, now: Nanos, command: Command, form: ScriptForm, out: &mut Actions) -> PendingScript {
        let command = match form {
            ScriptForm::Sha => command,
            ScriptForm::Source => command.as_source().unwrap_or(command),
        };
        let call = self.lock.send(command, out);
        out.wake_at(now.after(self.lock.spec.reply_timeout));
        PendingScript { call, sent: now, form }
    }
}

/// The replies to an entry, and to leaving one that is not the last.
impl Reentrant {
    fn entered(&mut self, now: Nanos, asked: PendingScript, grant: Grant, reply: Reply, out: &mut Actions) {
        self.step = Step::InLeased;
        match reply {
            // A late reply revives nothing; this entry is released with the others.
            Reply::Int(2..) if now >= grant.until => out.settle(Outcome::Refused(Refusal::TooLate)),
            Reply::Int(2..) => {
                let until = self.lock.spec.lease.until(asked.sent);
                self.lock.prolong(until);
                self.entries += 1;
                out.settle(held(Grant { until, ..grant }));
            }
            Reply::Nil => {
                // Belief ends here, so nothing is entered either.
                self.lock.prolong(now);
                out.lapsed();
                out.settle(Outcome::Refused(Refusal::TooLate));
            }
            // Nothing was entered. Sent again, the script would renew the lease of a lock in which the client no longer
            // believes.
            Reply::Error(ErrorKind::NoScript) if now >= grant.until => {
                self.lock.protocol.at_most -= 1;
                out.settle(Outcome::Refused(Refusal::TooLate));
            }
            Reply::Error(ErrorKind::NoScript) if asked.form == ScriptForm::Sha => {
                let command = run(Script::ReentrantEnter, grant.attempt, self.lock.spec.lease.ttl().0);
                self.step = Step::Entering(self.send(now, command, ScriptForm::Source, out));
            }
            Reply::Error(kind) => {
                match TakeEffect::of(kind) {
                    TakeEffect::Nothing => self.lock.protocol.at_most -= 1,
                    // The server may have counted the entry, so the last release includes it.
                    TakeEffect::Unknown => {}
                }
                out.settle(Outcome::Failed(kind));
            }
            Reply::Ok | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                out.settle(Outcome::Failed(ErrorKind::Unexpected));
            }
        }
    }

    fn left(&mut self, now: Nanos, asked: PendingScript, grant: Grant, reply: Reply, out: &mut Actions) {
        self.step = Step::InLeased;
        match reply {
            Reply::Int(1..) => {
                self.entries -= 1;
                self.lock.protocol.at_most -= 1;
                if now < grant.until {
                    out.settle(held(grant));
                } else {
                    // All entries ended with the lease; the rest are released without waiting for the reply.
                    self.give_up(grant, Outcome::Expired, out);
                }
            }
            Reply::Nil => self.lock.settle(Outcome::Expired, out),
            Reply::Error(ErrorKind::NoScript) if asked.form == ScriptForm::Sha => {
                let command = Counted::leave(grant.attempt, 1);
                self.step = Step::Leaving(self.send(now, command, ScriptForm::Source, out));
            }
            Reply::Error(kind) => self.give_up(grant, Outcome::Failed(kind), out),
            // Also 0: entries must be left, unless another program has changed the count.
            Reply::Ok | Reply::Int(_) | Reply::Entry(_) | Reply::Token(_) | Reply::Items | Reply::Other => {
                self.give_up(grant, Outcome::Failed(ErrorKind::Unexpected), out);
            }
        }
    }

    /// The call under way will get no reply.
    fn no_reply(&mut self, out: &mut Actions) {
        match (self.step, self.lock.held()) {
            (Step::Entering(_), _) => {
                self.step = Step::InLeased;
                out.settle(Outcome::Unknown);
            }
            (Step::Leaving(_), Some(grant)) => self.give_up(grant, Outcome::Unknown, out),
            (Step::Leaving(_), None) => unreachable!("leaving an entry, but nothing is held"),
            // No call of this file was awaited.
            (Step::InLeased, _) => {}
        }
    }

    /// Ends all entries, because their number is unknown.
    fn give_up(&mut self, grant: Grant, outcome: Outcome, out: &mut Actions) {
        self.step = Step::InLeased;
        self.lock.abandon(grant.attempt, outcome, out);
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match (self.step, self.lock.held()) {
            (Step::Entering(asked), Some(grant)) if asked.call == call => self.entered(now, asked, grant, reply, out),
            (Step::Leaving(asked), Some(grant)) if asked.call == call => self.left(now, asked, grant, reply, out),
            // A call of `Leased`, or one that was given up.
            (Step::Entering(_) | Step::Leaving(_) | Step::InLeased, _) => {
                self.lock.on(now, Event::Replied { call, reply }, out);
            }
        }
    }
}

fn held(grant: Grant) -> Outcome {
    Outcome::Held {
        lasts: Lasts::Until(grant.until),
        fence: None,
    }
}

impl LockMachine for Reentrant {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire { .. } => {
                self.entries = 1;
                self.lock.protocol.at_most = 1;
                self.lock.on(now, event, out);
            }
            Event::Enter => self.enter(now, out),
            Event::Release => self.release(now, out),
            // Whatever is under way, all entries that the server may have counted are released.
            Event::Cancel => {
                self.step = Step::InLeased;
                self.lock.on(now, event, out);
            }
            Event::Replied { call, reply } => self.replied(now, call, reply, out),
            Event::Lost { call } => match self.step {
                Step::Entering(asked) | Step::Leaving(asked) if asked.call == call => self.no_reply(out),
                // A call of `Leased`, or one that was given up.
                Step::Entering(_) | Step::Leaving(_) | Step::InLeased => self.lock.on(now, event, out),
            },
            Event::Woke => match self.step {
                Step::Entering(asked) | Step::Leaving(asked) => {
                    match check_deadline(now, asked.sent.after(self.lock.spec.reply_timeout), out) {
                        Deadline::Ahead => {}
                        Deadline::Passed => self.no_reply(out),
                    }
                }
                Step::InLeased => self.lock.on(now, event, out),
            },
            Event::Published { .. } | Event::Disconnected => self.lock.on(now, event, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.lock.attempts()
    }
}
