//! One connection of a process of a world.

use std::collections::VecDeque;

use load::Sender;
use locks::{Command, ConnectionKind, Key, Nanos, ServerId};

use crate::network::Link;

/// One connection of the process.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: ServerId,
    pub(crate) kind: ConnectionKind,
    /// The client that owns it.
    pub(crate) owner: Option<u32>,
    pub(crate) generation: u64,
    /// While it is closed: when it opens again, by the clock of the process.
    pub(crate) opens_at: Option<Nanos>,
    pub(crate) unwritten: Vec<(Sender, Command)>,
    pub(crate) releasing: Vec<u32>,
    pub(crate) awaited: VecDeque<Sender>,
    pub(crate) listeners: Vec<(Key, u32)>,
}

impl Connection {
    pub(crate) fn new(server: ServerId, kind: ConnectionKind, owner: Option<u32>) -> Self {
        Self {
            server,
            kind,
            owner,
            generation: 0,
            opens_at: None,
            unwritten: Vec::new(),
            releasing: Vec::new(),
            awaited: VecDeque::new(),
            listeners: Vec::new(),
        }
    }

    /// As the network knows it.
    pub(crate) const fn link(&self, process: usize, index: u32) -> Link {
        Link {
            process,
            index,
            generation: self.generation,
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.opens_at.is_none()
    }
}
