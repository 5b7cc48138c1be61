//! What a transport did and when: for tests that compare it with what the judge was told.

use load::Sender;
use locks::{Command, Nanos, Reply, ServerId};

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

/// A command that a server carried out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    pub client: u32,
    pub server: ServerId,
    pub command: Command,
    /// `None` for a command that blocks.
    pub reply: Option<Reply>,
}
