//! When to try again: `Retry` is the policy, `Backoff` is how far one client has come with it.
//!
//! The kinds and their names are those of Marc Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
//! Promises: a pause never wraps, whatever the factor and however many attempts; two clients that were refused together
//! do not stay in step, for each kind draws at least its first pause.
//! Does not promise: order of service. Whoever tries first after a release gets the lock.

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

/// A retry policy. Not every kind asks every field: see `RetryKind`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    pub kind: RetryKind,
    pub base: Nanos,
    /// How much longer each pause of `Exponential`, `FullJitter` and `EqualJitter` may be than the one before.
    pub factor: f64,
    /// The longest pause of the kinds that grow; `Fixed` does not ask it.
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

/// How far one client has come with its retry policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    began: Nanos,
    /// The longest that the last pause could be; for `DecorrelatedJitter` the last pause itself.
    reach: Nanos,
    attempts: u32,
    /// Of the present request; here because there is room, and a client's record has none to spare.
    conflicts: u32,
}

impl Backoff {
    /// At the `Acquire`.
    pub const fn begin(now: Nanos) -> Self {
        Self {
            began: now,
            reach: Nanos::ZERO,
            attempts: 0,
            conflicts: 0,
        }
    }

    /// A statement of the present request met another transaction.
    pub(crate) const fn conflict(&mut self) {
        self.conflicts = self.conflicts.saturating_add(1);
    }

    /// A release is a request of its own: what the acquire met is counted already.
    pub(crate) const fn forget_conflicts(&mut self) {
        self.conflicts = 0;
    }

    pub(crate) const fn conflicts(&self) -> u32 {
        self.conflicts
    }

    /// At the start of each attempt.
    pub const fn attempt(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Attempts begun since the `Acquire`.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// After the attempt that ended `now` without the lock.
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

    /// After the attempt that ended `now` without the lock, for a lock that is told when to try again: until when it may
    /// wait for that.
    pub fn wait_to_be_told(&self, now: Nanos, retry: &Retry) -> Next {
        if retry.kind == RetryKind::None || retry.max_attempts.is_some_and(|most| self.attempts >= most) {
            return Next::GiveUp(Refusal::Busy);
        }
        let until = self.began.after(retry.max_wait);
        if now >= until {
            return Next::GiveUp(Refusal::TimedOut);
        }
        Next::TryAt(until)
    }

    /// What is left of the longest wait; nothing when the policy does not wait.
    pub fn left(&self, now: Nanos, retry: &Retry) -> Nanos {
        if retry.kind == RetryKind::None {
            return Nanos::ZERO;
        }
        self.began.after(retry.max_wait).since(now)
    }

    /// The end of the longest wait. Whether the policy tries again or not: a lock may wait within one attempt, too.
    pub const fn ends(&self, retry: &Retry) -> Nanos {
        self.began.after(retry.max_wait)
    }

    /// After an attempt that was granted too late to be believed. Giving up then says so: nobody else had the lock, and
    /// what the attempt met was a slow answer.
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

    /// The next longest pause. Grown step by step and not as a power: products of doubles are the same on every
    /// machine, powers are not.
    fn grow(&mut self, retry: &Retry) -> Nanos {
        // The conversion to u64 stops at its ends; rounding up keeps a small base from standing still.
        let grown = if self.attempts <= 1 {
            retry.base
        } else {
            Nanos((self.reach.0 as f64 * retry.factor).ceil() as u64)
        };
        self.reach = grown.min(retry.cap);
        self.reach
    }
}

/// Uniform from 0 to `longest`, both possible.
fn up_to(longest: Nanos, chance: &mut Chance) -> Nanos {
    Nanos(chance.below(longest.0.saturating_add(1)))
}

#[cfg(test)]
mod tests;
