//! The faults of a world as data: a list that its seed draws, from which any part can be left out.

use locks::{Chance, Nanos, ServerId, Strategy};

/// What can go wrong in a world of a plan. `docs/fuzz.md` describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    Delay,
    Cut,
    Pause,
    ClientKill,
    Kill,
    Restart,
    Forget,
    Failover,
    Clock,
}

impl FaultKind {
    pub const ALL: [Self; 9] = [
        Self::Delay,
        Self::Cut,
        Self::Pause,
        Self::ClientKill,
        Self::Kill,
        Self::Restart,
        Self::Forget,
        Self::Failover,
        Self::Clock,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Cut => "cut",
            Self::Pause => "pause",
            Self::ClientKill => "client-kill",
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Forget => "forget",
            Self::Failover => "failover",
            Self::Clock => "clock",
        }
    }

    /// Whether worlds of this strategy can have the fault. Servers that vote have no replicas. The models of databases
    /// know no other fault of theirs than the end of a session.
    pub fn befalls(self, strategy: Strategy) -> bool {
        let has_redis = redis_servers(strategy) > 0;
        match self {
            Self::Delay | Self::Cut | Self::Pause => true,
            Self::ClientKill => strategy.database().is_some() && strategy.owns_connection(),
            Self::Kill | Self::Restart | Self::Forget | Self::Clock => has_redis,
            Self::Failover => {
                let votes = strategy.nodes().is_some() && strategy.database().is_none();
                redis_servers(strategy) == 1 && !votes
            }
        }
    }

    /// Whether a lock that promises exclusion promises it under this fault too.
    ///
    /// No lock in Redis survives that a server loses what it acknowledged, or that its clock jumps ahead: the server
    /// then gives a lock away that it has already granted. `layered` is judged by its writes, which the database keeps.
    pub const fn is_survived(self) -> bool {
        match self {
            Self::Delay | Self::Cut | Self::Pause | Self::ClientKill | Self::Kill | Self::Restart => true,
            Self::Forget | Self::Failover | Self::Clock => false,
        }
    }
}

/// How many Redis servers the strategy uses.
pub(crate) fn redis_servers(strategy: Strategy) -> u16 {
    strategy.nodes().unwrap_or(1) - u16::from(strategy.database().is_some())
}

/// How long the replicas of a server lag behind it. A failover promotes one of them.
pub(crate) const LAGS: [Nanos; 2] = [Nanos::from_millis(2), Nanos::from_millis(6)];

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its number among the faults that the seed drew, also after others were left out.
    pub number: u32,
    pub at: Nanos,
    pub kind: FaultKind,
    /// The process; its clients stop, or lose their connections.
    pub process: u32,
    pub server: ServerId,
    /// As drawn: see `lasts`.
    pub length: Nanos,
}

impl Fault {
    /// How long it lasts or how far it jumps; of a failover, how far the replica that takes over lags behind.
    pub const fn lasts(&self) -> Nanos {
        match self.kind {
            FaultKind::Failover => LAGS[self.replica()],
            FaultKind::Delay => Nanos(self.length.0 * 2),
            _ => self.length,
        }
    }

    /// Whether `strategy` promises exclusion under this fault: see `FaultKind::is_survived`. `replicated` survives also
    /// that a replica takes over which has confirmed its lock.
    pub const fn is_survived_by(&self, strategy: Strategy) -> bool {
        match (strategy, self.kind) {
            (Strategy::Replicated { replicas, .. }, FaultKind::Failover) => (self.replica() as u32) < replicas,
            (_, kind) => kind.is_survived(),
        }
    }

    /// Which of the replicas takes over in a failover. The first is the least behind.
    const fn replica(&self) -> usize {
        (self.length.0 % 2) as usize
    }

    /// Whether it befalls a process, and not a server alone.
    pub const fn is_of_process(&self) -> bool {
        matches!(self.kind, FaultKind::Cut | FaultKind::Pause | FaultKind::ClientKill)
    }

    /// Whether it befalls a server, alone or as seen by one process.
    pub const fn is_of_server(&self) -> bool {
        !matches!(self.kind, FaultKind::Pause | FaultKind::ClientKill)
    }
}

/// The extent of a world in which faults are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) processes: u32,
    pub(crate) until: Nanos,
    pub(crate) lease: Nanos,
}

/// The most faults that a seed draws before those on several servers at once are counted.
const MOST: u64 = 6;

/// A few faults of some of the `allowed` kinds. Each world has only some kinds: a little of each would hide what each
/// does alone.
pub(crate) fn draw(strategy: Strategy, allowed: &[FaultKind], extent: Extent, chance: &mut Chance) -> Vec<Fault> {
    // Drawn for each kind that exists, so that leaving one out does not change the choice of the others.
    let chosen: Vec<FaultKind> = FaultKind::ALL
        .into_iter()
        .filter(|kind| chance.below(2) == 0 && allowed.contains(kind) && kind.befalls(strategy))
        .collect();
    let mut faults = Vec::new();
    let count = 1 + chance.below(MOST);
    if chosen.is_empty() {
        return faults;
    }
    for _ in 0..count {
        let kind = chosen[chance.below(chosen.len() as u64) as usize];
        burst(strategy, kind, extent, chance, &mut faults);
    }
    faults.sort_by_key(|fault| fault.at);
    for (number, fault) in (0..).zip(&mut faults) {
        fault.number = number;
    }
    faults
}

/// One fault, or the same fault on several servers within a short time.
fn burst(strategy: Strategy, kind: FaultKind, extent: Extent, chance: &mut Chance, into: &mut Vec<Fault>) {
    let redis = redis_servers(strategy);
    let servers = strategy.nodes().unwrap_or(1);
    let at = Nanos(chance.below(extent.until.0 * 9 / 10));
    let process = chance.below(u64::from(extent.processes)) as u32;
    let longest = match kind {
        FaultKind::Delay | FaultKind::Kill | FaultKind::Clock => Nanos(extent.lease.0 * 2),
        FaultKind::Pause => Nanos(extent.lease.0 * 3),
        FaultKind::Failover => Nanos(1),
        _ => Nanos::ZERO,
    };
    let (first, several) = match kind {
        FaultKind::Kill | FaultKind::Restart | FaultKind::Forget | FaultKind::Failover | FaultKind::Clock => {
            let several = 1 + chance.below(u64::from(redis)) as u16;
            (chance.below(u64::from(redis)) as u16, several)
        }
        FaultKind::Delay | FaultKind::Cut => (chance.below(u64::from(servers)) as u16, 1),
        FaultKind::Pause | FaultKind::ClientKill => (0, 1),
    };
    for index in 0..several {
        let mut server = ServerId((first + index) % redis.max(1));
        if matches!(kind, FaultKind::Delay | FaultKind::Cut) {
            server = ServerId(first); // Of all servers, the database included.
        } else if strategy.database() == Some(server) {
            server = ServerId(server.0 + 1);
        }
        into.push(Fault {
            number: 0,
            at: at.after(Nanos(chance.below(1_000_000))),
            kind,
            process,
            server,
            length: Nanos(chance.below(longest.0 + 1)),
        });
    }
}
