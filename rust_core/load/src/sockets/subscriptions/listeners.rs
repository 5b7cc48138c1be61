//! Who listens to which channel: a circular list for each channel, in the order in which its listeners receive the next
//! message. Joining, leaving, finding a listener and giving another one the first turn take a few steps each, however
//! many listen.

use crate::transport::Caller;

/// No listener.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Listeners {
    nodes: Vec<Listener>,
    /// The indices of nodes that nobody uses.
    unused: Vec<u32>,
    /// For each client one of its listeners; `NONE` or nothing for a client that listens to no channel.
    of_client: Vec<u32>,
    /// How many listeners there have been.
    count: u64,
}

/// A client that listens to a channel.
#[derive(Clone, Copy, Debug)]
struct Listener {
    client: u32,
    /// The channel's place.
    place: usize,
    prev: u32,
    next: u32,
    /// Another listener of the same client, or `NONE`. A client rarely listens to more than one channel.
    other: u32,
    /// No other listener ever has this number.
    number: u64,
}

impl Listeners {
    /// The listener that `client` is to the channel at `place`.
    pub(super) fn find(&self, client: u32, place: usize) -> Option<u32> {
        let known = |index: u32| (index != NONE).then_some(index);
        let first = self.of_client.get(client as usize).copied().and_then(known);
        std::iter::successors(first, |&index| known(self.nodes[index as usize].other))
            .find(|&index| self.nodes[index as usize].place == place)
    }

    /// `who`, if the client is still the listener with this number.
    pub(super) fn listens(&self, who: Caller, place: usize, number: u64) -> Option<Caller> {
        let listener = self.find(who.client, place)?;
        (self.number(listener) == number).then_some(who)
    }

    pub(super) fn client(&self, listener: u32) -> u32 {
        self.nodes[listener as usize].client
    }

    pub(super) fn number(&self, listener: u32) -> u64 {
        self.nodes[listener as usize].number
    }

    /// The highest number so far.
    pub(super) const fn newest(&self) -> u64 {
        self.count
    }

    /// The listener after this one in its circle; `NONE` after `NONE`.
    pub(super) fn after(&self, listener: u32) -> u32 {
        self.nodes.get(listener as usize).map_or(NONE, |node| node.next)
    }

    /// The listener after this one, or `NONE` after the last of a list that begins with `first`.
    pub(super) fn following(&self, first: u32, listener: u32) -> u32 {
        let next = self.after(listener);
        if next == first { NONE } else { next }
    }

    /// Adds the last listener of a list that begins with `first`.
    pub(super) fn add(&mut self, first: &mut u32, client: u32, place: usize) -> u32 {
        if self.of_client.len() <= client as usize {
            self.of_client.resize(client as usize + 1, NONE);
        }
        let index = self.unused.pop().unwrap_or(self.nodes.len() as u32);
        if *first == NONE {
            *first = index;
        }
        self.count += 1;
        let mut node = Listener {
            client,
            place,
            prev: index,
            next: index,
            other: std::mem::replace(&mut self.of_client[client as usize], index),
            number: self.count,
        };
        if *first != index {
            let last = self.nodes[*first as usize].prev;
            (node.prev, node.next) = (last, *first);
            self.nodes[last as usize].next = index;
            self.nodes[*first as usize].prev = index;
        }
        match self.nodes.get_mut(index as usize) {
            Some(unused) => *unused = node,
            None => self.nodes.push(node),
        }
        index
    }

    /// Removes a listener of the list that begins with `first`.
    pub(super) fn remove(&mut self, first: &mut u32, listener: u32) {
        let Listener {
            client,
            prev,
            next,
            other,
            ..
        } = self.nodes[listener as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        if *first == listener {
            *first = if next == listener { NONE } else { next };
        }
        if self.of_client[client as usize] == listener {
            self.of_client[client as usize] = other;
        } else {
            let mut before = self.of_client[client as usize];
            while self.nodes[before as usize].other != listener {
                before = self.nodes[before as usize].other;
            }
            self.nodes[before as usize].other = other;
        }
        self.unused.push(listener);
    }
}
