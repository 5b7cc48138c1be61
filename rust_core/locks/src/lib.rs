//! Every lock of pybench, each a pure state machine.
//!
//! A machine takes, keeps and releases one lock for one client. It receives one event at a time (`Event`) and appends
//! its actions to a list (`Actions`); its driver carries the actions out and reports back. The benchmark and the
//! simulator drive the same machines.
//!
//! Promises: nothing here opens a socket, reads a clock or draws from a generator that was not passed in; the same
//! events at the same times with the same seed give the same actions. An early or repeated `Woke` is harmless, and a
//! reply to a call that the machine no longer waits for changes nothing.
//! Does not promise: delivery, order between servers, or time. Those are the driver's responsibility.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

/// Whether this process makes a mistake on purpose: see `mutants.rs`. Just `false` in a build without that feature.
#[cfg(not(feature = "mutants"))]
macro_rules! mistake {
    ($mutant:ident) => {
        false
    };
}
#[cfg(feature = "mutants")]
macro_rules! mistake {
    ($mutant:ident) => {
        crate::mutants::makes(crate::mutants::Mutant::$mutant)
    };
}

mod actions;
mod any;
mod args;
mod atomic;
mod backoff;
mod calls;
mod chance;
mod command;
mod contract;
mod error;
mod fair;
mod fair_queue;
mod fenced;
mod guard;
mod keys;
mod layered;
mod lease;
mod multilock;
#[cfg(feature = "mutants")]
pub mod mutants;
mod mutex;
mod naive;
mod none;
mod notify;
mod optimistic;
mod pg_advisory;
mod pg_lease;
mod pg_optimistic;
mod pg_row;
mod pg_serializable;
mod postgres;
mod quorum;
mod read_write;
mod redisson;
mod redisson_multilock;
mod redisson_redlock;
mod redlock;
mod reentrant;
mod renewal;
mod replicated;
mod script;
mod script_form;
mod semaphore;
mod session_lock;
mod shell;
mod spec;
mod statement;
mod strategy;
mod time;
mod visit;
mod watchdog;

pub use actions::Actions;
pub use any::AnyLock;
pub use args::ArgValue;
pub use backoff::{Backoff, Next, Retry, RetryKind};
pub use chance::Chance;
pub use command::Command;
pub use contract::{
    Action, CallId, ConnectionKind, EntryId, ErrorKind, Event, Fence, Key, Lasts, LockMachine, Mode, Outcome, Refusal,
    Reply, ServerId, Token,
};
pub use error::SpecError;
pub use guard::{GuardKind, GuardRules, GuardedWork, Work, WorkEnd, WorkEvent, Write};
pub use keys::KeyList;
pub use lease::{Lease, SkewMargin};
pub use postgres::{Scope, SessionOwner, Wait};
pub use quorum::{Fanout, QuorumRules};
pub use read_write::Prefer;
pub use redisson::{Children, RedissonRules};
pub use reentrant::Count;
pub use script::{Companion, Script};
pub use script_form::ScriptForm;
pub use spec::Spec;
pub use statement::{OnConflict, Opens, Parameter, Statement};
pub use strategy::{Strategy, Traits};
pub use time::{Millis, Nanos};
pub use visit::MachineVisitor;
