//! A network of pybench's own: the round-trip time that a trial adds between its clients and a server, and what planned
//! faults do to bytes on their way: see `disturbance`.
//!
//! What a connection writes enters a line, and leaves to the socket half a round trip later. What the socket has is
//! read at once, enters the other line, and is parsed and stamped half a round trip later. A release is stamped before
//! its bytes enter the line, a grant after its bytes have come out: both as without the delay.
//!
//! Promises: the order of a connection's bytes is kept; no byte comes out before its time. The thread wakes for each of
//! them, as exactly as for its other timers. A connection that is closed here loses what is under way. If the server
//! closes it, the bytes before the end still come out, then the end. A connection without delay has no `AddedDelay`.
//! Does not delay: the connections before the trial begins, and the closing of a connection by its lock.

use locks::Nanos;

use super::Sockets;
use super::delay_line::DelayLine;
use super::disturbance::{Disturbance, Loses};
use crate::clients::trial_params::round_trips;
use crate::clients::workload::{Length, Stream, streams};
use crate::spec::TrialSpec;
use crate::timers::Timers;
use crate::transport::{Broken, Ready};
use crate::{TrialError, clock};

/// Keeps the streams of connections apart from those of clients, of locks and of arrivals.
const APART: u64 = 0x3c6e_f372_fe94_f82b;

/// More than the log-in of any server needs, with the handshake of the socket.
const ROUND_TRIPS_TO_LOG_IN: u64 = 8;

#[derive(Debug)]
pub(crate) struct AddedDelay {
    rtt: Length,
    stream: Stream,
    outgoing: DelayLine,
    incoming: DelayLine,
    /// Bytes that have come out of the line and that the socket has not accepted yet.
    pub(crate) at_socket: Vec<u8>,
    /// The second half of the latest write's round trip, if nothing has come back since.
    way_back: Option<Nanos>,
    /// A new connection is open when its handshake has been answered; nothing is sent before.
    opens_at: Nanos,
    /// Why the connection ends, and when the clients learn of it.
    end: Option<(Nanos, Broken)>,
    /// What planned faults do to its bytes just now.
    disturbance: Disturbance,
    /// Bytes of this connection were lost: those that follow them mean nothing.
    has_lost_bytes: bool,
    /// When either direction can carry further bytes, if a fault limits how many it carries.
    carries_out_from: Nanos,
    carries_in_from: Nanos,
}

impl AddedDelay {
    pub(super) fn new(rtt: Length, stream: Stream) -> Self {
        Self {
            rtt,
            stream,
            outgoing: DelayLine::default(),
            incoming: DelayLine::default(),
            at_socket: Vec::new(),
            way_back: None,
            opens_at: Nanos::ZERO,
            end: None,
            disturbance: Disturbance::default(),
            has_lost_bytes: false,
            carries_out_from: Nanos::ZERO,
            carries_in_from: Nanos::ZERO,
        }
    }

    /// Faults do this to its bytes from now on. Returns whether the connection cannot go on: a fault that has ended has
    /// lost some of its bytes.
    pub(super) fn disturb(&mut self, mut disturbance: Disturbance, now: Nanos) -> bool {
        disturbance.go_on_from(&self.disturbance);
        if disturbance.bytes_per_s != self.disturbance.bytes_per_s {
            // What has queued for the earlier rate is carried at once, and not in its time.
            self.outgoing.hasten(now);
            self.incoming.hasten(now);
            (self.carries_out_from, self.carries_in_from) = (now, now);
        }
        self.disturbance = disturbance;
        self.has_lost_bytes && !self.disturbance.swallows()
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.rtt.is_zero() && self.at_socket.is_empty() && self.end.is_none() && self.next_due() == Nanos::NEVER
    }

    fn draw_rtt(&mut self) -> Nanos {
        let mut rtt = self.rtt.draw(&mut self.stream);
        for delay in &self.disturbance.delays {
            rtt = rtt.after(delay.draw(&mut self.stream));
        }
        rtt
    }

    /// The socket is connected: over this network that has taken a round trip. Returns how much longer the log-in may
    /// take than without a delay.
    pub(crate) fn connected(&mut self, now: Nanos) -> Nanos {
        let rtt = self.draw_rtt();
        self.opens_at = now.after(rtt);
        Nanos(rtt.0.saturating_mul(ROUND_TRIPS_TO_LOG_IN))
    }

    /// Moves `out` into the line to the server. Returns what has come out of it, with what the socket left before.
    pub(crate) fn send(&mut self, now: Nanos, out: &mut Vec<u8>) -> &mut Vec<u8> {
        if self.disturbance.swallows_out {
            self.has_lost_bytes |= !out.is_empty();
            out.clear();
        }
        if !out.is_empty() {
            let rtt = self.draw_rtt();
            let way_there = Nanos(rtt.0 / 2);
            self.way_back = Some(rtt.since(way_there));
            let mut leaves = now.max(self.opens_at);
            if let Some(rate) = self.disturbance.bytes_per_s {
                leaves = carried(leaves, out.len(), rate, &mut self.carries_out_from);
            }
            self.outgoing.push(leaves.after(way_there), out);
            out.clear();
        }
        self.outgoing.pop_onto(now, &mut self.at_socket);
        &mut self.at_socket
    }

    /// Bytes were read from the socket.
    pub(crate) fn arrived(&mut self, now: Nanos, bytes: &[u8]) {
        if self.disturbance.swallows_in || self.end.is_some() {
            self.has_lost_bytes = true;
            return;
        }
        let way_back = self.draw_way_back();
        let mut leaves = now;
        if let Some(rate) = self.disturbance.bytes_per_s {
            leaves = carried(leaves, bytes.len(), rate, &mut self.carries_in_from);
        }
        self.incoming.push(leaves.after(way_back), bytes);
    }

    /// Whether the replies that have just been read are lost, and the connection with them.
    pub(super) fn loses_replies(&mut self) -> bool {
        self.disturbance.loses.as_mut().is_some_and(Loses::strikes)
    }

    /// The socket has reached its end.
    pub(crate) fn ended(&mut self, now: Nanos, why: Broken) {
        if self.disturbance.swallows_in {
            self.has_lost_bytes = true; // The end is lost, too.
            return;
        }
        let due = now.after(self.draw_way_back()).max(self.incoming.last_due());
        self.end.get_or_insert((due, why));
    }

    /// Takes out the bytes that have come back, or the end behind them; `None` while nothing comes out.
    pub(crate) fn receive(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<Option<usize>, Broken> {
        let count = self.incoming.pop_into(now, buffer);
        if count > 0 {
            return Ok(Some(count));
        }
        match self.end.take_if(|(due, _)| *due <= now) {
            Some((_, why)) => Err(why),
            None => Ok(None),
        }
    }

    /// When something next comes out.
    pub(crate) fn next_due(&self) -> Nanos {
        let end = self.end.as_ref().map_or(Nanos::NEVER, |(due, _)| *due);
        self.outgoing.next_due().min(self.incoming.next_due()).min(end)
    }

    /// Loses everything that is under way.
    pub(crate) fn clear(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
        self.at_socket.clear();
        self.way_back = None;
        self.end = None;
        self.has_lost_bytes = false;
        (self.carries_out_from, self.carries_in_from) = (Nanos::ZERO, Nanos::ZERO);
    }

    fn last_due(&self) -> Nanos {
        self.outgoing.last_due().max(self.incoming.last_due())
    }

    /// What is due at `now`, as the poller would report it.
    fn ready(&self, connection: u32, now: Nanos) -> Ready {
        let ends = self.end.as_ref().is_some_and(|(due, _)| *due <= now);
        Ready {
            connection,
            writable: self.outgoing.next_due() <= now,
            readable: ends || self.incoming.next_due() <= now,
            closed: ends,
        }
    }

    /// Bytes that answer no new write, such as a message to a subscriber, have a round trip of their own.
    fn draw_way_back(&mut self) -> Nanos {
        self.way_back.take().unwrap_or_else(|| {
            let rtt = self.draw_rtt();
            rtt.since(Nanos(rtt.0 / 2))
        })
    }
}

/// When the last of `count` bytes is carried that begin at `from` or once those before them are carried.
fn carried(from: Nanos, count: usize, bytes_per_s: u64, free_from: &mut Nanos) -> Nanos {
    let takes = u128::from(count as u64) * 1_000_000_000 / u128::from(bytes_per_s);
    let until = from
        .max(*free_from)
        .after(Nanos(u64::try_from(takes).unwrap_or(u64::MAX)));
    *free_from = until;
    until
}

/// The delays of a thread's connections.
#[derive(Debug)]
pub(super) struct Delays {
    /// The round-trip time that is added to each server; empty when none is.
    rtts: Vec<Length>,
    /// Whether a planned fault may delay or lose bytes.
    are_disturbed: bool,
    pub(super) seed: u64,
    /// When delayed bytes of each connection come out.
    due: Timers,
}

impl Delays {
    pub(super) fn new(spec: &TrialSpec, thread: u32) -> Result<Self, TrialError> {
        Ok(Self {
            rtts: round_trips(spec)?,
            are_disturbed: !spec.faults.is_empty(),
            seed: spec.seed ^ APART ^ (u64::from(thread) << 32),
            due: Timers::new(0),
        })
    }

    /// No bytes are delayed.
    pub(super) fn none() -> Self {
        Self {
            rtts: Vec::new(),
            are_disturbed: false,
            seed: 0,
            due: Timers::new(0),
        }
    }

    /// How long a wait until the timeout may really be.
    #[inline]
    pub(super) fn shorten(&self, timeout: Nanos) -> Nanos {
        match self.due.next() {
            Nanos::NEVER => timeout,
            due => timeout.min(due.since(clock::now())),
        }
    }
}

impl Sockets {
    /// Begins to delay the bytes of all connections that have a round-trip time; nothing is under way yet.
    pub(super) fn begin_delays(&mut self) {
        if self.delays.rtts.is_empty() && !self.delays.are_disturbed {
            return;
        }
        self.delays.due = Timers::new(self.connections.len());
        if self.delays.rtts.is_empty() {
            return;
        }
        let streams = streams(self.delays.seed, 0, self.connections.len() as u32);
        for (connection, stream) in self.connections.iter_mut().zip(streams) {
            let rtt = &self.delays.rtts[usize::from(connection.server)];
            if !rtt.is_zero() {
                connection.delay = Some(Box::new(AddedDelay::new(rtt.clone(), stream)));
            }
        }
    }

    /// Wakes the thread when something next comes out of a connection's lines.
    #[inline]
    pub(super) fn arm_delay(&mut self, index: u32) {
        if let Some(delay) = &self.connections[index as usize].delay {
            self.delays.due.arm(index, delay.next_due());
        }
    }

    /// Adds the connections whose bytes, or whose end, come out by now.
    #[inline]
    pub(super) fn add_due(&mut self, ready: &mut Vec<Ready>) {
        if self.delays.due.next() == Nanos::NEVER {
            return;
        }
        let now = clock::now();
        while let Some(index) = self.delays.due.pop(now) {
            let Some(delay) = &self.connections[index as usize].delay else {
                continue;
            };
            if delay.next_due() <= now {
                ready.push(delay.ready(index, now));
            } else {
                // Set for bytes that were lost with their connection.
                self.arm_delay(index);
            }
        }
    }

    /// When the last of the delayed bytes came out, or comes out.
    pub(super) fn last_delayed(&self) -> Nanos {
        if self.delays.rtts.is_empty() && !self.delays.are_disturbed {
            return Nanos::ZERO; // A drain asks in each round, and there may be ten thousand connections.
        }
        let delays = self
            .connections
            .iter()
            .filter_map(|connection| connection.delay.as_ref());
        delays.map(|delay| delay.last_due()).max().unwrap_or(Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests;
