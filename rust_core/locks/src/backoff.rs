//! When to try again: `Retry` is the policy, `Backoff` is the progress of one client under it.
//!
//! The kinds and their names are those of Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
//! Promises: a pause never wraps, whatever the factor and the number of attempts. Two clients that were refused
//! together do not stay in step, because each kind draws at least its first pause at random.
//! Does not promise order of service: after a release, the first client to try gets the lock.

use crate::{Chance, Nanos, Refusal, SpecError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryKind {
    /// One attempt: fail fast.
    None,
    /// `base` each time, the first one a random part of it.
    Fixed,
    /// `base`, then `factor` times as long each time, up to `cap`; the first one a random part of `base`.
    Exponential,
    /// Uniform between 0 and what `Exponential` would wait.
    FullJitter,
    /// Half of what `Exponential` would wait, and up to the same again.
    EqualJitter,
    /// Uniform between `base` and three times the pause before, up to `cap`.
    DecorrelatedJitter,
}

impl RetryKind {
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Fixed,
        Self::Exponential,
        Self::FullJitter,
        Self::EqualJitter,
        Self::DecorrelatedJitter,
    ];

    pub fn named(name: &str) -> Result<Self, SpecError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| SpecError::UnknownRetry {
                given: name.to_owned(),
                known: Self::ALL.map(Self::name).to_vec(),
            })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed => "fixed",
            Self::Exponential => "exponential",
            Self::FullJitter => "full-jitter",
            Self::EqualJitter => "equal-jitter",
            Self::DecorrelatedJitter => "decorrelated-jitter",
        }
    }
}

/// A retry policy. `RetryKind` says which fields a kind uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    pub kind: RetryKind,
    pub base: Nanos,
    /// The largest ratio of one pause to the pause before it, for `Exponential`, `FullJitter` and `EqualJitter`.
    pub factor: f64,
    /// The longest pause of the kinds whose pauses grow. `Fixed` does not use it.
    pub cap: Nanos,
    /// `None`: as many as `max_wait` allows.
    pub max_attempts: Option<u32>,
    /// Counted from the `Acquire`: no attempt begins later than this.
    pub max_wait: Nanos,
}

impl Retry {
    /// One attempt.
    pub const NONE: Self = Self {
        kind: RetryKind::None,
        base: Nanos::ZERO,
        factor: 1.0,
        cap: Nanos::ZERO,
        max_attempts: Some(1),
        max_wait: Nanos::NEVER,
    };

    pub fn check(&self) -> Result<(), SpecError> {
        if self.max_attempts == Some(0) {
            return Err(SpecError::NoAttempts);
        }
        let (uses_factor, uses_cap) = match self.kind {
            RetryKind::None | RetryKind::Fixed => (false, false),
            RetryKind::Exponential | RetryKind::FullJitter | RetryKind::EqualJitter => (true, true),
            RetryKind::DecorrelatedJitter => (false, true),
        };
        if uses_factor && !(self.factor.is_finite() && self.factor >= 1.0) {
            return Err(SpecError::FactorOutOfRange { factor: self.factor });
        }
        if uses_cap && self.base > self.cap {
            return Err(SpecError::BaseAboveCap {
                base: self.base,
                cap: self.cap,
            });
        }
        Ok(())
    }

    /// No pause is longer than this; `None` when there is never a second attempt.
    pub fn longest_pause(&self) -> Option<Nanos> {
        match self.kind {
            RetryKind::None => None,
            _ if self.max_attempts == Some(1) => None,
            RetryKind::Fixed => Some(self.base),
            RetryKind::Exponential | RetryKind::FullJitter | RetryKind::EqualJitter | RetryKind::DecorrelatedJitter => {
                Some(self.cap)
            }
        }
    }
}

/// What to do after an attempt that did not get the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    TryAt(Nanos),
    GiveUp(Refusal),
}

/// The progress of one client under its retry policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    began: Nanos,
    /// The upper bound of the last pause; for `DecorrelatedJitter` the last pause itself.
    reach: Nanos,
    attempts: u32,
    /// Conflicts of the current request. Kept here because this struct has padding to spare and a client's record has
    /// not.
    conflicts: u32,
}

impl Backoff {
    /// The start of a request, at its `Acquire`.
    pub const fn begin(now: Nanos) -> Self {
        Self {
            began: now,
            reach: Nanos::ZERO,
            attempts: 0,
            conflicts: 0,
        }
    }

    /// Counts a statement of the current request that met another transaction.
    pub(crate) const fn conflict(&mut self) {
        self.conflicts = self.conflicts.saturating_add(1);
    }

    /// Starts a new count for a release, which is a request of its own.
    pub(crate) const fn forget_conflicts(&mut self) {
        self.conflicts = 0;
    }

    pub(crate) const fn conflicts(&self) -> u32 {
        self.conflicts
    }

    /// Counts an attempt, at its start.
    pub const fn attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Attempts begun since the `Acquire`.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Decides what follows an attempt that ended `now` without the lock.
    pub fn after_refusal(&mut self, now: Nanos, retry: &Retry, chance: &mut Chance) -> Next {
        if retry.kind == RetryKind::None || retry.max_attempts.is_some_and(|most| self.attempts >= most) {
            return Next::GiveUp(Refusal::Busy);
        }
        let at = now.after(self.pause(retry, chance));
        if at > self.began.after(retry.max_wait) {
            return Next::GiveUp(Refusal::TimedOut);
        }
        Next::TryAt(at)
    }

    /// Decides what follows an attempt that ended `now` without the lock, for a lock that is woken by a message:
    /// `TryAt` is the end of the longest wait for that message.
    pub fn wait_for_message(&self, now: Nanos, retry: &Retry) -> Next {
        if retry.kind == RetryKind::None || retry.max_attempts.is_some_and(|most| self.attempts >= most) {
            return Next::GiveUp(Refusal::Busy);
        }
        let until = self.began.after(retry.max_wait);
        if now >= until {
            return Next::GiveUp(Refusal::TimedOut);
        }
        Next::TryAt(until)
    }

    /// The rest of the longest wait; zero when the policy does not wait.
    pub fn left(&self, now: Nanos, retry: &Retry) -> Nanos {
        if retry.kind == RetryKind::None {
            return Nanos::ZERO;
        }
        self.began.after(retry.max_wait).since(now)
    }

    /// The end of the longest wait. It counts also when the policy makes no second attempt, because a lock may wait
    /// within one attempt.
    pub const fn ends(&self, retry: &Retry) -> Nanos {
        self.began.after(retry.max_wait)
    }

    /// Decides what follows an attempt whose grant came too late to be used. Giving up reports `TooLate` and not
    /// `Busy`: nobody else had the lock, the reply was slow.
    pub fn after_late_grant(&mut self, now: Nanos, retry: &Retry, chance: &mut Chance) -> Next {
        match self.after_refusal(now, retry, chance) {
            Next::TryAt(at) => Next::TryAt(at),
            Next::GiveUp(_) => Next::GiveUp(Refusal::TooLate),
        }
    }

    fn pause(&mut self, retry: &Retry, chance: &mut Chance) -> Nanos {
        let first = self.attempts <= 1;
        match retry.kind {
            RetryKind::None => unreachable!("without retry there is no pause"),
            RetryKind::Fixed if first => up_to(retry.base, chance),
            RetryKind::Fixed => retry.base,
            RetryKind::Exponential => {
                let reach = self.grow(retry);
                if first { up_to(reach, chance) } else { reach }
            }
            RetryKind::FullJitter => up_to(self.grow(retry), chance),
            RetryKind::EqualJitter => {
                let reach = self.grow(retry);
                let half = Nanos(reach.0 / 2);
                half.after(up_to(reach.since(half), chance))
            }
            RetryKind::DecorrelatedJitter => {
                let last = if first { retry.base } else { self.reach };
                let span = Nanos(last.0.saturating_mul(3)).since(retry.base);
                self.reach = retry.base.after(up_to(span, chance)).min(retry.cap);
                self.reach
            }
        }
    }

    /// The upper bound of the next pause. Multiplied step by step and not as a power: products of doubles are the same
    /// on every machine, powers are not.
    fn grow(&mut self, retry: &Retry) -> Nanos {
        // The conversion to u64 saturates. Rounding up lets even a small base grow.
        let grown = if self.attempts <= 1 {
            retry.base
        } else {
            Nanos((self.reach.0 as f64 * retry.factor).ceil() as u64)
        };
        self.reach = grown.min(retry.cap);
        self.reach
    }
}

/// Uniform from 0 to `longest`, both included.
fn up_to(longest: Nanos, chance: &mut Chance) -> Nanos {
    Nanos(chance.below(longest.0.saturating_add(1)))
}

#[cfg(test)]
mod tests;
