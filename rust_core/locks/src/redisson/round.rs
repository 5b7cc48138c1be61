//! One script, sent to several children at once, and the reply of each.

use crate::{CallId, ErrorKind, Outcome, Reply, ScriptForm};

#[derive(Debug)]
pub(crate) struct Round(Box<[Said]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    NotAsked,
    Waiting {
        call: CallId,
        form: ScriptForm,
    },
    /// `NOSCRIPT` was the reply to its SHA-1.
    WantsSource,
    /// 1: this client held the child.
    Yes,
    /// 0: this client did not hold the child.
    No,
    Failed(ErrorKind),
    Nothing,
}

impl Round {
    pub(crate) fn new(children: u16) -> Self {
        Self(vec![Said::NotAsked; usize::from(children)].into())
    }

    pub(crate) fn begin(&mut self) {
        self.0.fill(Said::NotAsked);
    }

    pub(crate) fn sent(&mut self, child: u16, call: CallId) {
        let form = ScriptForm::Sha;
        self.0[usize::from(child)] = Said::Waiting { call, form };
    }

    pub(crate) fn sent_as_source(&mut self, child: u16, call: CallId) {
        let form = ScriptForm::Source;
        self.0[usize::from(child)] = Said::Waiting { call, form };
    }

    /// The child whose reply this is.
    pub(crate) fn answered(&mut self, call: CallId, reply: Reply) -> Option<u16> {
        let child = self.child_of(call)?;
        let said = &mut self.0[child];
        *said = match (reply, *said) {
            (Reply::Int(1), _) => Said::Yes,
            (Reply::Int(0), _) => Said::No,
            (
                Reply::Error(ErrorKind::NoScript),
                Said::Waiting {
                    form: ScriptForm::Sha, ..
                },
            ) => Said::WantsSource,
            (Reply::Error(kind), _) => Said::Failed(kind),
            (
                Reply::Ok
                | Reply::Nil
                | Reply::Int(_)
                | Reply::Entry(_)
                | Reply::Token(_)
                | Reply::Items
                | Reply::Other,
                _,
            ) => Said::Failed(ErrorKind::Unexpected),
        };
        Some(child as u16)
    }

    pub(crate) fn wants_source(&self, child: u16) -> bool {
        self.0[usize::from(child)] == Said::WantsSource
    }

    /// Whether the call belongs to this round.
    pub(crate) fn lost(&mut self, call: CallId) -> bool {
        let child = self.child_of(call);
        if let Some(child) = child {
            self.0[child] = Said::Nothing;
        }
        child.is_some()
    }

    /// The children that have not replied have used up their time.
    pub(crate) fn give_up(&mut self) {
        for said in &mut self.0 {
            if let Said::Waiting { .. } = said {
                *said = Said::Nothing;
            }
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.0.iter().any(|said| matches!(said, Said::Waiting { .. }))
    }

    /// Whether all children that were asked have replied.
    pub(crate) fn is_certain(&self) -> bool {
        let certain = |said: &Said| matches!(said, Said::NotAsked | Said::Yes | Said::No);
        self.0.iter().all(certain)
    }

    /// The outcome of the round, in terms of a release: `Released` when `needed` children were held. A child that was
    /// never taken replies that it was not held, and does not count.
    pub(crate) fn outcome(&self, needed: u16) -> Outcome {
        let count = |is: fn(&Said) -> bool| self.0.iter().filter(|said| is(said)).count() as u16;
        let ours = count(|said| *said == Said::Yes);
        let unsure = count(|said| matches!(said, Said::Failed(_) | Said::Nothing));
        if ours >= needed {
            return Outcome::Released;
        }
        if ours + unsure < needed {
            return Outcome::Expired;
        }
        let error = self.0.iter().find_map(|said| match said {
            Said::Failed(kind) => Some(*kind),
            Said::NotAsked | Said::Waiting { .. } | Said::WantsSource | Said::Yes | Said::No | Said::Nothing => None,
        });
        error.map_or(Outcome::Unknown, Outcome::Failed)
    }

    fn child_of(&self, id: CallId) -> Option<usize> {
        let is_mine = |said: &Said| matches!(said, Said::Waiting { call, .. } if *call == id);
        self.0.iter().position(is_mine)
    }
}
