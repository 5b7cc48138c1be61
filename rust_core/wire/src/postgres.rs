//! Postgres: statements to bytes, and bytes to replies, without a socket.
//!
//! Outwards: [`LogInPlan`] has what a new session says and [`LogIn`] follows the answers; [`Encoder`] writes a block, from
//! its first message to its `Sync`. Inwards: [`Answers`] reduces all that answers a block to one reply.
//!
//! Messages are laid out by the crate `postgres-protocol`. The nonce of a log-in by SCRAM is random, so whoever drives
//! this makes it and hands it in.
//!
//! Promises what the rest of `wire` does: no bytes make it panic, loop, or allocate by a length that they merely announce.
//! Does not speak TLS, GSS or COPY.

mod answers;
mod block;
mod encode;
mod hashes;
mod login;
mod malformed;
mod messages;
mod plan;
mod refusal;

pub use answers::{Answers, Block, Broken};
pub use encode::{Encoder, Prepare};
pub use hashes::{Hashes, hash};
pub use login::{LogIn, LogInError, MakeScram, Progress};
pub use malformed::Malformed;
pub use messages::{GOODBYE, MAX_MESSAGE};
pub use plan::{LogInPlan, SessionSpec};
pub use refusal::Refusal;
