//! How commands and replies travel: delays, connections that close, and clients that are stopped after a send.

use locks::{CallId, Command, ConnectionKind, Event, Nanos, Reply, ScriptForm, ServerId, Strategy, Token};

use crate::conditions::{Mistake, Trouble};
use crate::redis::{Redis, RedisEffect};
use crate::world::{Happening, Run};

/// The client that waits for a reply, and its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) client: usize,
    pub(crate) server: ServerId,
    pub(crate) via: ConnectionKind,
    pub(crate) connection: u64,
    /// The call, or, with `ReusedCallIds`, its index in its request.
    pub(crate) tag: u64,
}

impl Run {
    pub(crate) fn send(
        &mut self,
        client: usize,
        server: ServerId,
        via: ConnectionKind,
        call: CallId,
        command: Command,
    ) {
        if matches!(
            command,
            Command::CompareAndDelete {
                form: ScriptForm::Source,
                ..
            } | Command::Run {
                form: ScriptForm::Source,
                ..
            } | Command::RunAll {
                form: ScriptForm::Source,
                ..
            }
        ) {
            self.count("asked with source");
        }
        let slow = match self.trouble_of(server) {
            Some(Trouble::Slow(longest)) => self.up_to(longest),
            Some(Trouble::Down | Trouble::Restarts) | None => Nanos::ZERO,
        };
        let (delay, closes) = (self.delay().after(slow), self.strikes(self.faults.close_percent));
        let stops = self
            .strikes(self.faults.stop_percent)
            .then(|| self.up_to(Nanos::from_millis(300)));
        let state = &mut self.clients[client];
        let tag = if self.mistake == Mistake::ReusedCallIds {
            state.present.len() as u64
        } else {
            call.0
        };
        state.present.push(call);
        if let Some(length) = stops {
            state.stopped_until = self.now.after(length);
        }
        let link = state.link(server, via);
        link.unanswered.push(call);
        link.up = link.up.max(self.now.after(delay));
        let (at, connection) = (link.up, link.connection);
        let from = Sender {
            client,
            server,
            via,
            connection,
            tag,
        };
        self.later(at, Happening::Arrives { from, command });
        if closes {
            let at = self.now.after(self.delay());
            self.later(
                at,
                Happening::Closes {
                    client,
                    server,
                    via,
                    connection,
                },
            );
        }
    }

    pub(crate) fn arrives(&mut self, from: Sender, command: Command) {
        // A server that is down replies to nobody and carries nothing out.
        if self.trouble_of(from.server) == Some(Trouble::Down) {
            return;
        }
        if self.strikes(self.faults.forget_percent) {
            self.server(from).forget_scripts();
        }
        self.restart(from.server);
        if self.is_database(from.server) {
            return self.arrives_at_database(from, command);
        }
        self.wipe(from.server);
        let now = self.now;
        if let Some(reply) = self.server(from).run(now, from, command) {
            if let (Command::HandOver { .. }, Reply::Ok) = (command, reply) {
                self.count("given by name");
            }
            self.reply(from, reply);
        } else {
            let (Command::AwaitWakeup { token, timeout_ms, .. } | Command::ReadTicket { token, timeout_ms, .. }) =
                command
            else {
                panic!("{command:?} blocks")
            };
            let at = self.now.after(Nanos::from_millis(timeout_ms));
            self.later(at, Happening::Unblocks { from, token });
        }
        for effect in self.server(from).take_effects() {
            match effect {
                RedisEffect::Replies(waiter, reply) => self.reply(waiter, reply),
                RedisEffect::Publishes(listener) => {
                    let at = self.way_back(listener);
                    let Sender { client, connection, .. } = listener;
                    self.later(at, Happening::Publishes { client, connection });
                }
            }
        }
    }

    fn server(&mut self, from: Sender) -> &mut Redis {
        &mut self.servers[usize::from(from.server.0)]
    }

    /// What is wrong with this server while there are faults.
    fn trouble_of(&self, server: ServerId) -> Option<Trouble> {
        let is_this = |&&(at, _): &&(ServerId, Trouble)| at == server && self.now < self.faults.end;
        self.faults.troubles.iter().find(is_this).map(|&(_, trouble)| trouble)
    }

    /// Now and then the server restarts: its scripts are gone, but its keys are not, except with
    /// `Mistake::RestartWithoutData`.
    fn restart(&mut self, server: ServerId) {
        if self.trouble_of(server) != Some(Trouble::Restarts) || self.chance.below(8) > 0 {
            return;
        }
        self.count("restarted");
        let redis = &mut self.servers[usize::from(server.0)];
        redis.forget_scripts();
        if self.mistake == Mistake::RestartWithoutData {
            redis.keys.clear();
        }
        for client in 0..self.clients.len() {
            self.close(client, server, ConnectionKind::SharedByClients);
        }
    }

    /// Whether the Redis server in front of a database sometimes loses all its data: only what is written to the
    /// database counts.
    pub(crate) fn wipes(&self) -> bool {
        self.strategy == Strategy::Layered && self.mistake == Mistake::RestartWithoutData
    }

    fn wipe(&mut self, server: ServerId) {
        if self.wipes() && self.strikes(10) {
            self.count("wiped");
            self.servers[usize::from(server.0)].keys.clear();
        }
    }

    pub(crate) fn unblocks(&mut self, from: Sender, token: Token) {
        if self.server(from).unblock(from, token) {
            self.reply(from, Reply::Nil);
        }
    }

    pub(crate) fn reply(&mut self, to: Sender, reply: Reply) {
        let at = self.way_back(to);
        self.later(at, Happening::Answers { from: to, reply });
    }

    /// When a message that the server sends now arrives. For a closed connection it does not matter.
    fn way_back(&mut self, to: Sender) -> Nanos {
        let at = self.now.after(self.delay());
        let link = self.clients[to.client].link(to.server, to.via);
        link.down = link.down.max(at);
        link.down
    }

    pub(crate) fn deliver_reply(&mut self, from: Sender, reply: Reply) {
        let state = &mut self.clients[from.client];
        let call = if self.mistake == Mistake::ReusedCallIds {
            state.present.get(from.tag as usize).copied()
        } else {
            Some(CallId(from.tag))
        };
        if let Some(call) = call {
            state
                .link(from.server, from.via)
                .unanswered
                .retain(|&waiting| waiting != call);
            self.send_event(from.client, Event::Replied { call, reply });
        }
    }

    /// Closes a connection: what was sent may still arrive, but no reply comes back.
    pub(crate) fn close(&mut self, client: usize, server: ServerId, via: ConnectionKind) {
        let now = self.now;
        let link = self.clients[client].link(server, via);
        let (connection, last_arrival) = (link.connection, link.up);
        link.connection += 1;
        (link.up, link.down) = (now, now);
        for call in std::mem::take(&mut link.unanswered) {
            let call = Some(call);
            self.later(now, Happening::Loses { client, call });
        }
        if via != ConnectionKind::SharedByClients {
            if via == ConnectionKind::Own && self.is_database(server) {
                self.leave_backend(client, connection, last_arrival);
            }
            self.later(now, Happening::Loses { client, call: None });
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    pub(crate) fn strikes(&mut self, percent: u64) -> bool {
        self.now < self.faults.end && self.chance.below(100) < percent
    }

    /// A delay in one direction. Most are short: a world with only long delays shows little.
    fn delay(&mut self) -> Nanos {
        let slow = self.now < self.faults.end && self.chance.below(8) == 0;
        let longest = if slow {
            self.faults.delay
        } else {
            Nanos::from_micros(300)
        };
        self.up_to(longest)
    }

    pub(crate) fn up_to(&mut self, longest: Nanos) -> Nanos {
        Nanos(self.chance.below(longest.0 + 1))
    }

    /// A message reaches a subscriber. The driver decides whether others received it before.
    pub(crate) fn published(&mut self, client: usize) {
        self.count("woken");
        let first = self.up_to(Nanos(1)) == Nanos::ZERO;
        self.send_event(client, Event::Published { first });
    }
}
