//! What differs between the two locks of Redisson, and their arguments.

use crate::args::Args;
use crate::quorum::MOST_NODES;
use crate::{Key, KeyList, Nanos, ServerId, SpecError};

/// The arguments of a lock that consists of child locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedissonRules {
    pub children: Children,
    /// Servers: from 1 to 32.
    pub nodes: u16,
    /// The wait budget per child: all children together may be waited for this long, times their number.
    pub wait_budget_ms: u64,
}

/// Which things get a child lock each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// One child per server, all with the same key; a minority may fail.
    PerServer,
    /// One child per key; none may fail.
    PerKey,
}

impl RedissonRules {
    /// These rules with the arguments that the strategy was given.
    pub(crate) fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        Ok(Self {
            children: self.children,
            nodes: args.count("nodes", u64::from(self.nodes), 1, MOST_NODES)? as u16,
            wait_budget_ms: args.count("wait_budget_ms", self.wait_budget_ms, 1, 600_000)?,
        })
    }

    pub(crate) fn count(&self, keys: KeyList, servers: u16) -> u16 {
        match self.children {
            Children::PerServer => servers,
            Children::PerKey => keys.as_slice().len() as u16,
        }
    }

    pub(crate) const fn most_children(&self, servers: u16) -> u16 {
        match self.children {
            Children::PerServer => servers,
            Children::PerKey => KeyList::MOST as u16,
        }
    }
}

impl Children {
    /// In the given order, each key once: Redisson's holder may take a child again, a holder here may not.
    pub(crate) fn keys(self, given: KeyList) -> KeyList {
        match self {
            Self::PerServer => KeyList::one(given.only()),
            Self::PerKey => {
                let mut once: Vec<Key> = Vec::with_capacity(KeyList::MOST);
                for &key in given.as_slice() {
                    if !once.contains(&key) {
                        once.push(key);
                    }
                }
                KeyList::new(&once).expect("no longer than the given list")
            }
        }
    }

    pub(crate) fn key_of(self, keys: KeyList, child: u16) -> Key {
        match self {
            Self::PerServer => keys.only(),
            Self::PerKey => keys.as_slice()[usize::from(child)],
        }
    }

    /// Chosen by the key and not by its position in the list: all clients must look for a key on the same server.
    pub(crate) fn server_of(self, keys: KeyList, child: u16, servers: u16) -> ServerId {
        match self {
            Self::PerServer => ServerId(child),
            Self::PerKey => ServerId((self.key_of(keys, child).0 % u32::from(servers)) as u16),
        }
    }

    /// How many children may fail (`failedLocksLimit`).
    pub(crate) const fn failed_limit(self, children: u16) -> u16 {
        match self {
            Self::PerServer => children - (children / 2 + 1),
            Self::PerKey => 0,
        }
    }

    /// How long the client waits for one child (`calcLockWaitTime`).
    pub(crate) fn part_of(self, budget: Nanos, children: u16) -> Nanos {
        match self {
            Self::PerServer => Nanos(budget.0 / u64::from(children)).max(Nanos::from_millis(1)),
            Self::PerKey => budget,
        }
    }

    /// How many of the taken children a release must confirm as still held.
    pub(crate) const fn needed(self, taken: u16) -> u16 {
        match self {
            Self::PerServer => taken / 2 + 1,
            Self::PerKey => taken,
        }
    }
}
