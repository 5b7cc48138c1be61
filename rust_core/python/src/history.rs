//! Histories of lock events for Python: judging the bytes of files, and the lines of a recorded trial.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use history::{Judged, Reading, RecordedTrial};
use locks::Nanos;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::result::{Namer, report_totals, violation_dict};

create_exception!(pybench._core, FormatError, PyValueError);

/// How much text one call returns, at least, while there is more.
const PIECE: usize = 1 << 20;

#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct HistoryReader {
    reading: Mutex<Reading>,
}

#[pymethods]
impl HistoryReader {
    #[new]
    fn new() -> Self {
        Self {
            reading: Mutex::new(Reading::new()),
        }
    }

    fn begin(&self, file: &str) {
        self.reading().begin(file);
    }

    fn feed(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| self.reading().feed(data)).map_err(format_error)
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.reading().end()).map_err(format_error)
    }

    fn judge<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let judged = py.detach(|| std::mem::take(&mut *self.reading()).finish());
        let list = PyList::empty(py);
        for history in &judged {
            list.append(judged_dict(py, history)?)?;
        }
        Ok(list)
    }
}

impl HistoryReader {
    fn reading(&self) -> std::sync::MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn format_error(error: history::FormatError) -> PyErr {
    FormatError::new_err((error.file, error.line, error.what))
}

fn judged_dict<'py>(py: Python<'py>, judged: &Judged) -> PyResult<Bound<'py, PyDict>> {
    let sets = judged.header.trial.as_ref().map_or(1, |trial| trial.keys_per_grant);
    let totals = report_totals(py, &judged.report, sets)?;
    totals.set_item("grants", judged.report.figures.grants / u64::from(sets))?;
    let namer = Namer {
        began: judged.began,
        key: &|key| judged.keys[key.0 as usize].clone(),
        client: &|client| Ok(judged.clients[client as usize].clone().into_pyobject(py)?.into_any()),
    };
    let violations = PyList::empty(py);
    for violation in &judged.report.violations {
        violations.append(violation_dict(py, &namer, violation)?)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("header", String::from_utf8_lossy(&judged.header.line()).trim_end())?;
    dict.set_item("files", &judged.files)?;
    dict.set_item("totals", totals)?;
    dict.set_item("violations", violations)?;
    dict.set_item("counts", &judged.counts)?;
    dict.set_item("events", judged.events)?;
    dict.set_item("clients", judged.clients.len())?;
    dict.set_item("keys", judged.keys.len())?;
    dict.set_item("torn", &judged.torn)?;
    dict.set_item("finding", &judged.finding)?;
    dict.set_item("first_finding", &judged.report.first_finding)?;
    Ok(dict)
}

type Recorded = RecordedTrial<BufReader<File>>;

/// The lines of a recorded trial.
#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct RecordedLines {
    trial: Mutex<Option<Recorded>>,
}

#[pymethods]
impl RecordedLines {
    #[new]
    #[pyo3(signature = (files, window=None, ended_ns=None, counts=None, number=None))]
    fn new(
        files: Vec<PathBuf>,
        window: Option<(Option<u64>, Option<u64>)>,
        ended_ns: Option<u64>,
        counts: Option<BTreeMap<String, u64>>,
        number: Option<u32>,
    ) -> PyResult<Self> {
        let opened = files
            .into_iter()
            .map(|path| Ok(BufReader::with_capacity(PIECE, File::open(path)?)));
        let opened = opened.collect::<std::io::Result<_>>()?;
        let mut trial = RecordedTrial::new(opened, window.unwrap_or_default())?;
        if let Some(at) = ended_ns {
            trial.ended(Nanos(at), counts.unwrap_or_default());
        }
        if let Some(number) = number {
            trial.number(number);
        }
        Ok(Self {
            trial: Mutex::new(Some(trial)),
        })
    }

    /// The next piece; no bytes when nothing is left.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let piece = py.detach(|| {
            let mut trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
            let mut piece = Vec::with_capacity(2 * PIECE);
            while piece.len() < PIECE {
                match trial.as_mut().map(|trial| trial.next(&mut piece)) {
                    None => break,
                    Some(Ok(true)) => {}
                    Some(Ok(false)) => *trial = None,
                    Some(Err(error)) => return Err(error),
                }
            }
            Ok(piece)
        });
        Ok(PyBytes::new(py, &piece?))
    }
}
