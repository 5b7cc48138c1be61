//! What a program asks for, and what follows from the events of a machine.

use std::sync::Arc;

use locks::{
    Action, AnyLock, CallId, Command, ConnectionKind, Event, Fence, KeyList, Lasts, LockMachine, Nanos, Outcome,
    Refusal, Reply, ServerId, Strategy,
};

use super::engine::{Engine, Request};
use super::slots::Phase;
use super::ticket::{Answer, Asked, Ticket};
use crate::transport::{Outgoing, Sender, Transport};

/// The one call of a lock that its machine does not make. Machines count from 1.
const TIME_LEFT: CallId = CallId(u64::MAX);

impl Engine {
    pub(super) fn handle(&mut self, request: Request, now: Nanos) {
        match request {
            Request::Close => self.close(now),
            Request::Acquire(_) if self.closing.is_some() => refuse(&request),
            Request::Acquire(ticket) => self.acquire(ticket, now),
            Request::Release(ref ticket) => match self.held(ticket) {
                Some(index) => self.release(index, now, Event::Release),
                None => refuse(&request),
            },
            Request::Extend(ref ticket) => match self.held(ticket) {
                Some(index) => self.extend(index, now),
                None => refuse(&request),
            },
            Request::Cancel(ticket) => self.cancel(&ticket, now),
        }
    }

    fn held(&mut self, ticket: &Arc<Ticket>) -> Option<u32> {
        let index = self.slots.of(ticket)?;
        (self.slots.get(index).phase == Phase::Held).then_some(index)
    }

    fn acquire(&mut self, ticket: Arc<Ticket>, now: Nanos) {
        let spec = self.specs.of(&ticket.wanted);
        let (strategy, names) = (self.strategy, self.names.clone());
        let chance = self.entropy.chance();
        let asking = Arc::clone(&ticket);
        let made = self.slots.take(ticket, || {
            let key = names.enter(&asking.wanted.name);
            (AnyLock::new(strategy, spec, chance), key)
        });
        let Some(index) = made else {
            asking.end();
            return self.tell(&asking, Asked::Lock, Answer::NoRoom);
        };
        let longest = asking.wanted.wait.max(self.reply_timeout);
        self.slots.get(index).phase = Phase::Opening(now.after(longest));
        if self.can_begin(index) {
            self.begin(index, now);
        } else {
            self.opening.push(index);
            self.arm(index);
        }
    }

    /// A quorum is not asked before each connection had its chance to open: the first to open would be alone.
    fn can_begin(&mut self, index: u32) -> bool {
        if self.servers > 1 && !self.untried.is_empty() {
            let sockets = &self.sockets;
            self.untried.retain(|&connection| !sockets.is_open(connection));
            if !self.untried.is_empty() {
                return false;
            }
        }
        self.sockets.can_reach_a_server(index)
    }

    /// Begins locks that waited for a connection.
    pub(super) fn begin_opened(&mut self, now: Nanos) {
        if self.opening.is_empty() {
            return;
        }
        let mut opening = std::mem::take(&mut self.opening);
        opening.retain(|&index| {
            let waits = matches!(self.slots.get(index).phase, Phase::Opening(_));
            if waits && self.can_begin(index) {
                self.begin(index, now);
                return false;
            }
            waits
        });
        self.opening.append(&mut opening);
    }

    fn begin(&mut self, index: u32, now: Nanos) {
        let slot = self.slots.get(index);
        slot.phase = Phase::Acquiring;
        let (keys, mode) = (KeyList::one(slot.key), slot.ticket.wanted.mode);
        self.dispatch(index, now, Event::Acquire { keys, mode });
    }

    fn release(&mut self, index: u32, now: Nanos, event: Event) {
        self.slots.get(index).phase = Phase::Releasing;
        self.dispatch(index, now, event);
    }

    fn extend(&mut self, index: u32, now: Nanos) {
        let slot = self.slots.get(index);
        if slot.ticket.is_lost() {
            let ticket = Arc::clone(&slot.ticket);
            return self.tell(&ticket, Asked::Extension, Answer::Lost);
        }
        slot.extension_until = now.after(self.reply_timeout);
        self.dispatch(index, now, Event::Extend);
        self.arm(index);
    }

    fn cancel(&mut self, ticket: &Arc<Ticket>, now: Nanos) {
        let Some(index) = self.slots.of(ticket) else { return };
        match self.slots.get(index).phase {
            Phase::Opening(_) | Phase::Refused(_) => self.end(index, Answer::Released),
            Phase::Acquiring | Phase::Held => self.release(index, now, Event::Cancel),
            Phase::Releasing | Phase::Over => {}
        }
    }

    fn close(&mut self, now: Nanos) {
        // A lost reply, and the release after it.
        self.closing = Some(now.after(self.reply_timeout).after(self.reply_timeout));
        for index in self.slots.active().collect::<Vec<_>>() {
            let ticket = Arc::clone(&self.slots.get(index).ticket);
            if self.slots.get(index).phase == Phase::Held {
                self.lose(index);
            }
            self.cancel(&ticket, now);
        }
    }

    /// What is due for a lock that its machine has not asked for.
    pub(super) fn own_timer(&mut self, index: u32, now: Nanos) {
        let slot = self.slots.get(index);
        if slot.own_wake() > now {
            return;
        }
        match slot.phase {
            Phase::Opening(_) => {
                let why = match (self.sockets.unopened(), self.broken_by.clone()) {
                    (_, Some(why)) => why,
                    (Some(address), None) => format!("{address}: no connection yet"),
                    (None, None) => "no connection is free".to_owned(),
                };
                self.slots.get(index).ticket.say(why);
                self.end(index, Answer::Unreachable);
            }
            Phase::Refused(_) => self.end(index, Answer::Busy),
            Phase::Held => {
                if slot.until <= now {
                    self.lose(index);
                }
                if self.slots.get(index).extension_until <= now {
                    self.extended(index, Answer::Unknown);
                }
            }
            Phase::Over | Phase::Acquiring | Phase::Releasing => {}
        }
    }

    /// Passes an event to the machine of a lock, and carries out what it wants done.
    pub(super) fn dispatch(&mut self, index: u32, now: Nanos, event: Event) {
        if let Event::Replied { call: TIME_LEFT, reply } = event {
            return self.refused(index, reply);
        }
        let mut actions = self.spare.pop().unwrap_or_default();
        self.slots.get(index).lock.on(now, event, &mut actions);
        for action in actions.as_slice() {
            match *action {
                Action::Send {
                    call,
                    to,
                    over,
                    ref command,
                } => self.send(index, (call, to, over), command),
                Action::WakeAt(at) => {
                    self.slots.get(index).lock_wake = at;
                    self.timers.arm(index, at);
                }
                Action::HangUp => self.sockets.hang_up(index, self.slots.get(index).key, now),
                Action::Queued => {}
                Action::Renewed { lasts } => self.renewed(index, lasts),
                Action::Lapsed => self.lose(index),
                Action::Settle(outcome) => self.settled(index, now, outcome),
            }
        }
        actions.clear();
        self.spare.push(actions);
    }

    fn send(&mut self, index: u32, (call, to, over): (CallId, ServerId, ConnectionKind), command: &Command) {
        let slot = self.slots.get(index);
        slot.unanswered += 1;
        let doing = slot.phase.doing();
        self.sockets.send(Outgoing {
            sender: Sender {
                client: index,
                call,
                doing,
            },
            to,
            over,
            command,
            ends_hold: false,
        });
    }

    /// Asks how long the holder has left, where the key of the lock itself has its lease.
    fn ask_time_left(&mut self, index: u32, now: Nanos) -> bool {
        let is_told = matches!(
            self.strategy,
            Strategy::Naive
                | Strategy::Watchdog { .. }
                | Strategy::Fenced { .. }
                | Strategy::Notify { .. }
                | Strategy::Replicated { .. }
                | Strategy::Layered
        );
        if is_told {
            let slot = self.slots.get(index);
            slot.phase = Phase::Refused(now.after(self.reply_timeout));
            let command = Command::TimeLeft { key: slot.key };
            self.send(
                index,
                (TIME_LEFT, ServerId(0), ConnectionKind::SharedByClients),
                &command,
            );
            self.arm(index);
        }
        is_told
    }

    /// The holder has so many milliseconds left; negative for a key that has none, or is gone.
    fn refused(&mut self, index: u32, reply: Reply) {
        let slot = self.slots.get(index);
        if let Phase::Refused(_) = slot.phase {
            if let Some(left) = reply.int().and_then(|ms| u64::try_from(ms).ok()) {
                slot.ticket.refused(Nanos::from_millis(left));
            }
            self.end(index, Answer::Busy);
        }
    }

    fn settled(&mut self, index: u32, now: Nanos, outcome: Outcome) {
        let lacks_quorum = self.lacks_quorum(index);
        let slot = self.slots.get(index);
        let answer = match outcome {
            Outcome::Held { lasts, fence } if slot.phase == Phase::Acquiring => {
                return self.granted(index, lasts, fence);
            }
            Outcome::Held { .. } | Outcome::Released | Outcome::Conflict => Answer::Released,
            Outcome::Refused(Refusal::Busy | Refusal::TimedOut) if lacks_quorum => Answer::NoQuorum,
            Outcome::Refused(Refusal::Busy | Refusal::TimedOut) => {
                if self.ask_time_left(index, now) {
                    return;
                }
                Answer::Busy
            }
            Outcome::Refused(Refusal::TooLate) => Answer::TooLate,
            Outcome::Expired => Answer::Expired,
            Outcome::Failed(_) => Answer::Failed,
            // What some servers may have granted is no majority, and no lock.
            Outcome::Unknown if lacks_quorum && slot.phase == Phase::Acquiring => Answer::NoQuorum,
            Outcome::Unknown => Answer::Unknown,
        };
        self.end(index, answer);
    }

    /// Whether too few of several servers replied to the last attempt. If enough did, other clients hold the lock.
    fn lacks_quorum(&mut self, index: u32) -> bool {
        self.asks_a_quorum() && !self.slots.get(index).heard.is_majority(self.servers)
    }

    fn granted(&mut self, index: u32, lasts: Lasts, fence: Option<Fence>) {
        let slot = self.slots.get(index);
        slot.phase = Phase::Held;
        slot.until = end_of(lasts);
        let ticket = Arc::clone(&slot.ticket);
        ticket.granted(end_of(lasts), fence.map(|fence| fence.0.get()));
        self.arm(index);
        self.tell(&ticket, Asked::Lock, Answer::Held);
    }

    fn renewed(&mut self, index: u32, lasts: Lasts) {
        let slot = self.slots.get(index);
        slot.until = end_of(lasts);
        slot.ticket.renewed(slot.until);
        self.extended(index, Answer::Extended);
        self.arm(index);
    }

    /// Answers an extension, if one was asked for.
    fn extended(&mut self, index: u32, answer: Answer) {
        let slot = self.slots.get(index);
        if slot.extension_until != Nanos::NEVER {
            slot.extension_until = Nanos::NEVER;
            let ticket = Arc::clone(&slot.ticket);
            self.tell(&ticket, Asked::Extension, answer);
        }
    }

    /// The holder must stop to believe.
    fn lose(&mut self, index: u32) {
        let ticket = Arc::clone(&self.slots.get(index).ticket);
        if ticket.lose() {
            self.tell(&ticket, Asked::Loss, Answer::Lost);
        }
        self.extended(index, Answer::Lost);
    }

    /// The lock is over, and its last request answered.
    fn end(&mut self, index: u32, answer: Answer) {
        self.extended(index, Answer::Closed);
        let slot = self.slots.get(index);
        slot.phase = Phase::Over;
        let ticket = Arc::clone(&slot.ticket);
        ticket.end();
        self.tell(&ticket, Asked::Lock, answer);
        // Whoever waits for the loss of a lock waits no longer when the lock is over; a port needs no such news.
        if ticket.port.is_none() {
            self.tell(&ticket, Asked::Loss, Answer::Lost);
        }
        self.give_up(index);
    }

    /// Frees the slot of a lock that is over, once none of its calls is unanswered.
    pub(super) fn give_up(&mut self, index: u32) {
        if let Some(key) = self.slots.give_up(index) {
            self.names.leave(key);
        }
    }
}

/// Answers a request for a lock that is over, or of a client that is closed.
pub(super) fn refuse(request: &Request) {
    let (ticket, asked) = match request {
        Request::Acquire(ticket) => {
            ticket.end();
            (ticket, Asked::Lock)
        }
        Request::Release(ticket) => (ticket, Asked::Lock),
        Request::Extend(ticket) => (ticket, Asked::Extension),
        Request::Cancel(_) | Request::Close => return,
    };
    if ticket.answer(asked, Answer::Closed)
        && let Some(port) = &ticket.port
    {
        port.wake();
    }
}

fn end_of(lasts: Lasts) -> Nanos {
    match lasts {
        Lasts::Until(until) => until,
        Lasts::Session | Lasts::Unbounded => Nanos::NEVER,
    }
}
