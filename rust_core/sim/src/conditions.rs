//! The conditions of a world, drawn from its seed, and the mistakes that are put into one on purpose.

use locks::{Chance, Lease, Nanos, Retry, RetryKind, ServerId, Spec, Strategy};

/// A mistake that is put in on purpose, to see the property fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    DeleteWithoutCompare,
    LeaseFromReply,
    ReusedCallIds,
    /// The lock goes to the last in the queue.
    LastComesFirst,
    /// A client that was once the first in the queue stays the successor although its place lapsed.
    SuccessorForEver,
    /// The counter of grants sometimes forgets one.
    FenceComesAgain,
    /// One more holder is admitted than there are permits.
    OneTooMany,
    /// A server comes back without its keys. No quorum lock promises anything then.
    RestartWithoutData,
    /// A write of the work's effect does not check for changes.
    UnguardedWrite,
    /// A holder does not learn that its session has ended.
    NotTold,
}

/// What may be wrong with a server while there are faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Down,
    /// Commands take up to this much longer.
    Slow(Nanos),
    /// The server restarts with its data.
    Restarts,
}

#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    pub(crate) spec: Spec,
    pub(crate) faults: Faults,
    pub(crate) clients: usize,
    pub(crate) keys: u64,
}

/// How strong each fault is. Some are off: a little of each fault would hide what each does alone.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) delay: Nanos,
    pub(crate) close_percent: u64,
    pub(crate) stop_percent: u64,
    pub(crate) forget_percent: u64,
    pub(crate) cancel_percent: u64,
    /// The share of statements after which the session is ended from outside.
    pub(crate) terminate_percent: u64,
    pub(crate) hold: Nanos,
    /// The troubles of fewer than half of the servers.
    pub(crate) troubles: Vec<(ServerId, Trouble)>,
    /// From this time on there are only short delays.
    pub(crate) end: Nanos,
}

impl Faults {
    pub(crate) const fn none(hold: Nanos) -> Self {
        Self {
            delay: Nanos::ZERO,
            close_percent: 0,
            stop_percent: 0,
            forget_percent: 0,
            cancel_percent: 0,
            terminate_percent: 0,
            hold,
            troubles: Vec::new(),
            end: Nanos::ZERO,
        }
    }
}

impl Conditions {
    pub(crate) fn draw(chance: &mut Chance) -> Self {
        let mut one_of = |values: &[u64]| values[chance.below(values.len() as u64) as usize];
        let spec = Spec {
            servers: 1,
            lease: Lease::new(one_of(&[20, 100, 1_000]).cast_signed()).expect("a good lease"),
            reply_timeout: Nanos::from_millis(one_of(&[2, 20, 200])),
            retry: Retry {
                kind: RetryKind::ALL[one_of(&[0, 1, 2, 3, 4, 5]) as usize],
                base: Nanos::from_millis(1),
                factor: 2.0,
                cap: Nanos::from_millis(10),
                max_attempts: None,
                max_wait: Nanos::from_millis(one_of(&[20, 1_000])),
            },
        };
        let hold = Nanos::from_millis(one_of(&[1, 10, 10, 200, 200, 1_500]));
        let faults = Faults {
            delay: Nanos::from_millis(one_of(&[1, 5, 50])),
            close_percent: one_of(&[0, 0, 2, 20]),
            stop_percent: one_of(&[0, 0, 2, 20]),
            forget_percent: one_of(&[0, 0, 10]),
            cancel_percent: one_of(&[0, 0, 10, 50]),
            terminate_percent: 0,
            hold,
            troubles: Vec::new(),
            end: Nanos(hold.0 * 6).max(Nanos::from_millis(600)),
        };
        Self {
            spec,
            faults,
            clients: one_of(&[2, 3, 6]) as usize,
            keys: one_of(&[1, 2]),
        }
    }

    /// Delays only, and no reply timeout.
    pub(crate) fn without_faults(mut self) -> Self {
        self.spec.reply_timeout = Nanos::from_secs(1);
        self.spec.retry.max_wait = Nanos::from_secs(60);
        let Faults { delay, hold, end, .. } = self.faults;
        self.faults = Faults {
            delay: delay.min(Nanos::from_millis(5)),
            end,
            ..Faults::none(hold)
        };
        self
    }

    /// The same over several servers if the strategy wants them, with trouble for a minority. Drawn last, so that the
    /// worlds of other strategies stay the same.
    pub(crate) fn over_servers(mut self, strategy: Strategy, chance: &mut Chance) -> Self {
        if strategy.database().is_some() {
            self.spec.servers = strategy.nodes().unwrap_or(1);
            self.faults.terminate_percent = [0, 0, 2, 10][chance.below(4) as usize];
            return self;
        }
        if strategy.nodes().is_none() {
            return self;
        }
        let servers = 1 + chance.below(5) as u16;
        self.spec.servers = servers;
        // Always the first few servers: which ones only matters for the order of asking.
        let first = chance.below(u64::from(servers)) as u16;
        for at in 0..chance.below(u64::from(servers.div_ceil(2))) as u16 {
            let trouble = match chance.below(3) {
                0 => Trouble::Down,
                1 => Trouble::Slow(Nanos::from_millis(100)),
                _ => Trouble::Restarts,
            };
            self.faults.troubles.push((ServerId((first + at) % servers), trouble));
        }
        self
    }
}
