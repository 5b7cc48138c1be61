//! One connection to one server: its socket, its unsent and unread bytes, and the calls that wait for replies.
//!
//! ```text
//!   Down ──retry_at──> Connecting ──writable──> Greeting ──all answered──> Ready
//!    ^                     │                       │                         │
//!    └──────────── refused, closed, silent, malformed ───────────────────────┘
//! ```
//! Replies come in the order of the calls, so the waiting calls are a queue. The connection knows clients only by
//! number; the clients know the rest.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use locks::{CallId, Nanos, Reply};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use wire::IncompleteReply;
use wire::postgres::BlockKind;

use super::added_delay::AddedDelay;
use super::dialect::{DatabaseSession, Target};
use super::poller::{Interest, Poller};
use crate::clients::Doing;
use crate::clock;
use crate::spec::Address;
use crate::transport::{Arrival, Broken, Caller, Sender};

/// The first pause before a connection is reopened. Each failure doubles it, up to `RETRY_MAX`.
const RETRY_MIN: Nanos = Nanos::from_millis(10);
const RETRY_MAX: Nanos = Nanos::from_millis(500);
/// The pause before a server with a full backlog is tried again.
const BACKLOG_PAUSE: Nanos = Nanos::from_millis(2);
/// How long opening a connection and logging in may take together.
pub(crate) const OPEN_WITHIN: Nanos = Nanos::from_secs(3);
/// How long a peer may acknowledge nothing before its connection is taken for lost. A server that is stopped still
/// acknowledges, through its kernel.
const VANISHED_AFTER: Duration = Duration::from_secs(10);

/// A command that was sent and has no reply yet. In 16 bytes, because each client has one or two of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(super) call: CallId,
    pub(crate) client: u32,
    doing: Doing,
    pub(crate) block: BlockKind,
}

impl Awaited {
    pub(crate) const fn new(Sender { client, call, doing }: Sender, block: BlockKind) -> Self {
        Self {
            call,
            client,
            doing,
            block,
        }
    }

    pub(crate) const fn sender(self) -> Sender {
        Sender {
            client: self.client,
            call: self.call,
            doing: self.doing,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Down { retry_at: Nanos },
    Connecting { until: Nanos },
    Greeting { answered: usize, until: Nanos },
    Ready,
}

/// A peer that has vanished without a word acknowledges nothing. By default the kernel tries for a quarter of an hour,
/// and never asks a peer from whom nothing is awaited.
fn notice_a_vanished_peer(socket: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_tcp_user_timeout(socket, VANISHED_AFTER.as_millis() as u32)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, VANISHED_AFTER / 2)?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(1))
}

/// How many calls of so many clients may wait for replies over one connection. A quorum lock goes on without its slowest
/// server: a client that tries again each millisecond sends it two calls each time, while a busy machine keeps it waiting.
/// Without a bound the calls of a silent server would grow for as long as it is silent.
const fn most_awaited(clients: u32) -> usize {
    clients as usize * 4 + 4_096
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: u16,
    pub(crate) state: State,
    /// The session of a connection to a database, once the socket is connected.
    pub(crate) session: Option<Box<DatabaseSession>>,
    socket: Option<OwnedFd>,
    /// The beginning of a reply whose end has not arrived.
    partial: Vec<u8>,
    /// How far `partial` has been scanned, if it is a reply of Redis.
    pub(crate) incomplete: IncompleteReply,
    pub(crate) out: Vec<u8>,
    pub(super) sent: usize,
    pub(crate) awaited: VecDeque<Awaited>,
    most_awaited: usize,
    /// Clients whose release is in `out` and has no time stamp yet.
    pub(crate) releasing: Vec<u32>,
    /// How many of the awaited commands are in `out` since the last write. While there are any, this connection is
    /// listed among those to write to.
    unflushed: usize,
    interest: Interest,
    failures: u32,
    pub(super) is_refused: bool,
    /// The delay of its bytes, once the trial has begun.
    pub(crate) delay: Option<Box<AddedDelay>>,
}

impl Connection {
    /// For so many clients.
    pub(crate) fn new(server: u16, clients: u32) -> Self {
        Self {
            server,
            state: State::Down { retry_at: Nanos::ZERO },
            session: None,
            socket: None,
            partial: Vec::new(),
            incomplete: IncompleteReply::default(),
            out: Vec::new(),
            sent: 0,
            awaited: VecDeque::new(),
            most_awaited: most_awaited(clients),
            releasing: Vec::new(),
            unflushed: 0,
            interest: Interest::Read,
            failures: 0,
            is_refused: false,
            delay: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    #[inline]
    pub(crate) fn awaits_too_many(&self) -> bool {
        self.awaited.len() >= self.most_awaited
    }

    /// Registers a call whose command is in `out`; true when it is the first since the last write.
    pub(crate) fn await_reply(&mut self, awaited: Awaited) -> bool {
        self.awaited.push_back(awaited);
        self.unflushed += 1;
        self.unflushed == 1
    }

    /// The reply answers the oldest call; `false` if no call waits.
    #[inline]
    pub(crate) fn answers(&mut self, reply: &Reply, into: &mut Arrival) -> bool {
        let Some(awaited) = self.awaited.front() else {
            return false;
        };
        into.who = Caller {
            client: awaited.client,
            call: awaited.call,
        };
        into.doing = Some(awaited.doing);
        into.reply = *reply;
        self.awaited.pop_front();
        true
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.unflushed > 0
    }

    /// Whether the server owes replies to commands that were written.
    pub(crate) fn awaits_replies(&self) -> bool {
        self.awaited.len() > self.unflushed
    }

    /// When this connection next needs attention without any event on its socket.
    pub(crate) fn deadline(&self) -> Nanos {
        match self.state {
            State::Down { retry_at: at } | State::Connecting { until: at } | State::Greeting { until: at, .. } => at,
            State::Ready => Nanos::NEVER,
        }
    }

    /// Starts to connect. `connected` must be called when the socket is writable.
    pub(crate) fn open(&mut self, target: &Target, poller: &Poller, index: u32, now: Nanos) -> Result<(), Broken> {
        let (family, socket_flags) = match target.address {
            Address::Tcp(address) if address.is_ipv4() => (AddressFamily::INET, SocketFlags::NONBLOCK),
            Address::Tcp(_) => (AddressFamily::INET6, SocketFlags::NONBLOCK),
            Address::Unix(_) => (AddressFamily::UNIX, SocketFlags::NONBLOCK),
        };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, socket_flags | SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
        let connecting = match &target.address {
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true).map_err(io::Error::from)?;
                notice_a_vanished_peer(&socket).map_err(io::Error::from)?;
                rustix::net::connect(&socket, address)
            }
            Address::Unix(path) => {
                rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_path()).map_err(io::Error::from)?)
            }
        };
        match connecting {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            // A Unix socket with a full backlog reports that at once: the server has not accepted its earlier
            // connections yet.
            Err(rustix::io::Errno::AGAIN) => {
                self.put_off(now);
                return Ok(());
            }
            Err(error) => return Err(io::Error::from(error).into()),
        }
        poller.add(&socket, index, Interest::ReadAndWrite)?;
        self.interest = Interest::ReadAndWrite;
        self.socket = Some(socket);
        self.state = State::Connecting {
            until: now.after(OPEN_WITHIN),
        };
        Ok(())
    }

    /// For tests: opens the connection over this socket.
    #[cfg(test)]
    pub(crate) fn attach(
        &mut self,
        socket: OwnedFd,
        is_database: bool,
        poller: &Poller,
        index: u32,
    ) -> Result<(), Broken> {
        poller.add(&socket, index, Interest::Read)?;
        self.socket = Some(socket);
        self.interest = Interest::Read;
        self.session = is_database.then(Box::default);
        self.greeted();
        Ok(())
    }

    /// Postpones the opening, so that other connections come first.
    pub(crate) fn put_off(&mut self, now: Nanos) {
        self.state = State::Down {
            retry_at: now.after(BACKLOG_PAUSE),
        };
    }

    /// The socket became writable for the first time: checks whether it is connected, and queues the greeting.
    pub(crate) fn connected(&mut self, target: &Target, now: Nanos) -> Result<(), Broken> {
        let socket = self.socket.as_ref().expect("a connecting connection has a socket");
        sockopt::socket_error(socket)
            .map_err(io::Error::from)?
            .map_err(io::Error::from)?;
        self.out.extend_from_slice(target.handshake.bytes());
        let longer = self.delay.as_mut().map_or(Nanos::ZERO, |delay| delay.connected(now));
        self.session = target.handshake.is_database().then(Box::default);
        self.state = State::Greeting {
            answered: 0,
            until: now.after(OPEN_WITHIN).after(longer),
        };
        Ok(())
    }

    /// The log-in has succeeded: calls may be sent.
    pub(crate) fn greeted(&mut self) {
        self.state = State::Ready;
        self.failures = 0;
    }

    /// Reads once into `buffer`; `None` when there was nothing to read, or nothing has come out of its delay.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let received = self.read_socket(buffer);
        let Some(delay) = &mut self.delay else { return received };
        let now = clock::now();
        let is_awaited = !self.awaited.is_empty();
        match received {
            Ok(Some(_)) if is_awaited && delay.loses_replies() => delay.ended(now, Broken::Planned),
            Ok(Some(count)) => delay.arrived(now, &buffer[..count]),
            Ok(None) => {}
            Err(why) => {
                delay.ended(now, why);
                // Its end would be reported again and again.
                self.socket = None;
            }
        }
        delay.receive(now, buffer)
    }

    fn read_socket(&self, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let Some(socket) = &self.socket else { return Ok(None) };
        match rustix::net::recv(socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => Err(Broken::Closed),
            Ok((count, _)) => Ok(Some(count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Takes what was kept of a reply, and adds the bytes that were `read` to it. To be put back by `keep`. Empty when
    /// nothing was kept: then the bytes that were read need not be copied.
    pub(crate) fn take_kept(&mut self, read: &[u8]) -> Vec<u8> {
        let mut kept = std::mem::take(&mut self.partial);
        if !kept.is_empty() {
            kept.extend_from_slice(read);
        }
        kept
    }

    /// Keeps the beginning of a reply until the rest arrives: what remains of `kept`, or of what was `read`, after
    /// `used` bytes. Bytes that are already kept stay where they are, because a long reply may come in many pieces. A
    /// connection that its lock closed meanwhile keeps nothing: the next connection must not start with the rest of an
    /// old reply.
    pub(crate) fn keep(&mut self, mut kept: Vec<u8>, read: &[u8], used: usize) {
        if kept.is_empty() {
            kept.extend_from_slice(&read[used..]);
        } else {
            kept.drain(..used);
        }
        if matches!(self.state, State::Down { .. }) {
            kept.clear();
        }
        self.partial = kept;
    }

    /// Writes the content of `out` in one call, or what comes out of its delay. What the socket does not accept is kept
    /// until it is writable.
    pub(crate) fn write(&mut self, poller: &Poller, index: u32) -> Result<(), Broken> {
        self.unflushed = 0;
        let is_delayed = self.delay.is_some();
        let out = match &mut self.delay {
            Some(delay) => delay.send(clock::now(), &mut self.out),
            None => &mut self.out,
        };
        let Some(socket) = &self.socket else { return Ok(()) };
        if self.sent < out.len() {
            match rustix::net::send(socket, &out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                // The read that follows finds the end of the connection, behind what arrived before.
                Err(_) if is_delayed => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        let interest = if self.sent == out.len() {
            out.clear();
            self.sent = 0;
            Interest::Read
        } else {
            // A socket under load may never take all: what it has taken must not stay in front of the rest.
            if self.sent > out.len() / 4 {
                out.drain(..self.sent);
                self.sent = 0;
            }
            Interest::ReadAndWrite
        };
        if interest != self.interest {
            poller.change(socket, index, interest)?;
            self.interest = interest;
        }
        Ok(())
    }

    /// As `close`, but without an error: the connection may be reopened at once.
    pub(crate) fn hang_up(&mut self, now: Nanos) -> VecDeque<Awaited> {
        let failures = self.failures;
        let awaited = self.close(now);
        self.failures = failures;
        self.state = State::Down { retry_at: now };
        awaited
    }

    /// Closes the socket and returns the calls that will get no reply.
    pub(crate) fn close(&mut self, now: Nanos) -> VecDeque<Awaited> {
        self.socket = None;
        self.session = None;
        self.partial.clear();
        self.incomplete = IncompleteReply::default();
        self.out.clear();
        if let Some(delay) = &mut self.delay {
            delay.clear();
        }
        self.sent = 0;
        self.unflushed = 0;
        self.releasing.clear();
        let pause = RETRY_MIN.0.saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX.0);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Down {
            retry_at: now.after(Nanos(pause)),
        };
        std::mem::take(&mut self.awaited)
    }
}

#[cfg(test)]
mod tests;
