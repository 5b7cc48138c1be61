//! The catalogue: each strategy with its arguments. What a driver has to know about it is a row in its own file.

use crate::args::{ArgValue, Args};
use crate::postgres::{Scope, SessionOwner, Wait};
use crate::read_write::Prefer;
use crate::reentrant::Count;
use crate::{Millis, QuorumRules, RedissonRules, Spec, SpecError};
use crate::{
    atomic, fair, fair_queue, fenced, layered, multilock, mutex, naive, none, notify, pg_advisory, pg_lease,
    pg_optimistic, pg_row, pg_serializable, read_write, redisson_multilock, redisson_redlock, redlock, reentrant,
    replicated, semaphore, watchdog,
};

mod traits;
pub use traits::Traits;

/// A strategy with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    None,
    Atomic,
    Naive,
    Mutex,
    Watchdog {
        /// How many renewals fall into one lease.
        renewals_per_ttl: u32,
        /// The hold after which no renewal is sent; `None`: renewals never stop.
        max_hold: Option<Millis>,
    },
    Reentrant {
        count: Count,
    },
    ReadWrite {
        prefer: Prefer,
    },
    Fair,
    FairQueue {
        /// The time between two signs of life of a waiter.
        beat: Millis,
    },
    Notify {
        renews: bool,
    },
    Semaphore {
        permits: u32,
    },
    Fenced {
        renews: bool,
    },
    Replicated {
        replicas: u32,
        timeout_ms: u32,
    },
    Redlock(QuorumRules),
    RedissonRedlock(RedissonRules),
    Multilock(QuorumRules),
    RedissonMultilock(RedissonRules),
    PgAdvisory {
        scope: Scope,
        wait: Wait,
        session: SessionOwner,
    },
    PgRow {
        wait: Wait,
    },
    PgLease,
    PgOptimistic,
    PgSerializable,
    Layered,
}

impl Strategy {
    /// Each strategy with its default arguments.
    pub const ALL: [Self; 23] = [
        Self::None,
        Self::Atomic,
        Self::Naive,
        Self::Mutex,
        Self::Watchdog {
            renewals_per_ttl: 3,
            max_hold: None,
        },
        Self::Reentrant { count: Count::Server },
        Self::ReadWrite {
            prefer: Prefer::Readers,
        },
        Self::Fair,
        Self::FairQueue { beat: Millis(2_000) },
        Self::Notify { renews: false },
        Self::Semaphore { permits: 4 },
        Self::Fenced { renews: true },
        Self::Replicated {
            replicas: 1,
            timeout_ms: 100,
        },
        Self::Redlock(QuorumRules::DEFAULT),
        Self::RedissonRedlock(redisson_redlock::RULES),
        Self::Multilock(QuorumRules::DEFAULT),
        Self::RedissonMultilock(redisson_multilock::RULES),
        Self::PgAdvisory {
            scope: Scope::Session,
            wait: Wait::Block,
            session: SessionOwner::ThisClient,
        },
        Self::PgRow { wait: Wait::Block },
        Self::PgLease,
        Self::PgOptimistic,
        Self::PgSerializable,
        Self::Layered,
    ];

    /// The strategy that a matrix names. For an unknown name or argument the error lists the known ones.
    pub fn named(name: &str, given: &[(String, ArgValue)]) -> Result<Self, SpecError> {
        let strategy = Self::ALL.into_iter().find(|known| known.name() == name);
        let strategy = strategy.ok_or_else(|| SpecError::UnknownStrategy {
            given: name.to_owned(),
            known: Self::ALL.map(Self::name).to_vec(),
        })?;
        let mut args = Args::new(strategy.name(), given);
        let strategy = strategy.with(&mut args)?;
        args.finish()?;
        Ok(strategy)
    }

    /// This strategy with the given arguments.
    fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        match self {
            Self::None
            | Self::Atomic
            | Self::Naive
            | Self::Mutex
            | Self::Fair
            | Self::PgLease
            | Self::PgOptimistic
            | Self::PgSerializable
            | Self::Layered => Ok(self),
            Self::Watchdog { renewals_per_ttl, .. } => watchdog::with(renewals_per_ttl, args),
            Self::Reentrant { .. } => reentrant::with(args),
            Self::ReadWrite { .. } => read_write::with(args),
            Self::FairQueue { beat } => fair_queue::with(beat, args),
            Self::Notify { .. } => notify::with(args),
            Self::Semaphore { permits } => semaphore::with(permits, args),
            Self::Fenced { .. } => fenced::with(args),
            Self::Replicated { replicas, timeout_ms } => replicated::with(replicas, timeout_ms, args),
            Self::Redlock(rules) => rules.with(args).map(Self::Redlock),
            Self::RedissonRedlock(rules) => rules.with(args).map(Self::RedissonRedlock),
            Self::Multilock(rules) => rules.with(args).map(Self::Multilock),
            Self::RedissonMultilock(rules) => rules.with(args).map(Self::RedissonMultilock),
            Self::PgAdvisory { .. } => pg_advisory::with(args),
            Self::PgRow { .. } => pg_row::with(args),
        }
    }

    /// What a driver has to know about it.
    #[inline]
    pub const fn traits(self) -> Traits {
        match self {
            Self::None => none::TRAITS,
            Self::Atomic => atomic::TRAITS,
            Self::Naive => naive::TRAITS,
            Self::Mutex => mutex::TRAITS,
            Self::Watchdog { .. } => watchdog::TRAITS,
            Self::Reentrant { count } => reentrant::traits(count),
            Self::ReadWrite { .. } => read_write::TRAITS,
            Self::Fair => fair::TRAITS,
            Self::FairQueue { .. } => fair_queue::TRAITS,
            Self::Notify { renews } => notify::traits(renews),
            Self::Semaphore { permits } => semaphore::traits(permits),
            Self::Fenced { renews } => fenced::traits(renews),
            Self::Replicated { .. } => replicated::TRAITS,
            Self::Redlock(rules) => redlock::traits(rules),
            Self::RedissonRedlock(rules) => redisson_redlock::traits(rules),
            Self::Multilock(rules) => multilock::traits(rules),
            Self::RedissonMultilock(rules) => redisson_multilock::traits(rules),
            Self::PgAdvisory { scope, wait, session } => pg_advisory::traits(scope, wait, session),
            Self::PgRow { wait } => pg_row::traits(wait),
            Self::PgLease => pg_lease::TRAITS,
            Self::PgOptimistic => pg_optimistic::TRAITS,
            Self::PgSerializable => pg_serializable::TRAITS,
            Self::Layered => layered::TRAITS,
        }
    }

    /// Whether it uses connections that clients share: an unused database session would be an expensive waste.
    pub const fn shares_connections(self) -> bool {
        !(self.owns_connection() && self.database().is_some())
    }

    /// Whether the holder may have the lease renewed at any time: `Event::Extend`.
    pub const fn extends(self) -> bool {
        match self {
            Self::Watchdog { .. } => true,
            Self::Notify { renews } | Self::Fenced { renews } => renews,
            _ => false,
        }
    }

    /// Whether its lock on a server expires by the clock.
    pub const fn has_lease(self) -> bool {
        !(self.holds_by_session() || self.is_optimistic())
    }

    /// Whether it takes a lock or anything that could be one: `none` and `atomic` send nothing.
    pub const fn is_silent(self) -> bool {
        matches!(self, Self::None | Self::Atomic)
    }

    /// Whether its grants are beliefs that a checker can judge. What has none is judged by what it wrote.
    pub const fn has_belief(self) -> bool {
        !(self.is_optimistic() || matches!(self, Self::Atomic))
    }

    /// Whether the strategy can work with this spec.
    pub fn check(self, spec: &Spec) -> Result<(), SpecError> {
        spec.check()?;
        if let Some(nodes) = self.nodes().filter(|&nodes| nodes != spec.servers) {
            return Err(SpecError::OtherServers {
                strategy: self.name(),
                nodes,
                servers: spec.servers,
            });
        }
        match self {
            Self::Replicated { timeout_ms, .. } => replicated::check(timeout_ms, spec)?,
            Self::PgAdvisory { scope, wait, session } => pg_advisory::check(scope, wait, session)?,
            _ => {}
        }
        // A lease that exceeds the standard margin exceeds the largest margin that a strategy can be given.
        if self.takes_skew_margin_off() && !spec.lease.outlasts_skew_margin() {
            return Err(SpecError::LeaseWithinSkewMargin {
                strategy: self.name(),
                lease: spec.lease.ttl(),
                margin: spec.lease.skew_margin(),
            });
        }
        Ok(())
    }
}
