//! One script, sent to several children at once, and the reply of each.

use crate::{CallId, ErrorKind, Outcome, Reply, ScriptForm};

#[derive(Debug)]
pub(crate) struct Round(Box<[ChildReply]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildReply {
    NotAsked,
    Waiting {
        call: CallId,
        form: ScriptForm,
    },
    /// `NOSCRIPT` was the reply to its SHA-1.
    WantsSource,
    /// 1: this client held the child.
    WasHeld,
    /// 0: this client did not hold the child.
    NotHeld,
    Failed(ErrorKind),
    NoReply,
}

impl Round {
    pub(crate) fn new(children: u16) -> Self {
        Self(vec![ChildReply::NotAsked; usize::from(children)].into())
    }

    pub(crate) fn begin(&mut self) {
        self.0.fill(ChildReply::NotAsked);
    }

    pub(crate) fn sent(&mut self, child: u16, call: CallId) {
        let form = ScriptForm::Sha;
        self.0[usize::from(child)] = ChildReply::Waiting { call, form };
    }

    pub(crate) fn sent_as_source(&mut self, child: u16, call: CallId) {
        let form = ScriptForm::Source;
        self.0[usize::from(child)] = ChildReply::Waiting { call, form };
    }

    /// The child whose reply this is.
    pub(crate) fn answered(&mut self, call: CallId, reply: Reply) -> Option<u16> {
        let child = self.child_of(call)?;
        let known = &mut self.0[child];
        *known = match (reply, *known) {
            (Reply::Int(1), _) => ChildReply::WasHeld,
            (Reply::Int(0), _) => ChildReply::NotHeld,
            (
                Reply::Error(ErrorKind::NoScript),
                ChildReply::Waiting {
                    form: ScriptForm::Sha, ..
                },
            ) => ChildReply::WantsSource,
            (Reply::Error(kind), _) => ChildReply::Failed(kind),
            (
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
                _,
            ) => ChildReply::Failed(ErrorKind::Unexpected),
        };
        Some(child as u16)
    }

    pub(crate) fn wants_source(&self, child: u16) -> bool {
        self.0[usize::from(child)] == ChildReply::WantsSource
    }

    /// Whether the call belongs to this round.
    pub(crate) fn lost(&mut self, call: CallId) -> bool {
        let child = self.child_of(call);
        if let Some(child) = child {
            self.0[child] = ChildReply::NoReply;
        }
        child.is_some()
    }

    /// The children that have not replied have used up their time.
    pub(crate) fn give_up(&mut self) {
        for child in &mut self.0 {
            if let ChildReply::Waiting { .. } = child {
                *child = ChildReply::NoReply;
            }
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.0.iter().any(|child| matches!(child, ChildReply::Waiting { .. }))
    }

    /// Whether all children that were asked have replied.
    pub(crate) fn is_certain(&self) -> bool {
        let certain =
            |child: &ChildReply| matches!(child, ChildReply::NotAsked | ChildReply::WasHeld | ChildReply::NotHeld);
        self.0.iter().all(certain)
    }

    /// The outcome of the round, in terms of a release: `Released` when `needed` children were held. A child that was
    /// never taken replies that it was not held, and does not count.
    pub(crate) fn outcome(&self, needed: u16) -> Outcome {
        let count = |is: fn(&ChildReply) -> bool| self.0.iter().filter(|child| is(child)).count() as u16;
        let ours = count(|child| *child == ChildReply::WasHeld);
        let unsure = count(|child| matches!(child, ChildReply::Failed(_) | ChildReply::NoReply));
        if ours >= needed {
            return Outcome::Released;
        }
        if ours + unsure < needed {
            return Outcome::Expired;
        }
        let error = self.0.iter().find_map(|child| match child {
            ChildReply::Failed(kind) => Some(*kind),
            ChildReply::NotAsked
            | ChildReply::Waiting { .. }
            | ChildReply::WantsSource
            | ChildReply::WasHeld
            | ChildReply::NotHeld
            | ChildReply::NoReply => None,
        });
        error.map_or(Outcome::Unknown, Outcome::Failed)
    }

    fn child_of(&self, id: CallId) -> Option<usize> {
        let is_mine = |child: &ChildReply| matches!(child, ChildReply::Waiting { call, .. } if *call == id);
        self.0.iter().position(is_mine)
    }
}
