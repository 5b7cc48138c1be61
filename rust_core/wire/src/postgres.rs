//! Postgres: encodes statements and parses replies, without a socket.
//!
//! Outgoing: [`LogInPlan`] has the messages of a new session and [`LogIn`] handles the replies; [`Encoder`] writes a
//! block, from its first message to its `Sync`. Incoming: [`ReplyReader`] reduces all messages that answer a block to
//! one reply.
//!
//! The crate `postgres-protocol` lays out the messages. The nonce of a log-in by SCRAM is random, so the caller creates
//! it and passes it in.
//!
//! Promises what the rest of `wire` does: no bytes cause a panic, an endless loop, or an allocation of a length that
//! they merely announce. Does not support TLS, GSS or COPY.

mod block;
mod encode;
mod hashes;
mod login;
mod malformed;
mod messages;
mod plan;
mod reply_reader;
mod server_error;

pub use encode::{Encoder, Prepare};
pub use hashes::{GIVEN_ROWS, Hashes, hash};
pub use login::{LogIn, LogInError, MakeScram, Progress};
pub use malformed::Malformed;
pub use messages::{MAX_MESSAGE, TERMINATE};
pub use plan::{LogInPlan, SessionSpec};
pub use reply_reader::{BlockKind, Broken, ReplyReader};
pub use server_error::ServerError;
