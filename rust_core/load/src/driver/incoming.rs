//! What arrives: replies, errors, messages. Each is stamped after the read that brought it.

use locks::{ErrorKind, Event, LockMachine, Nanos, Reply};

use super::Driver;
use super::saturation::AHEAD;
use crate::LoadError;
use crate::clients::Doing;
use crate::clock::Clock;
use crate::recorder::ErrorPhase;
use crate::transport::{Arrival, Broken, Caller, Ready, Transport, is_expected};

/// How often a closed connection is read at most before the others of a round. The rest is read in the next round.
const READS_OF_CLOSED: usize = 64;

impl<L: LockMachine, T: Transport, C: Clock> Driver<L, T, C> {
    /// Reads closed connections to their end, and tells their clients of the loss. A server closes a session before it
    /// grants that session's lock to another client. If both events are ready to be read, the loss is older than the
    /// grant, so it must be told and stamped first. Otherwise a lock that was granted twice could pass for one whose
    /// holder had not yet noticed its loss.
    pub(super) fn serve_closed_first(&mut self, ready: &mut Vec<Ready>) -> Result<(), LoadError> {
        if !ready.iter().any(|event| event.closed) {
            return Ok(());
        }
        for &event in ready.iter().filter(|event| event.closed) {
            for _ in 0..READS_OF_CLOSED {
                let now = self.clock.now();
                self.serve(event, now)?;
                if !self.transport.is_open(event.connection) {
                    break;
                }
            }
        }
        ready.retain(|event| !event.closed);
        self.tell_losses();
        Ok(())
    }

    pub(super) fn serve(&mut self, event: Ready, now: Nanos) -> Result<(), LoadError> {
        let mut served = Ok(());
        if event.readable {
            served = self.receive(event.connection);
        }
        if event.writable && served.is_ok() {
            served = self.write(event.connection, now);
        }
        if let Err(broken) = served {
            self.cut(event.connection, &broken)?;
        }
        self.deliver()
    }

    /// Reads what has arrived, lets the clients handle it, and writes what they send.
    fn receive(&mut self, connection: u32) -> Result<(), Broken> {
        let Some(bytes) = self.transport.read(connection)? else {
            return Ok(());
        };
        // After the read: a grant in these bytes had been made by now, and must not be stamped earlier.
        let now = self.read_clock();
        if !self.is_guard(connection) {
            self.recorder.read(bytes);
        }
        // A hold that ended while other replies were handled must not wait for these as well.
        self.fire_timers(now);
        let mut arrival = Arrival::NONE;
        for count in 0.. {
            if count % AHEAD == 0 {
                for client in self.transport.awaiting(connection).take(AHEAD) {
                    self.clients.touch(client, &self.recorder);
                }
            }
            if !self.transport.next(connection, now, &mut arrival) {
                break;
            }
            self.arrived(connection, now, &arrival);
        }
        self.transport.end_of_read(connection)?;
        // Clients that released start again at once, so that their next command is sent with this batch; not where a lock
        // has closed this connection, which they may need.
        if self.transport.is_open(connection) {
            self.start_waiting(now);
        }
        if self.transport.is_unwritten(connection) {
            self.write(connection, now)?;
        }
        Ok(())
    }

    #[inline]
    fn arrived(&mut self, connection: u32, now: Nanos, arrival: &Arrival) {
        if L::servers_vote() && !arrival.who.call.is_guarded() {
            return self.voted(connection, now, arrival);
        }
        self.handle(connection, now, arrival);
    }

    /// As `handle`, of a lock whose servers vote: tells the recorder which of them replied, and whether in time.
    fn voted(&mut self, connection: u32, now: Nanos, arrival: &Arrival) {
        let (who, server) = (arrival.who, self.transport.server(connection));
        let in_time = self.clients.awaits_vote(who.client, who.call);
        self.recorder
            .replies((who.client, who.call), server, now, arrival.reply, in_time);
        self.handle(connection, now, arrival);
        self.recorder.replied();
    }

    #[inline]
    fn handle(&mut self, connection: u32, now: Nanos, arrival: &Arrival) {
        let Arrival { who, doing, ref reply } = *arrival;
        if let (Reply::Error(_), Some(doing)) = (reply, doing) {
            if who.call.is_guarded() {
                return self.guard_failed(connection, now, who, *reply);
            }
            return self.failed(connection, now, who, doing, *reply);
        }
        let event = Event::Replied {
            call: who.call,
            reply: *reply,
        };
        self.dispatch(who.client, now, event);
    }

    /// Whether a connection leads to the guarded resource: its bytes are not the lock's.
    #[inline]
    pub(super) fn is_guard(&self, connection: u32) -> bool {
        let guard = self.params.guard;
        guard.is_some_and(|rules| self.transport.server(connection) == rules.server.0)
    }

    /// An error of the guarded resource is counted unless its work sends a script again, or it is a figure of its own.
    #[cold]
    fn guard_failed(&mut self, connection: u32, now: Nanos, Caller { client, call }: Caller, reply: Reply) {
        self.dispatch(client, now, Event::Replied { call, reply });
        if let Reply::Error(ErrorKind::NoScript | ErrorKind::CheckViolation) = reply {
            return;
        }
        if let Some(error) = self.transport.error_text(connection) {
            let server = self.transport.server(connection);
            self.recorder.error(ErrorPhase::Guard, server, now, &error);
        }
    }

    /// An error is counted unless it is part of the lock's normal operation.
    #[cold]
    fn failed(&mut self, connection: u32, now: Nanos, Caller { client, call }: Caller, doing: Doing, reply: Reply) {
        let sent_before = self.recorder.commands_sent();
        // A request that was cancelled meanwhile sends nothing further, nor does a client that a fault holds up yet.
        let is_over = self.clients.doing(client) != doing || self.clients.is_held_up(client);
        self.dispatch(client, now, Event::Replied { call, reply });
        let went_on = is_over || self.recorder.commands_sent() > sent_before;
        if is_expected(reply, went_on) {
            return;
        }
        if let Some(error) = self.transport.error_text(connection) {
            let server = self.transport.server(connection);
            self.recorder.error(ErrorPhase::of(doing), server, now, &error);
        }
    }

    /// Hands out the messages that were read, each to all subscribers. The first subscriber's commands leave at once,
    /// so that the server works on them while the other subscribers receive the message.
    fn deliver(&mut self) -> Result<(), LoadError> {
        while let Some(read) = self.transport.next_message() {
            let mut now = read;
            let mut first = true;
            while let Some(client) = self.transport.next_listener() {
                let before = self.recorder.commands_sent();
                self.recorder.woken(self.clients.doing(client) == Doing::Acquiring);
                self.dispatch(client, now, Event::Published { first });
                if first && self.recorder.commands_sent() > before {
                    self.write_all(now)?;
                    now = self.read_clock();
                    first = false;
                }
            }
        }
        Ok(())
    }
}
