//! A trial of several processes for Python: judging their recordings together, and ending that of a killed process.

use std::path::PathBuf;

use load::{bury as bury_thread, judge_together};
use locks::Nanos;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wire::KeyNames;

use crate::faults::periods;
use crate::result::{Context, HistogramRow, report_totals, violations};
use crate::spec::trial_spec;
use crate::trial::to_python;

#[expect(clippy::needless_pass_by_value, reason = "arguments from Python come by value")]
#[pyfunction]
pub(crate) fn judge_recordings<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyDict>,
    files: Vec<PathBuf>,
    window: (u64, u64),
    ended_ns: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = trial_spec(spec)?;
    let window = (Nanos(window.0), Nanos(window.1));
    let judged = py
        .detach(|| judge_together(&spec, &files, window, Nanos(ended_ns)))
        .map_err(|error| to_python(py, &error))?;
    let context = Context {
        began: judged.began,
        names: &KeyNames::new(&spec.key_prefix, spec.keys),
        keys_per_grant: spec.keys_per_grant,
    };
    let report = &judged.report;
    let dict = PyDict::new(py);
    dict.set_item("totals", report_totals(py, report, spec.keys_per_grant)?)?;
    dict.set_item("violations", violations(py, &context, &report.violations)?)?;
    dict.set_item("finding", &report.first_finding)?;
    dict.set_item("began_ns", judged.began.0)?;
    dict.set_item("events", judged.events)?;
    dict.set_item("orphans", report.orphans)?;
    let times: Vec<u64> = report.time_to_free.iter().map(|time| time.0).collect();
    dict.set_item("time_to_free_ns", times)?;
    dict.set_item("handoff", HistogramRow::of_handoffs(py, &judged.handoff)?)?;
    Ok(dict)
}

#[expect(clippy::needless_pass_by_value, reason = "arguments from Python come by value")]
#[pyfunction]
pub(crate) fn bury<'py>(
    py: Python<'py>,
    spec: &Bound<'py, PyDict>,
    thread: (u32, u32),
    file: PathBuf,
    died_ns: u64,
    window: (u64, u64),
) -> PyResult<Bound<'py, PyDict>> {
    let spec = trial_spec(spec)?;
    let window = (Nanos(window.0), Nanos(window.1));
    let buried = py
        .detach(|| bury_thread(&spec, thread, &file, Nanos(died_ns), window))
        .map_err(|error| to_python(py, &error))?;
    let dict = PyDict::new(py);
    dict.set_item("grants", buried.grants.into_pyarray(py))?;
    dict.set_item("wait_sum_ns", buried.wait_sum_ns.into_pyarray(py))?;
    dict.set_item("wait_max_ns", buried.wait_max_ns.into_pyarray(py))?;
    dict.set_item("steps", buried.steps.into_pyarray(py))?;
    dict.set_item("periods", periods(py, &buried.periods)?)?;
    dict.set_item("nominal_hold_ns", buried.nominal_hold.0)?;
    Ok(dict)
}
