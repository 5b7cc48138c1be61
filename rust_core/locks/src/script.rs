//! The Lua scripts, one file each in `src/lua`, and the keys and numbers that each is given.

macro_rules! scripts {
    ($($(#[$about:meta])* $name:ident = $file:literal, [$($companion:ident),*], $numbers:literal;)*) => {
        /// A script. Its answer is an integer, a token or nil.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Script { $($(#[$about])* $name),* }

        impl Script {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub const fn source(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("lua/", $file, ".lua"))),* }
            }

            /// Its `KEYS` behind the lock's own name.
            pub const fn companions(self) -> &'static [Companion] {
                match self { $(Self::$name => &[$(Companion::$companion),*]),* }
            }

            /// How many numbers stand in its `ARGV` behind the token: none, one or two. Those of `RunAll` have their
            /// lease from there.
            pub const fn numbers(self) -> usize {
                match self { $(Self::$name => $numbers),* }
            }
        }
    };
}

// A script with its file, its companions, and how many numbers it takes.
scripts! {
    CompareAndDelete = "compare_and_delete", [], 0;
    /// Sets the lease of what holds the token anew.
    CompareAndExpire = "compare_and_expire", [], 1;
    FencedTake = "fenced_take", [Fence], 1;
    GiveBackAll = "give_back_all", [], 0;
    NotifyAcquire = "notify_acquire", [], 1;
    NotifyRelease = "notify_release", [Channel], 0;
    QueueConfirm = "queue_confirm", [Queue, Place, Bell, Next], 2;
    QueueLeave = "queue_leave", [Queue, Place, Bell, Next], 2;
    QueueTake = "queue_take", [Queue, Place, Bell, Next], 2;
    ReadGiveBack = "read_give_back", [Readers], 0;
    ReadTake = "read_take", [Readers, Writers], 1;
    ReentrantEnter = "reentrant_enter", [], 1;
    ReentrantLeave = "reentrant_leave", [], 1;
    ReentrantTake = "reentrant_take", [], 1;
    SemaphoreGiveBack = "semaphore_give_back", [], 0;
    SemaphoreTake = "semaphore_take", [], 2;
    /// Takes all of several keys, or none.
    TakeAll = "take_all", [], 0;
    WriteGiveBack = "write_give_back", [Writers], 0;
    WriteTake = "write_take", [Readers, Writers], 2;
}

/// A key beside a lock's own: its name is the lock's with a colon and `suffix` behind, so that all have one hash tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Companion {
    /// Who waits, in order: a sorted set.
    Queue,
    /// The same as a stream, of which each waiter reads a ticket.
    Tickets,
    /// What the names of places begin with; a waiter's token follows.
    Place,
    /// What the names of doorbells begin with; a waiter's token follows.
    Bell,
    /// What the names of the bells of heirs begin with, until they ring; the holder's token follows.
    Next,
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
            Self::Tickets => "tickets",
            Self::Place => "place",
            Self::Bell => "bell",
            Self::Next => "next",
            Self::Channel => "channel",
            Self::Fence => "fence",
            Self::Readers => "readers",
            Self::Writers => "writers",
        }
    }
}
