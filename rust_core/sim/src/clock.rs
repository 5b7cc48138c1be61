//! The clock of a process: it reads the world's virtual time, a little fast or slow.

use std::cell::Cell;
use std::rc::Rc;

use load::Clock;
use locks::{Chance, Nanos};

/// The world's time. Only the world moves it, and what takes time in the world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Time(Rc<Cell<Nanos>>);

impl Time {
    pub(crate) fn now(&self) -> Nanos {
        self.0.get()
    }

    pub(crate) fn set(&self, now: Nanos) {
        assert!(now >= self.now(), "time went back from {:?} to {now:?}", self.now());
        self.0.set(now);
    }

    pub(crate) fn pass(&self, length: Nanos) {
        self.0.set(self.now().after(length));
    }
}

/// Fast or slow by less than the 1 % of the clock-skew margin, and apart from other clocks by any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    offset: u64,
    per_mille: u64,
}

impl Skew {
    pub(crate) const NONE: Self = Self {
        offset: 0,
        per_mille: 1_000,
    };

    pub(crate) fn draw(chance: &mut Chance) -> Self {
        Self {
            offset: chance.below(1 << 40),
            per_mille: 991 + chance.below(19),
        }
    }

    /// What the clock reads at the world's time `now`.
    pub(crate) fn reads(self, now: Nanos) -> Nanos {
        Nanos(self.offset + now.0 * self.per_mille / 1_000)
    }

    /// The first of the world's times at which the clock reads `local`.
    pub(crate) fn shows(self, local: Nanos) -> Nanos {
        if local == Nanos::NEVER {
            return local;
        }
        let passed = local.0.saturating_sub(self.offset);
        // Nearly always: the division of 128 bits takes ten times as long.
        if let Some(scaled) = passed.checked_mul(1_000) {
            return Nanos(scaled.div_ceil(self.per_mille));
        }
        Nanos((u128::from(passed) * 1_000).div_ceil(u128::from(self.per_mille)) as u64)
    }
}

/// The clock of one process.
#[derive(Clone, Debug)]
pub(crate) struct LocalClock {
    pub(crate) time: Time,
    pub(crate) skew: Skew,
}

impl Clock for LocalClock {
    fn now(&self) -> Nanos {
        self.skew.reads(self.time.now())
    }

    fn thread_cpu(&self) -> Nanos {
        Nanos::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_time_at_the_first_moment_at_which_it_reads_it() {
        let mut chance = Chance::seeded(1);
        for _ in 0..1_000 {
            let skew = Skew::draw(&mut chance);
            let now = Nanos(chance.below(1 << 40));
            let first = skew.shows(skew.reads(now));
            assert!(
                first <= now && skew.reads(first) == skew.reads(now),
                "{skew:?} at {now:?}"
            );
            assert!(first == Nanos::ZERO || skew.reads(Nanos(first.0 - 1)) < skew.reads(now));
        }
    }
}
