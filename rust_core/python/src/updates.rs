//! The judge of guarded counters, for whoever reads their final value.

use check::{LostUpdates, UpdateVerdict};
use pyo3::prelude::*;

/// What the final value proves, and of how many writes.
#[pyfunction]
pub(crate) fn judge_updates(acknowledged: u64, unknown: u64, final_value: u64) -> (&'static str, u64) {
    let writes = LostUpdates { acknowledged, unknown };
    match writes.judge(final_value) {
        UpdateVerdict::Kept => ("kept", 0),
        UpdateVerdict::Undecided { unknown } => ("undecided", unknown),
        UpdateVerdict::Lost { at_least } => ("lost", at_least),
        UpdateVerdict::Surplus { at_least } => ("surplus", at_least),
    }
}
