//! The simulator: the very loop that measures, on virtual time, against models of Redis, of Postgres and of the network
//! between; judged by the checker that judges measurements.
//!
//! Promises: one seed determines a whole world; nothing here opens a socket or reads a clock.
//! Does not promise: that the models know every command. They know those that locks send.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod asked;
mod clock;
mod conditions;
mod conduct;
mod connection;
mod database;
mod fuzz;
mod heavyweight;
mod leases;
mod log;
mod machine;
mod mail;
mod network;
mod plan;
mod process;
mod redis;
mod scene;
mod sessions;
mod shrink;
mod stream;
mod striking;
mod transport;
mod waiting;
mod wording;
mod world;

pub use asked::{Asked, keys_per_grant};
pub use conditions::Mistake;
pub use fuzz::{Found, Fuzz, Tally, Verdict, Wrong};
pub use log::{Logged, Served};
pub use plan::{Fault, FaultKind};
pub use scene::{Part, Scene, Setting};
pub use wording::{command_words, reply_words};
pub use world::World;
