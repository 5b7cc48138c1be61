//! Judges guarded counters by their final values.

use check::{LostUpdates, RowsVerdict};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What the final values prove, each row judged by itself: a lower bound of the lost writes, a lower bound of the
/// surplus writes, and the writes of unknown outcome in rows without a violation.
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
