//! The connections to a database: its sessions, how they end on both sides, and what was written.

use locks::{Command, ConnectionKind, Key, Nanos, Outcome, ServerId};

use crate::client::Belief;
use crate::database::{Backend, DatabaseEffect};
use crate::network::Sender;
use crate::world::{Happening, Run};

/// For each key, the outcomes of its writes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Writes {
    acknowledged: u64,
    unknown: u64,
}

impl Run {
    pub(crate) fn is_database(&self, server: ServerId) -> bool {
        self.strategy.database() == Some(server)
    }

    pub(crate) fn backend(via: ConnectionKind, client: usize, connection: u64) -> Backend {
        match via {
            ConnectionKind::Own => Backend::Own { client, connection },
            ConnectionKind::SharedByClients => Backend::Shared,
            ConnectionKind::Subscribing => unreachable!("nobody subscribes to a database"),
        }
    }

    pub(crate) fn arrives_at_database(&mut self, from: Sender, command: Command) {
        let backend = Self::backend(from.via, from.client, from.connection);
        if from.via == ConnectionKind::Own && self.strikes(self.faults.terminate_percent) {
            let at = self.now.after(self.up_to(self.faults.hold));
            self.later(at, Happening::Terminates { backend });
        }
        self.database.arrives(self.now, backend, from, command);
        self.follow_database();
    }

    /// An administrator, or a time limit, ends a session; its client learns it later.
    pub(crate) fn terminate(&mut self, backend: Backend) {
        let Backend::Own { client, connection } = backend else {
            return;
        };
        if self.database.has_ended(backend) {
            return;
        }
        self.count("terminated");
        self.end_backend(backend);
        let (server, via) = (ServerId(0), ConnectionKind::Own);
        let at = self.now.after(self.up_to(self.faults.delay));
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

    /// The server notices that a client has gone.
    pub(crate) fn end_backend(&mut self, backend: Backend) {
        self.database.end(self.now, backend);
        self.follow_database();
    }

    pub(crate) fn time_out(&mut self, backend: Backend, ticket: u64) {
        self.database.time_out(self.now, backend, ticket);
        self.follow_database();
    }

    fn follow_database(&mut self) {
        for effect in std::mem::take(&mut self.database.effects) {
            match effect {
                DatabaseEffect::Replies(to, reply) => self.reply(to, reply),
                DatabaseEffect::Waits(backend, ticket) => {
                    self.count("queued in the database");
                    let at = self.now.after(self.lock_timeout);
                    self.later(at, Happening::TimesOut { backend, ticket });
                }
            }
        }
    }

    /// What was sent before the end of a connection arrives; the server notices the end after it, or, if busy, later.
    pub(crate) fn leave_backend(&mut self, client: usize, connection: u64, last_arrival: Nanos) {
        let backend = Backend::Own { client, connection };
        let at = self.now.max(last_arrival).after(self.up_to(Nanos::from_millis(5)));
        self.later(at, Happening::Ends { backend });
    }

    /// Whether a belief has ended with its session, and its holder cannot know yet: a session lock makes no promise
    /// then.
    pub(crate) fn is_lost(&self, client: usize, belief: Belief) -> bool {
        let Some(connection) = belief.by_session else {
            return false;
        };
        let here = self.clients[client].known_connection(ServerId(0), ConnectionKind::Own);
        let backend = Backend::Own { client, connection };
        connection == here && self.database.has_ended(backend)
    }

    /// Records the outcome of a release that writes the work's effect.
    pub(crate) fn write_ended(&mut self, client: usize, outcome: Outcome) {
        let writes = self.writes.entry(self.wanted[client].only()).or_default();
        match outcome {
            Outcome::Released => {
                writes.acknowledged += 1;
                self.clients[client].served |= self.now >= self.faults.end;
            }
            Outcome::Unknown | Outcome::Failed(_) => writes.unknown += 1,
            Outcome::Expired | Outcome::Conflict | Outcome::Held { .. } | Outcome::Refused(_) => {}
        }
    }

    /// An acknowledged write that is missing. Writes under way may be visible or not.
    pub(crate) fn lost_update(&self) -> Option<String> {
        let wrong = |(&key, writes): (&Key, &Writes)| {
            let (value, under_way) = (self.database.value(key), self.clients.len() as u64);
            let most = writes.acknowledged + writes.unknown + under_way;
            (!(writes.acknowledged..=most).contains(&value)).then(|| {
                let Writes { acknowledged, unknown } = writes;
                format!(
                    "{key:?} is {value} after {acknowledged} writes and perhaps {unknown}; seed {}",
                    self.seed
                )
            })
        };
        self.writes.iter().find_map(wrong)
    }
}
