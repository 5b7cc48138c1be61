//! The clients, their connections and clocks, and the order of events.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use locks::ConnectionKind::Own;
use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, ConnectionKind, Event, Fence, Key, KeyList, Lease, LockMachine,
    Mode, Nanos, Outcome, Refusal, Reply, ServerId, Strategy, Token,
};

use crate::client::{Client, Phase};
use crate::conditions::{Conditions, Faults, Mistake};
use crate::database::{Backend, Database};
use crate::network::Sender;
use crate::redis::Redis;
use crate::sessions::Writes;

/// How long after the end of the faults each client must have been served again.
const BOUND: Nanos = Nanos::from_secs(6);

/// The server of each client's own connection.
const FIRST: ServerId = ServerId(0);

/// The result of a world.
pub(crate) struct World {
    pub(crate) violation: Option<String>,
    pub(crate) lost_update: Option<String>,
    /// The clients that were granted nothing after the faults had ended.
    pub(crate) unserved: Vec<usize>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) trace: u64,
}

impl World {
    pub(crate) fn run(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self::of(Run::new(strategy, mistake, seed, false))
    }

    /// As `run`, but nothing breaks, nobody is stopped or cancelled, and nobody gives up waiting.
    pub(crate) fn without_faults(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self::of(Run::new(strategy, mistake, seed, true))
    }

    fn of(mut run: Run) -> Self {
        while let Some(((now, _), happening)) = run.agenda.pop_first() {
            let served = run.clients.iter().all(|client| client.served);
            if now > run.faults.end.after(BOUND) || run.violation.is_some() || served {
                break;
            }
            run.now = now;
            run.happen(happening);
        }
        let unserved = (0..run.clients.len()).filter(|&id| !run.clients[id].served).collect();
        let lost_update = run.lost_update();
        let seed = run.seed;
        let violation = run.violation.map(|violation| format!("{violation}; seed {seed}"));
        Self {
            violation,
            lost_update,
            unserved,
            outcomes: run.outcomes,
            trace: run.trace.finish(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// The client begins, or ends, its work.
    Turn {
        client: usize,
    },
    Cancels {
        client: usize,
        turn: u64,
    },
    /// A command reaches the server.
    Arrives {
        from: Sender,
        command: Command,
    },
    /// The server's empty reply to a blocking command.
    Unblocks {
        from: Sender,
        token: Token,
    },
    Answers {
        from: Sender,
        reply: Reply,
    },
    /// A message of a channel arrives over the client's own connection.
    Publishes {
        client: usize,
        connection: u64,
    },
    Closes {
        client: usize,
        server: ServerId,
        via: ConnectionKind,
        connection: u64,
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
    /// What a closed connection loses: an open call, or all subscriptions.
    Loses {
        client: usize,
        call: Option<CallId>,
    },
    /// Only the latest time that was asked for counts.
    Wakes {
        client: usize,
        point: u64,
    },
}

pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) now: Nanos,
    pub(crate) agenda: BTreeMap<(Nanos, u64), Happening>,
    pub(crate) order: u64,
    pub(crate) servers: Vec<Redis>,
    pub(crate) database: Database,
    pub(crate) lock_timeout: Nanos,
    pub(crate) writes: BTreeMap<Key, Writes>,
    pub(crate) clients: Vec<Client>,
    pub(crate) wanted: Vec<KeyList>,
    pub(crate) keys: u64,
    pub(crate) strategy: Strategy,
    /// The fence of the newest grant of each key.
    pub(crate) fences: BTreeMap<Key, Fence>,
    pub(crate) lease: Lease,
    pub(crate) faults: Faults,
    pub(crate) mistake: Mistake,
    pub(crate) chance: Chance,
    pub(crate) violation: Option<String>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) trace: DefaultHasher,
}

impl Run {
    fn new(strategy: Strategy, mistake: Mistake, seed: u64, calm: bool) -> Self {
        let mut streams = Chance::streams(seed);
        let mut chance = streams.next().expect("streams do not end");
        let Conditions {
            spec,
            faults,
            clients,
            keys,
        } = if calm {
            Conditions::draw(&mut chance).without_faults()
        } else {
            Conditions::draw(&mut chance).over_servers(strategy, &mut chance)
        };
        let (lease, spec) = (spec.lease, Arc::new(spec));
        let clients: Vec<Client> = streams
            .take(clients)
            .map(|stream| Client::new(AnyLock::new(strategy, Arc::clone(&spec), stream), &mut chance))
            .collect();
        let mut run = Self {
            seed,
            now: Nanos::ZERO,
            agenda: BTreeMap::new(),
            order: 0,
            servers: (0..spec.servers).map(|_| Redis::new(mistake)).collect(),
            database: Database::new(mistake),
            lock_timeout: spec.retry.max_wait,
            writes: BTreeMap::new(),
            wanted: vec![Key(0).into(); clients.len()],
            clients,
            keys,
            strategy,
            fences: BTreeMap::new(),
            lease,
            faults,
            mistake,
            chance,
            violation: None,
            outcomes: BTreeMap::new(),
            trace: DefaultHasher::new(),
        };
        for client in 0..run.clients.len() {
            run.later(Nanos::ZERO, Happening::Turn { client });
        }
        run
    }

    pub(crate) fn later(&mut self, at: Nanos, happening: Happening) {
        self.order += 1;
        self.agenda.insert((at, self.order), happening);
    }

    fn happen(&mut self, happening: Happening) {
        (self.now, self.order).hash(&mut self.trace);
        let client = match happening {
            Happening::Arrives { from, command } => return self.arrives(from, command),
            Happening::Unblocks { from, token } => return self.unblocks(from, token),
            Happening::Ends { backend } => return self.end_backend(backend),
            Happening::Terminates { backend } => return self.terminate(backend),
            Happening::TimesOut { backend, ticket } => return self.time_out(backend, ticket),
            Happening::Answers { from, .. } => from.client,
            Happening::Turn { client }
            | Happening::Cancels { client, .. }
            | Happening::Publishes { client, .. }
            | Happening::Closes { client, .. }
            | Happening::Loses { client, .. }
            | Happening::Wakes { client, .. } => client,
        };
        let state = &mut self.clients[client];
        if self.now < state.stopped_until {
            let until = state.stopped_until;
            return self.later(until, happening);
        }
        match happening {
            Happening::Turn { .. } => self.turn(client),
            Happening::Cancels { turn, .. } if turn == state.turn => self.cancel(client),
            Happening::Answers { from, reply } if from.connection == state.link(from.server, from.via).connection => {
                self.deliver_reply(from, reply);
            }
            Happening::Publishes { connection: over, .. } if over == state.link(FIRST, Own).connection => {
                self.published(client);
            }
            Happening::Closes {
                server,
                via,
                connection,
                ..
            } if connection == state.link(server, via).connection => {
                self.close(client, server, via);
            }
            Happening::Loses { call: Some(call), .. } => self.send_event(client, Event::Lost { call }),
            Happening::Loses { call: None, .. } if self.mistake == Mistake::NotTold => {}
            Happening::Loses { call: None, .. } => self.send_event(client, Event::Disconnected),
            Happening::Wakes { point, .. } if point == state.point => self.send_event(client, Event::Woke),
            // Meant for an earlier turn, connection or time; a command never reaches this arm.
            Happening::Cancels { .. }
            | Happening::Answers { .. }
            | Happening::Publishes { .. }
            | Happening::Closes { .. }
            | Happening::Wakes { .. }
            | Happening::Arrives { .. }
            | Happening::Unblocks { .. }
            | Happening::Ends { .. }
            | Happening::Terminates { .. }
            | Happening::TimesOut { .. } => {}
        }
    }

    fn turn(&mut self, client: usize) {
        match self.clients[client].phase {
            Phase::Idle => {
                let again = std::mem::take(&mut self.clients[client].again);
                let keys = if again { self.wanted[client] } else { self.some_keys() };
                (self.wanted[client], self.clients[client].phase) = (keys, Phase::Waiting);
                self.clients[client].present.clear();
                self.clients[client].asked = self.now;
                if self.strikes(self.faults.cancel_percent) {
                    let at = self.now.after(self.up_to(Nanos::from_millis(20)));
                    self.later(
                        at,
                        Happening::Cancels {
                            client,
                            turn: self.clients[client].turn,
                        },
                    );
                }
                let mode = if self.strategy.shares() && self.chance.below(2) == 0 {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                };
                self.clients[client].mode = mode;
                let event = Event::Acquire { keys, mode };
                self.send_event(client, if again { Event::Retry } else { event });
            }
            Phase::Held => {
                self.clients[client].phase = Phase::Waiting;
                self.clients[client].belief = None;
                self.clients[client].writes = self.strategy.writes();
                self.send_event(client, Event::Release);
            }
            Phase::Waiting => {} // Cancelled meanwhile; its settlement starts the next turn.
        }
    }

    fn some_keys(&mut self) -> KeyList {
        let mut key = || Key(self.chance.below(self.keys) as u32);
        if self.strategy.takes_many_keys() {
            KeyList::new(&[key(), key()]).expect("two are few")
        } else {
            key().into()
        }
    }

    fn cancel(&mut self, client: usize) {
        let held = self.clients[client].phase == Phase::Held;
        self.clients[client].writes |= held && self.strategy.writes();
        self.clients[client].phase = Phase::Waiting;
        self.clients[client].belief = None;
        self.send_event(client, Event::Cancel);
    }

    pub(crate) fn send_event(&mut self, client: usize, event: Event) {
        let mut out = Actions::default();
        let state = &mut self.clients[client];
        state.lock.on(state.clock.reads(self.now), event, &mut out);
        for action in out.drain() {
            match action {
                Action::Send {
                    call,
                    to,
                    over,
                    command,
                } => self.send(client, to, over, call, command),
                Action::WakeAt(local) => self.wake_at(client, local),
                Action::Settle(outcome) => self.settle(client, outcome),
                Action::HangUp => {
                    self.count("hung up");
                    self.close(client, FIRST, Own);
                }
                Action::Queued => {
                    let before = self.clients[client].queued.replace(self.now);
                    self.count(before.map_or("queued", |_| "queued again"));
                }
                Action::Renewed { lasts } => {
                    self.count("renewed");
                    self.believe(client, lasts);
                }
                Action::Lapsed => {
                    self.count("lapsed");
                    self.clients[client].belief = None;
                }
            }
        }
    }

    fn wake_at(&mut self, client: usize, local: Nanos) {
        let state = &mut self.clients[client];
        state.point += 1;
        let (point, at) = (state.point, state.clock.shows(local));
        self.later(at.max(self.now), Happening::Wakes { client, point });
    }

    fn settle(&mut self, client: usize, outcome: Outcome) {
        self.count(match outcome {
            Outcome::Held { .. } => "held",
            Outcome::Released => "released",
            Outcome::Refused(Refusal::Busy) => "busy",
            Outcome::Refused(Refusal::TimedOut) => "timed out",
            Outcome::Refused(Refusal::TooLate) => "too late",
            Outcome::Expired => "expired",
            Outcome::Failed(_) => "failed",
            Outcome::Conflict => "conflict",
            Outcome::Unknown => "unknown",
        });
        let longest = match outcome {
            Outcome::Held { lasts, fence } => {
                if !self.strategy.is_optimistic() {
                    self.believe(client, lasts);
                }
                self.number(client, fence);
                if self.now < self.faults.end {
                    self.faults.hold
                } else {
                    Nanos::from_millis(2)
                }
            }
            Outcome::Conflict => Nanos::ZERO,
            Outcome::Released | Outcome::Refused(_) | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown => {
                Nanos::from_millis(5)
            }
        };
        if std::mem::take(&mut self.clients[client].writes) {
            self.write_ended(client, outcome);
        }
        let state = &mut self.clients[client];
        state.again = outcome == Outcome::Conflict;
        state.turn += 1;
        state.queued = None;
        state.phase = if matches!(outcome, Outcome::Held { .. }) {
            Phase::Held
        } else {
            Phase::Idle
        };
        let at = self.now.after(self.up_to(longest));
        self.later(at, Happening::Turn { client });
    }
}
