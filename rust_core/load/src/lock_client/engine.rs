//! The loop of a client, round by round: requests in, commands out, replies in, answers out.
//!
//! It has no workload, no window and no judge. `acting.rs` has what a program asks for, and what follows from an event
//! of a machine.

use std::sync::{Arc, Mutex, PoisonError};

use locks::{Actions, Event, LockMachine, Nanos, Reply, ServerId, Strategy};
use wire::GivenNames;

use super::entropy::Entropy;
use super::port::{Port, Wake};
use super::slots::{Phase, Slots};
use super::specs::Specs;
use super::ticket::{Answer, Asked, Ticket};
use crate::clock;
use crate::sockets::{Sockets, WAKE};
use crate::timers::Timers;
use crate::transport::{Arrival, Broken, Caller, Confirmed, Ready, Transport};

/// What a program asks the loop for.
#[derive(Debug)]
pub(super) enum Request {
    Acquire(Arc<Ticket>),
    Release(Arc<Ticket>),
    Extend(Arc<Ticket>),
    /// Stops whatever is under way, and frees what may be taken.
    Cancel(Arc<Ticket>),
    /// Cancels everything, and ends the loop.
    Close,
}

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) strategy: Strategy,
    pub(super) servers: u16,
    pub(super) reply_timeout: Nanos,
    pub(super) names: GivenNames,
    pub(super) sockets: Sockets,
    pub(super) timers: Timers,
    pub(super) slots: Slots,
    /// Locks that wait for an open connection.
    pub(super) opening: Vec<u32>,
    /// Connections that have neither been open nor failed since the start.
    pub(super) untried: Vec<u32>,
    pub(super) specs: Specs,
    pub(super) entropy: Entropy,
    /// Why a connection broke last.
    pub(super) broken_by: Option<String>,
    /// Set while the client closes: when it gives up.
    pub(super) closing: Option<Nanos>,
    is_finished: bool,
    wake: Arc<Wake>,
    /// Ports with new answers.
    pub(super) ports: Vec<Arc<Port>>,
    /// Empty lists, one for each depth of nested calls.
    pub(super) spare: Vec<Actions>,
    // Memory that is used again in each round.
    requests: Vec<Request>,
    ready: Vec<Ready>,
    lost: Vec<Caller>,
    broken: Vec<(u32, Broken)>,
}

/// What an engine is made of.
pub(super) struct Parts {
    pub(super) strategy: Strategy,
    pub(super) servers: u16,
    pub(super) reply_timeout: Nanos,
    pub(super) names: GivenNames,
    pub(super) sockets: Sockets,
    pub(super) connections: u32,
    pub(super) most: u32,
    pub(super) wake: Arc<Wake>,
}

impl Engine {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            strategy: parts.strategy,
            servers: parts.servers,
            reply_timeout: parts.reply_timeout,
            names: parts.names,
            sockets: parts.sockets,
            timers: Timers::new(parts.most as usize),
            slots: Slots::new(parts.most),
            opening: Vec::new(),
            untried: (0..parts.connections).collect(),
            specs: Specs::new(parts.servers, parts.reply_timeout),
            entropy: Entropy::default(),
            broken_by: None,
            closing: None,
            is_finished: false,
            wake: parts.wake,
            ports: Vec::new(),
            spare: Vec::new(),
            requests: Vec::new(),
            ready: Vec::with_capacity(64),
            lost: Vec::new(),
            broken: Vec::new(),
        }
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// When a timer or a connection next needs attention.
    pub(super) fn next_due(&self) -> Nanos {
        let closing = self.closing.unwrap_or(Nanos::NEVER);
        self.timers.next().min(self.sockets.next_upkeep()).min(closing)
    }

    /// One round, which waits at most until `limit`.
    pub(super) fn round(&mut self, inbox: &Mutex<Vec<Request>>, limit: Nanos) {
        let now = clock::now();
        self.fire_timers(now);
        self.take_requests(inbox, now);
        if now >= self.sockets.next_upkeep() {
            self.upkeep(now);
        }
        self.begin_opened(now);
        self.settle_round(now);
        if self.is_finished {
            return;
        }
        let timeout = if self.sockets.has_news() || self.sockets.has_unwritten() {
            Nanos::ZERO
        } else {
            // An hour, because the kernel's clock would overflow: then there is another round.
            let until = limit.min(self.next_due());
            until.since(clock::now()).min(Nanos::from_secs(3_600))
        };
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.sockets
            .wait(timeout, &mut ready)
            .expect("the kernel polled when the client was started");
        for &event in &ready {
            if event.connection == WAKE {
                self.wake.clear();
            } else {
                self.serve(event);
            }
        }
        if !ready.is_empty() {
            self.settle_round(clock::now());
        }
        self.ready = ready;
    }

    /// Tells losses, writes what was sent, and wakes whoever has answers.
    fn settle_round(&mut self, now: Nanos) {
        self.tell_losses();
        self.write_all();
        self.finish_closing(now);
        for port in self.ports.drain(..) {
            port.wake();
        }
    }

    fn take_requests(&mut self, inbox: &Mutex<Vec<Request>>, now: Nanos) {
        let mut requests = std::mem::take(&mut self.requests);
        std::mem::swap(
            &mut *inbox.lock().unwrap_or_else(PoisonError::into_inner),
            &mut requests,
        );
        for request in requests.drain(..) {
            self.handle(request, now);
        }
        self.requests = requests;
    }

    fn fire_timers(&mut self, now: Nanos) {
        while let Some(index) = self.timers.pop(now) {
            self.own_timer(index, now);
            let slot = self.slots.get(index);
            if slot.lock_wake <= now {
                slot.lock_wake = Nanos::NEVER;
                self.dispatch(index, now, Event::Woke);
            }
            self.arm(index);
        }
    }

    pub(super) fn arm(&mut self, index: u32) {
        let next = self.slots.get(index).next_wake();
        if next != Nanos::NEVER {
            self.timers.arm(index, next);
        }
    }

    fn serve(&mut self, event: Ready) {
        let mut served = Ok(());
        if event.readable {
            served = self.receive(event.connection);
        }
        if event.writable && served.is_ok() {
            served = self.sockets.write(event.connection, clock::now()).map(|_| ());
        }
        if let Err(broken) = served {
            self.cut(event.connection, &broken);
        }
        self.deliver();
    }

    fn receive(&mut self, connection: u32) -> Result<(), Broken> {
        if self.sockets.read(connection)?.is_none() {
            return Ok(());
        }
        // After the read: what these bytes grant was granted by now.
        let now = clock::now();
        let mut arrival = Arrival::NONE;
        while self.sockets.next(connection, now, &mut arrival) {
            let Arrival { who, ref reply, .. } = arrival;
            if let Reply::Error(_) = reply
                && let Some(error) = self.sockets.error_text(connection)
            {
                self.slots.get(who.client).ticket.say(error.text);
            }
            let (call, reply) = (who.call, *reply);
            if self.asks_a_quorum() && !matches!(reply, Reply::Error(_)) {
                self.note_heard(who.client, connection);
            }
            self.answered(who, now, Event::Replied { call, reply });
        }
        self.sockets.end_of_read(connection)
    }

    /// Whether several servers of one kind decide together.
    pub(super) fn asks_a_quorum(&self) -> bool {
        self.servers > 1 && self.strategy.database().is_none()
    }

    /// One of several servers has replied to this lock. Locks that share connections have one to each server.
    fn note_heard(&mut self, client: u32, connection: u32) {
        let slot = self.slots.get(client);
        slot.heard.add(slot.lock.attempts(), ServerId(connection as u16));
    }

    /// Nothing more comes for this call.
    fn answered(&mut self, who: Caller, now: Nanos, event: Event) {
        self.slots.get(who.client).unanswered -= 1;
        self.dispatch(who.client, now, event);
        self.give_up(who.client);
    }

    /// Hands out the messages that were read, each to all subscribers.
    fn deliver(&mut self) {
        while let Some(now) = self.sockets.next_message() {
            let mut first = true;
            while let Some(client) = self.sockets.next_listener() {
                self.dispatch(client, now, Event::Published { first });
                first = false;
            }
        }
    }

    fn write_all(&mut self) {
        while let Some(connection) = self.sockets.next_unwritten(false) {
            if let Err(broken) = self.sockets.write(connection, clock::now()) {
                self.cut(connection, &broken);
            }
        }
        self.sockets.release_held_back();
    }

    fn cut(&mut self, connection: u32, broken: &Broken) {
        self.untried.retain(|&untried| untried != connection);
        self.broken_by = Some(format!("{}: {broken}", self.sockets.address(connection)));
        let cut = self.sockets.cut(connection, broken, clock::now());
        cut.expect("a connection of a client may break at any time");
    }

    fn upkeep(&mut self, now: Nanos) {
        let mut broken = std::mem::take(&mut self.broken);
        self.sockets.upkeep(now, &mut broken);
        for (connection, why) in broken.drain(..) {
            self.cut(connection, &why);
        }
        self.broken = broken;
    }

    fn tell_losses(&mut self) {
        if !self.sockets.has_news() {
            return;
        }
        let now = clock::now();
        while let Some(Confirmed { who, holds }) = self.sockets.next_confirmed() {
            let (call, reply) = (who.call, Reply::Ok);
            let event = if holds {
                Event::Replied { call, reply }
            } else {
                Event::Lost { call }
            };
            self.answered(who, now, event);
        }
        let mut lost = std::mem::take(&mut self.lost);
        self.sockets.swap_lost(&mut lost);
        for who in lost.drain(..) {
            if let Some(why) = &self.broken_by {
                self.slots.get(who.client).ticket.say(why.clone());
            }
            self.answered(who, now, Event::Lost { call: who.call });
        }
        self.lost = lost;
        for client in self.sockets.take_disconnected() {
            if self.slots.is_used(client) {
                self.dispatch(client, now, Event::Disconnected);
            }
        }
    }

    /// Ends the loop once all locks are released, or when that takes too long.
    fn finish_closing(&mut self, now: Nanos) {
        let Some(give_up_at) = self.closing else { return };
        let is_quiet = self.slots.active().next().is_none() && !self.sockets.has_open_calls();
        if is_quiet || now >= give_up_at {
            self.answer_all(Answer::Closed);
            self.sockets.leave();
            self.is_finished = true;
        }
    }

    /// Answers everything that is under way, without telling a server.
    fn answer_all(&mut self, answer: Answer) {
        for index in self.slots.active().collect::<Vec<_>>() {
            let ticket = Arc::clone(&self.slots.get(index).ticket);
            self.slots.get(index).phase = Phase::Over;
            ticket.lose();
            ticket.end();
            self.tell(&ticket, Asked::Loss, Answer::Lost);
            self.tell(&ticket, Asked::Extension, answer);
            self.tell(&ticket, Asked::Lock, answer);
        }
    }

    /// Nothing more is done for anybody: answers all.
    pub(super) fn abandon_all(&mut self) {
        self.is_finished = true;
        self.answer_all(Answer::Closed);
        for port in self.ports.drain(..) {
            port.wake();
        }
    }

    /// Gives an answer; a port is woken at the end of the round.
    pub(super) fn tell(&mut self, ticket: &Ticket, asked: Asked, answer: Answer) {
        if ticket.answer(asked, answer)
            && let Some(port) = &ticket.port
        {
            self.ports.push(Arc::clone(port));
        }
    }
}
