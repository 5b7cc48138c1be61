//! Channels: which subscription commands are sent to the server and which are answered here; which clients receive a
//! message, and in what order.

use locks::{Command, Event, Key, Nanos, Reply};

use crate::LoadError;
use crate::client::Doing;
use crate::connection::Caller;
use crate::poller::Ready;
use crate::subscriptions::Joined;
use crate::thread::Thread;

/// A call that this thread answers without the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmed {
    who: Caller,
    /// The connection and the channel that was joined. If that subscription ends before the client is told, the
    /// confirmation is false.
    joined: Option<(u32, Key)>,
}

/// A message that was read from a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    connection: u32,
    key: Key,
    read: Nanos,
}

impl Thread {
    /// Sends a command about a channel, or answers it here.
    pub(crate) fn subscribe(&mut self, who: Caller, command: &Command) {
        match *command {
            Command::Subscribe { key } => {
                let connection = self.subscribing_connection(who.client, key);
                if !self.connections[connection as usize].is_ready() {
                    self.unsendable.push(who);
                    return;
                }
                match self.subscriptions.join(connection, key, who) {
                    Joined::AsFirst => self.send_over(connection, who, command),
                    Joined::Waits => {}
                    Joined::Listens => self.confirmed.push(Confirmed {
                        who,
                        joined: Some((connection, key)),
                    }),
                }
            }
            Command::Unsubscribe { key } => {
                let connection = self.subscribing_connection(who.client, key);
                if self.subscriptions.leave(connection, key, who.client) {
                    self.send_over(connection, who, command);
                } else {
                    self.confirmed.push(Confirmed { who, joined: None });
                }
            }
            _ => unreachable!("{command:?} is not about a channel"),
        }
    }

    /// Handles the reply to the oldest call of a connection. If the call was about a channel, it also answers other
    /// clients that waited for it.
    pub(crate) fn confirm_joined(&mut self, connection: u32, now: Nanos, reply: Reply) {
        if self.subscriptions.answered(connection, reply == Reply::Ok).is_none() {
            return;
        }
        while let Some(Caller { client, call }) = self.subscriptions.joined() {
            self.dispatch(client, now, Event::Replied { call, reply });
        }
    }

    /// Answers the calls that this thread answers without the server.
    pub(crate) fn report_confirmed(&mut self, now: Nanos) {
        while let Some(Confirmed { who, joined }) = self.confirmed.pop() {
            let Caller { client, call } = who;
            let holds = joined.is_none_or(|(connection, key)| self.subscriptions.stands(connection, key));
            let reply = Reply::Ok;
            let event = if holds {
                Event::Replied { call, reply }
            } else {
                Event::Lost { call }
            };
            self.dispatch(client, now, event);
        }
    }

    /// Stores a message. `deliver` hands it out after everything that was read with it has been handled.
    pub(crate) fn published(&mut self, connection: u32, channel: &[u8], read: Nanos) {
        let server = self.connections[connection as usize].server;
        let key = self.encoders[usize::from(server)].key_of(channel);
        self.messages.extend(key.map(|key| Message { connection, key, read }));
    }

    /// Puts connections with subscriptions first. The server publishes a release before it replies to it, but the reply
    /// may arrive first. The client that has just released the lock would then always start before all that wait for
    /// the message.
    pub(crate) fn messages_first(&self, ready: &mut [Ready]) {
        if self.params.strategy.subscribes() {
            ready.sort_unstable_by_key(|event| !self.subscribes_over(event.connection));
        }
    }

    /// Hands out the messages that were read, each to all subscribers. The first subscriber's commands leave at once,
    /// so that the server works on them while the other subscribers receive the message.
    pub(crate) fn deliver(&mut self) -> Result<(), LoadError> {
        let mut messages = std::mem::take(&mut self.messages);
        for Message { connection, key, read } in messages.drain(..) {
            let mut now = read;
            let mut first = true;
            self.subscriptions.begin_message(connection, key);
            while let Some(client) = self.subscriptions.next_listener() {
                let before = self.counters.all_commands;
                self.counters.wake_ups += u64::from(self.clients[client as usize].doing == Doing::Acquiring);
                self.dispatch(client, now, Event::Published { first });
                if first && self.counters.all_commands > before {
                    self.flush_all(now)?;
                    now = self.read_clock();
                    first = false;
                }
            }
        }
        self.messages = messages;
        Ok(())
    }
}
