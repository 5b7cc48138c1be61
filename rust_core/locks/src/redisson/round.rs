//! One script, sent to several children at once, and the reply of each.

use crate::script_form::PendingScript;
use crate::shell::Ending;
use crate::{CallId, ErrorKind, Reply};

#[derive(Debug)]
pub(crate) struct Round(Box<[ChildReply]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildReply {
    NotAsked,
    Waiting(PendingScript),
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

    pub(crate) fn sent(&mut self, child: u16, script: PendingScript) {
        self.0[usize::from(child)] = ChildReply::Waiting(script);
    }

    /// The child whose reply this is, and what it was sent.
    pub(crate) fn child_of(&self, call: CallId) -> Option<(u16, PendingScript)> {
        self.0.iter().zip(0..).find_map(|(child, at)| match child {
            ChildReply::Waiting(script) if script.is(call) => Some((at, *script)),
            // A reply to a call that was given up.
            ChildReply::Waiting(_)
            | ChildReply::NotAsked
            | ChildReply::WasHeld
            | ChildReply::NotHeld
            | ChildReply::Failed(_)
            | ChildReply::NoReply => None,
        })
    }

    /// The reply of a child, or its loss (`None`).
    pub(crate) fn answered(&mut self, child: u16, reply: Option<Reply>) {
        self.0[usize::from(child)] = match reply {
            Some(Reply::Int(1)) => ChildReply::WasHeld,
            Some(Reply::Int(0)) => ChildReply::NotHeld,
            Some(other) => ChildReply::Failed(other.failure()),
            None => ChildReply::NoReply,
        };
    }

    /// The children that have not replied have used up their time.
    pub(crate) fn give_up(&mut self) {
        for child in &mut self.0 {
            if let ChildReply::Waiting(_) = child {
                *child = ChildReply::NoReply;
            }
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.0.iter().any(|child| matches!(child, ChildReply::Waiting(_)))
    }

    /// Whether all children that were asked have replied.
    pub(crate) fn is_certain(&self) -> bool {
        let certain =
            |child: &ChildReply| matches!(child, ChildReply::NotAsked | ChildReply::WasHeld | ChildReply::NotHeld);
        self.0.iter().all(certain)
    }

    /// The outcome of the round, in terms of a release: `Released` when `needed` children were held. A child that was
    /// never taken replies that it was not held, and does not count.
    pub(crate) fn outcome(&self, needed: u16) -> Ending {
        let count = |is: fn(&ChildReply) -> bool| self.0.iter().filter(|child| is(child)).count() as u16;
        let ours = count(|child| *child == ChildReply::WasHeld);
        let unsure = count(|child| matches!(child, ChildReply::Failed(_) | ChildReply::NoReply));
        if ours >= needed {
            return Ending::Released;
        }
        if ours + unsure < needed {
            return Ending::Expired;
        }
        let error = self.0.iter().find_map(|child| match child {
            ChildReply::Failed(kind) => Some(*kind),
            ChildReply::NotAsked
            | ChildReply::Waiting(_)
            | ChildReply::WasHeld
            | ChildReply::NotHeld
            | ChildReply::NoReply => None,
        });
        error.map_or(Ending::Unknown, Ending::Failed)
    }
}
