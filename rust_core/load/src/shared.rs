//! What all threads of a trial read and none changes: what clients do with their locks, and for how long.

use locks::Nanos;

use crate::TrialError;
use crate::spec::{AfterLease, Pace, Poll, TrialSpec};
use crate::workload::{Keys, Length};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) keys: Keys,
    pub(crate) hold: Length,
    pub(crate) think: Length,
    pub(crate) after_lease: AfterLease,
    pub(crate) max_in_flight: u32,
    pub(crate) warmup: Nanos,
    pub(crate) duration: Nanos,
    pub(crate) drain: Nanos,
    poll: Poll,
}

impl Shared {
    pub(crate) fn new(spec: &TrialSpec) -> Result<Self, TrialError> {
        let max_in_flight = match spec.pace {
            Pace::Closed => spec.concurrency,
            Pace::Open { max_in_flight, .. } => max_in_flight.div_ceil(spec.threads),
        };
        Ok(Self {
            keys: Keys::new(spec.key_choice, spec.keys).ok_or(TrialError::Field("key_choice"))?,
            hold: Length::new(spec.hold).ok_or(TrialError::Field("hold"))?,
            think: Length::new(spec.think).ok_or(TrialError::Field("think"))?,
            after_lease: spec.after_lease,
            max_in_flight,
            warmup: spec.warmup,
            duration: spec.duration,
            drain: spec.drain,
            poll: spec.poll,
        })
    }

    /// Clients hold or think for a while: there are other timers than those of retries.
    pub(crate) fn has_pauses(&self) -> bool {
        !(self.hold.is_zero() && self.think.is_zero())
    }

    pub(crate) fn spins(&self) -> bool {
        self.poll == Poll::Spin
    }
}
