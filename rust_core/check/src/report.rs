//! The result of the checker at the end of a trial.

use crate::ClientId;
use locks::{Fence, Key, Nanos};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub figures: Figures,
    /// Locks that clients left behind which died while they believed: nobody can release such a lock before its lease
    /// ends. In the whole trial; none of a lock that ends with a session.
    pub orphans: u64,
    /// From the death of each holder to the next grant of its key, if there was one: the first 10,000.
    pub time_to_free: Vec<Nanos>,
    pub counts: ViolationCounts,
    /// The first 100, in the order of `at`; `counts` counts all.
    pub violations: Vec<Violation>,
    /// The text of the first of `counts.findings`.
    pub first_finding: Option<String>,
}

/// Figures of the window: for the grants made in it, from what was seen until it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub grants: u64,
    /// Contended grants, on which a broken lock could have shown itself: see `contention`.
    pub contended_grants: u64,
    /// Grants made while another client, whose first attempt was sent strictly earlier, still waited for the key.
    pub overtakes: u64,
    /// The longest run of consecutive grants of one key to one client while another client waited for it at each of
    /// them. A grant without other waiters ends the run, because keeping an unwanted lock is not unfair.
    pub longest_streak: u64,
    /// The most overtakes that one client suffered while it waited, by clients that began to wait after it.
    pub longest_overtake: u64,
    /// Grants that came only because an earlier holder's lease ended: see `stalls`.
    pub lease_freed_grants: u64,
}

/// Violations of the whole trial, warm-up and drain included. For its overlaps a grant counts at most once, under the
/// worst kind: a double grant before a lost session, and that before a lease overrun. A stale fence and an inversion
/// count in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViolationCounts {
    /// Grants of a key during the belief of another holder that excludes this one; for a semaphore, while believers
    /// held all permits.
    pub double_grants: u64,
    /// Double grants of a key for which, earlier in the trial, a release was sent after its belief had ended. A lock
    /// that deletes without checking the owner may have deleted another client's lock then, whose own release in turn
    /// deletes the next one's. No event shows that the last such delete has arrived (it may still be under way when
    /// nobody holds the key), so a marked key stays marked to the end of the trial.
    pub double_grants_after_overrun: u64,
    /// Grants of a key that are not double grants, but would be if every client that still worked had believed.
    pub lease_overruns: u64,
    /// Grants of a key during the beliefs of other holders, all of whom found out later that their sessions had ended.
    /// Only for locks that depend on a session.
    pub sessions_lost: u64,
    /// Holders that worked past the end of their belief and then released. A holder that stopped does not count.
    pub outlived: u64,
    /// Grants of a key whose fence is not above that of an earlier grant.
    pub stale_fences: u64,
    /// Grants to clients that had a place in the queue and were overtaken by a later client. A client that was
    /// overtaken and then gave up does not count: it may have left the queue, or lost its place, before it was
    /// overtaken. They are violations only for a lock that promises the order; for another that acknowledges places
    /// they are still counted, and are not in `Report::violations`.
    pub fifo_inversions: u64,
    /// How often nobody held or was granted a key for longer than `Rules::granted_within` while one client waited for
    /// it all the time.
    pub stalls: u64,
    /// Clients that waited when the window ended, had waited for at least half of it, and were overtaken at least 20
    /// times. A violation only for a lock that promises an order.
    pub starved: u64,
    /// Releases whose reply was "not held" before their lease ended.
    pub denied_releases: u64,
    /// Events that their client's state, or their stamp, does not allow. The driver or the checker is wrong, and this
    /// trial proves nothing.
    pub findings: u64,
}

impl ViolationCounts {
    /// What was counted after `earlier`, of the same trial.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            double_grants: self.double_grants - earlier.double_grants,
            double_grants_after_overrun: self.double_grants_after_overrun - earlier.double_grants_after_overrun,
            lease_overruns: self.lease_overruns - earlier.lease_overruns,
            sessions_lost: self.sessions_lost - earlier.sessions_lost,
            outlived: self.outlived - earlier.outlived,
            stale_fences: self.stale_fences - earlier.stale_fences,
            fifo_inversions: self.fifo_inversions - earlier.fifo_inversions,
            stalls: self.stalls - earlier.stalls,
            starved: self.starved - earlier.starved,
            denied_releases: self.denied_releases - earlier.denied_releases,
            findings: self.findings - earlier.findings,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    DoubleGrant,
    DoubleGrantAfterOverrun,
    LeaseOverrun,
    SessionLost,
    StaleFence,
    FifoInversion,
    StalledKey,
    StarvedClient,
    DeniedRelease,
}

/// Two grants of one key that should not have overlapped, or not have come in this order; or one client that was denied
/// what it should have got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub key: Key,
    /// When the second was granted, or when the denial was noticed.
    pub at: Nanos,
    /// How long both worked from then on; up to the end of the trial if neither had ended. For a stalled key and a
    /// starved client, how long that had lasted at `at`.
    pub overlap: Nanos,
    /// The grant in the way of the second; of several, the one granted latest; for a semaphore, the grant that used up
    /// the permits, counted from the one granted latest. With a stale fence, the earlier grant with the highest fence.
    /// With an inversion, the grant that came later and was granted first. For a stalled key, the client that had
    /// waited longest; for a starved client and a denied release, that client.
    pub first: GrantSpan,
    /// `None` if no second grant is to blame or was overtaken.
    pub second: Option<GrantSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantSpan {
    pub client: ClientId,
    /// `None` for a client that waits.
    pub granted: Option<Nanos>,
    /// The end of the lease when the second was granted; `None` if nothing ends it. For the first of a lost session,
    /// when the last of those in the way had found that its session had ended.
    pub until: Option<Nanos>,
    /// Only for locks that promise fences.
    pub fence: Option<Fence>,
    /// When the work ended; `None` if it had not when the trial ended.
    pub ended: Option<Nanos>,
}

impl GrantSpan {
    /// The span of a client that waits.
    pub(crate) const fn waiting(client: ClientId) -> Self {
        Self {
            client,
            granted: None,
            until: None,
            fence: None,
            ended: None,
        }
    }

    /// Records the end of the work of `present`, its client's current grant of the same key, if that is this grant.
    pub(crate) fn end(&mut self, present: Self, at: Nanos) {
        // A client's earlier grants of a key have ended before.
        if self.client == present.client && self.ended.is_none() {
            *self = Self {
                ended: Some(at),
                ..present
            };
        }
    }
}
