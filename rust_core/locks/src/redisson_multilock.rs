//! `redisson-multilock`: several keys, each a child lock of its own, as `RedissonMultiLock` of Redisson takes them. The
//! states are drawn in `redisson`.
//!
//! The keys are taken in the order in which the client names them, each once; with several servers each key has one of them
//! as its own, whoever names it and where. A child that somebody else holds is waited for as long as the wait budget lasts (`wait_budget_ms` for each
//! key); then all is given back and started again, with a new budget. While it is collecting, a child lives for twice the
//! budget, so that none expires meanwhile; at the end every lease is set anew (Redisson: blindly; here: only where the key
//! still holds the token), and all must answer that they are ours.
//!
//! Promises exclusion over each key. Does not promise progress: two clients that name the keys in different orders wait
//! for each other, and both give back and start again; nor that the keys of a dead client are free after one lease: one
//! that died while it was collecting leaves them for twice the wait budget.

use crate::redisson::{Children, RedissonRules};

pub(crate) const RULES: RedissonRules = RedissonRules {
    children: Children::Keys,
    nodes: 1,
    wait_budget_ms: 1_500,
};
