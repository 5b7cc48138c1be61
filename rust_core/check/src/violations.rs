//! The log of violations: counts all of them, keeps the first 100, and fills in their ends.

use crate::checker::Checker;
use crate::table::State;
use crate::{ClientId, GrantSpan, Violation, ViolationCounts, ViolationKind};
use locks::{Key, Nanos};

/// Enough to see the pattern; a lock that breaks at every grant must not fill the memory.
const RECORDED_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct ViolationLog {
    pub(crate) counts: ViolationCounts,
    recorded: Vec<Violation>,
}

impl ViolationLog {
    pub(crate) fn new() -> Self {
        Self {
            counts: ViolationCounts::default(),
            recorded: Vec::with_capacity(RECORDED_MAX),
        }
    }

    pub(crate) fn count(&mut self, kind: ViolationKind) {
        match kind {
            ViolationKind::DoubleGrant => self.counts.double_grants += 1,
            ViolationKind::DoubleGrantAfterOverrun => self.counts.double_grants_after_overrun += 1,
            ViolationKind::LeaseOverrun => self.counts.lease_overruns += 1,
            ViolationKind::SessionLost => self.counts.sessions_lost += 1,
            ViolationKind::StaleFence => self.counts.stale_fences += 1,
            ViolationKind::FifoInversion => self.counts.fifo_inversions += 1,
            ViolationKind::StalledKey => self.counts.stalls += 1,
            ViolationKind::StarvedClient => self.counts.starved += 1,
            ViolationKind::DeniedRelease => self.counts.denied_releases += 1,
        }
    }

    /// Records the violation if there is room. Returns its index, if the log needs the ends of the two grants.
    pub(crate) fn record(&mut self, violation: Violation) -> Option<usize> {
        if self.recorded.len() == RECORDED_MAX {
            return None;
        }
        self.recorded.push(violation);
        Some(self.recorded.len() - 1)
    }

    /// What may be `recorded` as a double grant was a lost session, as was found at `at`.
    pub(crate) fn session_lost(&mut self, recorded: Option<usize>, at: Nanos) {
        self.count(ViolationKind::SessionLost);
        if let Some(place) = recorded {
            self.recorded[place].kind = ViolationKind::SessionLost;
            self.recorded[place].first.until = Some(at);
        }
    }

    /// The current grant of `client` ended its work. Called only for grants of recorded violations, so that the scan
    /// runs at most twice for each of them.
    pub(crate) fn work_ended(&mut self, client: ClientId, at: Nanos) {
        // The span of an earlier grant of the same client already has its end, and a waiting client has no grant to
        // end.
        let is_own = |span: &GrantSpan| span.client == client && span.granted.is_some() && span.ended.is_none();
        for violation in &mut self.recorded {
            let Some(second) = &mut violation.second else { continue };
            let first = &mut violation.first;
            let (own, other) = if is_own(first) {
                (first, second)
            } else if is_own(second) {
                (second, first)
            } else {
                continue;
            };
            own.ended = Some(at);
            if other.granted.is_some() && other.ended.is_none() {
                violation.overlap = at.since(violation.at);
            }
        }
    }

    /// Those that are described so far.
    pub(crate) fn recorded(&self) -> &[Violation] {
        &self.recorded
    }

    pub(crate) fn finish(mut self, at: Nanos) -> (ViolationCounts, Vec<Violation>) {
        for violation in &mut self.recorded {
            let Some(second) = violation.second.filter(|second| second.granted.is_some()) else {
                continue;
            };
            if violation.first.ended.is_none() && second.ended.is_none() {
                violation.overlap = at.since(violation.at);
            }
        }
        (self.counts, self.recorded)
    }
}

impl Checker {
    /// The current grant of `id`, without an end.
    pub(crate) fn span(&self, id: ClientId) -> GrantSpan {
        let fence = self.fences.as_ref().and_then(|fences| fences.of(id));
        self.clients[id as usize].span(id, fence)
    }

    /// Logs that the current grant of `second` should not have been made, because of the earlier grant `first`.
    pub(crate) fn note(&mut self, kind: ViolationKind, at: Nanos, first: GrantSpan, second: ClientId) {
        self.log.count(kind);
        self.record(kind, at, first, second);
    }

    /// Records such a violation, if there is room, and returns its index.
    pub(crate) fn record(
        &mut self,
        kind: ViolationKind,
        at: Nanos,
        first: GrantSpan,
        second: ClientId,
    ) -> Option<usize> {
        let first = match first.ended {
            None => self.span(first.client),
            Some(_) => first,
        };
        let violation = Violation {
            kind,
            key: Key(self.clients[second as usize].key),
            at,
            overlap: Nanos::ZERO,
            first,
            second: Some(self.span(second)),
        };
        let place = self.log.record(violation)?;
        self.clients[first.client as usize].in_violation |= first.ended.is_none();
        self.clients[second as usize].in_violation = true;
        Some(place)
    }

    /// Logs a violation against `waiting`, which has waited for `lasted`. `first` is the grant that was made instead.
    pub(crate) fn note_waiting(
        &mut self,
        kind: ViolationKind,
        at: Nanos,
        lasted: Nanos,
        first: Option<GrantSpan>,
        waiting: ClientId,
    ) {
        self.log.count(kind);
        let key = self.clients[waiting as usize].key;
        let waits = GrantSpan::waiting(waiting);
        let (first, second) = match first {
            // Its holder may have ended its work, or hold another key by now.
            Some(first) => (first, Some(waits)),
            None => (waits, None),
        };
        let violation = Violation {
            kind,
            key: Key(key),
            at,
            overlap: lasted,
            first,
            second,
        };
        self.log.record(violation);
    }

    /// The reply to the release of `id` was "not held" before its lease ended.
    #[cold]
    pub(crate) fn denied(&mut self, at: Nanos, id: ClientId) {
        if !matches!(self.clients[id as usize].state, State::Idle | State::Unconfirmed) {
            return self.cannot(at, id, "be denied a release");
        }
        self.log.count(ViolationKind::DeniedRelease);
        let violation = Violation {
            kind: ViolationKind::DeniedRelease,
            key: Key(self.clients[id as usize].key),
            at,
            overlap: Nanos::ZERO,
            first: self.span(id),
            second: None,
        };
        self.log.record(violation);
    }
}
