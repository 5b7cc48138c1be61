//! The module `pybench._core`: arguments in, columns out. `pybench/_core.pyi` is its contract.
//!
//! One call per trial, two per lock of a program, and one per range of seeds on virtual time. Arguments are parsed with
//! the interpreter attached, the work runs detached, and the waiting thread lets Python handle its signals.

mod faults;
mod fuzz;
mod histograms;
mod history;
mod judging;
mod lock_client;
mod result;
mod spec;
mod trial;
mod updates;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::fuzz::Fuzz;
    #[pymodule_export]
    use super::histograms::{histogram_buckets, merge_histograms};
    #[pymodule_export]
    use super::history::{FormatError, HistoryReader, RecordedLines};
    #[pymodule_export]
    use super::judging::{bury, judge_recordings};
    #[pymodule_export]
    use super::lock_client::{LockClient, LockPort, LockRetry, LockTicket};
    #[pymodule_export]
    use super::result::{Drained, HistogramRow, Progress, TrialResult};
    #[pymodule_export]
    use super::trial::{ConnectError, Trial};
    #[pymodule_export]
    use super::updates::judge_rows;

    use super::lock_client;
    use super::{Bound, PyModule, PyModuleMethods, PyResult, PyTuple};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python sees")]
    const version: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "mutants")]
        super::choose_mutant()?;
        module.add("lock_answers", PyTuple::new(module.py(), lock_client::ANSWERS)?)?;
        module.add("lock_rows", wire::postgres::GIVEN_ROWS)?;
        module.add(
            "build_profile",
            if cfg!(debug_assertions) { "debug" } else { "release" },
        )
    }
}

/// The tests of the finders name a mistake for all that the process does, whatever command it runs.
#[cfg(feature = "mutants")]
fn choose_mutant() -> PyResult<()> {
    match std::env::var("PYBENCH_MUTANT") {
        Ok(name) => locks::mutants::choose(&name).map_err(pyo3::exceptions::PyValueError::new_err),
        Err(_) => Ok(()),
    }
}
