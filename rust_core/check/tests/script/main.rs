//! Script tests: what a few clients do at given times, and what the judge makes of it. Times are nanoseconds.

mod contention;
mod event_order;
mod fairness;
mod handoff;
mod lost_updates;
mod merge;
mod overlaps;
mod record;
mod script;
mod turns;
mod windows;
