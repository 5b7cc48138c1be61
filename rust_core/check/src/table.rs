//! The checker's memory: one flat record a client, one a key, and lists threaded through the clients.
//!
//! A client stands in at most one list at a time, that of the waiters or that of the holders of its key, so two links
//! a client serve both, and joining and leaving are a few stores.

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
    /// Released, and by the answer it may yet find that its session was gone: see `sessions`.
    Unconfirmed,
}

/// What is known of the session that a client holds by: see `sessions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    Fine,
    /// A grant was made beside its own, and is to be judged by how that ends.
    InQuestion,
    /// The lock itself closed it.
    HungUp,
}

/// What of a key's last grant is still to be counted: see `contention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Held, and no rival was met yet.
    Alone,
    /// Held, and contended.
    Contended,
    /// Over, believed in for long enough, and not contended: it counts if the next grant comes near enough.
    Countable,
    /// Over: counted, or not to be counted any more.
    Settled,
}

/// Not aligned to 64 bytes: a hundred thousand of them miss the cache less often when they are small.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) prev: ClientId,
    pub(crate) next: ClientId,
    /// The key of the present acquire, or of the last.
    pub(crate) key: u32,
    pub(crate) state: State,
    /// Set where there are crowds; nobody shares before.
    pub(crate) mode: Mode,
    /// Its grant stands in a recorded violation, which waits for the end of it.
    pub(crate) in_violation: bool,
    pub(crate) session: Session,
    /// When the first attempt was sent; once granted, when that was.
    pub(crate) since: Nanos,
    pub(crate) until: Nanos,
    /// `until`, or when it was told of the loss if that was earlier.
    pub(crate) believes_until: Nanos,
    /// While it waits, how often it was overtaken, and in which window: see `turns`. While it holds, the first is the
    /// count it stands in (see `crowd`), and the second the window that its grant fell in.
    pub(crate) tally: u32,
    pub(crate) tally_window: u32,
}

impl Client {
    pub(crate) const IDLE: Self = Self {
        prev: NOBODY,
        next: NOBODY,
        key: 0,
        state: State::Idle,
        mode: Mode::Exclusive,
        in_violation: false,
        session: Session::Fine,
        since: Nanos::ZERO,
        until: Nanos::ZERO,
        believes_until: Nanos::ZERO,
        tally: 0,
        tally_window: 0,
    };

    /// Its present grant, or the last, of which is not said here that it ended.
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

/// A million keys do not fit into a processor's cache; aligned, each costs one miss instead of two.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct KeyRecord {
    /// In order of arrival, which is that of `sent`.
    pub(crate) waiters: List,
    /// Those that share the key are in its `Crowd`.
    pub(crate) holders: Holders,
    /// When the key last became free.
    pub(crate) freed: Nanos,
    /// When the key's last grant meant to end.
    pub(crate) last_hold_end: Nanos,
    pub(crate) last_client: ClientId,
    /// The window that the last grant fell in.
    pub(crate) last_window: u32,
    /// Length of the run of contended wins that the last grant stands in; 0 when nobody waited at it.
    pub(crate) streak: u32,
    /// See `turns`.
    pub(crate) overtaken: u32,
    /// Set where there are crowds.
    pub(crate) last_mode: Mode,
    pub(crate) last: Last,
    /// What `freed` it waits for the grant that it hands the key to: somebody has waited for it ever since.
    pub(crate) wanted: bool,
    /// How much of its lease the last release left, in units of 1,024 ns; `NO_LEASE_LEFT` when too little to tell.
    pub(crate) lease_left: u32,
    /// A release was sent after its belief had ended, see `ViolationCounts::double_grants_after_overrun`.
    pub(crate) released_late: bool,
}

impl KeyRecord {
    pub(crate) const UNUSED: Self = Self {
        waiters: List::EMPTY,
        holders: Holders::NONE,
        freed: Nanos::ZERO,
        last_hold_end: Nanos::ZERO,
        last_client: NOBODY,
        last_window: 0,
        streak: 0,
        overtaken: 0,
        last_mode: Mode::Exclusive,
        last: Last::Settled,
        wanted: false,
        lease_left: NO_LEASE_LEFT,
        released_late: false,
    };
}

/// Holders of one key in one mode.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    /// The latest granted first: with equal leases it believes longest, so a search for a believer ends at once.
    list: List,
    /// After this too few of them believe to be in anybody's way: none of a plain lock, less than its permits of
    /// a semaphore. It may be later than need be.
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

    /// One of them now believes until `until`.
    pub(crate) fn renew(&mut self, until: Nanos) {
        self.believed_at_most = self.believed_at_most.max(until);
    }

    /// Those that still believe at `at`, the latest granted first.
    pub(crate) fn believers(&self, clients: &[Client], at: Nanos) -> impl Iterator<Item = ClientId> {
        let next = |id: ClientId| (id != NOBODY).then_some(id);
        std::iter::successors(next(self.list.head), move |&id| next(clients[id as usize].next))
            .filter(move |&id| clients[id as usize].believes_until > at)
    }

    /// The `nth` (from 1) of those that still believe at `at`; the same `nth` each time. Walks only when
    /// `believed_at_most` leaves it open, and tightens that bound when the walk was in vain: there cannot be so many
    /// before another is added, which loosens it.
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

    /// Whether it has one client only.
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

    /// Takes `id` out, which must stand in this list.
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
