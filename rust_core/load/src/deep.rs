//! Where the server is the limit: what then may wait for the next answers, and how a batch of answers is made ready.
//!
//! A client that was refused tries again when its timer fires. While nearly all clients wait for the server, that one
//! command would only queue up behind theirs, and a wake-up and a write of its own would cost more than the rest of the
//! grant. So it goes out with the next answers, at most `SLACK` late. On a contended key most clients wait for a timer,
//! not for the server; there each timer fires on the spot, and so it does wherever clients hold or think for a while:
//! those times are measured, and must not be rounded up.

use locks::Nanos;

use crate::LoadError;
use crate::client::Doing;
use crate::thread::Thread;

/// How late a timer may fire, and a command leave, while the server is the limit.
const SLACK: Nanos = Nanos::from_micros(100);
/// Fewer calls on their way than this make no batch worth waiting for.
const DEEP: usize = 32;
/// Answers whose records are touched ahead; a processor waits for about ten cache lines at a time.
pub(crate) const AHEAD: usize = 16;

impl Thread {
    /// How long timers and commands may wait for answers to come.
    fn slack(&self) -> Nanos {
        let seven_of_eight_wait = self.outstanding * 8 >= self.clients.len() * 7;
        // What blocks on the server is outstanding, too, and its answer is not about to come.
        let strategy = self.shared.strategy;
        let may_wait = !(self.shared.has_pauses() || strategy.owns_connection() || strategy.subscribes());
        if self.outstanding >= DEEP && seven_of_eight_wait && may_wait {
            SLACK
        } else {
            Nanos::ZERO
        }
    }

    /// The point at which the loop must wake up for a timer, or for commands that were held back.
    pub(crate) fn next_timed(&self) -> Nanos {
        let timers = self.timers.next().after(self.slack());
        timers.min(self.held_back.after(SLACK))
    }

    /// Commands wait that nothing holds back.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.dirty.is_empty() && self.held_back == Nanos::NEVER
    }

    /// One write for each connection that has commands, except those that wait for the next answers.
    pub(crate) fn flush_all(&mut self, now: Nanos) -> Result<(), LoadError> {
        let may_hold_back = self.slack() > Nanos::ZERO && now < self.held_back.after(SLACK);
        let mut kept = std::mem::take(&mut self.kept);
        while let Some(index) = self.dirty.pop() {
            let connection = &self.connections[index as usize];
            if !connection.is_dirty() {
                continue; // Flushed with its own answers.
            }
            if may_hold_back && connection.awaits_answers() && connection.releasing.is_empty() {
                kept.push(index);
                continue;
            }
            if let Err(broken) = self.flush(index) {
                self.broken(index, &broken)?;
            }
            // A write takes as long as many a hold: what became due meanwhile must not wait for the other writes.
            let now = self.read_clock();
            self.fire_timers(now);
        }
        self.held_back = if kept.is_empty() {
            Nanos::NEVER
        } else {
            self.held_back.min(now)
        };
        self.kept = std::mem::replace(&mut self.dirty, kept);
        Ok(())
    }

    /// Reads what the next answers of a connection will need. A batch has many clients, each with records of its own;
    /// read in a row, their cache misses come side by side instead of one after another.
    pub(crate) fn touch_awaiting(&self, connection: u32) {
        for awaited in self.connections[connection as usize].awaited.iter().take(AHEAD) {
            let client = &self.clients[awaited.client as usize];
            client.touch();
            std::hint::black_box(self.figures[awaited.client as usize].grants);
            // The answer to a release tells the checker nothing.
            if client.doing != Doing::Releasing {
                self.judge.touch(self.number(awaited.client), client.key);
            }
        }
    }

    /// The same for clients that are about to start.
    pub(crate) fn touch_starting(&self) {
        for &index in &self.starting {
            let client = &self.clients[index as usize];
            if let Some(key) = self.shared.keys.peek(&client.stream) {
                self.judge.touch(self.number(index), key);
            }
        }
    }
}
