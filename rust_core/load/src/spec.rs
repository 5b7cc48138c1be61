//! The description of one trial. Parsed once at the boundary; nothing below parses it again.

use std::net::SocketAddr;
use std::path::PathBuf;

use locks::{GuardKind, GuardRules, Nanos, ServerId, Spec as LockSpec, Strategy};
use wire::postgres::Prepare;
use wire::{CompareAndDelete, Protocol};

use crate::faults::Fault;

#[derive(Clone, Debug)]
pub struct TrialSpec {
    pub strategy: Strategy,
    pub lock: LockSpec,
    pub servers: Vec<ServerSpec>,
    pub connections: Connections,
    pub client_name: String,
    /// The prefix of every key name of the trial.
    pub key_prefix: Vec<u8>,
    pub keys: u32,
    pub key_choice: KeyChoice,
    /// How many different keys an acquire names.
    pub keys_per_grant: u32,
    pub key_order: KeyOrder,
    /// The share of acquires that share the lock, from 0 to 1.
    pub read_share: f64,
    /// How often a holder enters, including the first time.
    pub nesting: u8,
    pub hold: Distribution,
    pub think: Distribution,
    pub after_lease: AfterLease,
    pub pace: Pace,
    pub concurrency: u32,
    pub warmup: Nanos,
    /// Whether the window opens as soon as the figures are steady, at the latest after the warm-up; not with stages.
    pub until_steady: bool,
    pub duration: Nanos,
    /// How the load changes within the window; empty: it does not.
    pub stages: Vec<Stage>,
    /// How long the clients may take to finish at the end.
    pub drain: Nanos,
    /// At the end of the window all clients die: nothing is released, as when a machine fails.
    pub dies: bool,
    pub seed: u64,
    /// Of this process.
    pub threads: u32,
    /// Which part of the trial this process runs; `None`: all of it.
    pub process: Option<Process>,
    /// The core that each thread is bound to; empty: any.
    pub cores: Vec<u32>,
    pub poll: Poll,
    /// A grant counts as contended only if its holder believed in it for at least this long.
    pub least_belief: Nanos,
    /// Planned faults of connections and clients.
    pub faults: Vec<Fault>,
    /// Further times in which the trial is disturbed, counted from the opening of the window: see `Period`.
    pub fault_periods: Vec<(Nanos, Nanos)>,
    /// The resource that each work reads and writes; `None`: a hold is only time.
    pub guard: Option<GuardSpec>,
}

/// A guarded resource for each key, on a server that comes after those of the lock.
#[derive(Clone, Debug)]
pub struct GuardSpec {
    pub kind: GuardKind,
    pub server: ServerSpec,
}

impl TrialSpec {
    /// The rules of the guarded works.
    pub(crate) fn guard_rules(&self) -> Option<GuardRules> {
        let guard = self.guard.as_ref()?;
        Some(GuardRules {
            kind: guard.kind,
            is_atomic: self.strategy == Strategy::Atomic,
            server: ServerId(self.servers.len() as u16),
            is_database: matches!(guard.server.speaks, Speaks::Postgres(_)),
            reply_timeout: self.lock.reply_timeout,
        })
    }

    /// The servers of the lock, and then that of the guard.
    pub(crate) fn all_servers(&self) -> impl Iterator<Item = &ServerSpec> {
        self.servers
            .iter()
            .chain(self.guard.as_ref().map(|guard| &guard.server))
    }
}

/// One of the processes that run a trial together. Their clients are numbered through, and share the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl TrialSpec {
    /// The threads of all processes.
    pub(crate) fn all_threads(&self) -> u32 {
        self.threads * self.process.map_or(1, |process| process.of)
    }
}

#[derive(Clone, Debug)]
pub struct ServerSpec {
    pub address: Address,
    pub speaks: Speaks,
    /// A round-trip time that the driver adds: half of it delays the bytes to the server, half those from it.
    pub rtt: Distribution,
}

#[derive(Clone, Debug)]
pub enum Speaks {
    Redis(RedisServer),
    Postgres(PostgresServer),
}

#[derive(Clone)]
pub struct RedisServer {
    pub username: Option<String>,
    pub password: Option<String>,
    pub db: u32,
    pub protocol: Protocol,
    pub compare_and_delete: CompareAndDelete,
}

#[derive(Clone)]
pub struct PostgresServer {
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    /// The table of locks, its name quoted as in SQL.
    pub table: String,
    /// Settings of each session, such as `lock_timeout`.
    pub settings: Vec<(String, String)>,
    pub prepare: Prepare,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// How many connections a thread opens to each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    SharedByClients(u32),
    PerClient,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyChoice {
    Uniform,
    Zipf { s: f64 },
    Single,
}

/// The order in which a client names several keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// In the order of drawing: two clients may name the same two keys in different orders.
    Random,
    Sorted,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    Fixed(Nanos),
    Exp {
        mean: Nanos,
    },
    LogNormal {
        median: Nanos,
        sigma: f64,
    },
    Uniform {
        low: Nanos,
        high: Nanos,
    },
    /// Standard normal deviates and the durations there, both ascending.
    Quantiles {
        points: Vec<(f64, Nanos)>,
    },
}

impl Distribution {
    /// The longest time that it draws; `NEVER` if there is no limit.
    pub(crate) fn longest(&self) -> Nanos {
        match *self {
            Self::Fixed(length) => length,
            Self::Uniform { high, .. } => high,
            Self::Exp { .. } | Self::LogNormal { .. } | Self::Quantiles { .. } => Nanos::NEVER,
        }
    }
}

/// A part of the window in which the load goes linearly from one value to another: clients of a closed loop, or arrivals
/// a second of an open one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    pub from: f64,
    pub to: f64,
    pub length: Nanos,
}

/// What a holder does when its lease ends during its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLease {
    /// Continue the work, as user code does.
    Continue,
    /// Stop the work at the end of the lease.
    Stop,
}

/// When a client starts its next acquire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client starts again as soon as it has finished.
    Closed,
    /// Arrivals at a rate, assigned to idle clients; `max_in_flight` limits how many wait or run.
    Open {
        arrivals: ArrivalKind,
        rate_per_s: f64,
        max_in_flight: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    Constant,
    Poisson,
}

/// How the driver waits for the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Sleep in the kernel. A wake-up costs about 20 us on virtual machines.
    Block,
    /// Poll again at once; takes a whole core.
    Spin,
}

impl std::fmt::Debug for RedisServer {
    // Written by hand, so that the password does not appear.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisServer")
            .field("db", &self.db)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PostgresServer {
    // Written by hand, as above.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresServer")
            .field("database", &self.database)
            .field("table", &self.table)
            .field("settings", &self.settings)
            .field("prepare", &self.prepare)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
