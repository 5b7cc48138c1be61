//! Fences: a number that comes with every grant of a key and grows, so that what the key guards can refuse a holder
//! that was overtaken.
//!
//! The property: a grant's fence is above those of all grants of the key before it. M. Burrows: The Chubby Lock Service
//! for Loosely-Coupled Distributed Systems, OSDI 2006 (sequencers); M. Kleppmann: How to Do Distributed Locking, 2016.
//!
//! Compared is the highest fence so far, not the last: when a counter starts anew, what it guards goes on to refuse
//! all fences up to the highest it has seen.

use crate::report::GrantSpan;
use locks::Nanos;

#[derive(Debug)]
pub(crate) struct Fences {
    /// Of each key the grant with the highest fence.
    highest: Box<[Option<GrantSpan>]>,
}

impl Fences {
    pub(crate) fn new(keys: u32) -> Self {
        Self {
            highest: vec![None; keys as usize].into_boxed_slice(),
        }
    }

    /// Takes a grant, and returns the one before whose fence is as high or higher.
    pub(crate) fn granted(&mut self, key: u32, grant: GrantSpan) -> Option<GrantSpan> {
        assert!(
            grant.fence.is_some(),
            "client {} was granted a lock without a fence, but its lock promises one",
            grant.client
        );
        let highest = &mut self.highest[key as usize];
        let above = highest.filter(|before| before.fence >= grant.fence);
        if above.is_none() {
            *highest = Some(grant);
        }
        above
    }

    /// `grant`, its client's present one, ends its work.
    pub(crate) fn ended(&mut self, key: u32, grant: GrantSpan, at: Nanos) {
        if let Some(highest) = &mut self.highest[key as usize] {
            highest.end(grant, at);
        }
    }
}
