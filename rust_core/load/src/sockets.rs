//! The transport that measures: non-blocking sockets to real servers.
//!
//! `connection.rs` has one connection, `layout.rs` says which one a command goes over, `channels.rs` has the
//! subscriptions, `dialect.rs` what differs between the two kinds of server.

mod added_delay;
mod channels;
mod closing;
mod connection;
mod delay_line;
mod dialect;
mod disturbance;
mod layout;
mod opening;
mod poller;
mod reading;
mod sending;
mod sessions;
mod subscriptions;

use std::io;
use std::os::fd::AsFd;

use locks::{ConnectionKind, Key, Nanos};

use crate::faults::{LinkFault, Links};
use crate::spec::{Address, TrialSpec};
use crate::transport::{Arrival, Broken, Caller, Confirmed, Cut, ErrorText, Outgoing, Ready, Transport};
use crate::{LoadError, TrialError};
use added_delay::Delays;
use channels::Channels;
use connection::{Connection, State};
pub(crate) use dialect::fits;
use dialect::{Encoder, Target};
pub(crate) use dialect::{Naming, Peers};
pub(crate) use layout::Layout;
use opening::Stage;
pub(crate) use poller::WAKE;
use poller::{Interest, Poller};
use reading::Reading;

#[derive(Debug)]
pub(crate) struct Sockets {
    layout: Layout,
    targets: Vec<Target>,
    encoders: Vec<Encoder>,
    connections: Vec<Connection>,
    poller: Poller,
    reading: Reading,
    channels: Channels,
    /// Calls that will get no reply; their clients are told in this round.
    lost: Vec<Caller>,
    /// Clients whose own connection, or subscription, closed; they are told in this round.
    disconnected: Vec<u32>,
    /// Connections with unwritten commands.
    unwritten: Vec<u32>,
    /// Those whose commands are held back.
    held_back: Vec<u32>,
    outstanding: usize,
    delays: Delays,
    /// Connections over which too many calls have no reply; they are closed in this round.
    overfull: Vec<u32>,
    /// When a connection next needs attention without any event on its socket.
    next_upkeep: Nanos,
    stage: Stage,
}

impl Sockets {
    /// The connections of a thread, none of them opened yet.
    pub(crate) fn new(spec: &TrialSpec, thread: u32, layout: Layout, naming: &Naming) -> Result<Self, TrialError> {
        let peers = Peers {
            strategy: spec.strategy,
            servers: &spec.servers,
            guard: spec.guard.as_ref(),
            client_name: &spec.client_name,
        };
        Self::with_delays(&peers, layout, naming, Delays::new(spec, thread)?)
    }

    /// The connections of a lock client, none of them opened yet. From the start, one that breaks is opened again.
    pub(crate) fn for_programs(peers: &Peers<'_>, layout: Layout, naming: &Naming) -> Result<Self, TrialError> {
        let mut sockets = Self::with_delays(peers, layout, naming, Delays::none())?;
        sockets.stage = Stage::Open;
        Ok(sockets)
    }

    fn with_delays(peers: &Peers<'_>, layout: Layout, naming: &Naming, delays: Delays) -> Result<Self, TrialError> {
        Ok(Self {
            connections: (0..)
                .zip(layout.servers())
                .map(|(index, server)| Connection::new(server, layout.clients_of(index)))
                .collect(),
            layout,
            targets: dialect::targets(peers)?,
            encoders: dialect::encoders(peers, naming)?,
            poller: Poller::new().map_err(|error| TrialError::Load(LoadError::Poll(error)))?,
            reading: Reading::new(),
            channels: Channels::default(),
            lost: Vec::new(),
            disconnected: Vec::new(),
            unwritten: Vec::new(),
            held_back: Vec::new(),
            outstanding: 0,
            delays,
            overfull: Vec::new(),
            next_upkeep: Nanos::ZERO,
            stage: Stage::New,
        })
    }

    /// `wait` also returns when `wake` can be read, with the connection `WAKE`.
    pub(crate) fn wake_by(&self, wake: impl AsFd) -> io::Result<()> {
        self.poller.add(wake, WAKE, Interest::Read)
    }

    /// The address of the server of a connection.
    pub(crate) fn address(&self, connection: u32) -> &Address {
        let server = self.connections[connection as usize].server;
        &self.targets[usize::from(server)].address
    }

    fn leads_to_a_database(&self, connection: &Connection) -> bool {
        self.targets[usize::from(connection.server)].handshake.is_database()
    }
}

impl Transport for Sockets {
    fn wait(&mut self, timeout: Nanos, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.poller.wait(self.delays.shorten(timeout), ready)?;
        self.add_due(ready);
        if self.layout.subscribes() {
            // The server publishes a release before it replies to it, but the reply may arrive first. The client that
            // has just released the lock would then always start before all that wait for the message.
            ready.sort_by_key(|event| !self.layout.subscribes_over(event.connection));
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, out: Outgoing<'_>) -> Option<usize> {
        let client = out.sender.client;
        match out.over {
            ConnectionKind::SharedByClients => self.send_over(self.layout.shared(client, out.to.0), &out),
            ConnectionKind::Own => self.send_over(self.layout.own(client), &out),
            ConnectionKind::Subscribing => self.subscribe(&out),
            ConnectionKind::Guard => self.send_over(self.layout.guard(client), &out),
        }
    }

    #[inline]
    fn swap_releasing(&mut self, connection: u32, into: &mut Vec<u32>) {
        std::mem::swap(&mut self.connections[connection as usize].releasing, into);
    }

    fn write(&mut self, index: u32, now: Nanos) -> Result<bool, Broken> {
        match self.connections[index as usize].state {
            State::Down { .. } => return Ok(false),
            State::Connecting { .. } => self.connected(index, now)?,
            State::Greeting { .. } | State::Ready => {}
        }
        let connection = &mut self.connections[index as usize];
        connection.write(&self.poller, index)?;
        self.arm_delay(index);
        let connection = &mut self.connections[index as usize];
        let handshake = &self.targets[usize::from(connection.server)].handshake;
        if let State::Greeting { .. } = connection.state
            && !handshake.is_answered()
        {
            // There is nothing to log in with: the connection is open as soon as it is connected.
            connection.greeted();
        }
        Ok(true)
    }

    fn is_unwritten(&self, connection: u32) -> bool {
        self.connections[connection as usize].is_dirty()
    }

    fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    fn next_unwritten(&mut self, may_hold_back: bool) -> Option<u32> {
        while let Some(index) = self.unwritten.pop() {
            let connection = &self.connections[index as usize];
            if !connection.is_dirty() {
                continue; // Already written after its own replies.
            }
            if may_hold_back && connection.awaits_replies() && connection.releasing.is_empty() {
                self.held_back.push(index);
                continue;
            }
            return Some(index);
        }
        None
    }

    fn release_held_back(&mut self) -> bool {
        std::mem::swap(&mut self.unwritten, &mut self.held_back);
        !self.unwritten.is_empty()
    }

    fn read(&mut self, index: u32) -> Result<Option<usize>, Broken> {
        let connection = &mut self.connections[index as usize];
        if matches!(connection.state, State::Down { .. } | State::Connecting { .. }) {
            return Ok(None); // Closed earlier in this round, or not connected yet.
        }
        let read = connection.read(&mut self.reading.buffer);
        self.arm_delay(index);
        let Some(count) = read? else {
            return Ok(None);
        };
        self.reading.begin(count, &mut self.connections[index as usize]);
        self.greet(index)?;
        Ok(Some(count))
    }

    #[inline]
    fn is_open(&self, connection: u32) -> bool {
        self.connections[connection as usize].is_ready()
    }

    #[expect(clippy::inline_always, reason = "see `Transport::next`")]
    #[inline(always)]
    fn next(&mut self, index: u32, now: Nanos, into: &mut Arrival) -> bool {
        let subscribes = self.layout.subscribes_over(index);
        if subscribes && let Some((who, reply)) = self.channels.next_joined() {
            *into = Arrival {
                who,
                doing: None,
                reply,
            };
            return true;
        }
        let connection = &self.connections[index as usize];
        let is_answered = if !connection.is_ready() {
            false // It is not open yet, or its lock has closed it: then the rest of the bytes concerns nobody.
        } else if connection.session.is_some() {
            self.database_reply(index, into)
        } else {
            self.redis_reply(index, now, into)
        };
        if is_answered {
            self.outstanding -= 1;
            if subscribes {
                self.channels.answered(index, into.reply);
            }
        }
        is_answered
    }

    fn end_of_read(&mut self, index: u32) -> Result<(), Broken> {
        if let Some(broken) = self.reading.broken.take() {
            return Err(broken);
        }
        self.keep_rest(index);
        Ok(())
    }

    #[cold]
    fn error_text(&mut self, connection: u32) -> Option<ErrorText> {
        if self.leads_to_a_database(&self.connections[connection as usize]) {
            return self.reading.error.take();
        }
        self.reading.error_text()
    }

    #[inline]
    fn awaiting(&self, connection: u32) -> impl Iterator<Item = u32> {
        let awaited = self.connections[connection as usize].awaited.iter();
        awaited.map(|awaited| awaited.client)
    }

    fn server(&self, connection: u32) -> u16 {
        self.connections[connection as usize].server
    }

    #[inline]
    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn has_open_calls(&self) -> bool {
        // On a client's own connection to Redis blocking commands end with the connection; in its own session a lock
        // closes the connection itself.
        let (shared, own) = self.connections.split_at(self.layout.first_own() as usize);
        let sessions = own.iter().filter(|connection| self.leads_to_a_database(connection));
        !self.lost.is_empty()
            || shared
                .iter()
                .chain(sessions)
                .any(|connection| !connection.awaited.is_empty())
    }

    fn quiet_since(&self) -> Nanos {
        self.last_delayed()
    }

    fn next_message(&mut self) -> Option<Nanos> {
        self.channels.next_message()
    }

    fn next_listener(&mut self) -> Option<u32> {
        self.channels.next_listener()
    }

    fn can_reach_a_server(&self, client: u32) -> bool {
        self.layout.can_reach_a_server(client, |index| self.is_open(index))
    }

    fn cut(&mut self, index: u32, broken: &Broken, now: Nanos) -> Result<Cut, LoadError> {
        self.close(index, broken, now)
    }

    fn hang_up(&mut self, client: u32, key: Key, now: Nanos) {
        self.close_for(client, key, now);
    }

    fn next_upkeep(&self) -> Nanos {
        self.next_upkeep
    }

    fn upkeep(&mut self, now: Nanos, broken: &mut Vec<(u32, Broken)>) {
        self.open_what_is_due(now, broken);
    }

    fn next_confirmed(&mut self) -> Option<Confirmed> {
        self.channels.next_confirmed()
    }

    fn swap_lost(&mut self, into: &mut Vec<Caller>) {
        std::mem::swap(&mut self.lost, into);
    }

    fn take_disconnected(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.disconnected)
    }

    fn is_disconnected(&self, client: u32) -> bool {
        self.disconnected.contains(&client)
    }

    fn has_news(&self) -> bool {
        !self.lost.is_empty() || !self.disconnected.is_empty() || self.channels.has_confirmed()
    }

    fn touched(&self, links: Links) -> Vec<u32> {
        self.open_links(links)
    }

    fn disturb(&mut self, active: &[(Links, LinkFault)], now: Nanos) -> Vec<u32> {
        self.disturb_links(active, now)
    }

    fn forget(&mut self, client: u32) -> Vec<u32> {
        self.forget_client(client)
    }

    fn unopened(&self) -> Option<String> {
        let waiting = self.connections.iter().find(|connection| !connection.is_ready())?;
        Some(self.targets[usize::from(waiting.server)].address.to_string())
    }

    fn all_opened(&mut self) {
        self.stage = Stage::Open;
        self.begin_delays();
    }

    fn begin_drain(&mut self) {
        self.stage = Stage::Draining;
    }

    fn leave(&mut self) {
        self.end_sessions();
    }
}

#[cfg(test)]
impl Sockets {
    pub(crate) fn count(&self) -> u32 {
        self.connections.len() as u32
    }

    /// Opens a connection over one end of a pair of sockets, and returns the other.
    pub(crate) fn attach(&mut self, index: u32) -> std::os::unix::net::UnixStream {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets can be made");
        for socket in [&ours, &theirs] {
            socket
                .set_nonblocking(true)
                .expect("a socket can be read without waiting");
        }
        let is_database = self.leads_to_a_database(&self.connections[index as usize]);
        let connection = &mut self.connections[index as usize];
        connection
            .attach(ours.into(), is_database, &self.poller, index)
            .expect("a socket can be waited for");
        self.next_upkeep = Nanos::NEVER;
        theirs
    }
}
