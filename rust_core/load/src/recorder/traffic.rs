//! What the transport does: commands, bytes, connections that end, errors of servers.

use locks::Nanos;

use super::error_replies::Came;
use super::{ErrorPhase, Recorder};
use crate::transport::{Cut, ErrorText};

impl Recorder {
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.counters.all_commands += 1;
        if self.counting {
            self.counters.commands += 1;
            self.counters.bytes_out += bytes as u64;
        }
    }

    /// How many commands were sent in the whole trial.
    #[inline]
    pub(crate) fn commands_sent(&self) -> u64 {
        self.counters.all_commands
    }

    #[inline]
    pub(crate) fn read(&mut self, bytes: usize) {
        if self.counting {
            self.counters.reads += 1;
            self.counters.bytes_in += bytes as u64;
        }
    }

    #[inline]
    pub(crate) fn wrote(&mut self) {
        self.counters.writes += u64::from(self.counting);
    }

    /// A message reached a client, which waited for it or not.
    pub(crate) fn woken(&mut self, waited: bool) {
        self.counters.wake_ups += u64::from(waited);
    }

    /// The drain is over: so many clients were left under way, or calls without a reply.
    pub(crate) fn drained(&mut self, abandoned: usize, unsettled: bool) {
        self.counters.abandoned += abandoned as u64;
        self.counters.unsettled += u64::from(unsettled);
    }

    /// A connection has ended; each of the `orphans` may stay as long as `ttl`.
    pub(crate) fn cut(&mut self, server: u16, cut: &Cut, now: Nanos, orphans: u64, ttl: Nanos) {
        if let Some(error) = &cut.error {
            let first = cut.calls.front().filter(|_| cut.answers_first);
            let phase = first.map_or(ErrorPhase::Other, |call| ErrorPhase::of(call.doing));
            self.error(phase, server, now, error);
        }
        self.counters.reconnects += u64::from(cut.was_open);
        if cut.was_open {
            self.first_cut = self.first_cut.min(now);
        }
        self.counters.lost_calls += cut.calls.len() as u64;
        let orphan_ns = orphans.saturating_mul(ttl.0);
        self.counters.orphan_ns = self.counters.orphan_ns.saturating_add(orphan_ns);
    }

    /// Counts an error of a server, in the whole trial.
    #[cold]
    pub(crate) fn error(&mut self, phase: ErrorPhase, server: u16, at: Nanos, error: &ErrorText) {
        let came = Came {
            phase,
            server,
            at,
            in_warmup: at < self.control.window().0,
        };
        self.errors.count(came, error);
    }

    /// Whether no connection has broken and no reply was lost.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.counters.reconnects == 0 && self.counters.lost_calls == 0
    }
}
