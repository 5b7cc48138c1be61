//! `redisson-redlock`: a majority of child locks, one on each server, as `RedissonRedLock` of Redisson takes them.
//! `redisson` has the diagram of the states.
//!
//! The servers are asked in order. Each child is waited for up to its part of the wait budget (`wait_budget_ms` for
//! each server), and a minority may fail. At the end the lease of each child is renewed, and **the replies to these
//! renewals are not checked**; nor is the elapsed time. The caller then believes in the whole lease from the moment of
//! the return, without a clock-skew margin, because Redisson reports nothing else: the end of `Held` is never in the
//! past even if the children expired long ago. With the retry kind `none` the client waits for no child, and no time is
//! checked anywhere.
//!
//! Promises nothing: it demonstrates that an expired lock can be returned. A release deletes only keys that still hold
//! the token.

use crate::redisson::{Children, RedissonRules};
use crate::{Script, Traits};

pub(crate) const RULES: RedissonRules = RedissonRules {
    children: Children::PerServer,
    nodes: 5,
    wait_budget_ms: 1_500,
};

/// Its holder believes in all of the lease.
pub(crate) const fn traits(rules: RedissonRules) -> Traits {
    Traits {
        name: "redisson-redlock",
        takes_skew_margin_off: false,
        nodes: Some(rules.nodes),
        scripts: &[Script::CompareAndDelete, Script::CompareAndExpire],
        ..Traits::LEASE
    }
}
