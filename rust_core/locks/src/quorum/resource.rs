//! What a quorum lock takes on each server.

use std::fmt::Debug;

use crate::calls::Taken;
use crate::{Command, KeyList, Reply, Token};

/// What a client takes on each server.
pub(crate) trait Resource: Copy + Debug + Send + 'static {
    fn of(keys: KeyList) -> Self;
    fn take(self, token: Token, lease_ms: u64) -> Command;
    /// Deletes what holds the token. Replies 1 if all of it still did, else 0.
    fn release(self, token: Token) -> Command;
    /// What the reply to `take` means; `None` for a reply that `take` never gets.
    fn take_reply(reply: Reply) -> Option<Taken>;
}
