//! What tells the two locks of Redisson apart, and their arguments.

use crate::args::Args;
use crate::quorum::MOST_NODES;
use crate::{Key, Keys, Nanos, ServerId, SpecError};

/// The arguments of a lock made of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedissonRules {
    pub children: Children,
    /// Servers: from 1 to 32.
    pub nodes: u16,
    /// How long the children together may be waited for: this much for each.
    pub wait_budget_ms: u64,
}

/// What there is a child lock for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// For each server, all with the same key; a minority may fail.
    Servers,
    /// For each key; none may fail.
    Keys,
}

impl RedissonRules {
    /// The same with the arguments that the strategy was given.
    pub(crate) fn with(self, args: &mut Args<'_>) -> Result<Self, SpecError> {
        Ok(Self {
            children: self.children,
            nodes: args.count("nodes", u64::from(self.nodes), 1, MOST_NODES)? as u16,
            wait_budget_ms: args.count("wait_budget_ms", self.wait_budget_ms, 1, 600_000)?,
        })
    }

    pub(crate) fn count(&self, keys: Keys, servers: u16) -> u16 {
        match self.children {
            Children::Servers => servers,
            Children::Keys => keys.as_slice().len() as u16,
        }
    }

    pub(crate) const fn most_children(&self, servers: u16) -> u16 {
        match self.children {
            Children::Servers => servers,
            Children::Keys => Keys::MOST as u16,
        }
    }
}

impl Children {
    /// In the order given, each once: a child of Redisson may be taken again by its holder, one of these may not.
    pub(crate) fn keys(self, given: Keys) -> Keys {
        match self {
            Self::Servers => Keys::one(given.only()),
            Self::Keys => {
                let mut once: Vec<Key> = Vec::with_capacity(Keys::MOST);
                for &key in given.as_slice() {
                    if !once.contains(&key) {
                        once.push(key);
                    }
                }
                Keys::new(&once).expect("no more than there were")
            }
        }
    }

    pub(crate) fn key_of(self, keys: Keys, child: u16) -> Key {
        match self {
            Self::Servers => keys.only(),
            Self::Keys => keys.as_slice()[usize::from(child)],
        }
    }

    /// By the key, and not by its place in the list: all clients must look for it on the same server.
    pub(crate) fn server_of(self, keys: Keys, child: u16, servers: u16) -> ServerId {
        match self {
            Self::Servers => ServerId(child),
            Self::Keys => ServerId((self.key_of(keys, child).0 % u32::from(servers)) as u16),
        }
    }

    /// How many children may fail (`failedLocksLimit`).
    pub(crate) const fn failed_limit(self, children: u16) -> u16 {
        match self {
            Self::Servers => children - (children / 2 + 1),
            Self::Keys => 0,
        }
    }

    /// How long one child is waited for (`calcLockWaitTime`).
    pub(crate) fn part_of(self, budget: Nanos, children: u16) -> Nanos {
        match self {
            Self::Servers => Nanos(budget.0 / u64::from(children)).max(Nanos::from_millis(1)),
            Self::Keys => budget,
        }
    }

    /// Of how many that were taken a release must hear that they were still ours.
    pub(crate) const fn needed(self, taken: u16) -> u16 {
        match self {
            Self::Servers => taken / 2 + 1,
            Self::Keys => taken,
        }
    }
}
