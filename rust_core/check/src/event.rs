//! The events that the driver reports to the checker: the steps of one client from an attempt to its release.
//!
//! ```text
//!                 Waiting            Granted             Released
//!          Idle ───────────> Waiting ───────> Holding ───────────────> Idle
//!           ^                 │ ↺ Queued       │  ↺ Renewed, LeaseLost, HungUp
//!           └ GaveUp, CutOff, ┘                └─ Stopped, ─> Stopped ───> Idle  Released, or the next Waiting
//!             Died                                Died
//! ```
//!
//! For locks that depend on a session a `LeaseLost` or a `HungUp` may also follow the `Released`; for locks with a
//! lease a `DeniedRelease` may. An event that its client's state does not allow is a finding: see `findings`.
//!
//! All entries of one owner are one grant: `Granted` is the first, `Released` the last. A client that takes several
//! keys at once reports each as a client of its own.
//!
//! Stamps do not decrease. At equal stamps an event that ends a grant comes before one that begins a grant, because
//! intervals are half-open; `Merge` ensures both when several threads report.

use locks::{Fence, Key, Mode, Nanos};

/// A client, numbered from 0 over all threads of a trial.
pub type ClientId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first attempt of an acquire is sent.
    Waiting { client: ClientId, key: Key, mode: Mode },
    /// The server acknowledged the client's place in the queue: clients whose attempts are sent from now on come after
    /// it. Repeated when that place was lost and replaced by a new one.
    Queued { client: ClientId },
    /// The acquire ended without a grant, or with unknown outcome.
    GaveUp { client: ClientId },
    /// The end of a phase ended the wait, which the client would have continued. `placed` when its place in the queue
    /// certainly still exists at this time.
    CutOff { client: ClientId, placed: bool },
    /// The key of the client's `Waiting` was granted, in the mode of its `Waiting`. `until` is the end of the lease,
    /// `Nanos::NEVER` if nothing ends it; `hold` is how long the client planned to hold, whatever it then does.
    Granted {
        client: ClientId,
        until: Nanos,
        hold: Nanos,
        fence: Option<Fence>,
    },
    /// The lease was renewed, and the reply came before the earlier lease had ended: belief now ends at `until`.
    Renewed { client: ClientId, until: Nanos },
    /// The holder learned that it no longer holds the lock: belief ends, work goes on. For locks that depend on a
    /// session, also between the release and the client's next step: the reply to the release showed that the session
    /// had ended.
    LeaseLost { client: ClientId },
    /// The lock itself closed the session of its hold. From now on a loss of this session excuses nothing, and the
    /// holder believes until its release: only the lock itself has ended the hold.
    HungUp { client: ClientId },
    /// The holder stopped working without a release, for example at the end of its lease: belief and work end. A
    /// release may follow; it counts for the hand-over, and for what it may delete.
    Stopped { client: ClientId },
    /// The client died, with all that it knew: its wait ends, or its belief and its work. What it held stays on the
    /// server until the lease ends.
    Died { client: ClientId },
    /// The release is about to be sent: belief and work end.
    Released { client: ClientId },
    /// The reply to the release was "not held" before the lease ended, and no loss had been reported before.
    DeniedRelease { client: ClientId },
    /// The driver of this client, and maybe of others, did not run for a while before, or a planned fault lasts: nobody
    /// could be granted anything through it. The client's state does not change.
    DriverStalled { client: ClientId },
}

impl Event {
    pub const fn client(mut self) -> ClientId {
        *self.client_mut()
    }

    /// The client, to give it another number.
    pub const fn client_mut(&mut self) -> &mut ClientId {
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
            | Self::Died { client }
            | Self::Released { client }
            | Self::DeniedRelease { client }
            | Self::DriverStalled { client } => client,
        }
    }

    /// Whether the event ends a belief: at equal stamps such events come first.
    pub const fn ends_belief(self) -> bool {
        match self {
            Self::LeaseLost { .. } | Self::Stopped { .. } | Self::Died { .. } | Self::Released { .. } => true,
            Self::Waiting { .. }
            | Self::Queued { .. }
            | Self::GaveUp { .. }
            | Self::CutOff { .. }
            | Self::Granted { .. }
            | Self::Renewed { .. }
            | Self::HungUp { .. }
            | Self::DeniedRelease { .. }
            | Self::DriverStalled { .. } => false,
        }
    }
}
