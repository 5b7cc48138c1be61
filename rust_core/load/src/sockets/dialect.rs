//! What differs between the two kinds of server: the handshake, the encoding of a command, and the state of a session.
//! A trial and a lock client of a program use the same; they differ in how locks are named.

use std::sync::Arc;

use locks::{Command, Key, Script, ServerId, Statement, Strategy};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use wire::postgres::{BlockKind, Hashes, LogIn, LogInPlan, ReplyReader, SessionSpec};
use wire::{CompareAndDelete, GivenNames, Greeting, KeyNames, Login, NamedEncoder, greeting, postgres};

use crate::TrialError;
use crate::spec::{Address, GuardSpec, PostgresServer, RedisServer, ServerSpec, Speaks};

/// The servers, and what connections tell them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers<'a> {
    pub(crate) strategy: Strategy,
    pub(crate) servers: &'a [ServerSpec],
    /// The guarded resource, on a server after them.
    pub(crate) guard: Option<&'a GuardSpec>,
    pub(crate) client_name: &'a str,
}

/// What clients send to one server, for a driver that loads scripts and prepares statements in advance.
#[derive(Clone, Copy, Debug)]
struct Sent {
    scripts: &'static [Script],
    statements: &'static [Statement],
}

impl<'a> Peers<'a> {
    /// Each server, with what is sent there.
    fn all(&self) -> impl Iterator<Item = (&'a ServerSpec, Sent)> {
        let by_lock = Sent {
            scripts: self.strategy.scripts(),
            statements: self.strategy.statements(),
        };
        let guard = self.guard.map(|guard| {
            let sent = Sent {
                scripts: guard.kind.scripts(),
                statements: guard.kind.statements(),
            };
            (&guard.server, sent)
        });
        self.servers.iter().map(move |server| (server, by_lock)).chain(guard)
    }
}

/// How the keys of commands are named.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    /// The numbered names of a trial, with the numbers of its advisory locks.
    Numbered(KeyNames, Arc<Hashes>),
    /// Names that a program gives.
    Given(GivenNames),
}

/// The address of a server, and the handshake of a connection to it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) handshake: Handshake,
}

/// What a new connection sends first, and what must be answered before it is open.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// All commands at once, each with a reply. May be empty.
    Redis { bytes: Vec<u8>, greeting: Greeting },
    /// An exchange of messages.
    Postgres(LogInPlan),
}

impl Handshake {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Redis { bytes, .. } => bytes,
            Self::Postgres(plan) => plan.startup(),
        }
    }

    /// Whether the server replies at all before the connection is open.
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Self::Redis { greeting, .. } => !greeting.is_empty(),
            Self::Postgres(_) => true,
        }
    }

    pub(crate) const fn is_database(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

/// The state of a connection to a database, besides its bytes.
#[derive(Debug, Default)]
pub(crate) struct DatabaseSession {
    pub(crate) log_in: LogIn,
    pub(crate) replies: ReplyReader,
}

#[derive(Debug)]
pub(crate) enum Encoder {
    Redis(wire::Encoder),
    RedisNamed(NamedEncoder),
    Postgres(postgres::Encoder),
}

impl Encoder {
    /// Appends the command, and returns what is needed to read its reply. A reply of Redis needs nothing.
    #[inline]
    pub(crate) fn encode(&self, command: &Command, out: &mut Vec<u8>) -> BlockKind {
        match (self, command) {
            (Self::Redis(encoder), _) => {
                encoder.encode(command, out);
                BlockKind::Other
            }
            (Self::RedisNamed(encoder), _) => {
                encoder.encode(command, out);
                BlockKind::Other
            }
            (
                Self::Postgres(encoder),
                &Command::Sql {
                    statement,
                    key,
                    token,
                    numbers,
                },
            ) => encoder.encode(statement, key, token, numbers, out),
            (Self::Postgres(_), _) => panic!("{command:?} for a server that speaks Postgres"),
        }
    }

    /// The key that a channel belongs to; a database has no channels.
    pub(crate) fn key_of(&self, channel: &[u8]) -> Option<Key> {
        match self {
            Self::Redis(encoder) => encoder.key_of(channel),
            Self::RedisNamed(encoder) => encoder.key_of(channel),
            Self::Postgres(_) => None,
        }
    }
}

/// The nonce is drawn here, because `wire` has no random generator.
pub(crate) fn scram(password: &[u8]) -> ScramSha256 {
    ScramSha256::new(password, ChannelBinding::unsupported())
}

/// Whether each server speaks the protocol that the strategy uses with it. A strategy that sends nothing fits every
/// server.
pub(crate) fn fits(strategy: Strategy, servers: &[ServerSpec]) -> bool {
    let is_silent = strategy.is_silent();
    (0..).zip(servers).all(|(id, server)| {
        let is_database = strategy.database() == Some(ServerId(id));
        is_silent || is_database == matches!(server.speaks, Speaks::Postgres(_))
    })
}

/// The address and the handshake of each server.
pub(crate) fn targets(peers: &Peers<'_>) -> Result<Vec<Target>, TrialError> {
    peers.all().map(|(server, sent)| target(server, sent, peers)).collect()
}

/// The encoder of each server.
pub(crate) fn encoders(peers: &Peers<'_>, naming: &Naming) -> Result<Vec<Encoder>, TrialError> {
    peers
        .all()
        .map(|(server, sent)| encoder(server, sent, naming))
        .collect()
}

fn target(server: &ServerSpec, sent: Sent, peers: &Peers<'_>) -> Result<Target, TrialError> {
    Ok(Target {
        address: server.address.clone(),
        handshake: match &server.speaks {
            Speaks::Redis(redis) => redis_handshake(redis, sent, peers.client_name),
            Speaks::Postgres(database) => {
                let settings = settings(database, peers.client_name);
                let plan = LogInPlan::new(&session(database, &settings, sent));
                Handshake::Postgres(plan.map_err(|_| TrialError::Field("servers"))?)
            }
        },
    })
}

fn encoder(server: &ServerSpec, sent: Sent, naming: &Naming) -> Result<Encoder, TrialError> {
    Ok(match (&server.speaks, naming) {
        (Speaks::Redis(redis), Naming::Numbered(names, _)) => {
            Encoder::Redis(wire::Encoder::new(names, redis.compare_and_delete))
        }
        (Speaks::Redis(redis), Naming::Given(names)) => {
            Encoder::RedisNamed(NamedEncoder::new(names.clone(), redis.compare_and_delete))
        }
        (Speaks::Postgres(database), naming) => {
            let hashes = match naming {
                Naming::Numbered(_, hashes) => Arc::clone(hashes),
                Naming::Given(names) => Arc::new(Hashes::given(names)),
            };
            let encoder = postgres::Encoder::new(&session(database, &[], sent), hashes);
            Encoder::Postgres(encoder.map_err(|_| TrialError::Field("servers"))?)
        }
    })
}

fn redis_handshake(server: &RedisServer, sent: Sent, client_name: &str) -> Handshake {
    let deletes_by_script = server.compare_and_delete == CompareAndDelete::Script;
    let is_sent = |script: &Script| deletes_by_script || *script != Script::CompareAndDelete;
    let scripts: Vec<Script> = sent.scripts.iter().copied().filter(is_sent).collect();
    let login = Login {
        protocol: server.protocol,
        username: server.username.as_deref(),
        password: server.password.as_deref(),
        db: server.db,
        client_name,
        scripts: &scripts,
    };
    let mut bytes = Vec::new();
    let greeting = greeting(&login, &mut bytes);
    Handshake::Redis { bytes, greeting }
}

/// The server's settings. A session without an application name gets the name of the clients.
fn settings(server: &PostgresServer, client_name: &str) -> Vec<(String, String)> {
    const NAME: &str = "application_name";
    let mut settings = server.settings.clone();
    if !client_name.is_empty() && settings.iter().all(|(name, _)| name != NAME) {
        settings.push((NAME.to_owned(), client_name.to_owned()));
    }
    settings
}

fn session<'a>(server: &'a PostgresServer, settings: &'a [(String, String)], sent: Sent) -> SessionSpec<'a> {
    SessionSpec {
        user: &server.user,
        password: server.password.as_deref(),
        database: &server.database,
        settings,
        statements: sent.statements,
        prepare: server.prepare,
        table: &server.table,
    }
}
