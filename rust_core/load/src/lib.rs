//! The measuring driver, and the lock client of programs (`lock_client.rs`), over the same sockets.
//!
//! The driver: many clients on few native threads, against real servers, in real time.
//!
//! Each client drives one lock of `locks`. Every command that one round of events produced is sent in one write per
//! connection. The checker receives every grant as it happens.
//!
//! Promises: no allocation and no mutex in the loop once its buffers have grown; a grant is stamped after the read that
//! brought it, and a release before the write that sends it; a lost connection makes its calls `Lost` and never gives
//! them a reply; a stop takes effect within 100 ms, and the round trips that a trial adds, and keeps what was measured.
//! Does not promise that the load generator is not the bottleneck. The record contains its CPU time.

#[cfg(test)]
mod by_hand;
mod clients;
mod clock;
mod control;
mod driver;
mod error;
mod faults;
mod judging;
mod live;
pub mod lock_client;
mod plant;
mod recorder;
#[cfg(test)]
mod replay;
mod rules;
mod setup;
mod sockets;
mod spec;
mod timers;
mod transport;
mod trial;

pub use clients::Doing;
pub use clock::Clock;
pub use control::{Progress, TrialPhase};
pub use driver::Driver;
pub use error::{LoadError, ServerRefusal, TrialError};
pub use faults::{ClientFault, Fault, FaultAction, FaultSpan, LinkFault, Links};
pub use judging::{Buried, JudgedTogether, bury, judge_together};
pub use live::Drained;
pub use plant::Planted;
pub use recorder::commands::CommandColumns;
pub use recorder::judge::Heard;
pub use recorder::nodes::NodeFigures;
pub use recorder::per_client::ClientColumns;
pub use recorder::periods::{FaultFigures, Period, PeriodFigures};
pub use recorder::recording::{Recorded, Recording};
pub use recorder::stats::{Counters, Ended, Histograms, Phase};
pub use recorder::timeline::Columns;
pub use recorder::{ErrorPhase, ErrorReply, Writes};
pub use rules::rules;
pub use setup::{Member, drivers};
pub use spec::{
    Address, AfterLease, ArrivalKind, Connections, Distribution, GuardSpec, KeyChoice, KeyOrder, Pace, Poll,
    PostgresServer, Process, RedisServer, ServerSpec, Speaks, Stage, TrialSpec,
};
pub use transport::{Arrival, Broken, Caller, Confirmed, Cut, ErrorText, Outgoing, Ready, Sender, Transport};
pub use trial::{Measured, Running, Trial};
