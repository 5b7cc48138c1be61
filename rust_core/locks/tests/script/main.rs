//! Script tests: one client's lock gets one event after another at given times, and each action is compared.
//!
//! Promises: every action of a machine is seen; an action that no line expects fails the test.

mod catalogue;
mod conflicts;
mod every_lock;
mod extension;
mod fair;
mod fair_queue;
mod fair_queue_handover;
mod fair_queue_successor;
mod fair_queue_wakeup;
mod fenced;
mod layered;
mod multilock;
mod mutex;
mod mutex_cancel;
mod naive;
mod none;
mod notify;
mod notify_auto_renewal;
mod notify_subscription;
mod pg_advisory;
mod pg_lease;
mod pg_optimistic;
mod pg_row;
mod pg_serializable;
mod pg_session;
mod postgres;
mod read_write;
mod redisson_multilock;
mod redisson_redlock;
mod redlock;
mod redlock_release;
mod reentrant;
mod replicated;
mod semaphore;
mod servers;
mod visitor;
mod waiting;
mod watchdog;
mod words;
