//! The Lua scripts, one file each in `src/lua`, and the keys and numbers that each is given.

/// A script. Its answer is an integer or nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    CompareAndDelete,
    QueueTake,
    QueueLeave,
    NotifyAcquire,
    NotifyRelease,
}

/// A key beside a lock's own: its name is the lock's with a colon and `suffix` behind, so that all have one hash tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Companion {
    /// Who waits, in order.
    Queue,
    /// Until when each waiter counts as alive.
    Deadlines,
    /// What the names of doorbells begin with; a colon and the waiter's token follow.
    Bell,
    /// Where releases are published.
    Channel,
    /// The counter of fences; never expires.
    Fence,
    /// Who waits to write.
    Writers,
}

impl Companion {
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Deadlines => "deadlines",
            Self::Bell => "bell",
            Self::Channel => "channel",
            Self::Fence => "fence",
            Self::Writers => "writers",
        }
    }
}

impl Script {
    pub const ALL: [Self; 5] = [
        Self::CompareAndDelete,
        Self::QueueTake,
        Self::QueueLeave,
        Self::NotifyAcquire,
        Self::NotifyRelease,
    ];

    pub const fn source(self) -> &'static str {
        match self {
            Self::CompareAndDelete => include_str!("lua/compare_and_delete.lua"),
            Self::QueueTake => include_str!("lua/queue_take.lua"),
            Self::QueueLeave => include_str!("lua/queue_leave.lua"),
            Self::NotifyAcquire => include_str!("lua/notify_acquire.lua"),
            Self::NotifyRelease => include_str!("lua/notify_release.lua"),
        }
    }

    /// Its `KEYS` behind the lock's own name.
    pub const fn companions(self) -> &'static [Companion] {
        match self {
            Self::CompareAndDelete | Self::NotifyAcquire => &[],
            Self::QueueTake | Self::QueueLeave => &[Companion::Queue, Companion::Deadlines, Companion::Bell],
            Self::NotifyRelease => &[Companion::Channel],
        }
    }

    /// How many numbers stand in its `ARGV` behind the token: none, one or two.
    pub const fn numbers(self) -> usize {
        match self {
            Self::CompareAndDelete | Self::NotifyRelease => 0,
            // The lease.
            Self::NotifyAcquire => 1,
            // The lease, and how long a waiter counts as alive, or whether it listens to its bell.
            Self::QueueTake | Self::QueueLeave => 2,
        }
    }
}
