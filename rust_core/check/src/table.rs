//! The checker's memory: one flat record a client, one a key, and lists threaded through the clients.
//!
//! A client stands in at most one list at a time, that of the waiters or that of the holders of its key, so two links
//! a client serve both, and joining and leaving are a few stores.

use crate::ClientId;
use locks::Nanos;

/// No client; the end of a list.
pub(crate) const NOBODY: ClientId = ClientId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Waiting,
    Holding,
    Stopped,
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    prev: ClientId,
    pub(crate) next: ClientId,
    /// The key of the present acquire, or of the last.
    pub(crate) key: u32,
    pub(crate) state: State,
    /// Its grant stands in a recorded violation, which waits for the end of it.
    pub(crate) in_violation: bool,
    /// When the first attempt was sent; once granted, when that was.
    pub(crate) since: Nanos,
    pub(crate) until: Nanos,
    /// `until`, or when it was told of the loss if that was earlier.
    pub(crate) believes_until: Nanos,
}

impl Client {
    pub(crate) const IDLE: Self = Self {
        prev: NOBODY,
        next: NOBODY,
        key: 0,
        state: State::Idle,
        in_violation: false,
        since: Nanos::ZERO,
        until: Nanos::ZERO,
        believes_until: Nanos::ZERO,
    };
}

/// A million keys do not fit into a processor's cache; aligned, each costs one miss instead of two.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct KeyRecord {
    /// In order of arrival, which is that of `sent`.
    pub(crate) waiters: List,
    /// The latest granted first: with equal leases it believes longest, so a search for a believer ends at once.
    pub(crate) holders: List,
    /// No present holder believes longer than this; it may be later than all of them.
    pub(crate) believed_at_most: Nanos,
    /// The last release, while it waits for the grant it hands the key to; `NEVER` when there is none.
    pub(crate) handed_off: Nanos,
    /// When the key's last grant meant to end.
    pub(crate) last_hold_end: Nanos,
    /// Length of the run of contended wins that the last grant stands in; 0 when nobody waited at it.
    pub(crate) streak: u64,
    pub(crate) last_client: ClientId,
    /// The window that the last grant fell in.
    pub(crate) last_window: u32,
    pub(crate) last_contended: bool,
    /// A release was sent after its belief had ended, see `ViolationCounts::double_grants_after_overrun`.
    pub(crate) released_late: bool,
}

impl KeyRecord {
    pub(crate) const UNUSED: Self = Self {
        waiters: List::EMPTY,
        holders: List::EMPTY,
        believed_at_most: Nanos::ZERO,
        handed_off: Nanos::NEVER,
        last_hold_end: Nanos::ZERO,
        streak: 0,
        last_client: NOBODY,
        last_window: 0,
        last_contended: false,
        released_late: false,
    };

    /// A holder that still believes at `at`. Walks the holders only when `believed_at_most` leaves it open, and
    /// tightens that bound when the walk was in vain: a walk is paid for by the release that loosened the bound.
    pub(crate) fn believer(&mut self, clients: &[Client], at: Nanos) -> Option<ClientId> {
        if self.believed_at_most <= at {
            return None;
        }
        let mut holder = self.holders.head;
        while holder != NOBODY {
            let client = &clients[holder as usize];
            if client.believes_until > at {
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

    pub(crate) fn push_back(&mut self, clients: &mut [Client], id: ClientId) {
        clients[id as usize].prev = self.tail;
        clients[id as usize].next = NOBODY;
        match self.tail {
            NOBODY => self.head = id,
            tail => clients[tail as usize].next = id,
        }
        self.tail = id;
    }

    pub(crate) fn push_front(&mut self, clients: &mut [Client], id: ClientId) {
        clients[id as usize].prev = NOBODY;
        clients[id as usize].next = self.head;
        match self.head {
            NOBODY => self.tail = id,
            head => clients[head as usize].prev = id,
        }
        self.head = id;
    }

    /// Takes `id` out, which must stand in this list.
    pub(crate) fn unlink(&mut self, clients: &mut [Client], id: ClientId) {
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
