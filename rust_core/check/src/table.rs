//! The checker's memory: one flat record per client, one per key in use (see `keys`), and lists linked through the
//! clients.
//!
//! A client is in at most one list at a time, that of the waiters or that of the holders of its key, so two links per
//! client serve both, and joining and leaving are a few stores.

use crate::turns::OUTSIDE;
use crate::{ClientId, GrantSpan};
use locks::{Fence, Mode, Nanos};

/// No client; the end of a list.
pub(crate) const NOBODY: ClientId = ClientId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Waiting,
    Holding,
    Stopped,
    /// Released, but the reply may still show that its session had ended: see `sessions`.
    Unconfirmed,
}

/// What is known of the session of a hold: see `sessions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    Fine,
    /// A grant was made during its belief, and is judged by how this hold ends.
    InQuestion,
    /// The lock itself closed the session.
    ClosedByLock,
}

/// What of a key's last grant remains to be counted: see `contention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Held, and without a rival so far.
    Alone,
    /// Held, and contended.
    Contended,
    /// Ended, believed in for long enough, and not contended: it counts if the next grant comes close enough.
    Countable,
    /// Ended: already counted, or not to be counted.
    Settled,
}

/// Not aligned to 64 bytes: a hundred thousand small records miss the cache less often.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) prev: ClientId,
    pub(crate) next: ClientId,
    /// The key of the current or last acquire.
    pub(crate) key: u32,
    /// While it waits or holds: the place of its key's record, see `keys`.
    pub(crate) place: u32,
    pub(crate) state: State,
    /// Set only with crowds; without them nobody shares.
    pub(crate) mode: Mode,
    /// Its grant is part of a recorded violation that waits for the grant's end.
    pub(crate) in_violation: bool,
    pub(crate) session: SessionState,
    /// When the first attempt was sent; after the grant, when that was.
    pub(crate) since: Nanos,
    pub(crate) until: Nanos,
    /// `until`, or when the client learned of the loss, if that was earlier.
    pub(crate) believes_until: Nanos,
    /// While the client waits, how often it was overtaken, and in which window: see `turns`. While it holds, `tally` is
    /// the number of its crowd (see `crowd`), and `tally_window` the window of its grant.
    pub(crate) tally: u32,
    pub(crate) tally_window: u32,
}

impl Client {
    pub(crate) const IDLE: Self = Self {
        prev: NOBODY,
        next: NOBODY,
        key: 0,
        place: 0,
        state: State::Idle,
        mode: Mode::Exclusive,
        in_violation: false,
        session: SessionState::Fine,
        since: Nanos::ZERO,
        until: Nanos::ZERO,
        believes_until: Nanos::ZERO,
        tally: 0,
        tally_window: 0,
    };

    /// The client's current or last grant, without an end.
    pub(crate) fn span(&self, id: ClientId, fence: Option<Fence>) -> GrantSpan {
        GrantSpan {
            client: id,
            granted: Some(self.since),
            until: (self.until != Nanos::NEVER).then_some(self.until),
            fence,
            ended: None,
        }
    }
}

/// See `KeyRecord::lease_left`.
pub(crate) const NO_LEASE_LEFT: u32 = u32::MAX;

/// Aligned: a record that is not in the processor's cache costs one miss instead of two.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct KeyRecord {
    /// In order of arrival, which is the order of `sent`.
    pub(crate) waiters: List,
    /// The exclusive holders; those that share the key are in its `Crowd`.
    pub(crate) holders: Holders,
    /// When the key last became free.
    pub(crate) freed: Nanos,
    /// When the key's last grant planned to end.
    pub(crate) last_hold_end: Nanos,
    pub(crate) last_client: ClientId,
    /// The window of the last grant.
    pub(crate) last_window: u32,
    /// The length of the run of contended wins that ends with the last grant; 0 when nobody waited at it.
    pub(crate) streak: u32,
    /// See `turns`.
    pub(crate) overtaken: u32,
    /// Set only with crowds.
    pub(crate) last_mode: Mode,
    pub(crate) last: Last,
    /// Whether a client has waited for the key ever since `freed`, so that the next grant is a hand-over.
    pub(crate) wanted: bool,
    /// How much of its lease the last release left, in units of 1,024 ns; `NO_LEASE_LEFT` when too little to tell.
    pub(crate) lease_left: u32,
    /// A release was sent after its belief had ended, see `ViolationCounts::double_grants_after_overrun`.
    pub(crate) released_late: bool,
}

impl KeyRecord {
    /// The record of a key that is free at `now`.
    #[inline]
    pub(crate) const fn new(now: Nanos) -> Self {
        Self {
            waiters: List::EMPTY,
            holders: Holders::NONE,
            freed: now,
            last_hold_end: Nanos::ZERO,
            last_client: NOBODY,
            last_window: OUTSIDE,
            streak: 0,
            overtaken: 0,
            last_mode: Mode::Exclusive,
            last: Last::Settled,
            wanted: false,
            lease_left: NO_LEASE_LEFT,
            released_late: false,
        }
    }
}

/// The holders of one key in one mode.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    /// The latest granted first: with equal leases it believes longest, so a search for a believer ends at once.
    list: List,
    /// An upper bound: from this time on fewer holders than the key has permits believe (for a plain lock none), so a
    /// grant is in nobody's way. The real time may be earlier.
    believed_at_most: Nanos,
}

impl Holders {
    pub(crate) const NONE: Self = Self {
        list: List::EMPTY,
        believed_at_most: Nanos::ZERO,
    };

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The latest granted, or `NOBODY`.
    pub(crate) const fn latest(&self) -> ClientId {
        self.list.head
    }

    #[inline]
    pub(crate) fn add(&mut self, clients: &mut [Client], id: ClientId, until: Nanos) {
        self.believed_at_most = if self.list.is_empty() {
            until
        } else {
            self.believed_at_most.max(until)
        };
        self.list.push_front(clients, id);
    }

    #[inline]
    pub(crate) fn remove(&mut self, clients: &mut [Client], id: ClientId) {
        self.list.unlink(clients, id);
    }

    /// One holder now believes until `until`.
    pub(crate) fn renew(&mut self, until: Nanos) {
        self.believed_at_most = self.believed_at_most.max(until);
    }

    /// The holders that still believe at `at`, the latest granted first.
    pub(crate) fn believers(&self, clients: &[Client], at: Nanos) -> impl Iterator<Item = ClientId> {
        let next = |id: ClientId| (id != NOBODY).then_some(id);
        std::iter::successors(next(self.list.head), move |&id| next(clients[id as usize].next))
            .filter(move |&id| clients[id as usize].believes_until > at)
    }

    /// The `nth` (from 1) of the holders that still believe at `at`; the same `nth` each time. Searches only when
    /// `believed_at_most` does not exclude it, and lowers that bound after a search in vain: so many believers are
    /// impossible until another is added, which raises the bound.
    pub(crate) fn believer(&mut self, clients: &[Client], at: Nanos, nth: u32) -> Option<ClientId> {
        if self.believed_at_most <= at {
            return None;
        }
        let mut found = 0;
        let mut holder = self.list.head;
        while holder != NOBODY {
            let client = &clients[holder as usize];
            found += u32::from(client.believes_until > at);
            if found == nth {
                return Some(holder);
            }
            holder = client.next;
        }
        self.believed_at_most = at;
        None
    }
}

/// A doubly linked list of clients.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) head: ClientId,
    tail: ClientId,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NOBODY,
        tail: NOBODY,
    };

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NOBODY
    }

    /// Whether the list has exactly one client.
    #[inline]
    pub(crate) const fn is_single(&self) -> bool {
        self.head == self.tail && self.head != NOBODY
    }

    #[inline]
    pub(crate) fn push_back(&mut self, clients: &mut [Client], id: ClientId) {
        let client = &mut clients[id as usize];
        (client.prev, client.next) = (self.tail, NOBODY);
        match self.tail {
            NOBODY => self.head = id,
            tail => clients[tail as usize].next = id,
        }
        self.tail = id;
    }

    #[inline]
    pub(crate) fn push_front(&mut self, clients: &mut [Client], id: ClientId) {
        let client = &mut clients[id as usize];
        (client.prev, client.next) = (NOBODY, self.head);
        match self.head {
            NOBODY => self.tail = id,
            head => clients[head as usize].prev = id,
        }
        self.head = id;
    }

    /// Removes `id`, which must be in this list.
    #[inline]
    pub(crate) fn unlink(&mut self, clients: &mut [Client], id: ClientId) {
        if self.is_single() {
            *self = Self::EMPTY;
            return;
        }
        let Client { prev, next, .. } = clients[id as usize];
        match prev {
            NOBODY => self.head = next,
            prev => clients[prev as usize].next = next,
        }
        match next {
            NOBODY => self.tail = prev,
            next => clients[next as usize].prev = prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_a_key_take_at_most_64_bytes_each() {
        assert!(
            size_of::<Client>() <= 64,
            "a client takes {} bytes",
            size_of::<Client>()
        );
        assert!(
            size_of::<KeyRecord>() <= 64,
            "a key takes {} bytes",
            size_of::<KeyRecord>()
        );
    }
}
