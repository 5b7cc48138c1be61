//! The Lua scripts, one file each in `src/lua`, and the keys and numbers that each takes.

macro_rules! scripts {
    ($($(#[$about:meta])* $name:ident = $file:literal, [$($companion:ident),*], $numbers:literal;)*) => {
        /// A script. It returns an integer, a token or nil.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Script { $($(#[$about])* $name),* }

        impl Script {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            #[cfg(not(feature = "mutants"))]
            pub const fn source(self) -> &'static str {
                self.honest_source()
            }

            #[cfg(feature = "mutants")]
            pub fn source(self) -> &'static str {
                crate::mutants::script(self, self.honest_source())
            }

            pub(crate) const fn honest_source(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("lua/", $file, ".lua"))),* }
            }

            /// Its `KEYS` after the lock's own name.
            pub const fn companions(self) -> &'static [Companion] {
                match self { $(Self::$name => &[$(Companion::$companion),*]),* }
            }

            /// How many numbers follow the token in its `ARGV`: none, one or two. `RunAll` passes the lease of its
            /// scripts itself.
            pub const fn numbers(self) -> usize {
                match self { $(Self::$name => $numbers),* }
            }
        }
    };
}

// Each line: the script, its file, its companions, and how many numbers it takes.
scripts! {
    CompareAndDelete = "compare_and_delete", [], 0;
    /// Renews the lease of the key if it holds the token.
    CompareAndExpire = "compare_and_expire", [], 1;
    FencedTake = "fenced_take", [Fence], 1;
    /// The scripts of guarded works: see `guard`.
    GuardBuy = "guard_buy", [Guarded], 0;
    GuardCount = "guard_count", [Guarded], 0;
    GuardFencedRead = "guard_fenced_read", [Guarded, GuardedFence], 1;
    GuardFencedWrite = "guard_fenced_write", [Guarded, GuardedFence], 2;
    GuardRead = "guard_read", [Guarded], 0;
    GuardTake = "guard_take", [Guarded], 0;
    GuardWrite = "guard_write", [Guarded], 1;
    ReleaseAll = "release_all", [], 0;
    NotifyAcquire = "notify_acquire", [], 1;
    NotifyRelease = "notify_release", [Channel], 0;
    QueueConfirm = "queue_confirm", [Queue, Place, Wakeup, Prepared], 2;
    QueueLeave = "queue_leave", [Queue, Place, Wakeup, Prepared], 2;
    QueueTake = "queue_take", [Queue, Place, Wakeup, Prepared], 2;
    ReadRelease = "read_release", [Readers], 0;
    ReadTake = "read_take", [Readers, Writers], 1;
    ReentrantEnter = "reentrant_enter", [], 1;
    ReentrantLeave = "reentrant_leave", [], 1;
    ReentrantTake = "reentrant_take", [], 1;
    SemaphoreRelease = "semaphore_release", [], 0;
    SemaphoreTake = "semaphore_take", [], 2;
    /// Takes all of several keys, or none.
    TakeAll = "take_all", [], 0;
    WriteRelease = "write_release", [Writers], 0;
    WriteTake = "write_take", [Readers, Writers], 2;
}

/// A key beside the lock's own. Its name is the lock's name, a colon and `suffix`, so that all keys of a lock have one
/// hash tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Companion {
    /// The waiters in order: a sorted set.
    Queue,
    /// The waiters as a stream; each waiter reads one ticket from it.
    Tickets,
    /// The prefix of places; a waiter's token follows.
    Place,
    /// The prefix of wake-up lists; a waiter's token follows.
    Wakeup,
    /// The prefix of prepared lists, which become a successor's wake-up list; the holder's token follows.
    Prepared,
    /// The channel on which releases are published.
    Channel,
    /// The counter of fences; never expires.
    Fence,
    /// The guarded resource: a number. No part of the lock.
    Guarded,
    /// The highest fence that the guarded resource has met.
    GuardedFence,
    /// The readers, each with the end of its lease.
    Readers,
    /// The waiting writers.
    Writers,
}

impl Companion {
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Tickets => "tickets",
            Self::Place => "place",
            Self::Wakeup => "bell",
            Self::Prepared => "next",
            Self::Channel => "channel",
            Self::Fence => "fence",
            Self::Guarded => "guarded",
            Self::GuardedFence => "guarded-fence",
            Self::Readers => "readers",
            Self::Writers => "writers",
        }
    }
}
