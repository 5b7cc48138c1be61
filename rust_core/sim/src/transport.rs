//! The transport of one process of a world: connections to models of servers, on virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use load::{Arrival, Broken, Caller, Confirmed, Cut, Doing, ErrorText, LoadError, Outgoing, Ready, Sender, Transport};
use locks::{Command, ConnectionKind, Key, Nanos, ServerId};

use crate::clock::Time;
use crate::conditions::Mistake;
use crate::connection::Connection;
use crate::database::Backend;
use crate::log::{Log, Logged};
use crate::machine::Tally;
use crate::network::{Asker, Inbound, Network};

/// How long a connection that broke stays closed.
const REOPENS_AFTER: Nanos = Nanos::from_micros(200);

#[derive(Debug)]
pub(crate) struct VirtualTransport {
    process: usize,
    network: Rc<RefCell<Network>>,
    tallies: Vec<Rc<RefCell<Tally>>>,
    time: Time,
    /// How much time a read and a write take.
    call_takes: Nanos,
    servers: u32,
    connections: Vec<Connection>,
    reading: VecDeque<Inbound>,
    unwritten: Vec<u32>,
    held_back: Vec<u32>,
    /// Messages that were read, with when that was.
    messages: VecDeque<(Key, Nanos)>,
    /// Who has still to receive the message that is handed out.
    listeners: VecDeque<u32>,
    lost: Vec<Caller>,
    disconnected: Vec<u32>,
    outstanding: usize,
    pub(crate) log: Log,
}

impl VirtualTransport {
    /// The connections of a process with a client for each of the `tallies`: one to each server that they share, one
    /// for each client alone, and one for subscriptions.
    pub(crate) fn new(
        process: usize,
        network: Rc<RefCell<Network>>,
        tallies: Vec<Rc<RefCell<Tally>>>,
        time: Time,
        servers: u16,
        call_takes: Nanos,
    ) -> Self {
        let first = ServerId(0);
        let shared = (0..servers).map(|server| (ServerId(server), ConnectionKind::SharedByClients, None));
        let own = (0..tallies.len() as u32).map(|client| (first, ConnectionKind::Own, Some(client)));
        let connections = shared.chain(own).chain([(first, ConnectionKind::Subscribing, None)]);
        Self {
            process,
            network,
            tallies,
            time,
            call_takes,
            servers: servers.into(),
            connections: connections
                .map(|(server, kind, owner)| Connection::new(server, kind, owner))
                .collect(),
            reading: VecDeque::new(),
            unwritten: Vec::new(),
            held_back: Vec::new(),
            messages: VecDeque::new(),
            listeners: VecDeque::new(),
            lost: Vec::new(),
            disconnected: Vec::new(),
            outstanding: 0,
            log: Log::default(),
        }
    }

    fn index(&self, client: u32, over: ConnectionKind, to: ServerId) -> u32 {
        match over {
            ConnectionKind::SharedByClients => u32::from(to.0),
            ConnectionKind::Own => self.servers + client,
            ConnectionKind::Subscribing => self.connections.len() as u32 - 1,
            ConnectionKind::Guard => unreachable!("a world has no guarded resource"),
        }
    }

    fn at(&mut self, index: u32) -> &mut Connection {
        &mut self.connections[index as usize]
    }

    /// Closes a connection, until `opens_at`.
    fn close(&mut self, index: u32, opens_at: Nanos) -> VecDeque<Sender> {
        let connection = &mut self.connections[index as usize];
        let link = connection.link(self.process, index);
        let (kind, server) = (connection.kind, connection.server);
        connection.generation += 1;
        connection.opens_at = Some(opens_at);
        connection.unwritten.clear();
        connection.releasing.clear();
        self.disconnected.extend(connection.owner);
        self.disconnected
            .extend(connection.listeners.drain(..).map(|(_, client)| client));
        let calls = std::mem::take(&mut connection.awaited);
        self.network.borrow_mut().close(link, kind, server);
        self.outstanding -= calls.len();
        self.lost.extend(calls.iter().map(|call| call.caller()));
        calls
    }

    /// The call that a reply answers. With `ReusedCallIds` that is whichever call has its number now.
    fn answered(&mut self, index: u32, client: u32, tag: u64) -> Option<Sender> {
        let reused = self.network.borrow().mistake == Mistake::ReusedCallIds;
        let call = if reused {
            *self.tallies[client as usize].borrow().calls.get(tag as usize)?
        } else {
            locks::CallId(tag)
        };
        let awaited = &mut self.at(index).awaited;
        let Some(place) = awaited.iter().position(|sender| sender.call == call) else {
            // Only a call with a reused id can be answered twice.
            let doing = Doing::Acquiring;
            return reused.then_some(Sender { client, call, doing });
        };
        self.outstanding -= 1;
        self.at(index).awaited.remove(place)
    }
}

impl Transport for VirtualTransport {
    /// Time passes between two rounds, not here.
    fn wait(&mut self, _: Nanos, ready: &mut Vec<Ready>) -> io::Result<()> {
        let network = &mut *self.network.borrow_mut();
        for connection in 0..self.connections.len() as u32 {
            let inbox = network.mail.over(self.process, connection);
            if !inbox.is_empty() {
                ready.push(Ready {
                    connection,
                    writable: false,
                    readable: true,
                    closed: inbox.iter().any(|what| matches!(what, Inbound::Closed)),
                });
            }
        }
        Ok(())
    }

    fn send(&mut self, out: Outgoing<'_>) -> Option<usize> {
        let Outgoing {
            sender,
            to,
            over,
            command,
            ends_hold,
        } = out;
        let index = self.index(sender.client, over, to);
        let connection = self.at(index);
        if !connection.is_open() {
            self.lost.push(sender.caller());
            return None;
        }
        match *command {
            Command::Subscribe { key } => connection.listeners.push((key, sender.client)),
            Command::Unsubscribe { key } => connection.listeners.retain(|&known| known != (key, sender.client)),
            _ => {}
        }
        connection.unwritten.push((sender, *command));
        connection.awaited.push_back(sender);
        if ends_hold {
            connection.releasing.push(sender.client);
        }
        self.unwritten.push(index);
        self.outstanding += 1;
        Some(1)
    }

    fn swap_releasing(&mut self, connection: u32, into: &mut Vec<u32>) {
        std::mem::swap(&mut self.at(connection).releasing, into);
    }

    fn write(&mut self, index: u32, _: Nanos) -> Result<bool, Broken> {
        let connection = &mut self.connections[index as usize];
        if !connection.is_open() {
            return Ok(false);
        }
        let link = connection.link(self.process, index);
        let (server, is_own) = (connection.server, connection.kind == ConnectionKind::Own);
        for (sender, command) in std::mem::take(&mut connection.unwritten) {
            let mut tally = self.tallies[sender.client as usize].borrow_mut();
            let mut network = self.network.borrow_mut();
            let tag = if network.mistake == Mistake::ReusedCallIds {
                tally.calls.len() as u64
            } else {
                sender.call.0
            };
            tally.calls.push(sender.call);
            self.log.push(self.time.now(), Logged::Wrote { sender, command });
            let client = sender.client;
            network.send(
                Asker {
                    link,
                    client,
                    server,
                    is_own,
                    tag,
                },
                command,
            );
        }
        self.time.pass(self.call_takes);
        Ok(true)
    }

    fn is_unwritten(&self, connection: u32) -> bool {
        !self.connections[connection as usize].unwritten.is_empty()
    }

    fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    fn next_unwritten(&mut self, may_hold_back: bool) -> Option<u32> {
        while let Some(index) = self.unwritten.pop() {
            if !self.is_unwritten(index) {
                continue;
            }
            let connection = self.at(index);
            let answers_come = connection.awaited.len() > connection.unwritten.len();
            if may_hold_back && answers_come && connection.releasing.is_empty() {
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
        if !self.connections[index as usize].is_open() {
            return Ok(None);
        }
        let mut network = self.network.borrow_mut();
        network.mail.take(self.process, index, &mut self.reading);
        if self.reading.is_empty() {
            return Ok(None);
        }
        let session = Backend::Own(self.connections[index as usize].link(self.process, index));
        if network.database.has_ended(session) {
            // A server that ends a session resets its connection: what was not read by then is gone.
            self.reading = [Inbound::Closed].into();
        }
        self.time.pass(self.call_takes);
        Ok(Some(self.reading.len()))
    }

    fn is_open(&self, connection: u32) -> bool {
        self.connections[connection as usize].is_open()
    }

    fn next(&mut self, index: u32, now: Nanos, into: &mut Arrival) -> bool {
        if !self.is_open(index) {
            self.reading.clear();
        }
        while let Some(inbound) = self.reading.pop_front() {
            match inbound {
                Inbound::Closed => {
                    self.reading.push_front(inbound);
                    return false;
                }
                Inbound::Message(key) => self.messages.push_back((key, now)),
                Inbound::Reply { client, tag, reply } => {
                    let Some(sender) = self.answered(index, client, tag) else {
                        continue;
                    };
                    self.log.push(self.time.now(), Logged::Read { sender, reply });
                    *into = Arrival::of(sender, reply);
                    return true;
                }
            }
        }
        false
    }

    fn end_of_read(&mut self, _: u32) -> Result<(), Broken> {
        // `next` has left nothing but the end of the connection.
        self.reading.pop_front().map_or(Ok(()), |_| Err(Broken::Closed))
    }

    fn error_text(&mut self, _: u32) -> Option<ErrorText> {
        None
    }

    fn awaiting(&self, connection: u32) -> impl Iterator<Item = u32> {
        let awaited = self.connections[connection as usize].awaited.iter();
        awaited.map(|sender| sender.client)
    }

    fn server(&self, connection: u32) -> u16 {
        self.connections[connection as usize].server.0
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn has_open_calls(&self) -> bool {
        self.outstanding > 0 || !self.lost.is_empty()
    }

    fn next_message(&mut self) -> Option<Nanos> {
        let (key, read) = self.messages.pop_front()?;
        let subscribed = self.connections.last()?.listeners.iter();
        let of_key = subscribed.filter(|(known, _)| *known == key);
        self.listeners = of_key.map(|&(_, client)| client).collect();
        Some(read)
    }

    fn next_listener(&mut self) -> Option<u32> {
        self.listeners.pop_front()
    }

    fn can_reach_a_server(&self, client: u32) -> bool {
        let own = self.index(client, ConnectionKind::Own, ServerId(0));
        self.is_open(own) && (0..self.servers).any(|shared| self.is_open(shared))
    }

    fn cut(&mut self, index: u32, _: &Broken, now: Nanos) -> Result<Cut, LoadError> {
        let was_open = self.is_open(index);
        let calls = self.close(index, now.after(REOPENS_AFTER));
        Ok(Cut {
            was_open,
            calls,
            error: None,
            answers_first: false,
        })
    }

    fn hang_up(&mut self, client: u32, _: Key, now: Nanos) {
        // A lock that subscribes closes the connection of its subscriptions.
        let subscribes = self.network.borrow().strategy.subscribes();
        let kind = if subscribes {
            ConnectionKind::Subscribing
        } else {
            ConnectionKind::Own
        };
        let index = self.index(client, kind, ServerId(0));
        self.close(index, now);
    }

    fn next_upkeep(&self) -> Nanos {
        let closed = self.connections.iter().filter_map(|connection| connection.opens_at);
        closed.min().unwrap_or(Nanos::NEVER)
    }

    fn upkeep(&mut self, now: Nanos, _: &mut Vec<(u32, Broken)>) {
        for connection in &mut self.connections {
            if connection.opens_at.is_some_and(|at| at <= now) {
                connection.opens_at = None;
            }
        }
    }

    fn next_confirmed(&mut self) -> Option<Confirmed> {
        None
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
        !self.lost.is_empty() || !self.disconnected.is_empty()
    }

    fn unopened(&self) -> Option<String> {
        None
    }

    fn all_opened(&mut self) {}

    fn begin_drain(&mut self) {}

    fn leave(&mut self) {}
}
