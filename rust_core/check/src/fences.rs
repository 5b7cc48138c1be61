//! Fences: a number that comes with every grant of a key and grows, so that the guarded resource can refuse a holder
//! that was overtaken.
//!
//! The property: a grant's fence is above those of all earlier grants of the key. M. Burrows: The Chubby Lock Service
//! for Loosely-Coupled Distributed Systems, OSDI 2006 (sequencers); M. Kleppmann: How to Do Distributed Locking, 2016.
//!
//! The comparison is with the highest fence so far and not with the last: when a counter restarts, the resource still
//! refuses all fences up to the highest it has seen.

use crate::ClientId;
use crate::report::GrantSpan;
use locks::{Fence, Nanos};

#[derive(Debug)]
pub(crate) struct Fences {
    /// For each key the grant with the highest fence.
    highest: Box<[Option<GrantSpan>]>,
    /// For each client the fence of its last grant.
    own: Box<[Option<Fence>]>,
}

impl Fences {
    pub(crate) fn new(clients: u32, keys: u32) -> Self {
        Self {
            own: vec![None; clients as usize].into_boxed_slice(),
            highest: vec![None; keys as usize].into_boxed_slice(),
        }
    }

    /// Records the fence of the current grant of `client`.
    pub(crate) fn came_with(&mut self, client: ClientId, fence: Option<Fence>) {
        self.own[client as usize] = fence;
    }

    pub(crate) fn of(&self, client: ClientId) -> Option<Fence> {
        self.own[client as usize]
    }

    /// Records a grant, and returns an earlier one whose fence is as high or higher.
    pub(crate) fn granted(&mut self, key: u32, grant: GrantSpan) -> Option<GrantSpan> {
        let highest = &mut self.highest[key as usize];
        let above = highest.filter(|before| before.fence >= grant.fence);
        if above.is_none() {
            *highest = Some(grant);
        }
        above
    }

    /// `grant`, its client's current one, ends its work.
    pub(crate) fn ended(&mut self, key: u32, grant: GrantSpan, at: Nanos) {
        if let Some(highest) = &mut self.highest[key as usize] {
            highest.end(grant, at);
        }
    }
}
