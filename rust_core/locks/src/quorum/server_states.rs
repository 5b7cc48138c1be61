//! The state of each server: its reply to the current attempt, and its reply to the release. This file counts; `quorum`
//! decides what the counts mean for the client.

use crate::script_form::PendingScript;
use crate::shell::Ending;
use crate::{CallId, ErrorKind};

/// One state for each server. `A`: what an attempt tries to own.
#[derive(Debug)]
pub(crate) struct ServerStates<A>(Box<[ServerState<A>]>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerState<A> {
    pub(crate) take: TakeState,
    pub(crate) release: ReleaseState,
    /// A release that was sent by SHA-1 and has no reply yet, perhaps of an earlier attempt. There is at most one: a
    /// release is sent by SHA-1 only to a server that has just replied, and has therefore replied to all earlier
    /// commands.
    pub(crate) unconfirmed: Option<UnconfirmedRelease<A>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct UnconfirmedRelease<A> {
    pub(crate) script: PendingScript,
    pub(crate) attempt: A,
}

/// How the server replied to the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeState {
    Unasked,
    Waiting(PendingScript),
    /// The server did not reply within the node timeout, but still may.
    Silent(PendingScript),
    Granted,
    Refused,
    /// An error that shows that nothing was taken.
    Failed(ErrorKind),
    /// A reply that does not show whether anything was taken.
    Unclear(ErrorKind),
    Lost,
}

/// How the server replied to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseState {
    Unsent,
    Waiting(CallId),
    Deleted,
    /// The server held nothing of this client.
    Absent,
    Failed(ErrorKind),
    /// The reply was lost, or did not come in time.
    NoReply,
}

impl TakeState {
    /// The command that has no reply yet.
    pub(crate) const fn script(self) -> Option<PendingScript> {
        match self {
            Self::Waiting(script) | Self::Silent(script) => Some(script),
            Self::Unasked | Self::Granted | Self::Refused | Self::Failed(_) | Self::Unclear(_) | Self::Lost => None,
        }
    }

    fn is_by(self, call: CallId) -> bool {
        self.script().is_some_and(|script| script.is(call))
    }

    const fn error(self) -> Option<ErrorKind> {
        match self {
            Self::Failed(kind) | Self::Unclear(kind) => Some(kind),
            Self::Unasked | Self::Waiting(_) | Self::Silent(_) | Self::Granted | Self::Refused | Self::Lost => None,
        }
    }
}

impl<A> ServerState<A> {
    pub(crate) fn releases(&mut self, call: CallId, script: PendingScript, attempt: A) {
        self.release = ReleaseState::Waiting(call);
        if script.may_be_unknown() {
            self.unconfirmed = Some(UnconfirmedRelease { script, attempt });
        }
    }

    fn is_released_by(&self, call: CallId) -> bool {
        let unconfirmed = self.unconfirmed.as_ref();
        self.release == ReleaseState::Waiting(call) || unconfirmed.is_some_and(|release| release.script.is(call))
    }

    const fn is_releasing(&self) -> bool {
        matches!(self.release, ReleaseState::Waiting(_))
    }

    /// Whether the server granted, as far as its replies show.
    const fn has_granted(&self) -> bool {
        matches!(self.take, TakeState::Granted) || matches!(self.release, ReleaseState::Deleted)
    }

    /// Whether the release follows, on the same connection, a command without reply: the server carries out both before
    /// whatever comes later.
    const fn releases_first(&self) -> bool {
        matches!(self.take, TakeState::Waiting(_) | TakeState::Silent(_))
            && !matches!(self.release, ReleaseState::Unsent)
    }

    /// Whether the server may still hold something of this client.
    const fn may_hold(&self) -> bool {
        let may_have_taken = match self.take {
            TakeState::Unasked | TakeState::Refused | TakeState::Failed(_) => false,
            TakeState::Granted
            | TakeState::Unclear(_)
            | TakeState::Waiting(_)
            | TakeState::Silent(_)
            | TakeState::Lost => true,
        };
        let is_cleared = match self.release {
            ReleaseState::Deleted => true,
            // After a loss the release went over another connection than the command that takes, which may still
            // arrive.
            ReleaseState::Absent => !matches!(self.take, TakeState::Lost),
            ReleaseState::Unsent | ReleaseState::Waiting(_) | ReleaseState::Failed(_) | ReleaseState::NoReply => false,
        };
        may_have_taken && !is_cleared
    }
}

impl<A: Copy> ServerStates<A> {
    pub(crate) fn new(servers: u16) -> Self {
        let server = ServerState {
            take: TakeState::Unasked,
            release: ReleaseState::Unsent,
            unconfirmed: None,
        };
        Self(vec![server; usize::from(servers)].into())
    }

    pub(crate) const fn count(&self) -> u16 {
        self.0.len() as u16
    }

    /// More than half of the servers.
    pub(crate) fn quorum(&self) -> u16 {
        self.count() / 2 + u16::from(!mistake!(FewerThanQuorum))
    }

    pub(crate) fn of(&mut self, server: u16) -> &mut ServerState<A> {
        &mut self.0[usize::from(server)]
    }

    /// Resets the states for a new attempt. An unconfirmed release stays recorded.
    pub(crate) fn begin(&mut self) {
        for server in &mut self.0 {
            (server.take, server.release) = (TakeState::Unasked, ReleaseState::Unsent);
        }
    }

    pub(crate) fn asked_by(&self, call: CallId) -> Option<u16> {
        self.0
            .iter()
            .position(|server| server.take.is_by(call))
            .map(|at| at as u16)
    }

    pub(crate) fn released_by(&self, call: CallId) -> Option<u16> {
        self.0
            .iter()
            .position(|server| server.is_released_by(call))
            .map(|at| at as u16)
    }

    pub(crate) fn lost(&mut self, call: CallId) {
        for server in &mut self.0 {
            if server.take.is_by(call) {
                server.take = TakeState::Lost;
            }
            if server.release == ReleaseState::Waiting(call) {
                server.release = ReleaseState::NoReply;
            }
            server.unconfirmed.take_if(|release| release.script.is(call));
        }
    }

    /// The servers that have not replied to the attempt have used up their time.
    pub(crate) fn give_up_asking(&mut self) {
        for server in &mut self.0 {
            if let TakeState::Waiting(script) = server.take {
                server.take = TakeState::Silent(script);
            }
        }
    }

    /// The servers that have not replied to the release have used up their time.
    pub(crate) fn give_up_releasing(&mut self) {
        for server in &mut self.0 {
            if server.is_releasing() {
                server.release = ReleaseState::NoReply;
            }
        }
    }

    pub(crate) fn granted(&self) -> u16 {
        self.count_of(|server| server.take == TakeState::Granted)
    }

    /// Whether other clients hold so many servers that the rest are no quorum.
    pub(crate) fn others_prevail(&self) -> bool {
        self.count_of(|server| server.take == TakeState::Refused) > self.count() - self.quorum()
    }

    pub(crate) fn waiting(&self) -> u16 {
        self.count_of(|server| matches!(server.take, TakeState::Waiting(_)))
    }

    pub(crate) fn unasked(&self) -> u16 {
        self.count_of(|server| server.take == TakeState::Unasked)
    }

    /// The first error, if so many servers had errors that the rest are no quorum.
    pub(crate) fn common_error(&self) -> Option<ErrorKind> {
        let errors = self.count_of(|server| server.take.error().is_some());
        let first = self.0.iter().find_map(|server| server.take.error());
        first.filter(|_| errors > self.count() - self.quorum())
    }

    /// The outcome of a release: what most of the servers that had granted replied. `None` while missing replies can
    /// still decide it.
    pub(crate) fn released(&self) -> Option<Ending> {
        let granted = self.count_of(ServerState::has_granted);
        let most = granted / 2 + 1;
        let said = |release| self.count_of(|server| server.has_granted() && server.release == release);
        let failed = |server: &ServerState<A>| match server.release {
            ReleaseState::Failed(kind) if server.has_granted() => Some(kind),
            ReleaseState::Failed(_)
            | ReleaseState::Unsent
            | ReleaseState::Waiting(_)
            | ReleaseState::Deleted
            | ReleaseState::Absent
            | ReleaseState::NoReply => None,
        };
        if said(ReleaseState::Deleted) >= most {
            return Some(Ending::Released);
        }
        if said(ReleaseState::Absent) > granted - most {
            return Some(Ending::Expired);
        }
        if self.count_of(|server| server.has_granted() && server.is_releasing()) > 0 {
            return None;
        }
        // Neither outcome is certain: an error is more informative than a missing reply.
        let error = self.0.iter().find_map(failed);
        Some(error.map_or(Ending::Unknown, Ending::Failed))
    }

    /// The number of servers that may still hold something of this client. `None` while a server that granted still
    /// owes the reply to its release, or while those servers could be a quorum and one of them still owes a reply.
    pub(crate) fn left(&self) -> Option<u16> {
        self.left_of(ServerState::may_hold)
    }

    /// As `left`, but of the servers that may still hold something when they get the next attempt.
    pub(crate) fn left_for_the_next(&self) -> Option<u16> {
        self.left_of(|server| server.may_hold() && !server.releases_first())
    }

    fn left_of(&self, may_hold: impl Fn(&ServerState<A>) -> bool) -> Option<u16> {
        let granted = |server: &ServerState<A>| matches!(server.take, TakeState::Granted | TakeState::Unclear(_));
        let left = self.count_of(&may_hold);
        let owes = |server: &ServerState<A>| may_hold(server) && server.is_releasing();
        let waits = self.count_of(|server| owes(server) && (granted(server) || left >= self.quorum()));
        (waits == 0).then_some(left)
    }

    fn count_of(&self, is: impl Fn(&ServerState<A>) -> bool) -> u16 {
        self.0.iter().filter(|server| is(server)).count() as u16
    }
}
