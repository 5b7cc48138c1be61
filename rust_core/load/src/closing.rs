//! Connections that the server has closed, before all others of a round.

use crate::LoadError;
use crate::poller::Ready;
use crate::thread::Thread;

/// How often a closed connection is read at most until its end comes: what is left is read in the next round.
const READS: usize = 64;

impl Thread {
    /// Reads what is closed to its end, and tells the clients. A server closes a session before it grants to another what
    /// was held by it. Where both are there to be read, the loss was known before the grant: it is told, and stamped,
    /// first. Otherwise a lock that was granted twice could pass for one whose holder had not heard of its loss yet.
    pub(crate) fn closed_first(&mut self, ready: &mut Vec<Ready>) -> Result<(), LoadError> {
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
