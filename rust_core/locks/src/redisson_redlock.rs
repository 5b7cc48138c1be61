//! `redisson-redlock`: a majority of child locks, one on each server, as `RedissonRedLock` of Redisson takes them. The
//! states are drawn in `redisson`.
//!
//! The servers are asked in order. Each child is waited for up to its part of the wait budget (`wait_budget_ms` for each
//! server), and a minority may fail. At the end the lease of each child is set anew, and **what the servers say to that is
//! not looked at**; nor is the time that has passed. The caller goes on to believe in the whole lease from the moment of
//! the return, without a drift allowance, since Redisson tells him nothing else: `Held` says so, and its end is never in
//! the past even where the children have expired long ago. With the retry kind `none` nothing waits, and no time is
//! looked at anywhere.
//!
//! Promises nothing: it shows an expired lock being returned. A lock that was not overtaken is deleted by its token only.

use crate::redisson::{Children, RedissonRules};

pub(crate) const RULES: RedissonRules = RedissonRules {
    children: Children::Servers,
    nodes: 5,
    wait_budget_ms: 1_500,
};
