//! What has reached the processes over their connections and waits to be read.

use std::collections::VecDeque;

use locks::Nanos;

use crate::network::Inbound;

/// The state of a connection, one after another.
#[derive(Debug, Default)]
pub(crate) struct Way {
    pub(crate) generation: u64,
    /// When the last command and the last reply arrive: each direction of a connection keeps its order.
    pub(crate) up: Nanos,
    pub(crate) down: Nanos,
    inbox: VecDeque<Inbound>,
}

#[derive(Debug)]
pub(crate) struct Mail {
    /// The connections of each process, by their numbers.
    ways: Vec<Vec<Way>>,
    /// How much each process has not read.
    unread: Vec<usize>,
    /// The processes that something has reached since the world looked.
    pub(crate) touched: Vec<usize>,
}

impl Mail {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            ways: (0..processes).map(|_| Vec::new()).collect(),
            unread: vec![0; processes],
            touched: Vec::new(),
        }
    }

    pub(crate) fn way(&mut self, process: usize, index: u32) -> &mut Way {
        let (ways, index) = (&mut self.ways[process], index as usize);
        if ways.len() <= index {
            ways.resize_with(index + 1, Way::default);
        }
        &mut ways[index]
    }

    /// Whether anything has reached this process that it has not read.
    pub(crate) fn is_unread(&self, process: usize) -> bool {
        self.unread[process] > 0
    }

    /// What waits to be read over a connection.
    pub(crate) fn over(&mut self, process: usize, index: u32) -> &VecDeque<Inbound> {
        &self.way(process, index).inbox
    }

    pub(crate) fn push(&mut self, process: usize, index: u32, what: Inbound) {
        self.way(process, index).inbox.push_back(what);
        self.unread[process] += 1;
        self.touched.push(process);
    }

    /// The process reads all that has reached it over a connection. What `into` had is gone.
    pub(crate) fn take(&mut self, process: usize, index: u32, into: &mut VecDeque<Inbound>) {
        into.clear();
        std::mem::swap(&mut self.way(process, index).inbox, into);
        self.unread[process] -= into.len();
    }

    /// The connection is closed at `now`: what was not read is gone. Returns when the last command arrives.
    pub(crate) fn close(&mut self, process: usize, index: u32, now: Nanos) -> Nanos {
        let way = self.way(process, index);
        let last_arrival = way.up;
        way.generation += 1;
        (way.up, way.down) = (now, now);
        let unread = std::mem::take(&mut way.inbox).len();
        self.unread[process] -= unread;
        last_arrival
    }
}
