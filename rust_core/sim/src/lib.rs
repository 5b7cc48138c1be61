//! The simulator: the very loop that measures, on virtual time, against models of Redis, of Postgres and of the network
//! between; judged by the checker that judges measurements.
//!
//! Promises: one seed determines a whole world; nothing here opens a socket or reads a clock.
//! Does not promise: that the models know every command. They know those that locks send.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod asked;
mod clock;
mod conditions;
mod connection;
mod database;
mod heavyweight;
mod leases;
mod log;
mod machine;
mod network;
mod process;
mod redis;
mod sessions;
mod stream;
mod transport;
mod waiting;
mod world;

pub use asked::Asked;
pub use conditions::Mistake;
pub use log::Logged;
pub use world::World;
