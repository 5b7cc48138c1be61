//! What the checker hands back when a trial ends.

use crate::ClientId;
use locks::{Key, Nanos};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub figures: Figures,
    pub counts: ViolationCounts,
    /// The first 100, in the order of `at`; `counts` has them all.
    pub violations: Vec<Violation>,
}

/// Figures of the window: of the grants made in it, from what was seen until it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub grants: u64,
    /// Grants that a broken lock could have shown itself on. A rival waited at the grant or while it was held; or held
    /// the key at the grant; or had the key's grant next before or after it, less than one nominal hold of the earlier
    /// of the two apart.
    pub contended_grants: u64,
    /// Grants made while somebody still waited for the key whose first attempt was sent strictly earlier.
    pub overtakes: u64,
    /// The longest run of consecutive grants of one key to one client with somebody else waiting for it at each of
    /// them. A grant that nobody else waited for ends the run: keeping what nobody wants is not unfair.
    pub longest_streak: u64,
}

/// Violations of the whole trial, warm-up and drain included. A grant counts at most once, under the worst that is
/// true of it: a double grant before a lease overrun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViolationCounts {
    /// Grants of a key while another holder of it believed.
    pub double_grants: u64,
    /// The same on a key for which, earlier in the trial, a release was sent after its belief had ended. A lock that
    /// deletes without asking whose the key is may have deleted another's then, whose own release in turn deletes the
    /// next one's. No event shows that the last such delete has arrived (it may still travel when nobody holds the
    /// key), so the mark on a key stays to the end of the trial.
    pub double_grants_after_overrun: u64,
    /// Grants of a key while no other holder of it believed, but one still worked.
    pub lease_overruns: u64,
    /// Holders that worked past their belief and then released. A holder that stopped is none.
    pub outlived: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    DoubleGrant,
    DoubleGrantAfterOverrun,
    LeaseOverrun,
}

/// Two grants of one key that should not have stood beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub key: Key,
    /// When the second was granted.
    pub at: Nanos,
    /// How long both worked from then on; up to the end of the trial when neither had ended.
    pub overlap: Nanos,
    /// Of several, the latest granted.
    pub first: GrantSpan,
    pub second: GrantSpan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantSpan {
    pub client: ClientId,
    pub granted: Nanos,
    /// The end of the lease; `None` when nothing ends it.
    pub until: Option<Nanos>,
    /// When its work ended; `None` when it had not when the trial ended.
    pub ended: Option<Nanos>,
}
