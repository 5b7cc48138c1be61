//! Load at which the server is saturated: which commands then wait for the next replies.
//!
//! A refused client tries again when its timer fires. While nearly all clients wait for the server, that one command
//! would only queue behind theirs, and its own wake-up and write would cost more than the rest of the grant. So it is
//! sent with the next replies, at most `SLACK` late. On a contended key most clients wait for a timer and not for the
//! server: there each timer fires at once. The same holds when clients hold or think for a while: those times are
//! measured and must not be rounded up.

use locks::Nanos;

use crate::clients::trial_params::TrialParams;

/// How late a timer may fire and a command leave while the server is saturated.
const SLACK: Nanos = Nanos::from_micros(100);
/// With fewer calls under way than this, no batch of replies is worth waiting for.
const SATURATED_FROM: usize = 32;
/// How many replies ahead records are prefetched; a processor waits for about ten cache lines at a time.
pub(super) const AHEAD: usize = 16;

#[derive(Debug)]
pub(super) struct Saturation {
    /// Whether anything of this trial may wait at all.
    may_wait: bool,
    /// Since when commands wait for the next replies; `NEVER` when none do.
    since: Nanos,
}

impl Saturation {
    pub(super) fn new(params: &TrialParams) -> Self {
        let strategy = params.strategy;
        Self {
            // A blocking command is outstanding too, but its reply is not about to come.
            may_wait: !(params.has_pauses() || strategy.owns_connection() || strategy.subscribes()),
            since: Nanos::NEVER,
        }
    }

    /// How long timers and commands may wait for the next replies, with so many calls outstanding of the `clients` that
    /// work now.
    #[inline]
    pub(super) fn slack(&self, outstanding: usize, clients: usize) -> Nanos {
        let seven_of_eight_wait = outstanding * 8 >= clients * 7;
        if self.may_wait && outstanding >= SATURATED_FROM && seven_of_eight_wait {
            SLACK
        } else {
            Nanos::ZERO
        }
    }

    #[inline]
    pub(super) fn may_hold_back(&self, now: Nanos, outstanding: usize, clients: usize) -> bool {
        self.slack(outstanding, clients) > Nanos::ZERO && now < self.since.after(SLACK)
    }

    /// Whether commands are held back.
    #[inline]
    pub(super) fn holds_back(&self) -> bool {
        self.since != Nanos::NEVER
    }

    /// Commands were held back at `now`, or all were written.
    #[inline]
    pub(super) fn held_back(&mut self, are_held_back: bool, now: Nanos) {
        self.since = if are_held_back {
            self.since.min(now)
        } else {
            Nanos::NEVER
        };
    }

    /// When the loop must wake up for the next timer, or for commands that were held back.
    #[inline]
    pub(super) fn next_timed(&self, timer: Nanos, slack: Nanos) -> Nanos {
        timer.after(slack).min(self.since.after(SLACK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SATURATION: Saturation = Saturation {
        may_wait: true,
        since: Nanos::NEVER,
    };

    #[test]
    fn only_where_nearly_all_wait_for_the_server_may_anything_wait_for_it() {
        assert_eq!(SATURATION.slack(56, 64), SLACK);
        assert_eq!(SATURATION.slack(55, 64), Nanos::ZERO);
        assert_eq!(SATURATION.slack(31, 31), Nanos::ZERO, "too few for a batch");
        let exact = Saturation {
            may_wait: false,
            ..SATURATION
        };
        assert_eq!(exact.slack(64, 64), Nanos::ZERO);
    }

    #[test]
    fn what_is_held_back_leaves_within_the_slack() {
        let mut saturation = SATURATION;
        assert!(saturation.may_hold_back(Nanos(5_000), 64, 64));
        saturation.held_back(true, Nanos(5_000));
        saturation.held_back(true, Nanos(9_000));
        assert!(saturation.may_hold_back(Nanos(104_999), 64, 64));
        assert!(!saturation.may_hold_back(Nanos(105_000), 64, 64));
        assert_eq!(saturation.next_timed(Nanos::NEVER, SLACK), Nanos(105_000));
        saturation.held_back(false, Nanos(105_000));
        assert!(!saturation.holds_back());
    }
}
