//! The log of violations: counts all of them, keeps the first 100 and fills in how each went on.

use crate::{ClientId, GrantSpan, Violation, ViolationCounts, ViolationKind};
use locks::Nanos;

/// Enough to see the pattern; a lock that breaks at every grant must not fill the memory.
const RECORDED_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct ViolationLog {
    pub(crate) counts: ViolationCounts,
    recorded: Vec<Violation>,
}

/// Whether the log wants to hear of the ends of the two grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Recorded,
    OnlyCounted,
}

impl ViolationLog {
    pub(crate) fn new() -> Self {
        Self {
            counts: ViolationCounts::default(),
            recorded: Vec::with_capacity(RECORDED_MAX),
        }
    }

    pub(crate) fn note(&mut self, violation: Violation) -> Noted {
        match violation.kind {
            ViolationKind::DoubleGrant => self.counts.double_grants += 1,
            ViolationKind::DoubleGrantAfterOverrun => self.counts.double_grants_after_overrun += 1,
            ViolationKind::LeaseOverrun => self.counts.lease_overruns += 1,
            ViolationKind::StaleFence => self.counts.stale_fences += 1,
            ViolationKind::FifoInversion => self.counts.fifo_inversions += 1,
        }
        if self.recorded.len() == RECORDED_MAX {
            return Noted::OnlyCounted;
        }
        self.recorded.push(violation);
        Noted::Recorded
    }

    /// The present grant of `client` ended its work. Called for grants of recorded violations only, so that the scan
    /// runs at most twice for each of them.
    pub(crate) fn work_ended(&mut self, client: ClientId, at: Nanos) {
        for Violation {
            at: since,
            overlap,
            first,
            second,
            ..
        } in &mut self.recorded
        {
            // A span of an earlier grant of the same client has its end already.
            let is_own = |span: &GrantSpan| span.client == client && span.ended.is_none();
            let (own, other) = if is_own(first) {
                (first, second)
            } else if is_own(second) {
                (second, first)
            } else {
                continue;
            };
            own.ended = Some(at);
            if other.ended.is_none() {
                *overlap = at.since(*since);
            }
        }
    }

    pub(crate) fn finish(mut self, at: Nanos) -> (ViolationCounts, Vec<Violation>) {
        for violation in &mut self.recorded {
            if violation.first.ended.is_none() && violation.second.ended.is_none() {
                violation.overlap = at.since(violation.at);
            }
        }
        (self.counts, self.recorded)
    }
}
