//! What the loop needs of whatever carries commands and replies: sockets to real servers, or a model of a network on
//! virtual time.
//!
//! ```text
//!   send ──▶ unwritten bytes ──write──▶ server ──▶ read ──▶ next: one reply after another
//!                                          │
//!                                  closed: lost calls, disconnected clients
//! ```
//! A transport stamps nothing: the loop reads the clock, and stamps what it has read and what it is about to write. So
//! the order of stamp and system call is in the loop, where a test on virtual time sees it.
//!
//! Promises that the loop relies on: replies over one connection come in the order of the sends; each call that was
//! sent is either answered once or reported once as lost; nothing leaves before `write`.

use std::collections::VecDeque;
use std::io;

use locks::{CallId, Command, ConnectionKind, ErrorKind, Key, Nanos, Reply, ServerId};
use wire::Malformed;
use wire::postgres::{self, LogInError};

use crate::LoadError;
use crate::clients::Doing;
use crate::error::ServerRefusal;
use crate::faults::{LinkFault, Links};

/// A client, and one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub client: u32,
    pub call: CallId,
}

/// Who sent a command, and what the client was doing then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub client: u32,
    pub call: CallId,
    pub doing: Doing,
}

impl Arrival {
    /// To be overwritten by `Transport::next`.
    pub const NONE: Self = Self {
        who: Caller {
            client: 0,
            call: CallId(0),
        },
        doing: None,
        reply: Reply::Other,
    };

    pub const fn of(sender: Sender, reply: Reply) -> Self {
        Self {
            who: sender.caller(),
            doing: Some(sender.doing),
            reply,
        }
    }
}

impl Sender {
    pub const fn caller(self) -> Caller {
        Caller {
            client: self.client,
            call: self.call,
        }
    }
}

/// A command on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub sender: Sender,
    pub to: ServerId,
    pub over: ConnectionKind,
    pub command: &'a Command,
    /// The command ends a hold: its client is listed by `releasing` until the bytes are written.
    pub ends_hold: bool,
}

/// A reply, with who asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub who: Caller,
    /// What the client was doing when it sent the call. `None` when the reply has been passed to another client
    /// already, with which an error of it is counted.
    pub doing: Option<Doing>,
    pub reply: Reply,
}

/// One connection with an event.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub connection: u32,
    pub writable: bool,
    pub readable: bool,
    /// The server has closed the connection: its end comes after the unread bytes.
    pub closed: bool,
}

/// An error reply of a server, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    /// The first word of an error reply of Redis, or the SQLSTATE of one of Postgres.
    pub code: String,
    pub text: String,
}

/// What the end of a connection cut off.
#[derive(Debug)]
pub struct Cut {
    /// Whether it was open, and not still connecting.
    pub was_open: bool,
    /// The calls without a reply, in the order of the sends.
    pub calls: VecDeque<Sender>,
    /// The error with which the server ended the connection or refused it, if that is to be counted.
    pub error: Option<ErrorText>,
    /// Whether that error answers the first of the calls.
    pub answers_first: bool,
}

/// A call that the transport has answered without the server.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed {
    pub who: Caller,
    /// What it confirms still stands.
    pub holds: bool,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("no reply to the log-in within {} s", within.0 / 1_000_000_000)]
    Silent { within: Nanos },
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the server refused {command}: {text}")]
    Refused {
        command: &'static str,
        code: String,
        text: String,
    },
    #[error("{0}")]
    LogIn(#[from] LogInError),
    #[error("{0}")]
    Session(#[from] postgres::Broken),
    #[error("a reply came that belongs to no command")]
    Unasked,
    #[error("{calls} calls have no reply")]
    Unanswered { calls: usize },
    #[error("a planned fault closed the connection")]
    Planned,
}

impl Broken {
    /// The server's error, if an error of `server` kept the connection from opening.
    pub(crate) fn refusal(&self, server: u16) -> Option<ServerRefusal> {
        let (call, code, text) = match self {
            Self::Refused { command, code, text } => ((*command).to_owned(), code.clone(), text),
            Self::LogIn(LogInError::Refused(error)) => ("the log-in".to_owned(), error.sqlstate(), &error.text),
            Self::LogIn(LogInError::NotPrepared { sql, error }) => {
                (format!("to prepare `{sql}`"), error.sqlstate(), &error.text)
            }
            _ => return None,
        };
        Some(ServerRefusal {
            server,
            call,
            code,
            text: text.clone(),
        })
    }
}

/// Carries commands to servers and replies back. See the module.
pub trait Transport {
    /// Waits at most `timeout` for connections that can be read or written, and appends them to `ready`, those that
    /// must be served first at the front.
    fn wait(&mut self, timeout: Nanos, ready: &mut Vec<Ready>) -> io::Result<()>;

    // Out.

    /// Puts a command among the unwritten bytes of its connection, and returns how many bytes it takes. `None` when the
    /// connection is not open: the call is then lost.
    fn send(&mut self, out: Outgoing<'_>) -> Option<usize>;
    /// Swaps `into` with the clients whose hold is ended by an unwritten command of this connection.
    fn swap_releasing(&mut self, connection: u32, into: &mut Vec<u32>);
    /// Writes everything unwritten in one call; or finishes what a new connection has to do first. `false` when the
    /// connection is closed.
    fn write(&mut self, connection: u32, now: Nanos) -> Result<bool, Broken>;
    /// Whether this connection has unwritten commands.
    fn is_unwritten(&self, connection: u32) -> bool;
    /// Whether any connection has unwritten commands that are not held back.
    fn has_unwritten(&self) -> bool;
    /// The next connection with unwritten commands. With `may_hold_back`, commands that end no hold are held back where
    /// replies are under way, with whose handling they can leave.
    fn next_unwritten(&mut self, may_hold_back: bool) -> Option<u32>;
    /// To be called when `next_unwritten` has returned `None`: returns whether commands were held back. They are
    /// unwritten again from now on.
    fn release_held_back(&mut self) -> bool;

    // In.

    /// Reads once, and returns how many bytes came; `None` when nothing was there to read.
    fn read(&mut self, connection: u32) -> Result<Option<usize>, Broken>;
    /// Whether commands can be sent over it.
    fn is_open(&self, connection: u32) -> bool;
    /// The next whole reply among what was read at `now`, in `into`. `false`: the rest is incomplete, or concerns nobody
    /// any more, or `end_of_read` has the reason. Not an `Option`: the compiler takes such a value apart and puts it
    /// together again, and the processor waits for the stores.
    fn next(&mut self, connection: u32, now: Nanos, into: &mut Arrival) -> bool;
    /// To be called when `next` has returned `false`.
    fn end_of_read(&mut self, connection: u32) -> Result<(), Broken>;
    /// The words of the error that `next` returned last; `None` for an error that is part of normal operation.
    fn error_text(&mut self, connection: u32) -> Option<ErrorText>;
    /// The clients whose replies come next over this connection.
    fn awaiting(&self, connection: u32) -> impl Iterator<Item = u32>;
    /// The number of the server of this connection.
    fn server(&self, connection: u32) -> u16;
    /// How many calls have no reply yet, whether written or not.
    fn outstanding(&self) -> usize;
    /// Whether any call still has to be answered before all locks are settled. Blocking commands end with their
    /// connection and do not count.
    fn has_open_calls(&self) -> bool;

    /// When the last bytes that were under way came out, or come out; zero if nothing delays them.
    fn quiet_since(&self) -> Nanos {
        Nanos::ZERO
    }

    // Messages of channels.

    /// Takes up the next message that was read: when that was.
    fn next_message(&mut self) -> Option<Nanos>;
    /// The next client that receives this message. Clients may join and leave in between.
    fn next_listener(&mut self) -> Option<u32>;

    // Connections that close and open.

    /// Whether it makes sense that this client starts.
    fn can_reach_a_server(&self, client: u32) -> bool;
    /// Ends a broken connection; it is reopened after a pause. An error when it broke before the trial began.
    fn cut(&mut self, connection: u32, broken: &Broken, now: Nanos) -> Result<Cut, LoadError>;
    /// Closes, because its lock asks for it, the client's own connection, or the one over which it waits to subscribe
    /// to `key`. It is reopened at once.
    fn hang_up(&mut self, client: u32, key: Key, now: Nanos);
    /// When `upkeep` has something to do.
    fn next_upkeep(&self) -> Nanos;
    /// Opens connections whose pause has ended, and appends those that took too long.
    fn upkeep(&mut self, now: Nanos, broken: &mut Vec<(u32, Broken)>);
    /// The next call that was answered without the server.
    fn next_confirmed(&mut self) -> Option<Confirmed>;
    /// Swaps `into` with the calls that will get no reply.
    fn swap_lost(&mut self, into: &mut Vec<Caller>);
    /// The clients whose own connection, or subscription, has closed.
    fn take_disconnected(&mut self) -> Vec<u32>;
    /// Whether the client's own connection has closed, and it was not told yet.
    fn is_disconnected(&self, client: u32) -> bool;
    /// Whether anything of this waits to be told.
    fn has_news(&self) -> bool;

    // Planned faults. A transport that has none of its own, such as a model with faults from a seed, keeps the defaults.

    /// The open connections that these are.
    fn touched(&self, _links: Links) -> Vec<u32> {
        Vec::new()
    }
    /// These faults, and no others, disturb connections from now on. Returns the connections that cannot go on, because
    /// they have lost bytes in a fault that has ended.
    fn disturb(&mut self, _active: &[(Links, LinkFault)], _now: Nanos) -> Vec<u32> {
        Vec::new()
    }
    /// The client has crashed: its calls have no owner any more. Returns the connections that only it used.
    fn forget(&mut self, _client: u32) -> Vec<u32> {
        Vec::new()
    }

    // The trial.

    /// The address of a server with a connection that has not been open yet.
    fn unopened(&self) -> Option<String>;
    /// All connections have been open: from now on one that breaks is reopened.
    fn all_opened(&mut self);
    /// No client starts any more: connections that clients close stay closed.
    fn begin_drain(&mut self);
    /// Leaves the servers as their protocols ask.
    fn leave(&mut self);
}

/// Whether an error reply is part of a lock's normal operation; for some that depends on whether the lock went on
/// because of it.
pub(crate) const fn is_expected(reply: Reply, went_on: bool) -> bool {
    match reply {
        Reply::Error(ErrorKind::BusyGroup) => true,
        Reply::Error(ErrorKind::NoScript | ErrorKind::NoSuchKey) => went_on,
        _ => false,
    }
}
