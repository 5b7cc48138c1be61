//! A binary heap of clients by time, in which the time of a client can be moved forward.

use locks::Nanos;

use super::{IN_SOON, Node};

#[derive(Debug)]
pub(super) struct Heap {
    /// Times and clients. `Node::prev` of a client is the index of its entry.
    entries: Vec<(Nanos, u32)>,
}

impl Heap {
    pub(super) fn new(clients: usize) -> Self {
        Self {
            entries: Vec::with_capacity(clients),
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<(Nanos, u32)> {
        self.entries.first().copied()
    }

    /// How many clients are in the heap.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push(&mut self, nodes: &mut [Node], client: u32) {
        let entry = (nodes[client as usize].at, client);
        self.entries.push(entry);
        self.rise(nodes, self.entries.len() - 1, entry);
        nodes[client as usize].next = IN_SOON;
    }

    /// The time of `client`, which is in the heap, has become earlier.
    pub(super) fn move_forward(&mut self, nodes: &mut [Node], client: u32) {
        let Node { at, prev, .. } = nodes[client as usize];
        self.rise(nodes, prev as usize, (at, client));
    }

    /// Removes the first, if there is one.
    pub(super) fn pop(&mut self, nodes: &mut [Node]) {
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sink(nodes, last);
        }
    }

    /// Moves later entries out of the way of `entry`, from `index` upwards, and stores it.
    fn rise(&mut self, nodes: &mut [Node], mut index: usize, entry: (Nanos, u32)) {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.entries[parent] <= entry {
                break;
            }
            self.put(nodes, index, self.entries[parent]);
            index = parent;
        }
        self.put(nodes, index, entry);
    }

    /// Moves earlier entries out of the way of `entry`, from the first downwards, and stores it.
    fn sink(&mut self, nodes: &mut [Node], entry: (Nanos, u32)) {
        let mut index = 0;
        while let Some(&left) = self.entries.get(2 * index + 1) {
            let right = self.entries.get(2 * index + 2).copied();
            let (child, earlier) = match right.filter(|&right| right < left) {
                Some(right) => (2 * index + 2, right),
                None => (2 * index + 1, left),
            };
            if entry <= earlier {
                break;
            }
            self.put(nodes, index, earlier);
            index = child;
        }
        self.put(nodes, index, entry);
    }

    fn put(&mut self, nodes: &mut [Node], index: usize, entry: (Nanos, u32)) {
        self.entries[index] = entry;
        nodes[entry.1 as usize].prev = index as u32;
    }
}
