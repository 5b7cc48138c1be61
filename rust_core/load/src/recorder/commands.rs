//! How many commands were sent in each 10 ms of the window: a herd of clients that retry together is a burst of them.
//!
//! The counter of commands is looked at when the clock passes the end of a step: counting here costs a command nothing.
//! A window without end keeps bounded memory as the time line does: when there are `MOST_STEPS`, each two become one.

use locks::Nanos;

const STEP: Nanos = Nanos::from_millis(10);
/// Half a minute of steps as they begin.
const MOST_STEPS: usize = 3_000;

#[derive(Debug)]
pub(crate) struct CommandSteps {
    start: Nanos,
    step: Nanos,
    /// Of the steps that have ended.
    counts: Vec<u64>,
    /// How many commands had been sent when the last of them ended.
    before: u64,
}

/// As columns: when each step began, counted from the start of the window, and the commands sent in it.
#[derive(Clone, Debug, Default)]
pub struct CommandColumns {
    pub start_ns: Vec<u64>,
    pub commands: Vec<u64>,
}

impl CommandSteps {
    /// Reserves room for a window of `length`.
    pub(crate) fn new(length: Nanos) -> Self {
        Self {
            start: Nanos::NEVER,
            step: STEP,
            counts: Vec::with_capacity((length.0 / STEP.0 + 1).min(MOST_STEPS as u64) as usize),
            before: 0,
        }
    }

    pub(super) fn begin(&mut self, start: Nanos) {
        *self = Self {
            start,
            counts: std::mem::take(&mut self.counts),
            ..Self::new(Nanos::ZERO)
        };
        self.counts.clear();
    }

    /// The end of the current step.
    pub(super) fn next_step(&self) -> Nanos {
        let ended = self.counts.len() as u64 + 1;
        self.start.after(Nanos(self.step.0.saturating_mul(ended)))
    }

    /// The clock has come to `now`, and so many commands were sent in the window.
    pub(super) fn reached(&mut self, now: Nanos, sent: u64) {
        while self.next_step() <= now {
            if self.counts.len() == MOST_STEPS {
                self.fold();
            } else {
                self.push(sent);
            }
        }
    }

    /// The window ends at `end`.
    pub(super) fn close(&mut self, end: Nanos, sent: u64) {
        self.reached(end, sent);
        if sent > self.before || self.next_step().since(end) <= Nanos(self.step.0 / 2) {
            self.push(sent);
        }
    }

    fn push(&mut self, sent: u64) {
        self.counts.push(sent - self.before);
        self.before = sent;
    }

    /// Makes one step out of each two. The current one goes on.
    #[cold]
    fn fold(&mut self) {
        self.step = Nanos(self.step.0 * 2);
        for place in 0..self.counts.len().div_ceil(2) {
            let second = self.counts.get(2 * place + 1).copied().unwrap_or(0);
            self.counts[place] = self.counts[2 * place] + second;
        }
        self.counts.truncate(self.counts.len().div_ceil(2));
    }

    /// Adds the steps of another thread.
    pub(crate) fn add(&mut self, mut other: Self) {
        while self.step < other.step {
            self.fold();
        }
        while other.step < self.step {
            other.fold();
        }
        let longer = self.counts.len().max(other.counts.len());
        self.counts.resize(longer, 0);
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    pub(crate) fn columns(self) -> CommandColumns {
        CommandColumns {
            start_ns: (0..self.counts.len() as u64).map(|index| index * self.step.0).collect(),
            commands: self.counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(readings: &[(u64, u64)], end: (u64, u64)) -> CommandSteps {
        let mut steps = CommandSteps::new(Nanos::from_millis(100));
        steps.begin(Nanos::from_secs(1));
        for &(ms, sent) in readings {
            steps.reached(Nanos::from_millis(1_000 + ms), sent);
        }
        steps.close(Nanos::from_millis(1_000 + end.0), end.1);
        steps
    }

    #[test]
    fn commands_count_in_the_step_in_which_they_were_sent() {
        // 7 until 12 ms, none until 35 ms, 3 until the end.
        let columns = steps(&[(5, 4), (12, 7), (35, 7)], (50, 10)).columns();
        assert_eq!(columns.commands, [7, 0, 0, 3, 0]);
        assert_eq!(columns.start_ns[4], 40_000_000);
    }

    #[test]
    fn the_rest_of_a_stopped_window_is_a_step() {
        assert_eq!(steps(&[], (4, 2)).columns().commands, [2]);
        assert_eq!(steps(&[], (4, 0)).columns().commands.len(), 0);
    }

    #[test]
    fn a_window_without_end_keeps_bounded_memory_and_loses_no_command() {
        let mut steps = CommandSteps::new(Nanos::NEVER);
        steps.begin(Nanos::ZERO);
        for sent in 1..=10_000 {
            steps.reached(Nanos::from_millis(sent * 10), sent);
        }
        steps.close(Nanos::from_millis(100_000), 10_000);
        let columns = steps.columns();
        assert!(columns.commands.len() <= MOST_STEPS);
        assert_eq!(columns.commands.iter().sum::<u64>(), 10_000);
        assert_eq!(columns.start_ns[1], 40_000_000);
        assert!(columns.commands.iter().all(|&count| count == 4));
    }

    #[test]
    fn threads_add_up_whatever_the_length_of_their_steps() {
        let (mut long, short) = (steps(&[], (10, 1)), steps(&[(10, 5), (30, 5)], (40, 9)));
        long.fold();
        long.add(short);
        assert_eq!(long.columns().commands, [6, 4]);
    }
}
