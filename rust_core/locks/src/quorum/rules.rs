//! The arguments of a lock that needs a quorum.

use crate::args::Args;
use crate::{Millis, Nanos, SkewMargin, Spec, SpecError};

/// In which order the servers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fanout {
    /// All at once: each server gets its command before any has replied, and a quorum of grants is enough.
    Multiplexed,
    /// One after another, to the last one.
    Sequential,
}

/// The arguments of a lock that needs a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumRules {
    /// Servers: from 1 to 32.
    pub nodes: u16,
    pub fanout: Fanout,
    pub skew: SkewMargin,
    /// How long one server may take to reply; `None`: a tenth of the lease, from 1 to 50 ms.
    pub node_timeout: Option<Millis>,
}

impl QuorumRules {
    pub(crate) const DEFAULT: Self = Self {
        nodes: 5,
        fanout: Fanout::Multiplexed,
        skew: SkewMargin::STANDARD,
        node_timeout: None,
    };

    /// The reply timeout of one server. Far below the lease, so that a dead server does not use up the lease that the
    /// others granted; and at most 50 ms, because a longer lease does not make a silent server reply.
    pub(crate) fn node_timeout(&self, spec: &Spec) -> Nanos {
        let millis = self
            .node_timeout
            .unwrap_or(Millis((spec.lease.ttl().0 / 10).clamp(1, 50)));
        Nanos::from(millis).min(spec.reply_timeout)
    }

    /// These rules with the arguments that the strategy was given.
    pub(crate) fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        let words = [("multiplexed", Fanout::Multiplexed), ("sequential", Fanout::Sequential)];
        let share = args.number("drift_factor", 0.01, 0.0, 0.1)?;
        let node_timeout = args.count("node_timeout_ms", 0, 0, 600_000)?;
        Ok(Self {
            nodes: args.count("nodes", u64::from(self.nodes), 1, MOST_NODES)? as u16,
            fanout: args.choice("fanout", &words)?,
            skew: SkewMargin::of(share),
            node_timeout: (node_timeout > 0).then_some(Millis(node_timeout)),
        })
    }
}

pub(crate) const MOST_NODES: u64 = 32;
