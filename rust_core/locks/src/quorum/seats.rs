//! The state of each server: its reply to the current attempt, and its reply to the release. This file counts; `quorum`
//! decides what the counts mean for the client.

use crate::{CallId, ErrorKind, Outcome, ScriptForm};

/// One state for each server. `A`: what an attempt tries to own.
#[derive(Debug)]
pub(crate) struct Seats<C>(Box<[Seat<C>]>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat<C> {
    pub(crate) ask: Ask,
    pub(crate) back: Back,
    /// A release that was sent by SHA-1 and has no reply yet, perhaps of an earlier attempt. There is at most one: a
    /// release is sent by SHA-1 only to a server that has just replied, and has therefore replied to all earlier
    /// commands.
    pub(crate) owed: Option<Owed<C>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed<C> {
    pub(crate) call: CallId,
    pub(crate) claim: C,
}

/// How the server replied to the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Unasked,
    Waiting {
        call: CallId,
        /// The command is a script that was sent by SHA-1.
        may_be_unknown: bool,
    },
    /// The server did not reply within the node timeout, but still may.
    Silent {
        call: CallId,
        may_be_unknown: bool,
    },
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
pub(crate) enum Back {
    Unsent,
    Waiting(CallId),
    Deleted,
    /// The server held nothing of this client.
    Absent,
    Failed(ErrorKind),
    /// The reply was lost, or did not come in time.
    Unanswered,
}

impl Ask {
    pub(crate) const fn may_be_unknown(self) -> bool {
        match self {
            Self::Waiting { may_be_unknown, .. } | Self::Silent { may_be_unknown, .. } => may_be_unknown,
            Self::Unasked | Self::Granted | Self::Refused | Self::Failed(_) | Self::Unclear(_) | Self::Lost => false,
        }
    }

    fn is_by(self, id: CallId) -> bool {
        matches!(self, Self::Waiting { call, .. } | Self::Silent { call, .. } if call == id)
    }

    const fn error(self) -> Option<ErrorKind> {
        match self {
            Self::Failed(kind) | Self::Unclear(kind) => Some(kind),
            Self::Unasked | Self::Waiting { .. } | Self::Silent { .. } | Self::Granted | Self::Refused | Self::Lost => {
                None
            }
        }
    }
}

impl<C> Seat<C> {
    pub(crate) fn gives_back(&mut self, call: CallId, form: ScriptForm, claim: C) {
        self.back = Back::Waiting(call);
        match form {
            ScriptForm::Sha => self.owed = Some(Owed { call, claim }),
            // A script sent as source never gets NOSCRIPT.
            ScriptForm::Source => {}
        }
    }

    fn is_given_back_by(&self, call: CallId) -> bool {
        self.back == Back::Waiting(call) || self.owed.as_ref().is_some_and(|owed| owed.call == call)
    }

    const fn is_being_given_back(&self) -> bool {
        matches!(self.back, Back::Waiting(_))
    }

    /// Whether the server granted, as far as its replies show.
    const fn has_granted(&self) -> bool {
        matches!(self.ask, Ask::Granted) || matches!(self.back, Back::Deleted)
    }

    /// Whether the server may still hold something of this client.
    const fn may_hold(&self) -> bool {
        let may_have_taken = match self.ask {
            Ask::Unasked | Ask::Refused | Ask::Failed(_) => false,
            Ask::Granted | Ask::Unclear(_) | Ask::Waiting { .. } | Ask::Silent { .. } | Ask::Lost => true,
        };
        let is_cleared = match self.back {
            Back::Deleted => true,
            // After a loss the release went over another connection than the command that takes, which may still
            // arrive.
            Back::Absent => !matches!(self.ask, Ask::Lost),
            Back::Unsent | Back::Waiting(_) | Back::Failed(_) | Back::Unanswered => false,
        };
        may_have_taken && !is_cleared
    }
}

impl<C: Copy> Seats<C> {
    pub(crate) fn new(servers: u16) -> Self {
        let seat = Seat {
            ask: Ask::Unasked,
            back: Back::Unsent,
            owed: None,
        };
        Self(vec![seat; usize::from(servers)].into())
    }

    pub(crate) const fn count(&self) -> u16 {
        self.0.len() as u16
    }

    /// More than half of the servers.
    pub(crate) const fn quorum(&self) -> u16 {
        self.count() / 2 + 1
    }

    pub(crate) fn of(&mut self, server: u16) -> &mut Seat<C> {
        &mut self.0[usize::from(server)]
    }

    /// Resets the states for a new attempt. An unconfirmed release stays recorded.
    pub(crate) fn begin(&mut self) {
        for seat in &mut self.0 {
            (seat.ask, seat.back) = (Ask::Unasked, Back::Unsent);
        }
    }

    pub(crate) fn asked_by(&self, call: CallId) -> Option<u16> {
        self.0.iter().position(|seat| seat.ask.is_by(call)).map(|at| at as u16)
    }

    pub(crate) fn given_back_by(&self, call: CallId) -> Option<u16> {
        self.0
            .iter()
            .position(|seat| seat.is_given_back_by(call))
            .map(|at| at as u16)
    }

    pub(crate) fn lost(&mut self, call: CallId) {
        for seat in &mut self.0 {
            if seat.ask.is_by(call) {
                seat.ask = Ask::Lost;
            }
            if seat.back == Back::Waiting(call) {
                seat.back = Back::Unanswered;
            }
            seat.owed.take_if(|owed| owed.call == call);
        }
    }

    /// The servers that have not replied to the attempt have used up their time.
    pub(crate) fn give_up_asking(&mut self) {
        for seat in &mut self.0 {
            if let Ask::Waiting { call, may_be_unknown } = seat.ask {
                seat.ask = Ask::Silent { call, may_be_unknown };
            }
        }
    }

    /// The servers that have not replied to the release have used up their time.
    pub(crate) fn give_up_giving_back(&mut self) {
        for seat in &mut self.0 {
            if seat.is_being_given_back() {
                seat.back = Back::Unanswered;
            }
        }
    }

    pub(crate) fn granted(&self) -> u16 {
        self.count_of(|seat| seat.ask == Ask::Granted)
    }

    /// Whether other clients hold so many servers that the rest are no quorum.
    pub(crate) fn others_prevail(&self) -> bool {
        self.count_of(|seat| seat.ask == Ask::Refused) > self.count() - self.quorum()
    }

    pub(crate) fn waiting(&self) -> u16 {
        self.count_of(|seat| matches!(seat.ask, Ask::Waiting { .. }))
    }

    pub(crate) fn unasked(&self) -> u16 {
        self.count_of(|seat| seat.ask == Ask::Unasked)
    }

    /// The first error, if so many servers had errors that the rest are no quorum.
    pub(crate) fn common_error(&self) -> Option<ErrorKind> {
        let errors = self.count_of(|seat| seat.ask.error().is_some());
        let first = self.0.iter().find_map(|seat| seat.ask.error());
        first.filter(|_| errors > self.count() - self.quorum())
    }

    /// The outcome of a release: what most of the servers that had granted replied. `None` while missing replies can
    /// still decide it.
    pub(crate) fn released(&self) -> Option<Outcome> {
        let granted = self.count_of(Seat::has_granted);
        let most = granted / 2 + 1;
        let said = |back| self.count_of(|seat| seat.has_granted() && seat.back == back);
        let failed = |seat: &Seat<C>| match seat.back {
            Back::Failed(kind) if seat.has_granted() => Some(kind),
            Back::Failed(_) | Back::Unsent | Back::Waiting(_) | Back::Deleted | Back::Absent | Back::Unanswered => None,
        };
        if said(Back::Deleted) >= most {
            return Some(Outcome::Released);
        }
        if said(Back::Absent) > granted - most {
            return Some(Outcome::Expired);
        }
        if self.count_of(|seat| seat.has_granted() && seat.is_being_given_back()) > 0 {
            return None;
        }
        // Neither outcome is certain: an error is more informative than a missing reply.
        let error = self.0.iter().find_map(failed);
        Some(error.map_or(Outcome::Unknown, Outcome::Failed))
    }

    /// The number of servers that may still hold something of this client. `None` while a server that granted still
    /// owes the reply to its release, or while those servers could be a quorum and one of them still owes a reply.
    pub(crate) fn left(&self) -> Option<u16> {
        let owes = |seat: &Seat<C>| seat.may_hold() && seat.is_being_given_back();
        let granted = |seat: &Seat<C>| matches!(seat.ask, Ask::Granted | Ask::Unclear(_));
        let left = self.count_of(Seat::may_hold);
        let waits = self.count_of(|seat| owes(seat) && (granted(seat) || left >= self.quorum()));
        (waits == 0).then_some(left)
    }

    fn count_of(&self, is: impl Fn(&Seat<C>) -> bool) -> u16 {
        self.0.iter().filter(|seat| is(seat)).count() as u16
    }
}
