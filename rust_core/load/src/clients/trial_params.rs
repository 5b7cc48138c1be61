//! The parameters of a trial that all threads read and none changes: what clients do with their locks, and for how
//! long.

use locks::{GuardRules, Key, KeyList, Mode, Nanos, Strategy};
use rand_distr::{Distribution as Draw, StandardUniform};

use super::workload::{KeyDraw, Length, Stream};
use crate::TrialError;
use crate::faults::{self, Fault};
use crate::spec::{AfterLease, KeyOrder, Pace, Poll, TrialSpec};

/// One of the threads of a trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) of: u32,
}

impl Thread {
    /// The part of `whole` that this thread takes: its first element and its length.
    pub(crate) fn share(self, whole: u32) -> (u32, u32) {
        let first = |index: u32| (u64::from(whole) * u64::from(index) / u64::from(self.of)) as u32;
        (first(self.index), first(self.index + 1) - first(self.index))
    }
}

/// How long the clients work before the window opens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Warmup {
    Fixed(Nanos),
    UntilSteady { longest: Nanos },
}

impl Warmup {
    pub(crate) const fn longest(self) -> Nanos {
        match self {
            Self::Fixed(longest) | Self::UntilSteady { longest } => longest,
        }
    }
}

#[derive(Debug)]
pub(crate) struct TrialParams {
    pub(crate) strategy: Strategy,
    /// Of all threads.
    pub(crate) concurrency: u32,
    pub(crate) keys: KeyDraw,
    keys_per_grant: u32,
    key_order: KeyOrder,
    read_share: f64,
    /// How often a holder enters.
    pub(crate) nesting: u8,
    pub(crate) hold: Length,
    pub(crate) think: Length,
    pub(crate) after_lease: AfterLease,
    pub(crate) max_in_flight: u32,
    pub(crate) warmup: Warmup,
    pub(crate) duration: Nanos,
    pub(crate) drain: Nanos,
    pub(crate) dies: bool,
    /// How long an orphaned key may stay: the whole lease, or zero for a lock without a lease.
    pub(crate) ttl: Nanos,
    pub(crate) is_open_loop: bool,
    /// How many keys have writes to count.
    pub(crate) written_keys: usize,
    /// How many servers decide each grant by their votes; none unless several do.
    pub(crate) voting_servers: usize,
    /// The rules of the guarded works; `None`: a hold is only time.
    pub(crate) guard: Option<GuardRules>,
    pub(crate) faults: Vec<Fault>,
    /// The times in which the trial is disturbed, from the opening of the window.
    pub(crate) fault_periods: Vec<(Nanos, Nanos)>,
    poll: Poll,
    /// Whether a round-trip time is added to any server.
    is_delayed: bool,
}

/// The round-trip time that is added to each server; empty when none is.
pub(crate) fn round_trips(spec: &TrialSpec) -> Result<Vec<Length>, TrialError> {
    let rtts: Option<Vec<Length>> = spec.all_servers().map(|server| Length::new(&server.rtt)).collect();
    let rtts = rtts.ok_or(TrialError::Field("rtt"))?;
    let is_delayed = rtts.iter().any(|rtt| !rtt.is_zero());
    Ok(if is_delayed { rtts } else { Vec::new() })
}

impl TrialParams {
    pub(crate) fn new(spec: &TrialSpec) -> Result<Self, TrialError> {
        let max_in_flight = match spec.pace {
            Pace::Closed => spec.concurrency,
            Pace::Open { max_in_flight, .. } => max_in_flight.div_ceil(spec.all_threads()),
        };
        Ok(Self {
            strategy: spec.strategy,
            concurrency: spec.concurrency,
            keys: KeyDraw::new(spec.key_choice, spec.keys).ok_or(TrialError::Field("key_choice"))?,
            keys_per_grant: spec.keys_per_grant,
            key_order: spec.key_order,
            read_share: spec.read_share,
            nesting: spec.nesting,
            hold: Length::new(&spec.hold).ok_or(TrialError::Field("hold"))?,
            think: Length::new(&spec.think).ok_or(TrialError::Field("think"))?,
            after_lease: spec.after_lease,
            max_in_flight,
            warmup: if spec.until_steady {
                Warmup::UntilSteady { longest: spec.warmup }
            } else {
                Warmup::Fixed(spec.warmup)
            },
            duration: spec.duration,
            drain: spec.drain,
            dies: spec.dies,
            ttl: if spec.strategy.has_lease() {
                spec.lock.lease.ttl().into()
            } else {
                Nanos::ZERO
            },
            is_open_loop: spec.pace != Pace::Closed,
            written_keys: if spec.strategy.writes() || spec.guard.is_some() {
                spec.keys as usize
            } else {
                0
            },
            guard: spec.guard_rules(),
            voting_servers: if spec.strategy.nodes().is_some() {
                spec.servers.len()
            } else {
                0
            },
            faults: spec.faults.clone(),
            fault_periods: faults::periods(spec)?,
            poll: spec.poll,
            is_delayed: !round_trips(spec)?.is_empty(),
        })
    }

    /// Whether clients hold or think for a while, or bytes are delayed: there are other timers than those of retries.
    pub(crate) fn has_pauses(&self) -> bool {
        !(self.hold.is_zero() && self.think.is_zero()) || self.is_delayed
    }

    pub(crate) fn spins(&self) -> bool {
        self.poll == Poll::Spin
    }

    pub(crate) const fn keys_per_grant(&self) -> u32 {
        self.keys_per_grant
    }

    /// The keys that a client takes next, all different.
    #[inline]
    pub(crate) fn draw_keys(&self, stream: &mut Stream) -> KeyList {
        if self.keys_per_grant == 1 {
            return KeyList::one(self.keys.draw(stream));
        }
        let mut drawn = [Key(0); KeyList::MOST];
        let drawn = &mut drawn[..self.keys_per_grant as usize];
        let mut count = 0;
        while count < drawn.len() {
            let key = self.keys.draw(stream);
            if !drawn[..count].contains(&key) {
                drawn[count] = key;
                count += 1;
            }
        }
        let names = KeyList::new(drawn).expect("the description of the trial was checked");
        match self.key_order {
            KeyOrder::Random => names,
            KeyOrder::Sorted => names.sorted(),
        }
    }

    /// Whether the client shares them.
    #[inline]
    pub(crate) fn draw_mode(&self, stream: &mut Stream) -> Mode {
        if self.read_share == 0.0 {
            return Mode::Exclusive; // Draws nothing, so that the other random choices do not change when there are no readers.
        }
        let drawn: f64 = StandardUniform.sample(stream);
        if drawn < self.read_share {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }
}
