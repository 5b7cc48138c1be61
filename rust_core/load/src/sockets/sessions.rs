//! Database sessions: how they are opened, and how their replies are read.
//!
//! The server starts a process for each session, which takes milliseconds. So only a few are opened at a time. A
//! session for which the server has no room, or whose server is not up yet, may try again for a while, also before the
//! trial begins: sessions of the trial before may not have ended yet.

use locks::{ErrorKind, Nanos};
use wire::postgres::{LogInError, LogInPlan, Progress};

use super::connection::{Connection, State};
use super::dialect;
use super::poller::Poller;
use crate::transport::{Arrival, Broken, ErrorText};

/// How many sessions one thread opens at a time.
pub(crate) const AT_ONCE: usize = 16;
/// How long a server without room for a session is asked again before the trial begins.
const ROOM_WITHIN: Nanos = Nanos::from_secs(2);

impl Connection {
    /// Reads one message of a log-in. Returns its length, or `None` while it is incomplete.
    pub(crate) fn log_in(
        &mut self,
        plan: &LogInPlan,
        bytes: &[u8],
        poller: &Poller,
        index: u32,
    ) -> Result<Option<usize>, Broken> {
        let session = self
            .session
            .as_mut()
            .expect("it was made when the socket was connected");
        match session.log_in.on(plan, bytes, &mut self.out, dialect::scram)? {
            Progress::NeedMore => Ok(None),
            Progress::Handled { used } => {
                self.write(poller, index)?;
                Ok(Some(used))
            }
            Progress::Done { used } => {
                self.greeted();
                Ok(Some(used))
            }
        }
    }

    /// The next whole reply of a session, with the call that it answers, and how many bytes were used. Leaves the words
    /// of an error in `error`.
    pub(crate) fn session_reply(
        &mut self,
        bytes: &[u8],
        error: &mut Option<ErrorText>,
        into: &mut Arrival,
    ) -> Result<(usize, bool), Broken> {
        let session = self.session.as_mut().expect("the connection leads to a database");
        let asked = self.awaited.front().map(|awaited| awaited.block);
        let (used, reply) = session.replies.parse(bytes, asked)?;
        let Some(reply) = reply else { return Ok((used, false)) };
        if let Some(refusal) = session.replies.take_error()
            && !refusal.kind().is_contention()
        {
            *error = Some(ErrorText {
                code: refusal.sqlstate(),
                text: refusal.text.clone(),
            });
        }
        if !self.answers(&reply, into) {
            return Err(Broken::Unasked);
        }
        Ok((used, true))
    }

    /// Whether the session is being opened.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting { .. } | State::Greeting { .. })
    }
}

/// Whether a server that has refused a session for this long may still accept it, so that the trial need not fail.
pub(crate) fn may_pass(broken: &Broken, asked_for: Nanos) -> bool {
    let Broken::LogIn(LogInError::Refused(refusal)) = broken else {
        return false;
    };
    let passes = matches!(refusal.kind(), ErrorKind::TooManyConnections | ErrorKind::SessionEnded);
    passes && asked_for < ROOM_WITHIN
}
