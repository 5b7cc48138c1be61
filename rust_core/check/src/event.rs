//! What the driver tells the checker: the steps of one client on its way from an attempt to its release.
//!
//! ```text
//!                 Waiting            Granted             Released
//!          Idle ───────────> Waiting ───────> Holding ───────────────> Idle
//!           ^                 │ ↺ Queued       │  ↺ Renewed, LeaseLost, HungUp
//!           └ GaveUp, CutOff ─┘                └─ Stopped ─> Stopped ────> Idle  Released, or the next Waiting
//! ```
//!
//! Of locks that live with a session a `LeaseLost` or a `HungUp` may also follow the `Released`; of locks with a lease a
//! `DeniedRelease` may. An event that its client's state does not allow is a finding: see `findings`.
//!
//! The entries of one owner are one grant: `Granted` is the first, `Released` the last. Who takes several keys at once
//! tells of each as a client of its own.
//!
//! Stamps come in non-decreasing order. At equal stamps what ends a grant comes before what begins one, for intervals
//! are half-open; `Merge` sees to both where several threads tell.

use locks::{Fence, Key, Mode, Nanos};

/// A client, from 0, over all threads of a trial.
pub type ClientId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first attempt of an acquire is sent.
    Waiting { client: ClientId, key: Key, mode: Mode },
    /// The server acknowledged its place in the queue: whoever is sent from now on comes after it. Once more when that
    /// place was lost and it has a new one.
    Queued { client: ClientId },
    /// The acquire ended without a grant, or nobody knows how.
    GaveUp { client: ClientId },
    /// The end of a period ended the wait: by itself the client would have waited on. `placed` when its place in the queue
    /// lasts for certain at this moment.
    CutOff { client: ClientId, placed: bool },
    /// The key of its `Waiting` was granted, in the mode of its `Waiting`. `until` ends the lease, `Nanos::NEVER` when nothing ends it; `hold` is how
    /// long the client meant to hold, whatever it then does.
    Granted {
        client: ClientId,
        until: Nanos,
        hold: Nanos,
        fence: Option<Fence>,
    },
    /// The lease was set anew, and acknowledged before the one before had passed: belief now ends at `until`.
    Renewed { client: ClientId, until: Nanos },
    /// The holder was told that the lock is no longer its own: belief ends, work goes on. Where sessions are judged also
    /// between its release and what it does next: by the answer to the release it found that its session was gone.
    LeaseLost { client: ClientId },
    /// The lock itself closed the session that it holds by. From now on a loss of this session excuses nothing, and the
    /// holder believes until its release: nobody but the lock has ended what it holds.
    HungUp { client: ClientId },
    /// The holder stopped working without a release, as at the end of its lease: belief and work end. A release may
    /// follow; it counts for the hand-off and for what it may delete.
    Stopped { client: ClientId },
    /// The release is about to be sent: belief and work end.
    Released { client: ClientId },
    /// The release was answered "not held" before the lease ended, and no loss had been told before.
    DeniedRelease { client: ClientId },
    /// The driver of this client, and maybe of others, did not run for a while before: nobody could be granted anything
    /// through it. The client's state stays as it is.
    Stood { client: ClientId },
}

impl Event {
    pub const fn client(self) -> ClientId {
        match self {
            Self::Waiting { client, .. }
            | Self::Queued { client }
            | Self::GaveUp { client }
            | Self::CutOff { client, .. }
            | Self::Granted { client, .. }
            | Self::Renewed { client, .. }
            | Self::LeaseLost { client }
            | Self::HungUp { client }
            | Self::Stopped { client }
            | Self::Released { client }
            | Self::DeniedRelease { client }
            | Self::Stood { client } => client,
        }
    }

    /// Whether it ends a belief: at equal stamps such events come first.
    pub(crate) const fn ends_belief(self) -> bool {
        match self {
            Self::LeaseLost { .. } | Self::Stopped { .. } | Self::Released { .. } => true,
            Self::Waiting { .. }
            | Self::Queued { .. }
            | Self::GaveUp { .. }
            | Self::CutOff { .. }
            | Self::Granted { .. }
            | Self::Renewed { .. }
            | Self::HungUp { .. }
            | Self::DeniedRelease { .. }
            | Self::Stood { .. } => false,
        }
    }
}
