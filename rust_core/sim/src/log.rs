//! What a transport did and when: for tests that compare it with what the judge was told.

use load::Sender;
use locks::{Command, Nanos, Reply, ServerId};

use crate::network::Asker;
use crate::plan::Fault;

/// One thing that passed the transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Logged {
    /// The write of this command began.
    Wrote { sender: Sender, command: Command },
    /// The read that brought this reply had ended.
    Read { sender: Sender, reply: Reply },
}

/// All of it, in order, by the world's time. Empty unless it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) is_kept: bool,
    pub(crate) entries: Vec<(Nanos, Logged)>,
}

impl Log {
    pub(crate) fn push(&mut self, at: Nanos, what: Logged) {
        if self.is_kept {
            self.entries.push((at, what));
        }
    }
}

/// What happened at a server, or to the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noted {
    /// The server carried a command out. `reply` is `None` for a command that blocks.
    Served {
        client: u32,
        server: ServerId,
        command: Command,
        reply: Option<Reply>,
    },
    Struck(Fault),
}

impl Noted {
    /// In a world of a plan each process has one client, of the same number.
    pub(crate) const fn served(from: Asker, command: Command, reply: Option<Reply>) -> Self {
        Self::Served {
            client: from.link.process as u32,
            server: from.server,
            command,
            reply,
        }
    }
}
