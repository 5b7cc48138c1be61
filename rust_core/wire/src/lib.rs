//! Redis and Valkey commands to bytes, and bytes to replies, without a socket; in [`postgres`] the same for Postgres.
//!
//! Outwards: [`Encoder`] writes a `locks::Command` about a key of [`KeyNames`]; [`greeting`] writes what a new
//! connection says first. Inwards: [`parse`] takes one reply from the front of a buffer and reduces it to what locks
//! ask of it; [`parse_frame`] shows it whole, in RESP2 or RESP3.
//!
//! Promises: no bytes, however wrong, make it panic, loop, or allocate by a length that they merely announce; a
//! verdict never changes when more bytes come; what cannot become a reply is [`Malformed`] as early as the bytes
//! allow, and says what came instead.
//! Does not promise: a session. Which reply answers which command is for the caller to know: they come in order.
//! Streamed strings and aggregates (`$?`, `*?`), which no server sends, are malformed.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod encode;
mod errors;
mod frame;
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
pub use frame::{Children, Frame};
pub use login::{Greeting, GreetingStep, Login, Protocol, greeting};
pub use malformed::{Excerpt, Malformed};
pub use names::KeyNames;
pub use reply::{Parsed, parse};
pub use scan::{MAX_DEPTH, MAX_LINE, MAX_REPLY, parse_frame};
