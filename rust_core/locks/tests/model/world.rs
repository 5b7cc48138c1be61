//! The clients, their connections and clocks, and the order in which things happen to them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use locks::{
    Action, Actions, AnyLock, CallId, Chance, Command, Event, Key, Lasts, Lease, LockMachine, Mode, Nanos, Outcome,
    Refusal, Reply, ScriptForm, Strategy,
};

use crate::client::{Belief, Client, Phase};
use crate::redis::Redis;
use crate::setting::{Faults, Mistake, Setting};

/// How long after the end of the faults each client must have been served again.
const BOUND: Nanos = Nanos::from_secs(6);

/// What came of a world.
pub(crate) struct World {
    pub(crate) violation: Option<String>,
    /// The clients that were not granted anything after the faults had ended.
    pub(crate) unserved: Vec<usize>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) trace: u64,
}

impl World {
    pub(crate) fn run(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        let mut run = Run::new(strategy, mistake, seed);
        while let Some(((now, _), happening)) = run.agenda.pop_first() {
            let served = run.clients.iter().all(|client| client.served);
            if now > run.faults.end.after(BOUND) || run.violation.is_some() || served {
                break;
            }
            run.now = now;
            run.happen(happening);
        }
        let unserved = (0..run.clients.len()).filter(|&id| !run.clients[id].served).collect();
        let violation = run.violation.map(|violation| format!("{violation}; seed {seed}"));
        Self {
            violation,
            unserved,
            outcomes: run.outcomes,
            trace: run.trace.finish(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Happening {
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
        client: usize,
        connection: u64,
        tag: u64,
        command: Command,
    },
    Answers {
        client: usize,
        connection: u64,
        tag: u64,
        reply: Reply,
    },
    Closes {
        client: usize,
        connection: u64,
    },
    /// Only the newest point asked for is meant.
    Wakes {
        client: usize,
        point: u64,
    },
}

struct Run {
    now: Nanos,
    agenda: BTreeMap<(Nanos, u64), Happening>,
    order: u64,
    server: Redis,
    clients: Vec<Client>,
    wanted: Vec<Key>,
    keys: u64,
    lease: Lease,
    faults: Faults,
    mistake: Mistake,
    chance: Chance,
    violation: Option<String>,
    outcomes: BTreeMap<String, u64>,
    trace: DefaultHasher,
}

impl Run {
    fn new(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        let mut streams = Chance::streams(seed);
        let mut chance = streams.next().expect("streams do not end");
        let Setting {
            spec,
            faults,
            clients,
            keys,
        } = Setting::draw(&mut chance);
        let (lease, spec) = (spec.lease, Arc::new(spec));
        let clients: Vec<Client> = streams
            .take(clients)
            .map(|stream| Client::new(AnyLock::new(strategy, Arc::clone(&spec), stream), &mut chance))
            .collect();
        let mut run = Self {
            now: Nanos::ZERO,
            agenda: BTreeMap::new(),
            order: 0,
            server: Redis::new(mistake),
            wanted: vec![Key(0); clients.len()],
            clients,
            keys,
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

    fn later(&mut self, at: Nanos, happening: Happening) {
        self.order += 1;
        self.agenda.insert((at, self.order), happening);
    }

    fn happen(&mut self, happening: Happening) {
        (self.now, self.order).hash(&mut self.trace);
        let client = match happening {
            Happening::Arrives {
                client,
                connection,
                tag,
                command,
            } => {
                return self.arrives(client, connection, tag, command);
            }
            Happening::Turn { client }
            | Happening::Cancels { client, .. }
            | Happening::Answers { client, .. }
            | Happening::Closes { client, .. }
            | Happening::Wakes { client, .. } => client,
        };
        let stopped_until = self.clients[client].stopped_until;
        if self.now < stopped_until {
            return self.later(stopped_until, happening);
        }
        match happening {
            Happening::Turn { .. } => self.turn(client),
            Happening::Cancels { turn, .. } if turn == self.clients[client].turn => self.cancel(client),
            Happening::Answers {
                connection, tag, reply, ..
            } if connection == self.clients[client].connection => {
                self.answer(client, tag, reply);
            }
            Happening::Closes { connection, .. } if connection == self.clients[client].connection => {
                self.close(client);
            }
            Happening::Wakes { point, .. } if point == self.clients[client].point => self.tell(client, Event::Woke),
            // Meant for a turn, a connection or a point that is no more; a command never comes here.
            Happening::Cancels { .. }
            | Happening::Answers { .. }
            | Happening::Closes { .. }
            | Happening::Wakes { .. }
            | Happening::Arrives { .. } => {}
        }
    }

    fn turn(&mut self, client: usize) {
        match self.clients[client].phase {
            Phase::Idle => {
                let key = Key(self.chance.below(self.keys) as u32);
                self.wanted[client] = key;
                self.clients[client].phase = Phase::Waiting;
                self.clients[client].present.clear();
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
                self.tell(
                    client,
                    Event::Acquire {
                        keys: key.into(),
                        mode: Mode::Exclusive,
                    },
                );
            }
            Phase::Held => {
                self.clients[client].phase = Phase::Waiting;
                self.clients[client].belief = None;
                self.tell(client, Event::Release);
            }
            Phase::Waiting => {} // Cancelled meanwhile; its settlement brings the next turn.
        }
    }

    fn cancel(&mut self, client: usize) {
        self.clients[client].phase = Phase::Waiting;
        self.clients[client].belief = None;
        self.tell(client, Event::Cancel);
    }

    fn arrives(&mut self, client: usize, connection: u64, tag: u64, command: Command) {
        if self.strikes(self.faults.forget_percent) {
            self.server.forget_scripts();
        }
        let reply = self.server.run(self.now, command);
        let at = self.now.after(self.delay()).max(self.clients[client].down);
        self.clients[client].down = at;
        self.later(
            at,
            Happening::Answers {
                client,
                connection,
                tag,
                reply,
            },
        );
    }

    fn answer(&mut self, client: usize, tag: u64, reply: Reply) {
        let call = match self.mistake {
            Mistake::ReusedCallIds => self.clients[client].present.get(tag as usize).copied(),
            Mistake::None | Mistake::DeleteWithoutCompare | Mistake::LeaseFromReply => Some(CallId(tag)),
        };
        if let Some(call) = call {
            self.clients[client].unanswered.retain(|&waiting| waiting != call);
            self.tell(client, Event::Replied { call, reply });
        }
    }

    /// What was sent may still arrive; no answer comes back.
    fn close(&mut self, client: usize) {
        let state = &mut self.clients[client];
        state.connection += 1;
        (state.up, state.down) = (self.now, self.now);
        for call in std::mem::take(&mut state.unanswered) {
            self.tell(client, Event::Lost { call });
        }
    }

    fn tell(&mut self, client: usize, event: Event) {
        let mut out = Actions::default();
        let state = &mut self.clients[client];
        state.lock.on(state.clock.reads(self.now), event, &mut out);
        for action in out.drain() {
            match action {
                Action::Send { call, command, .. } => self.send(client, call, command),
                Action::WakeAt(local) => self.wake_at(client, local),
                Action::Settle(outcome) => self.settle(client, outcome),
                Action::HangUp | Action::Queued | Action::Renewed { .. } | Action::Lapsed => {
                    panic!("the model does not know {action:?}")
                }
            }
        }
    }

    fn send(&mut self, client: usize, call: CallId, command: Command) {
        if matches!(
            command,
            Command::CompareAndDelete {
                form: ScriptForm::Source,
                ..
            }
        ) {
            self.count("asked with source");
        }
        let (delay, closes) = (self.delay(), self.strikes(self.faults.close_percent));
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
        state.unanswered.push(call);
        state.up = state.up.max(self.now.after(delay));
        let (at, connection) = (state.up, state.connection);
        if let Some(length) = stops {
            state.stopped_until = self.now.after(length);
        }
        self.later(
            at,
            Happening::Arrives {
                client,
                connection,
                tag,
                command,
            },
        );
        if closes {
            let at = self.now.after(self.delay());
            self.later(at, Happening::Closes { client, connection });
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
            Outcome::Unknown => "unknown",
        });
        let longest = match outcome {
            Outcome::Held { lasts, .. } => {
                self.believe(client, lasts);
                if self.now < self.faults.end {
                    self.faults.hold
                } else {
                    Nanos::from_millis(2)
                }
            }
            Outcome::Released | Outcome::Refused(_) | Outcome::Expired | Outcome::Failed(_) | Outcome::Unknown => {
                Nanos::from_millis(5)
            }
        };
        let state = &mut self.clients[client];
        state.turn += 1;
        state.phase = if matches!(outcome, Outcome::Held { .. }) {
            Phase::Held
        } else {
            Phase::Idle
        };
        let at = self.now.after(self.up_to(longest));
        self.later(at, Happening::Turn { client });
    }

    fn believe(&mut self, client: usize, lasts: Lasts) {
        let (key, state) = (self.wanted[client], &mut self.clients[client]);
        let local = match lasts {
            Lasts::Until(_) if self.mistake == Mistake::LeaseFromReply => self.lease.until(state.clock.reads(self.now)),
            Lasts::Until(local) => local,
            Lasts::Unbounded => Nanos::NEVER,
        };
        let end = state.clock.shows(local);
        state.belief = Some(Belief { key, end });
        state.served |= self.now >= self.faults.end;
        let rival = |(id, other): (usize, &Client)| {
            let belief = other
                .belief
                .filter(|belief| belief.key == key && belief.end > self.now)?;
            (id != client).then(|| format!("{client} and {id} hold {key:?} at {:?}: {belief:?}", self.now))
        };
        self.violation = self.clients.iter().enumerate().find_map(rival);
    }

    fn count(&mut self, what: &str) {
        *self.outcomes.entry(what.to_owned()).or_default() += 1;
    }

    fn strikes(&mut self, percent: u64) -> bool {
        self.now < self.faults.end && self.chance.below(100) < percent
    }

    /// One way. Most are short: a world where all are long sees little.
    fn delay(&mut self) -> Nanos {
        let slow = self.now < self.faults.end && self.chance.below(8) == 0;
        let longest = if slow {
            self.faults.delay
        } else {
            Nanos::from_micros(300)
        };
        self.up_to(longest)
    }

    fn up_to(&mut self, longest: Nanos) -> Nanos {
        Nanos(self.chance.below(longest.0 + 1))
    }
}
