//! One client of a world: its lock, its clock, its connections, and what it believes.

use std::collections::BTreeMap;

use locks::{AnyLock, CallId, Chance, ConnectionKind, KeyList, Mode, Nanos, ServerId};

pub(crate) struct Client {
    pub(crate) lock: AnyLock,
    pub(crate) clock: Clock,
    pub(crate) phase: Phase,
    /// Counts settlements, so that events meant for an earlier turn can be recognised.
    pub(crate) turn: u64,
    /// The mode of the current `Acquire`.
    pub(crate) mode: Mode,
    pub(crate) belief: Option<Belief>,
    /// While the client waits: when it asked for the lock, and when the server acknowledged its place in the queue.
    pub(crate) asked: Nanos,
    pub(crate) queued: Option<Nanos>,
    /// The connections to each server; only the first server has one that is the client's own.
    links: BTreeMap<(ServerId, IsOwn), Link>,
    /// All calls since the `Acquire`: `ReusedCallIds` numbers these.
    pub(crate) present: Vec<CallId>,
    pub(crate) point: u64,
    pub(crate) stopped_until: Nanos,
    pub(crate) served: bool,
    /// The request under way writes the work's effect.
    pub(crate) writes: bool,
    /// The work met a conflict, and is repeated.
    pub(crate) again: bool,
}

impl Client {
    pub(crate) fn new(lock: AnyLock, chance: &mut Chance) -> Self {
        Self {
            lock,
            clock: Clock {
                offset: chance.below(1 << 40),
                per_mille: 991 + chance.below(19),
            },
            phase: Phase::Idle,
            turn: 0,
            mode: Mode::Exclusive,
            belief: None,
            asked: Nanos::ZERO,
            queued: None,
            links: BTreeMap::new(),
            present: Vec::new(),
            point: 0,
            stopped_until: Nanos::ZERO,
            served: false,
            writes: false,
            again: false,
        }
    }

    /// The newest connection; without a link none was needed yet.
    pub(crate) fn known_connection(&self, server: ServerId, via: ConnectionKind) -> u64 {
        let link = self.links.get(&(server, IsOwn(via == ConnectionKind::Own)));
        link.map_or(0, |link| link.connection)
    }

    pub(crate) fn link(&mut self, server: ServerId, via: ConnectionKind) -> &mut Link {
        self.links
            .entry((server, IsOwn(via != ConnectionKind::SharedByClients)))
            .or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IsOwn(bool);

/// The path to a server, one connection after another.
#[derive(Default)]
pub(crate) struct Link {
    pub(crate) connection: u64,
    /// When the last command and the last reply arrive: each direction of a connection keeps its order.
    pub(crate) up: Nanos,
    pub(crate) down: Nanos,
    pub(crate) unanswered: Vec<CallId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Waiting,
    Held,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief {
    pub(crate) keys: KeyList,
    pub(crate) mode: Mode,
    pub(crate) end: Nanos,
    /// The connection whose session carries the belief; `None` for a lease.
    pub(crate) by_session: Option<u64>,
}

/// A clock that is fast or slow by less than the 1 % of the clock-skew margin.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    per_mille: u64,
}

impl Clock {
    pub(crate) fn reads(self, now: Nanos) -> Nanos {
        Nanos(self.offset + now.0 * self.per_mille / 1_000)
    }

    /// The first time at which the clock reads `local`.
    pub(crate) fn shows(self, local: Nanos) -> Nanos {
        let wide = u128::from(local.0 - self.offset) * 1_000;
        Nanos(wide.div_ceil(u128::from(self.per_mille)) as u64)
    }
}
