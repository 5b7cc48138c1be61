//! Handles connections that the server has closed before all others of a round.

use crate::LoadError;
use crate::poller::Ready;
use crate::thread::Thread;

/// How often at most a closed connection is read in one round. The rest is read in the next round.
const READS: usize = 64;

impl Thread {
    /// Reads closed connections to their end, and reports the loss to their clients. A server closes a session before
    /// it grants that session's lock to another client. If both events are ready to be read, the loss is older than the
    /// grant, so it must be reported and stamped first. Otherwise a lock that was granted twice could pass for one
    /// whose holder had not yet noticed its loss.
    pub(crate) fn handle_closed_first(&mut self, ready: &mut Vec<Ready>) -> Result<(), LoadError> {
        if !ready.iter().any(|event| event.closed) {
            return Ok(());
        }
        for &event in ready.iter().filter(|event| event.closed) {
            for _ in 0..READS {
                self.on_ready(event)?;
                if !self.connections[event.connection as usize].is_ready() {
                    break;
                }
            }
        }
        ready.retain(|event| !event.closed);
        self.report_unsendable();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
