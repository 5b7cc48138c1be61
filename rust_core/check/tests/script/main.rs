//! Script tests: what a few clients do at given times, and the checker's verdict. Times are nanoseconds.

mod contention;
mod deaths;
mod event_order;
mod fairness;
mod fences;
mod fifo;
mod handoff;
mod lost_updates;
mod many_keys;
mod merge;
mod modes;
mod overlaps;
mod permits;
mod record;
mod renewals;
mod script;
mod sessions;
mod stalls;
mod turns;
mod windows;
