//! Load at which the server is saturated: which commands then wait for the next replies, and how the records for a
//! batch of replies are prefetched.
//!
//! A refused client tries again when its timer fires. While nearly all clients wait for the server, that one command
//! would only queue behind theirs, and its own wake-up and write would cost more than the rest of the grant. So it is
//! sent with the next replies, at most `SLACK` late. On a contended key most clients wait for a timer and not for the
//! server: there each timer fires at once. The same holds when clients hold or think for a while: those times are
//! measured and must not be rounded up.

use locks::Nanos;

use crate::LoadError;
use crate::client::Doing;
use crate::thread::Thread;

/// How late a timer may fire and a command leave while the server is saturated.
const SLACK: Nanos = Nanos::from_micros(100);
/// With fewer calls under way than this, no batch of replies is worth waiting for.
const SATURATED_FROM: usize = 32;
/// How many replies ahead records are prefetched; a processor waits for about ten cache lines at a time.
pub(crate) const AHEAD: usize = 16;

impl Thread {
    /// How long timers and commands may wait for the next replies.
    fn slack(&self) -> Nanos {
        let seven_of_eight_wait = self.outstanding * 8 >= self.clients.len() * 7;
        // A blocking command is outstanding too, but its reply is not about to come.
        let strategy = self.params.strategy;
        let may_wait = !(self.params.has_pauses() || strategy.owns_connection() || strategy.subscribes());
        if self.outstanding >= SATURATED_FROM && seven_of_eight_wait && may_wait {
            SLACK
        } else {
            Nanos::ZERO
        }
    }

    /// When the loop must wake up for a timer, or for commands that were held back.
    pub(crate) fn next_timed(&self) -> Nanos {
        let timers = self.timers.next().after(self.slack());
        timers.min(self.held_back.after(SLACK))
    }

    /// Whether commands wait to be sent and are not held back.
    pub(crate) fn has_unsent_commands(&self) -> bool {
        !self.dirty.is_empty() && self.held_back == Nanos::NEVER
    }

    /// Writes once to each connection that has commands, except those whose commands wait for the next replies.
    pub(crate) fn flush_all(&mut self, now: Nanos) -> Result<(), LoadError> {
        let may_hold_back = self.slack() > Nanos::ZERO && now < self.held_back.after(SLACK);
        let mut kept = std::mem::take(&mut self.kept);
        while let Some(index) = self.dirty.pop() {
            let connection = &self.connections[index as usize];
            if !connection.is_dirty() {
                continue; // Already flushed after its own replies.
            }
            if may_hold_back && connection.awaits_replies() && connection.releasing.is_empty() {
                kept.push(index);
                continue;
            }
            if let Err(broken) = self.flush(index) {
                self.broken(index, &broken)?;
            }
            // A write takes as long as many holds: timers that became due meanwhile must not wait for the other writes.
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

    /// Prefetches the records for the next replies of a connection. A batch concerns many clients, each with its own
    /// records; read in a row, their cache misses overlap instead of following one another.
    pub(crate) fn touch_awaiting(&self, connection: u32) {
        for awaited in self.connections[connection as usize].awaited.iter().take(AHEAD) {
            let client = &self.clients[awaited.client as usize];
            client.touch();
            std::hint::black_box(self.figures[awaited.client as usize].grants);
            // The checker needs nothing from the reply to a release.
            if client.doing != Doing::Releasing {
                self.judge.touch(self.number(awaited.client), client.key);
            }
        }
    }

    /// The same for clients that are about to start.
    pub(crate) fn touch_starting(&self) {
        for &index in &self.starting {
            let client = &self.clients[index as usize];
            if let Some(key) = self.params.keys.peek(&client.stream) {
                self.judge.touch(self.number(index), key);
            }
        }
    }
}
