//! First come, first served, for locks whose server acknowledges places in the queue.
//!
//! The property: when A's place was acknowledged before B's acquire was sent, and A keeps waiting with that place, B is
//! not granted first. L. Lamport: A New Solution of Dijkstra's Concurrent Programming Problem, CACM 17(8), 1974; its
//! doorway is the time between the send and the acknowledgement: of two clients that are in the doorway at the same
//! time, neither is first.
//!
//! Judged when A is granted, because only then it is certain that A kept its place: a lapsed place is acknowledged anew
//! first, and a client that gives up may have left the queue before it learned that. All grants to clients that came
//! after the acknowledgement of A's place were made since then, so A was overtaken exactly if the latest `sent` of the
//! key's grants so far is later than that acknowledgement.
//!
//! A client that still waits when a phase ends is judged then, if its place certainly still exists: it received no
//! grant, but would have kept its place.
//!
//! For a lock that acknowledges places and promises no order the same is counted, as a figure.

use crate::checker::Checker;
use crate::report::{GrantSpan, ViolationKind};
use crate::{ClientId, Order};
use locks::Nanos;

#[derive(Debug)]
pub(crate) struct Fifo {
    is_promised: bool,
    /// When each client's place was acknowledged; `NEVER` while it has none.
    places: Box<[Nanos]>,
    /// Whether the current place is not the first of the acquire, because the earlier one had lapsed.
    moved: Box<[bool]>,
    /// For each key the grant with the latest `sent`.
    latest: Box<[Option<Sent>]>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    sent: Nanos,
    grant: GrantSpan,
}

impl Fifo {
    /// `None` when the order is ignored.
    pub(crate) fn judging(order: Order, clients: u32, keys: u32) -> Option<Self> {
        match order {
            Order::Ignored => None,
            Order::Counted => Some(Self::new(false, clients, keys)),
            Order::Promised => Some(Self::new(true, clients, keys)),
        }
    }

    fn new(is_promised: bool, clients: u32, keys: u32) -> Self {
        Self {
            is_promised,
            places: vec![Nanos::NEVER; clients as usize].into_boxed_slice(),
            moved: vec![false; clients as usize].into_boxed_slice(),
            latest: vec![None; keys as usize].into_boxed_slice(),
        }
    }

    /// Whether being overtaken is a violation.
    pub(crate) const fn is_promised(&self) -> bool {
        self.is_promised
    }

    pub(crate) fn queued(&mut self, client: ClientId, at: Nanos) {
        let place = &mut self.places[client as usize];
        self.moved[client as usize] |= *place != Nanos::NEVER;
        *place = at;
    }

    pub(crate) fn gave_up(&mut self, client: ClientId) {
        self.places[client as usize] = Nanos::NEVER;
        self.moved[client as usize] = false;
    }

    /// Whether a waiting client has kept the first place that it was given.
    pub(crate) fn has_kept_its_place(&self, client: ClientId) -> bool {
        self.places[client as usize] != Nanos::NEVER && !self.moved[client as usize]
    }

    /// The grant that overtook `client`, which waits for `key`.
    fn passer_of(&self, client: ClientId, key: u32) -> Option<GrantSpan> {
        let place = self.places[client as usize];
        let latest = self.latest[key as usize].filter(|latest| latest.sent > place);
        latest.map(|latest| latest.grant)
    }

    /// Records a grant whose acquire was sent at `sent`, and returns the grant that overtook it.
    pub(crate) fn granted(&mut self, key: u32, sent: Nanos, grant: GrantSpan) -> Option<GrantSpan> {
        let passed_by = self.passer_of(grant.client, key);
        self.gave_up(grant.client);
        let latest = &mut self.latest[key as usize];
        if latest.is_none_or(|latest| latest.sent < sent) {
            *latest = Some(Sent { sent, grant });
        }
        passed_by
    }

    /// `grant`, its client's current one, ends its work.
    pub(crate) fn ended(&mut self, key: u32, grant: GrantSpan, at: Nanos) {
        if let Some(latest) = &mut self.latest[key as usize] {
            latest.grant.end(grant, at);
        }
    }
}

impl Checker {
    /// Judges `id`, whose wait the end of a phase cuts off while its place certainly still exists.
    #[cold]
    pub(crate) fn judge_unserved(&mut self, at: Nanos, id: ClientId) {
        let key = self.clients[id as usize].key;
        let Some(fifo) = &self.fifo else { return };
        let Some(first) = fifo.passer_of(id, key) else { return };
        if fifo.is_promised() {
            self.note_waiting(ViolationKind::FifoInversion, at, Nanos::ZERO, Some(first), id);
        } else {
            self.log.count(ViolationKind::FifoInversion);
        }
    }
}
