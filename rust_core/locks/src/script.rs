//! The Lua scripts, one file each in `src/lua`, and the keys and numbers that each is given.

/// A script. Its answer is an integer or nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    CompareAndDelete,
    CompareAndExpire,
    FencedTake,
    GiveBackAll,
    NotifyAcquire,
    NotifyRelease,
    QueueLeave,
    QueueTake,
    ReadGiveBack,
    ReadTake,
    ReentrantEnter,
    ReentrantLeave,
    ReentrantTake,
    SemaphoreGiveBack,
    SemaphoreTake,
    TakeAll,
    WriteGiveBack,
    WriteTake,
}

/// A key beside a lock's own: its name is the lock's with a colon and `suffix` behind, so that all have one hash tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Companion {
    /// Who waits, in order.
    Queue,
    /// Until when each waiter counts as alive.
    Deadlines,
    /// What the names of doorbells begin with; a waiter's token follows.
    Bell,
    /// Where releases are published.
    Channel,
    /// The counter of fences; never expires.
    Fence,
    /// Who reads, and until when.
    Readers,
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
            Self::Readers => "readers",
            Self::Writers => "writers",
        }
    }
}

impl Script {
    pub const ALL: [Self; 18] = [
        Self::CompareAndDelete,
        Self::CompareAndExpire,
        Self::FencedTake,
        Self::GiveBackAll,
        Self::NotifyAcquire,
        Self::NotifyRelease,
        Self::QueueLeave,
        Self::QueueTake,
        Self::ReadGiveBack,
        Self::ReadTake,
        Self::ReentrantEnter,
        Self::ReentrantLeave,
        Self::ReentrantTake,
        Self::SemaphoreGiveBack,
        Self::SemaphoreTake,
        Self::TakeAll,
        Self::WriteGiveBack,
        Self::WriteTake,
    ];

    pub const fn source(self) -> &'static str {
        match self {
            Self::CompareAndDelete => include_str!("lua/compare_and_delete.lua"),
            Self::CompareAndExpire => include_str!("lua/compare_and_expire.lua"),
            Self::FencedTake => include_str!("lua/fenced_take.lua"),
            Self::GiveBackAll => include_str!("lua/give_back_all.lua"),
            Self::NotifyAcquire => include_str!("lua/notify_acquire.lua"),
            Self::NotifyRelease => include_str!("lua/notify_release.lua"),
            Self::QueueLeave => include_str!("lua/queue_leave.lua"),
            Self::QueueTake => include_str!("lua/queue_take.lua"),
            Self::ReadGiveBack => include_str!("lua/read_give_back.lua"),
            Self::ReadTake => include_str!("lua/read_take.lua"),
            Self::ReentrantEnter => include_str!("lua/reentrant_enter.lua"),
            Self::ReentrantLeave => include_str!("lua/reentrant_leave.lua"),
            Self::ReentrantTake => include_str!("lua/reentrant_take.lua"),
            Self::SemaphoreGiveBack => include_str!("lua/semaphore_give_back.lua"),
            Self::SemaphoreTake => include_str!("lua/semaphore_take.lua"),
            Self::TakeAll => include_str!("lua/take_all.lua"),
            Self::WriteGiveBack => include_str!("lua/write_give_back.lua"),
            Self::WriteTake => include_str!("lua/write_take.lua"),
        }
    }

    /// Its `KEYS` behind the lock's own name.
    pub const fn companions(self) -> &'static [Companion] {
        match self {
            Self::CompareAndDelete
            | Self::CompareAndExpire
            | Self::GiveBackAll
            | Self::NotifyAcquire
            | Self::ReentrantEnter
            | Self::ReentrantLeave
            | Self::ReentrantTake
            | Self::SemaphoreGiveBack
            | Self::SemaphoreTake
            | Self::TakeAll => &[],
            Self::FencedTake => &[Companion::Fence],
            Self::NotifyRelease => &[Companion::Channel],
            Self::QueueLeave | Self::QueueTake => &[Companion::Queue, Companion::Deadlines, Companion::Bell],
            Self::ReadGiveBack => &[Companion::Readers],
            Self::ReadTake | Self::WriteTake => &[Companion::Readers, Companion::Writers],
            Self::WriteGiveBack => &[Companion::Writers],
        }
    }

    /// How many numbers stand in its `ARGV` behind the token: none, one or two.
    pub const fn numbers(self) -> usize {
        match self {
            // Those of `RunAll` have their lease from there.
            Self::CompareAndDelete
            | Self::GiveBackAll
            | Self::NotifyRelease
            | Self::ReadGiveBack
            | Self::SemaphoreGiveBack
            | Self::TakeAll
            | Self::WriteGiveBack => 0,
            // The lease, or how many entries are left.
            Self::CompareAndExpire
            | Self::FencedTake
            | Self::NotifyAcquire
            | Self::ReadTake
            | Self::ReentrantEnter
            | Self::ReentrantLeave
            | Self::ReentrantTake => 1,
            // The lease, and: how many permits, how long a claim lasts, or (of a queue) how long a waiter counts as
            // alive and whether it listens to its bell.
            Self::QueueLeave | Self::QueueTake | Self::SemaphoreTake | Self::WriteTake => 2,
        }
    }
}
