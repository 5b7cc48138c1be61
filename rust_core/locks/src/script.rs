//! The Lua scripts, one file each in `src/lua`, and the keys and numbers that each is given.

/// A script. Its answer is an integer or nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    CompareAndDelete,
    /// Sets the lease of what holds the token anew.
    Renew,
    /// Takes all of several keys, or none.
    TakeAll,
    /// Deletes what holds the token of several keys.
    GiveBackAll,
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
    pub const ALL: [Self; 4] = [Self::CompareAndDelete, Self::Renew, Self::TakeAll, Self::GiveBackAll];

    pub const fn source(self) -> &'static str {
        match self {
            Self::CompareAndDelete => include_str!("lua/compare_and_delete.lua"),
            Self::Renew => include_str!("lua/compare_and_pexpire.lua"),
            Self::TakeAll => include_str!("lua/take_all.lua"),
            Self::GiveBackAll => include_str!("lua/give_back_all.lua"),
        }
    }

    /// Its `KEYS` behind the lock's own name.
    pub const fn companions(self) -> &'static [Companion] {
        match self {
            Self::CompareAndDelete | Self::Renew | Self::TakeAll | Self::GiveBackAll => &[],
        }
    }

    /// How many numbers stand in its `ARGV` behind the token: none, one or two.
    pub const fn numbers(self) -> usize {
        match self {
            // The scripts of `RunAll` have their lease from there.
            Self::CompareAndDelete | Self::TakeAll | Self::GiveBackAll => 0,
            Self::Renew => 1,
        }
    }
}
