//! A timer wheel: clients in unordered lists, by the tick of their time.
//!
//! G. Varghese, T. Lauck: Hashed and Hierarchical Timing Wheels, SOSP 1987. A tick has seven digits of eight bits. A
//! client is in the list of the highest digit in which its tick differs from the *passed* tick, which never moves back.
//! All clients of a digit are due before those of a higher digit, and each has a larger value there than the passed
//! tick, so the first list with clients has the earliest. A client moves to a lower digit when its list is passed to.

use locks::Nanos;

use super::Node;

/// A tick is 16,384 ns: the clients of one tick are few.
const TICK_BITS: u32 = 14;
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = (u64::BITS - TICK_BITS).div_ceil(DIGIT_BITS) as usize;
/// How many values a digit has.
const VALUES: usize = 1 << DIGIT_BITS;
/// How many lists a word of `Wheel::filled` is for.
const WORD: usize = u64::BITS as usize;

/// The tick of a time.
#[inline]
pub(super) const fn tick(at: Nanos) -> u64 {
    at.0 >> TICK_BITS
}

/// The nodes are those of the clients, then one of each list with the last and the first client of it. The lists are
/// circular, so that a client leaves its list without knowing which one it is.
#[derive(Debug)]
pub(super) struct Wheel {
    clients: usize,
    passed: u64,
    /// Which lists have clients: a bit of each, in the order of their numbers.
    filled: [u64; Self::NODES / WORD],
    /// Which words of `filled` are not zero.
    filled_words: u32,
}

/// One of the lists: of the clients whose tick has this value in this digit, and the passed tick's in all higher ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    digit: usize,
    value: usize,
}

impl Slot {
    const fn number(self) -> usize {
        self.digit * VALUES + self.value
    }
}

impl Wheel {
    /// How many nodes the lists have.
    pub(super) const NODES: usize = DIGITS * VALUES;

    pub(super) const fn new(clients: usize) -> Self {
        Self {
            clients,
            passed: 0,
            filled: [0; Self::NODES / WORD],
            filled_words: 0,
        }
    }

    /// Whether the wheel no longer takes clients of this tick.
    #[inline]
    pub(super) const fn has_passed(&self, tick: u64) -> bool {
        tick <= self.passed
    }

    /// From now on the wheel takes only clients with later ticks than `tick`, the begin of its first list.
    pub(super) const fn pass_to(&mut self, tick: u64) {
        self.passed = tick;
    }

    /// Adds a client that is not in the wheel, and whose tick has not passed.
    pub(super) fn add(&mut self, nodes: &mut [Node], client: u32, tick: u64) {
        let digit = ((tick ^ self.passed).ilog2() / DIGIT_BITS) as usize;
        let value = (tick >> (digit as u32 * DIGIT_BITS)) as usize % VALUES;
        let number = Slot { digit, value }.number();
        self.filled[number / WORD] |= 1 << (number % WORD);
        self.filled_words |= 1 << (number / WORD);
        let list = self.clients + number;
        let first = nodes[list].next;
        nodes[list].next = client;
        nodes[first as usize].prev = client;
        let node = &mut nodes[client as usize];
        (node.prev, node.next) = (list as u32, first);
    }

    /// Removes a client that is in the wheel.
    pub(super) fn remove(&mut self, nodes: &mut [Node], client: u32) {
        let Node { prev, next, .. } = nodes[client as usize];
        nodes[prev as usize].next = next;
        nodes[next as usize].prev = prev;
        if prev == next {
            // It was alone in its list.
            self.has_emptied(prev as usize - self.clients);
        }
    }

    fn has_emptied(&mut self, number: usize) {
        let word = &mut self.filled[number / WORD];
        *word &= !(1 << (number % WORD));
        self.filled_words &= !(u32::from(*word == 0) << (number / WORD));
    }

    /// The list with the earliest clients.
    pub(super) fn first(&self) -> Option<Slot> {
        if self.filled_words == 0 {
            return None;
        }
        let index = self.filled_words.trailing_zeros() as usize;
        let number = index * WORD + self.filled[index].trailing_zeros() as usize;
        Some(Slot {
            digit: number / VALUES,
            value: number % VALUES,
        })
    }

    /// The first tick of a list.
    pub(super) const fn begin(&self, slot: Slot) -> u64 {
        let below = slot.digit as u32 * DIGIT_BITS;
        let above = below + DIGIT_BITS;
        (self.passed >> above << above) | (slot.value as u64) << below
    }

    /// Removes all clients of a list. Returns the first of them; `after` has the others.
    pub(super) fn take_all(&mut self, nodes: &mut [Node], slot: Slot) -> Option<u32> {
        let list = self.clients + slot.number();
        let first = nodes[list].next;
        (nodes[list].prev, nodes[list].next) = (list as u32, list as u32);
        self.has_emptied(slot.number());
        self.client(first)
    }

    /// The client that came after `client` in a list that was taken. To be called before `client` is added again.
    pub(super) fn after(&self, nodes: &[Node], client: u32) -> Option<u32> {
        self.client(nodes[client as usize].next)
    }

    /// The client with this node, unless it is that of a list.
    fn client(&self, node: u32) -> Option<u32> {
        ((node as usize) < self.clients).then_some(node)
    }
}
