//! The measuring driver: many clients on few native threads, against real servers, in real time.
//!
//! Each client drives one lock of `locks`. Every command that one round of events produced is sent in one write per
//! connection. The checker receives every grant as it happens.
//!
//! Promises: no allocation and no mutex in the loop once its buffers have grown; a grant is stamped after the read that
//! brought it, and a release before the write that sends it; a lost connection makes its calls `Lost` and never gives
//! them a reply; a stop takes effect within 100 ms, and the round trips that a trial adds, and keeps what was measured.
//! Does not promise that the load generator is not the bottleneck. The record contains its CPU time.

mod added_delay;
#[cfg(test)]
mod by_hand;
mod channels;
mod client;
mod clock;
mod closing;
mod connection;
mod connection_kinds;
mod control;
mod counting;
mod database;
mod delay_line;
mod dialect;
mod error;
mod error_replies;
mod hold;
mod io;
mod judge;
mod plant;
mod poller;
mod saturation;
mod setup;
mod spec;
mod starts;
mod stats;
mod steps;
mod subscriptions;
mod thread;
mod timeline;
mod timers;
mod trial;
mod trial_params;
mod window;
mod workload;
mod writes;

pub use control::{Progress, TrialPhase};
pub use error::{LoadError, ServerRefusal, TrialError};
pub use error_replies::{ErrorPhase, ErrorReply};
pub use plant::Planted;
pub use spec::{
    Address, AfterLease, ArrivalKind, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, PostgresServer,
    RedisServer, ServerSpec, Speaks, TrialSpec,
};
pub use stats::{Counters, Ended, Histograms, Phase};
pub use timeline::Columns;
pub use trial::{ClientColumns, Measured, Running, Trial};
pub use writes::Writes;
