//! What is asked of a world, and the trial that its processes run.

use check::ViolationCounts;
use load::{AfterLease, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, TrialSpec};
use locks::{Nanos, Strategy};

use crate::conditions::{Conditions, Mistake};

/// The longest think time, if nothing else is asked for.
const THINK: Nanos = Nanos::from_millis(5);

/// What a test may choose of a world; the rest is drawn from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub strategy: Strategy,
    pub mistake: Mistake,
    pub seed: u64,
    /// Nothing breaks, nobody is stopped or cancelled, and nobody gives up waiting.
    pub calm: bool,
    /// Clients of one process; processes are as many as the seed says.
    pub clients_each: u32,
    /// How long a read and a write take.
    pub call_takes: Nanos,
    pub keeps_logs: bool,
    /// No clock is fast or slow.
    pub true_clocks: bool,
    /// The longest hold, after which nobody thinks; `None`: the seed decides.
    pub hold: Option<Nanos>,
    /// The longest think time.
    pub think: Nanos,
}

impl Asked {
    pub const fn new(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self {
            strategy,
            mistake,
            seed,
            calm: false,
            clients_each: 1,
            call_takes: Nanos::ZERO,
            keeps_logs: false,
            true_clocks: false,
            hold: None,
            think: THINK,
        }
    }

    /// What the report counts that this strategy promises not to do. An order is promised only where nothing breaks.
    pub(crate) fn promises_broken(&self, counts: ViolationCounts) -> u64 {
        let order = if self.calm && self.strategy.is_fifo() {
            counts.fifo_inversions
        } else {
            0
        };
        counts.double_grants + counts.double_grants_after_overrun + counts.stale_fences + counts.findings + order
    }

    /// The trial that all processes of the world are threads of.
    pub(crate) fn trial(&self, conditions: &Conditions) -> TrialSpec {
        let Conditions {
            spec,
            faults,
            clients,
            keys,
        } = conditions;
        let strategy = self.strategy;
        let processes = *clients as u32;
        let keys_per_grant = keys_per_grant(strategy);
        TrialSpec {
            strategy,
            lock: *spec,
            servers: Vec::new(),
            connections: Connections::SharedByClients(processes),
            client_name: String::new(),
            key_prefix: Vec::new(),
            keys: (*keys as u32).max(keys_per_grant),
            key_choice: KeyChoice::Uniform,
            keys_per_grant,
            key_order: KeyOrder::Random,
            read_share: if strategy.shares() { 0.5 } else { 0.0 },
            nesting: 1,
            hold: uniform(self.hold.unwrap_or(faults.hold)),
            think: uniform(if self.hold.is_some() { Nanos::ZERO } else { self.think }),
            after_lease: AfterLease::Continue,
            pace: Pace::Closed,
            concurrency: processes * self.clients_each,
            warmup: Nanos::ZERO,
            until_steady: false,
            duration: Nanos::from_secs(1),
            stages: Vec::new(),
            drain: Nanos::ZERO,
            dies: false,
            seed: self.seed,
            threads: processes,
            process: None,
            cores: Vec::new(),
            poll: Poll::Block,
            least_belief: Nanos::ZERO,
            faults: Vec::new(),
            fault_periods: Vec::new(),
            guard: None,
        }
    }
}

/// How many keys each client takes at once.
pub const fn keys_per_grant(strategy: Strategy) -> u32 {
    if strategy.takes_many_keys() { 2 } else { 1 }
}

const fn uniform(high: Nanos) -> Distribution {
    Distribution::Uniform { low: Nanos::ZERO, high }
}
