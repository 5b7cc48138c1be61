//! The judge of guarded counters, for whoever reads their final value.

use check::{LostUpdates, RowsVerdict, UpdateVerdict};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
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

/// The same for each row by itself: writes that are lost at least, writes too many at least, and those of unknown end in
/// rows where nothing is amiss.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]
pub(crate) fn judge_rows(
    acknowledged: PyReadonlyArray1<'_, u64>,
    unknown: PyReadonlyArray1<'_, u64>,
    r#final: PyReadonlyArray1<'_, u64>,
) -> PyResult<(u64, u64, u64)> {
    let (acknowledged, unknown, values) = (acknowledged.as_array(), unknown.as_array(), r#final.as_array());
    if acknowledged.len() != unknown.len() || acknowledged.len() != values.len() {
        return Err(PyValueError::new_err("the three columns must have one element a row"));
    }
    let writes = acknowledged.iter().zip(unknown).zip(values);
    let rows = writes.map(|((&acknowledged, &unknown), &value)| (LostUpdates { acknowledged, unknown }, value));
    let RowsVerdict {
        lost,
        surplus,
        undecided,
    } = check::judge_rows(rows);
    Ok((lost, surplus, undecided))
}
