//! Encodes commands of Redis and Valkey and parses their replies, without a socket; [`postgres`] does the same for
//! Postgres.
//!
//! Outgoing: [`Encoder`] encodes a `locks::Command` about a key of [`KeyNames`]; [`greeting`] writes the first commands
//! of a new connection. Incoming: [`parse`] takes one reply from the front of a buffer and reduces it to what locks
//! need; [`parse_frame`] returns it complete, in RESP2 or RESP3. [`IncompleteReply`] does the same for replies that
//! arrive in many pieces.
//!
//! Promises: no bytes, however wrong, cause a panic, an endless loop, or an allocation of a length that they merely
//! announce; a result never changes when more bytes come; bytes that cannot become a reply are [`Malformed`] as early
//! as possible, with an excerpt of them.
//! Does not promise a session: the caller must know which reply belongs to which command; they come in order. Streamed
//! strings and aggregates (`$?`, `*?`), which no server sends, are malformed.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod encode;
mod errors;
mod frame;
mod given_names;
mod incomplete;
mod login;
mod malformed;
mod names;
pub mod postgres;
mod reply;
mod request;
mod scan;
mod scripts;
mod template;

pub use encode::{CompareAndDelete, Encoder};
pub use errors::{error_code, error_kind, error_text};
pub use frame::{Elements, Frame};
pub use given_names::{GivenNames, NamedEncoder};
pub use incomplete::IncompleteReply;
pub use login::{Greeting, GreetingStep, Login, Protocol, greeting};
pub use malformed::{Excerpt, Malformed};
pub use names::KeyNames;
pub use reply::{Parsed, common_reply, parse};
pub use scan::{MAX_DEPTH, MAX_LINE, MAX_REPLY, parse_frame};
