//! Database sessions: how they are opened, and how their replies are read.
//!
//! The server starts a process for each session, which takes milliseconds. So only a few are opened at a time. A
//! session for which the server has no room, or whose server is not up yet, may try again for a while, also before the
//! trial begins: sessions of the trial before may not have ended yet.

use locks::{ErrorKind, Nanos};
use wire::postgres::{LogInError, Progress, TERMINATE};

use crate::connection::{Broken, Connection, State};
use crate::dialect::{self, Handshake};
use crate::thread::Thread;

/// How many sessions one thread opens at a time.
const AT_ONCE: usize = 16;
/// How long a server without room for a session is asked again before the trial begins.
const ROOM_WITHIN: Nanos = Nanos::from_secs(2);

impl Thread {
    /// Reads one message of a log-in. Returns its length, or `None` while it is incomplete.
    pub(crate) fn log_in(&mut self, index: u32, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let connection = &mut self.connections[index as usize];
        let Handshake::Postgres(plan) = &self.targets[usize::from(connection.server)].handshake else {
            unreachable!("a session leads to a database")
        };
        let session = connection
            .session
            .as_mut()
            .expect("it was made when the socket was connected");
        match session.log_in.on(plan, bytes, &mut connection.out, dialect::scram)? {
            Progress::NeedMore => Ok(None),
            Progress::Handled { used } => {
                connection.write(&self.poller, index)?;
                Ok(Some(used))
            }
            Progress::Done { used } => {
                connection.greeted();
                Ok(Some(used))
            }
        }
    }

    /// Passes each complete reply of a session to the client that awaits it. Returns how many bytes were used.
    pub(crate) fn session_replies(&mut self, index: u32, now: Nanos, bytes: &[u8]) -> Result<usize, Broken> {
        let mut used = 0;
        loop {
            let connection = &mut self.connections[index as usize];
            let Some(session) = &mut connection.session else {
                return Ok(bytes.len()); // The lock closed the connection: the rest of the bytes concerns nobody.
            };
            let asked = connection.awaited.front().map(|awaited| awaited.block);
            let (length, reply) = session.replies.parse(&bytes[used..], asked)?;
            used += length;
            let Some(reply) = reply else { break };
            let awaited = connection.awaited.pop_front().ok_or(Broken::Unasked)?;
            let refusal = session.replies.take_error();
            self.outstanding -= 1;
            if let Some(refusal) = refusal {
                self.count_server_error(index, now, Some(awaited), &refusal);
            }
            self.dispatch_reply(awaited.client, now, awaited.call, reply);
        }
        self.start_waiting(now);
        Ok(used)
    }

    /// How many more sessions may be opened now; 0 when no server is a database.
    pub(crate) fn room_for_sessions(&self) -> usize {
        if !self.targets.iter().any(|target| target.handshake.is_database()) {
            return 0;
        }
        let is_opening = |connection: &&Connection| {
            self.leads_to_a_database(connection)
                && matches!(connection.state, State::Connecting { .. } | State::Greeting { .. })
        };
        AT_ONCE.saturating_sub(self.connections.iter().filter(is_opening).count())
    }

    pub(crate) fn leads_to_a_database(&self, connection: &Connection) -> bool {
        self.targets[usize::from(connection.server)].handshake.is_database()
    }

    /// Ends all sessions as the protocol asks. What the server does not accept at once is dropped, because the sockets
    /// are closed next.
    pub(crate) fn terminate_sessions(&mut self) {
        for index in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[index as usize];
            if connection.session.is_some() && connection.is_ready() {
                connection.delay = None; // Nothing is under way any more.
                connection.out.extend_from_slice(TERMINATE);
                let _ = connection.write(&self.poller, index);
            }
        }
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
