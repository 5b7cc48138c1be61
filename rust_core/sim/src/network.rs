//! The network and the servers behind it, on virtual time: delays, connections that close, processes that are stopped
//! after a send.

use std::collections::BTreeMap;

use locks::{Chance, Command, ConnectionKind, Key, Nanos, Reply, ScriptForm, ServerId, Strategy, Token};

use crate::clock::Time;
use crate::conditions::{Faults, Mistake, Trouble};
use crate::database::{Backend, Database};
use crate::log::Served;
use crate::mail::Mail;
use crate::plan::Fault;
use crate::redis::{Redis, RedisEffect};
use crate::striking::Suffered;

/// One connection of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) process: usize,
    /// Its number among those of the process.
    pub(crate) index: u32,
    /// Counts how often it was opened again.
    pub(crate) generation: u64,
}

/// Who waits for a reply, and over which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) link: Link,
    pub(crate) client: u32,
    pub(crate) server: ServerId,
    /// The client's own connection.
    pub(crate) is_own: bool,
    /// The call, or, with `ReusedCallIds`, its place among those of its request.
    pub(crate) tag: u64,
}

/// What reaches a process over a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inbound {
    Reply { client: u32, tag: u64, reply: Reply },
    Message(Key),
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A command reaches the server.
    Arrives {
        from: Asker,
        command: Command,
    },
    /// The server's empty reply to a blocking command.
    Unblocks {
        from: Asker,
        token: Token,
    },
    Comes {
        over: Link,
        what: Inbound,
    },
    /// The database notices the end of a session.
    Ends {
        backend: Backend,
    },
    /// The session is ended from outside.
    Terminates {
        backend: Backend,
    },
    /// The longest wait in a queue of the database has passed.
    TimesOut {
        backend: Backend,
        ticket: u64,
    },
    /// The process gives up what it does, and begins anew. `acquires` says in which acquire.
    Cancels {
        process: usize,
        acquires: u64,
    },
    /// A fault of the plan.
    Strikes(Fault),
}

/// The longest delay in one direction where nothing is slow.
const LONGEST_HOP: Nanos = Nanos::from_micros(300);

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) time: Time,
    pub(crate) strategy: Strategy,
    pub(crate) mistake: Mistake,
    pub(crate) faults: Faults,
    pub(crate) chance: Chance,
    agenda: BTreeMap<(Nanos, u64), Happening>,
    order: u64,
    pub(crate) servers: Vec<Redis>,
    pub(crate) database: Database,
    pub(crate) lock_timeout: Nanos,
    pub(crate) mail: Mail,
    /// Until when each process does not run.
    pub(crate) stopped_until: Vec<Nanos>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    /// What the plan did to each server.
    pub(crate) suffered: Vec<Suffered>,
    /// The delays of each process in a world of a plan, so that they do not change when others are left out.
    pub(crate) own_delays: Vec<Chance>,
    /// What the servers did, if somebody asked for it.
    pub(crate) served: Option<Vec<(Nanos, Served)>>,
}

impl Network {
    pub(crate) fn new(
        time: Time,
        (strategy, mistake): (Strategy, Mistake),
        faults: Faults,
        servers: u16,
        processes: usize,
        chance: Chance,
    ) -> Self {
        Self {
            time,
            strategy,
            mistake,
            faults,
            chance,
            agenda: BTreeMap::new(),
            order: 0,
            servers: (0..servers).map(|_| Redis::new(mistake)).collect(),
            database: Database::new(mistake),
            lock_timeout: Nanos::NEVER,
            mail: Mail::new(processes),
            stopped_until: vec![Nanos::ZERO; processes],
            outcomes: BTreeMap::new(),
            suffered: (0..servers).map(|_| Suffered::default()).collect(),
            own_delays: Vec::new(),
            served: None,
        }
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Nanos {
        self.agenda.keys().next().map_or(Nanos::NEVER, |(at, _)| *at)
    }

    pub(crate) fn take_next(&mut self) -> Option<Happening> {
        self.agenda.pop_first().map(|(_, happening)| happening)
    }

    pub(crate) fn later(&mut self, at: Nanos, happening: Happening) {
        self.order += 1;
        self.agenda.insert((at, self.order), happening);
    }

    pub(crate) fn note(&mut self, from: Asker, command: Command, reply: Option<Reply>) {
        if let Some(served) = &mut self.served {
            served.push((
                self.time.now(),
                Served {
                    // In a world of a plan each process has one client, of the same number.
                    client: from.link.process as u32,
                    server: from.server,
                    command,
                    reply,
                },
            ));
        }
    }

    pub(crate) fn is_database(&self, server: ServerId) -> bool {
        self.strategy.database() == Some(server)
    }

    /// Carries out what was due. What belongs to a process itself is returned.
    pub(crate) fn happen(&mut self, happening: Happening) -> Option<usize> {
        match happening {
            Happening::Arrives { from, command } => self.arrives(from, command),
            Happening::Unblocks { from, token } => self.unblocks(from, token),
            Happening::Ends { backend } => self.end_backend(backend),
            Happening::Terminates { backend } => self.terminate(backend),
            Happening::TimesOut { backend, ticket } => self.time_out(backend, ticket),
            Happening::Comes { over, what } => {
                if self.mail.way(over.process, over.index).generation == over.generation {
                    self.mail.push(over.process, over.index, what);
                }
            }
            Happening::Cancels { process, .. } => return Some(process),
            Happening::Strikes(fault) => self.strike(fault),
        }
        None
    }

    /// A process writes a command to its connection.
    pub(crate) fn send(&mut self, from: Asker, command: Command) {
        if is_by_source(&command) {
            self.count("asked with source");
        }
        let slow = match self.trouble_of(from.server) {
            Some(Trouble::Slow(longest)) => self.up_to(longest),
            Some(Trouble::Down | Trouble::Restarts) | None => Nanos::ZERO,
        };
        let (delay, closes) = (
            self.delay(from.link.process, from.server).after(slow),
            self.strikes(self.faults.close_percent),
        );
        let now = self.time.now();
        if self.strikes(self.faults.stop_percent) {
            let length = self.up_to(Nanos::from_millis(300));
            self.stopped_until[from.link.process] = now.after(length);
        }
        let way = self.mail.way(from.link.process, from.link.index);
        way.up = way.up.max(now.after(delay));
        let at = way.up;
        self.later(at, Happening::Arrives { from, command });
        if closes {
            let at = now.after(self.delay(from.link.process, from.server));
            self.later(
                at,
                Happening::Comes {
                    over: from.link,
                    what: Inbound::Closed,
                },
            );
        }
    }

    fn arrives(&mut self, from: Asker, command: Command) {
        // A server that is down replies to nobody and carries nothing out.
        if self.trouble_of(from.server) == Some(Trouble::Down) || self.is_down(from.server) {
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
        if let Command::Wait { replicas, timeout_ms } = command
            && !self.own_delays.is_empty()
        {
            return self.confirm(from, replicas, timeout_ms);
        }
        let now = self.time.now().after(self.suffered[usize::from(from.server.0)].ahead);
        let reply = self.server(from).run(now, from, command);
        self.note(from, command, reply);
        self.remember(from.server);
        let now = self.time.now();
        if let Some(reply) = reply {
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
            let at = now.after(Nanos::from_millis(timeout_ms));
            self.later(at, Happening::Unblocks { from, token });
        }
        for effect in self.server(from).take_effects() {
            match effect {
                RedisEffect::Replies(waiter, reply) => self.reply(waiter, reply),
                RedisEffect::Publishes(key, listener) => {
                    self.count("woken");
                    self.deliver(listener, Inbound::Message(key));
                }
            }
        }
    }

    fn server(&mut self, from: Asker) -> &mut Redis {
        &mut self.servers[usize::from(from.server.0)]
    }

    /// What is wrong with this server while there are faults.
    fn trouble_of(&self, server: ServerId) -> Option<Trouble> {
        let now = self.time.now();
        let is_this = |&&(at, _): &&(ServerId, Trouble)| at == server && now < self.faults.end;
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
        for process in 0..self.stopped_until.len() {
            // The connection that the process shares is numbered as its server.
            let index = u32::from(server.0);
            self.mail.push(process, index, Inbound::Closed);
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

    fn unblocks(&mut self, from: Asker, token: Token) {
        if self.server(from).unblock(from, token) {
            self.reply(from, Reply::Nil);
        }
    }

    pub(crate) fn reply(&mut self, to: Asker, reply: Reply) {
        let Asker { client, tag, .. } = to;
        self.deliver(to, Inbound::Reply { client, tag, reply });
    }

    /// The server sends something. For a closed connection it does not matter when it arrives.
    fn deliver(&mut self, to: Asker, what: Inbound) {
        self.deliver_after(Nanos::ZERO, to, what);
    }

    pub(crate) fn deliver_after(&mut self, length: Nanos, to: Asker, what: Inbound) {
        let at = self
            .time
            .now()
            .after(length)
            .after(self.delay(to.link.process, to.server));
        let way = self.mail.way(to.link.process, to.link.index);
        way.down = way.down.max(at);
        let at = way.down;
        self.later(at, Happening::Comes { over: to.link, what });
    }

    /// A process closes a connection, or has found it closed: what was sent may still arrive, but no reply comes back.
    pub(crate) fn close(&mut self, link: Link, kind: ConnectionKind, server: ServerId) {
        let now = self.time.now();
        let last_arrival = self.mail.close(link.process, link.index, now);
        if kind == ConnectionKind::Own && self.is_database(server) {
            self.leave_backend(link, last_arrival);
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    pub(crate) fn strikes(&mut self, percent: u64) -> bool {
        self.time.now() < self.faults.end && self.chance.below(100) < percent
    }

    /// A delay in one direction. Most are short: a world with only long delays shows little.
    fn delay(&mut self, process: usize, server: ServerId) -> Nanos {
        if !self.own_delays.is_empty() {
            let slow = self.suffered[usize::from(server.0)].slow;
            let longest = match slow.filter(|&(until, _)| self.time.now() < until) {
                Some((_, longest)) => longest.max(LONGEST_HOP),
                None => LONGEST_HOP,
            };
            return Nanos(self.own_delays[process].below(longest.0 + 1));
        }
        let slow = self.time.now() < self.faults.end && self.chance.below(3) == 0;
        let longest = if slow { self.faults.delay } else { LONGEST_HOP };
        self.up_to(longest)
    }

    pub(crate) fn up_to(&mut self, longest: Nanos) -> Nanos {
        Nanos(self.chance.below(longest.0 + 1))
    }
}

fn is_by_source(command: &Command) -> bool {
    let (Command::CompareAndDelete { form, .. } | Command::Run { form, .. } | Command::RunAll { form, .. }) = command
    else {
        return false;
    };
    *form == ScriptForm::Source
}
