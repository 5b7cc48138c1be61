//! Planned faults of connections, carried out where their bytes come and go: no proxy, and no rights.
//!
//! A disturbed connection has an `AddedDelay` for as long as bytes are in its lines. A connection that no fault concerns
//! has none, and pays nothing.

use locks::{CallId, Nanos};

use super::Sockets;
use super::added_delay::AddedDelay;
use super::connection::{Connection, State};
use crate::clients::workload::{Length, streams};
use crate::faults::{LinkFault, Links};

/// A call of a client that has crashed. No machine has a call with this number.
const NOBODYS: CallId = CallId(u64::MAX);

/// What faults do to the bytes of one connection just now.
#[derive(Clone, Debug, Default)]
pub(super) struct Disturbance {
    /// Round-trip times in addition.
    pub(super) delays: Vec<Length>,
    /// The least that either direction carries.
    pub(super) bytes_per_s: Option<u64>,
    /// What is sent to the server is lost.
    pub(super) swallows_out: bool,
    /// What comes from the server is lost.
    pub(super) swallows_in: bool,
    /// Which of the arrivals of replies are lost together with the connection.
    pub(super) loses: Option<Loses>,
    refuses: bool,
}

/// Arrivals of replies, counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loses {
    /// `None`: all of them are lost.
    nth: Option<u32>,
    seen: u32,
}

impl Loses {
    /// Whether the replies that arrive now are lost.
    pub(super) fn strikes(&mut self) -> bool {
        self.seen = self.seen.saturating_add(1);
        self.nth.is_none_or(|nth| nth == self.seen)
    }
}

impl Disturbance {
    fn add(&mut self, how: &LinkFault) {
        match how {
            LinkFault::Delay(by) => self.delays.extend(Length::new(by)),
            LinkFault::Throttle { bytes_per_s } => {
                let least = self.bytes_per_s.map_or(*bytes_per_s, |known| known.min(*bytes_per_s));
                self.bytes_per_s = Some(least);
            }
            LinkFault::Cut => self.refuses = true,
            LinkFault::BlackHole => (self.swallows_out, self.swallows_in) = (true, true),
            LinkFault::HalfOpen => self.swallows_in = true,
            LinkFault::Reset => {}
            LinkFault::LoseReplies { nth } => self.loses = Some(Loses { nth: *nth, seen: 0 }),
        }
    }

    /// Whether bytes are lost on their way.
    pub(super) const fn swallows(&self) -> bool {
        self.swallows_out || self.swallows_in
    }

    /// Whether it concerns the bytes of an open connection.
    fn is_felt(&self) -> bool {
        self.swallows() || !self.delays.is_empty() || self.bytes_per_s.is_some() || self.loses.is_some()
    }

    /// What was counted before goes on.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        if let (Some(loses), Some(before)) = (&mut self.loses, &before.loses) {
            loses.seen = before.seen;
        }
    }
}

impl Connection {
    /// The calls of this client get no reply that anybody knows.
    fn disown(&mut self, client: u32) {
        for awaited in self.awaited.iter_mut().filter(|awaited| awaited.client == client) {
            awaited.call = NOBODYS;
        }
    }

    /// From now on its bytes go through these lines, also those that the socket has not accepted yet.
    fn put_in_lines(&mut self, lines: AddedDelay) {
        self.out.drain(..self.sent);
        self.sent = 0;
        self.delay = Some(Box::new(lines));
    }

    fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }
}

impl Sockets {
    /// See `Transport::touched`.
    pub(super) fn open_links(&self, links: Links) -> Vec<u32> {
        let links = self.links(links);
        links
            .filter(|index| !self.connections[*index as usize].is_down())
            .collect()
    }

    fn links(&self, Links { server, client }: Links) -> impl Iterator<Item = u32> {
        (0..).zip(&self.connections).filter_map(move |(index, connection)| {
            let is_of_server = server.is_none_or(|server| server == connection.server);
            let is_of_client = client.is_none_or(|client| self.layout.is_used_by(index, client));
            (is_of_server && is_of_client).then_some(index)
        })
    }

    /// See `Transport::disturb`.
    pub(super) fn disturb_links(&mut self, active: &[(Links, LinkFault)], now: Nanos) -> Vec<u32> {
        let mut disturbances = vec![Disturbance::default(); self.connections.len()];
        for (links, how) in active {
            for index in self.links(*links) {
                disturbances[index as usize].add(how);
            }
        }
        let mut unusable = Vec::new();
        for (index, disturbance) in (0..).zip(disturbances) {
            let connection = &mut self.connections[index as usize];
            connection.is_refused = disturbance.refuses;
            let is_felt = disturbance.is_felt();
            if connection.delay.is_none() && is_felt {
                let stream = streams(self.delays.seed, index, 1).remove(0);
                connection.put_in_lines(AddedDelay::new(Length::Fixed(Nanos::ZERO), stream));
            }
            let Some(delay) = &mut connection.delay else { continue };
            if delay.disturb(disturbance, now) {
                unusable.push(index);
            } else if !is_felt && delay.is_idle() {
                connection.delay = None;
            }
            self.arm_delay(index);
        }
        unusable
    }

    /// See `Transport::forget`.
    pub(super) fn forget_client(&mut self, client: u32) -> Vec<u32> {
        for connection in &mut self.connections {
            connection.disown(client);
        }
        self.lost.retain(|caller| caller.client != client);
        self.disconnected.retain(|known| *known != client);
        self.channels.forget(client);
        let mut of_its_own = self.open_links(Links {
            server: None,
            client: Some(client),
        });
        of_its_own.retain(|index| self.layout.clients_of(*index) == 1);
        of_its_own
    }
}

#[cfg(test)]
mod tests;
