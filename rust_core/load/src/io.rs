//! Input and output: sends what the locks ask for, reads the replies, and handles broken connections.

use check::Event as Judged;
use locks::{Action, CallId, Command, ConnectionKind, Event, LockMachine, Nanos, Reply, ServerId};
use wire::{Frame, Parsed, error_code, error_text, parse};

use crate::LoadError;
use crate::client::Doing;
use crate::clock;
use crate::connection::{Awaited, Broken, Caller, Connection, State};
use crate::database::may_pass;
use crate::dialect::Handshake;
use crate::poller::Ready;
use crate::saturation::AHEAD;
use crate::thread::Thread;

impl Thread {
    /// Passes an event to the lock of a client, and carries out the resulting actions.
    pub(crate) fn dispatch(&mut self, index: u32, now: Nanos, event: Event) {
        // Moved out so that the list can be read while the thread is changed; a nested call finds an empty list in its
        // place.
        let mut actions = std::mem::take(&mut self.actions);
        self.clients[index as usize].lock.on(now, event, &mut actions);
        let (mut settled, mut hung_up) = (None, false);
        for action in actions.drain() {
            match action {
                Action::Send {
                    call,
                    to,
                    over,
                    command,
                } => self.send(index, call, to, over, &command),
                Action::WakeAt(at) => {
                    self.clients[index as usize].lock_wake = at;
                    self.timers.arm(index, at);
                }
                Action::HangUp => {
                    hung_up = true;
                    // If closing the connection is the release, the release leaves now.
                    self.stamp_release(index, now);
                    if self.params.strategy.holds_by_session() {
                        self.judge_each(index, now, |client, _| Judged::HungUp { client });
                    }
                    self.hang_up(index, now);
                }
                Action::Queued => self.judge_each(index, now, |client, _| Judged::Queued { client }),
                Action::Renewed { lasts } => self.renewed(index, now, lasts),
                Action::Lapsed => self.lapsed(index, now),
                Action::Settle(outcome) => settled = Some(outcome),
            }
        }
        self.actions = actions;
        if let Some(outcome) = settled {
            self.settled(index, now, outcome);
        }
        if hung_up {
            self.hung_up(index);
        }
    }

    fn send(&mut self, client: u32, call: CallId, to: ServerId, over: ConnectionKind, command: &Command) {
        let who = Caller { client, call };
        match over {
            ConnectionKind::SharedByClients => self.send_over(self.shared_connection(client, to.0), who, command),
            ConnectionKind::Own => self.send_over(self.own_connection(client), who, command),
            ConnectionKind::Subscribing => self.subscribe(who, command),
        }
    }

    pub(crate) fn send_over(&mut self, index: u32, who: Caller, command: &Command) {
        let Caller { client, call } = who;
        let connection = &mut self.connections[index as usize];
        if !connection.is_ready() {
            self.unsendable.push(who);
            return;
        }
        let before = connection.out.len();
        let block = self.encoders[usize::from(connection.server)].encode(command, &mut connection.out);
        let doing = self.clients[client as usize].doing;
        if connection.await_reply(Awaited {
            client,
            doing,
            block,
            call,
        }) {
            self.dirty.push(index);
        }
        self.outstanding += 1;
        let sender = &self.clients[client as usize];
        if sender.doing == Doing::Releasing && sender.entries <= 1 && sender.release_sent == Nanos::NEVER {
            connection.releasing.push(client);
        }
        self.counters.all_commands += 1;
        if self.counting {
            self.counters.commands += 1;
            self.counters.bytes_out += (connection.out.len() - before) as u64;
        }
    }

    /// Reports calls that met a closed connection as lost. The locks learn that here and not while they are handling an
    /// event.
    pub(crate) fn report_unsendable(&mut self) {
        let now = self.read_clock();
        self.report_confirmed(now);
        let mut unsendable = std::mem::take(&mut self.unsendable);
        for Caller { client, call } in unsendable.drain(..) {
            self.dispatch(client, now, Event::Lost { call });
        }
        if self.unsendable.is_empty() {
            self.unsendable = unsendable;
        }
        for client in std::mem::take(&mut self.disconnected) {
            self.dispatch(client, now, Event::Disconnected);
        }
    }

    pub(crate) fn on_ready(&mut self, event: Ready) -> Result<(), LoadError> {
        let index = event.connection;
        let connection = &mut self.connections[index as usize];
        let outcome = match connection.state {
            State::Connecting { .. } if event.writable => {
                let connected = connection.connected(&self.targets[usize::from(connection.server)], clock::now());
                self.next_upkeep = Nanos::ZERO;
                connected.and_then(|()| self.flush(index))
            }
            // Closed earlier in this round, or not connected yet.
            State::Down { .. } | State::Connecting { .. } => return Ok(()),
            State::Greeting { .. } | State::Ready => {
                let read = if event.readable { self.receive(index) } else { Ok(()) };
                read.and_then(|()| if event.writable { self.flush(index) } else { Ok(()) })
            }
        };
        match outcome {
            Ok(()) => {}
            Err(broken) => self.broken(index, &broken)?,
        }
        self.deliver()
    }

    /// Reads what has arrived, lets the clients handle it, and writes what they send.
    fn receive(&mut self, index: u32) -> Result<(), Broken> {
        let mut buffer = std::mem::take(&mut self.scratch);
        let result = self.receive_into(index, &mut buffer);
        self.scratch = buffer;
        result?;
        if self.connections[index as usize].is_dirty() {
            self.flush(index)
        } else {
            Ok(())
        }
    }

    fn receive_into(&mut self, index: u32, buffer: &mut [u8]) -> Result<(), Broken> {
        let connection = &mut self.connections[index as usize];
        let Some(count) = connection.read(buffer)? else {
            return Ok(());
        };
        // After the read: a grant in these bytes had been made by now, and must not be stamped earlier.
        let now = self.read_clock();
        if self.counting {
            self.counters.reads += 1;
            self.counters.bytes_in += count as u64;
        }
        let read = &buffer[..count];
        let kept = self.connections[index as usize].take_kept(read);
        let bytes = if kept.is_empty() { read } else { &kept };
        let mut used = 0;
        while let State::Greeting { .. } = self.connections[index as usize].state {
            match self.greeting_reply(index, &bytes[used..])? {
                Some(length) => used += length,
                None => break,
            }
        }
        // A hold that ended while other replies were handled must not wait for these as well.
        self.fire_timers(now);
        if self.connections[index as usize].is_ready() {
            used += if self.connections[index as usize].session.is_some() {
                self.session_replies(index, now, &bytes[used..])?
            } else {
                self.replies(index, now, &bytes[used..])?
            };
        }
        self.connections[index as usize].keep(kept, read, used);
        Ok(())
    }

    /// Passes each complete reply to the client that awaits it. Returns how many bytes were used.
    fn replies(&mut self, index: u32, now: Nanos, bytes: &[u8]) -> Result<usize, Broken> {
        if self.connections[index as usize].incomplete.still_needs_more(bytes)? {
            self.start_waiting(now);
            return Ok(0);
        }
        let mut used = 0;
        for count in 0.. {
            if count % AHEAD == 0 {
                self.touch_awaiting(index);
            }
            match parse(&bytes[used..])? {
                Parsed::Reply { reply, used: length } => {
                    used += length;
                    let connection = &mut self.connections[index as usize];
                    let Some(awaited) = connection.awaited.pop_front() else {
                        let is_open = connection.is_ready();
                        return if is_open { Err(Broken::Unasked) } else { Ok(bytes.len()) };
                    };
                    self.outstanding -= 1;
                    if let Reply::Error(kind) = reply {
                        self.dispatch_error(index, now, awaited, kind, &bytes[used - length..used]);
                    } else {
                        self.dispatch_reply(awaited.client, now, awaited.call, reply);
                    }
                    if self.subscribes_over(index) {
                        self.confirm_joined(index, now, reply);
                    }
                }
                Parsed::Published { channel, used: length } => {
                    used += length;
                    self.published(index, channel, now);
                }
                Parsed::Push { used: length } => used += length,
                Parsed::NeedMore => {
                    if used == 0 {
                        self.connections[index as usize].incomplete.needs_more(bytes)?;
                    }
                    break;
                }
            }
        }
        // Clients that released start again at once, so that their next command is sent with this batch.
        self.start_waiting(now);
        Ok(used)
    }

    fn greeting_reply(&mut self, index: u32, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let connection = &mut self.connections[index as usize];
        let State::Greeting { answered, until } = connection.state else {
            return Ok(None);
        };
        let Handshake::Redis { greeting, .. } = &self.targets[usize::from(connection.server)].handshake else {
            return self.log_in(index, bytes);
        };
        let Some((frame, used)) = connection.incomplete.parse_frame(bytes)? else {
            return Ok(None);
        };
        if matches!(frame, Frame::Push(_)) {
            return Ok(Some(used)); // A push answers no step.
        }
        let step = greeting.step(answered);
        if let Some(text) = error_text(&frame)
            && (step.is_required() || text.starts_with("NOAUTH"))
        {
            return Err(Broken::Refused {
                command: step.command(),
                code: error_code(&frame).unwrap_or_default(),
                text,
            });
        }
        if answered + 1 == greeting.len() {
            connection.greeted();
        } else {
            connection.state = State::Greeting {
                answered: answered + 1,
                until,
            };
        }
        Ok(Some(used))
    }

    /// Writes everything that the round put into `out`, in one call. Releases are stamped first, because belief ends
    /// before the bytes leave.
    pub(crate) fn flush(&mut self, index: u32) -> Result<(), Broken> {
        let mut releasing = std::mem::take(&mut self.connections[index as usize].releasing);
        if !releasing.is_empty() {
            let now = self.read_clock();
            for client in releasing.drain(..) {
                self.stamp_release(client, now);
            }
        }
        let connection = &mut self.connections[index as usize];
        connection.releasing = releasing;
        self.counters.writes += u64::from(self.counting);
        connection.write(&self.poller, index)?;
        let handshake = &self.targets[usize::from(connection.server)].handshake;
        if connection.state == State::Ready || handshake.is_answered() {
            return Ok(());
        }
        // There is nothing to log in with: the connection is open as soon as it is connected.
        connection.greeted();
        Ok(())
    }

    /// Handles the end of a connection: its calls are lost, and it is reopened after a pause.
    pub(crate) fn broken(&mut self, index: u32, broken: &Broken) -> Result<(), LoadError> {
        let now = self.read_clock();
        let connection = &mut self.connections[index as usize];
        let was_open = connection.state == State::Ready;
        let server = connection.server;
        if self.connecting.is_none() {
            self.count_broken(index, now, broken);
        }
        let awaited = self.connections[index as usize].close(now);
        if self.connecting.is_some_and(|since| !may_pass(broken, now.since(since))) {
            let address = self.targets[usize::from(server)].address.to_string();
            return Err(LoadError::Connect {
                address,
                reason: broken.to_string(),
                refusal: broken.refusal(server).map(Box::new),
            });
        }
        self.next_upkeep = Nanos::ZERO;
        self.counters.reconnects += u64::from(was_open);
        if was_open {
            self.first_cut = self.first_cut.min(now);
        }
        self.counters.lost_calls += awaited.len() as u64;
        self.count_orphans(&awaited);
        self.mark_disconnected(index);
        self.lose(awaited);
        Ok(())
    }

    /// Opens connections whose pause has ended, and gives up those whose log-in takes too long.
    pub(crate) fn upkeep(&mut self, now: Nanos) -> Result<(), LoadError> {
        let mut room = self.room_for_sessions();
        for index in 0..self.connections.len() as u32 {
            if self.connections[index as usize].deadline() > now {
                continue;
            }
            let stays_closed = self.ending && self.owner_of(index).is_some();
            let connection = &mut self.connections[index as usize];
            let target = &self.targets[usize::from(connection.server)];
            let is_session = target.handshake.is_database();
            let attempt = match connection.state {
                State::Down { .. } if is_session && (room == 0 || stays_closed) => {
                    connection.put_off(now);
                    Ok(())
                }
                State::Down { .. } => {
                    room -= usize::from(is_session);
                    connection.open(target, &self.poller, index, now)
                }
                State::Connecting { .. } | State::Greeting { .. } => Err(Broken::Silent),
                State::Ready => Ok(()),
            };
            if let Err(broken) = attempt {
                self.broken(index, &broken)?;
            }
        }
        self.next_upkeep = self
            .connections
            .iter()
            .map(Connection::deadline)
            .min()
            .unwrap_or(Nanos::NEVER);
        Ok(())
    }
}
