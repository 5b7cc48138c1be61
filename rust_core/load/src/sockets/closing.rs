//! How connections end, and what is lost with them.

use std::collections::VecDeque;

use locks::{Key, Nanos};
use wire::postgres::{self, LogInError, TERMINATE};

use super::Sockets;
use super::connection::{Awaited, State};
use crate::LoadError;
use crate::transport::{Broken, Cut, ErrorText, Sender};

impl Sockets {
    /// Reports these calls as lost to their clients.
    fn lose(&mut self, calls: impl ExactSizeIterator<Item = Sender>) {
        self.outstanding -= calls.len();
        self.lost.extend(calls.map(Sender::caller));
    }

    /// Marks the clients that lose more than their calls with this connection; they will be told that it closed.
    fn mark_disconnected(&mut self, connection: u32) {
        self.disconnected.extend(self.layout.owner_of(connection));
        self.channels.close(connection, &mut self.disconnected, &mut self.lost);
    }

    /// See `Transport::cut`.
    pub(super) fn close(&mut self, index: u32, broken: &Broken, now: Nanos) -> Result<Cut, LoadError> {
        let connection = &mut self.connections[index as usize];
        let was_open = connection.state == State::Ready;
        let server = connection.server;
        let calls: VecDeque<Sender> = connection.close(now).into_iter().map(Awaited::sender).collect();
        self.next_upkeep = self.next_upkeep.min(self.connections[index as usize].deadline());
        if self.stage.ends_the_trial(broken, now) {
            return Err(LoadError::Connect {
                address: self.targets[usize::from(server)].address.to_string(),
                reason: broken.to_string(),
                refusal: broken.refusal(server).map(Box::new),
            });
        }
        self.mark_disconnected(index);
        self.lose(calls.iter().copied());
        let (error, answers_first) = if self.stage.counts() {
            error_of(broken)
        } else {
            (None, false)
        };
        Ok(Cut {
            was_open,
            calls,
            error,
            answers_first,
        })
    }

    /// Ends all sessions as the protocol asks. What the server does not accept at once is dropped, because the sockets
    /// are closed next.
    pub(super) fn end_sessions(&mut self) {
        for (index, connection) in (0..).zip(&mut self.connections) {
            if connection.session.is_some() && connection.is_ready() {
                connection.delay = None; // Nothing is under way any more.
                connection.out.extend_from_slice(TERMINATE);
                let _ = connection.write(&self.poller, index);
            }
        }
    }

    /// See `Transport::hang_up`.
    pub(super) fn close_for(&mut self, client: u32, key: Key, now: Nanos) {
        let index = if self.layout.subscribes() {
            self.layout.subscribing(client, key)
        } else {
            self.layout.own(client)
        };
        let awaited = self.connections[index as usize].hang_up(now);
        self.next_upkeep = self.next_upkeep.min(now);
        self.mark_disconnected(index);
        self.lose(awaited.into_iter().map(Awaited::sender));
    }
}

/// The words of the error with which a server ended a connection, or refused a log-in; and whether it answers the
/// oldest call.
fn error_of(broken: &Broken) -> (Option<ErrorText>, bool) {
    let of_session = |error: &postgres::ServerError| {
        (!error.kind().is_contention()).then(|| ErrorText {
            code: error.sqlstate(),
            text: error.text.clone(),
        })
    };
    match broken {
        Broken::Session(postgres::Broken::Ended(error)) => (of_session(error), true),
        Broken::LogIn(LogInError::Refused(error)) => (of_session(error), false),
        Broken::Refused { code, text, .. } => (
            Some(ErrorText {
                code: code.clone(),
                text: text.clone(),
            }),
            false,
        ),
        Broken::Io(_)
        | Broken::Closed
        | Broken::Silent { .. }
        | Broken::Malformed(_)
        | Broken::LogIn(_)
        | Broken::Session(_)
        | Broken::Unasked
        | Broken::Unanswered { .. }
        | Broken::Planned => (None, false),
    }
}
