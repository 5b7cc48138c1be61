//! What the checker hands back when a trial ends.

use crate::ClientId;
use locks::{Fence, Key, Nanos};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub figures: Figures,
    pub counts: ViolationCounts,
    /// The first 100, in the order of `at`; `counts` has them all.
    pub violations: Vec<Violation>,
    /// The first of `counts.findings`, in words.
    pub first_finding: Option<String>,
}

/// Figures of the window: of the grants made in it, from what was seen until it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub grants: u64,
    /// Grants that a broken lock could have shown itself on: see `contention`.
    pub contended_grants: u64,
    /// Grants made while somebody still waited for the key whose first attempt was sent strictly earlier.
    pub overtakes: u64,
    /// The longest run of consecutive grants of one key to one client with somebody else waiting for it at each of
    /// them. A grant that nobody else waited for ends the run: keeping what nobody wants is not unfair.
    pub longest_streak: u64,
    /// The most overtakes that one client saw while it waited, by clients that began to wait after it.
    pub longest_overtake: u64,
    /// Grants that came only because an earlier holder's lease ended: see `stalls`.
    pub lease_freed_grants: u64,
}

/// Violations of the whole trial, warm-up and drain included. For standing beside others a grant counts at most once,
/// under the worst that is true of it: a double grant before a lost session, and that before a lease overrun. A stale fence and an inversion count
/// besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViolationCounts {
    /// Grants of a key while another holder of it believed that excludes this one; of a semaphore, while all permits
    /// were held by believers.
    pub double_grants: u64,
    /// The same on a key for which, earlier in the trial, a release was sent after its belief had ended. A lock that
    /// deletes without asking whose the key is may have deleted another's then, whose own release in turn deletes the
    /// next one's. No event shows that the last such delete has arrived (it may still travel when nobody holds the
    /// key), so the mark on a key stays to the end of the trial.
    pub double_grants_after_overrun: u64,
    /// Grants of a key that are no double grants, but would be if all had believed that still worked.
    pub lease_overruns: u64,
    /// Grants of a key while other holders of it believed, all of whom found later that their sessions were gone. Only of
    /// locks that live with a session.
    pub sessions_lost: u64,
    /// Holders that worked past their belief and then released. A holder that stopped is none.
    pub outlived: u64,
    /// Grants of a key with a fence not above that of an earlier grant.
    pub stale_fences: u64,
    /// Grants to clients that had a place in the queue and were passed by one who came later. Who was passed and then
    /// gave up is not among them: it may have left the queue, or lost its place, before it was passed. Violations only
    /// of a lock that promises the order; of another that acknowledges places they are counted all the same, and are not
    /// among `Report::violations`.
    pub fifo_inversions: u64,
    /// Times that nobody held or was granted a key for longer than `Rules::granted_within`, while somebody waited for it
    /// all the while.
    pub stalls: u64,
    /// Clients that waited when the window ended, had waited for at least half of it, and were passed over at least 20
    /// times. A violation only of a lock that promises an order.
    pub starved: u64,
    /// Releases that were answered "not held" inside their lease.
    pub denied_releases: u64,
    /// Events that their client's state, or their stamp, does not allow. The driver or the checker is wrong, and nothing
    /// of this trial is proved.
    pub findings: u64,
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

/// Two grants of one key that should not have stood beside each other, or not in this order; or one client that was
/// denied what it should have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub key: Key,
    /// When the second was granted, or what the first was denied was seen.
    pub at: Nanos,
    /// How long both worked from then on; up to the end of the trial when neither had ended. Of a key that stalled and of
    /// a client that starved, how long that had lasted at `at`.
    pub overlap: Nanos,
    /// Of those in the way of the second, the latest granted; of a semaphore's, the one with whom the permits were used
    /// up, counted from the latest granted. With a stale fence, the grant with the highest fence before; with an
    /// inversion, who came later and was granted first. Of a key that stalled, who had waited longest; of a client that
    /// starved and a release that was denied, that client.
    pub first: GrantSpan,
    /// `None` where no second grant is to blame or was passed.
    pub second: Option<GrantSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantSpan {
    pub client: ClientId,
    /// `None` of a client that waits.
    pub granted: Option<Nanos>,
    /// The end of the lease as it stood when the second was granted; `None` when nothing ends it. Of the first of a lost
    /// session, when the last of those in the way had found that it was lost.
    pub until: Option<Nanos>,
    /// Only of locks that promise fences.
    pub fence: Option<Fence>,
    /// When its work ended; `None` when it had not when the trial ended.
    pub ended: Option<Nanos>,
}

impl GrantSpan {
    /// Of a client that waits.
    pub(crate) const fn waiting(client: ClientId) -> Self {
        Self {
            client,
            granted: None,
            until: None,
            fence: None,
            ended: None,
        }
    }

    /// `present`, its client's grant of the same key, ends its work; if that is this one, this has the end now.
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
