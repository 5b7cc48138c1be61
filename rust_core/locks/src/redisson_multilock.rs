//! `redisson-multilock`: several keys, each a child lock of its own, as `RedissonMultiLock` of Redisson takes them.
//! `redisson` has the diagram of the states.
//!
//! The keys are taken in the order in which the client names them, each once. With several servers each key belongs to
//! one of them, the same for all clients. A child that another client holds is waited for until the wait budget ends
//! (`wait_budget_ms` for each key); then all children are released and a new pass starts with a new budget. While
//! children are collected, each has a lease of twice the budget, so that none expires meanwhile. At the end every lease
//! is renewed (Redisson renews blindly; this machine only if the key still holds the token), and all children must
//! confirm that they are still held.
//!
//! Promises exclusion over each key. Does not promise progress: two clients that name the keys in different orders wait
//! for each other, and both release and start again. Does not promise that a dead client's keys are free after one
//! lease: a client that died while collecting leaves them for twice the wait budget.

use crate::redisson::{Children, RedissonRules};
use crate::{Script, Traits};

pub(crate) const RULES: RedissonRules = RedissonRules {
    children: Children::PerKey,
    nodes: 1,
    wait_budget_ms: 1_500,
};

pub(crate) const fn traits(rules: RedissonRules) -> Traits {
    Traits {
        name: "redisson-multilock",
        takes_many_keys: true,
        nodes: Some(rules.nodes),
        scripts: &[Script::CompareAndDelete, Script::CompareAndExpire],
        ..Traits::LEASE
    }
}
