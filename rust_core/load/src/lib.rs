//! The measuring driver: many clients on few native threads, against real servers, in real time.
//!
//! Each client drives one lock of `locks`; every command that one round of events produced goes out in one write per
//! connection; the checker hears of every grant while it happens.
//!
//! Promises: no allocation and no lock in the loop once its buffers have grown; a grant is stamped after the read that
//! brought it and a release before the write that takes it away; a lost connection makes its calls `Lost`, never an
//! answer; a stop is heeded within 100 ms and keeps what was measured.
//! Does not promise: that the clients are not the limit. The record says what CPU they took.

#[cfg(test)]
mod by_hand;
mod channels;
mod client;
mod clock;
mod closing;
mod connection;
mod control;
mod counting;
mod database;
mod deep;
mod dialect;
mod effects;
mod error;
mod error_replies;
mod io;
mod judge;
mod lanes;
mod plant;
mod poller;
mod setup;
mod shared;
mod spec;
mod starts;
mod stats;
mod steps;
mod subscriptions;
mod tenure;
mod thread;
mod timeline;
mod timers;
mod trial;
mod window;
mod workload;

pub use control::{Progress, Stage};
pub use effects::Writes;
pub use error::{LoadError, SaidNo, TrialError};
pub use error_replies::{ErrorPhase, ErrorReply};
pub use plant::Planted;
pub use spec::{
    Address, AfterLease, ArrivalKind, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, PostgresServer,
    RedisServer, ServerSpec, Speaks, TrialSpec,
};
pub use stats::{Counters, Ended, Histograms, Phase};
pub use timeline::Columns;
pub use trial::{ClientColumns, Measured, Running, Trial};
