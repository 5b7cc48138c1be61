//! One trial as a Python object. The waiting thread lets Python handle its signals; nothing else calls into Python.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use load::{LoadError, ServerRefusal, TrialError};
use numpy::PyArray1;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::result::{Progress, TrialResult};
use crate::spec::{recording, trial_spec};

create_exception!(pybench._core, ConnectError, PyException);

/// How often Python handles its signals while a trial runs.
const SIGNALS: Duration = Duration::from_millis(20);

#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct Trial {
    inner: load::Trial,
    /// Threads do not survive a fork.
    process: u32,
    state: Mutex<State>,
}

enum State {
    New,
    Running,
    Done(Py<TrialResult>),
    Failed,
}

#[pymethods]
impl Trial {
    #[new]
    fn new(spec: &Bound<'_, PyDict>) -> PyResult<Self> {
        if cfg!(debug_assertions) {
            return Err(PyRuntimeError::new_err("a core built for debugging does not measure"));
        }
        // The first array of a process imports NumPy, which takes 100 ms: that must not happen while Ctrl-C ends a
        // trial.
        PyArray1::<u64>::zeros(spec.py(), 0, false);
        let inner = load::Trial::new(trial_spec(spec)?).map_err(|error| to_python(spec.py(), &error))?;
        let inner = inner.recorded(recording(spec)?);
        Ok(Self {
            inner,
            process: std::process::id(),
            state: Mutex::new(State::New),
        })
    }

    fn run(&self, py: Python<'_>) -> PyResult<Py<TrialResult>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this trial was made before a fork: make it in the process that runs it",
            ));
        }
        let mut state = self.state();
        if !matches!(*state, State::New) {
            return Err(PyRuntimeError::new_err("a trial runs once"));
        }
        *state = State::Running;
        drop(state);
        let mut running = self.inner.start();
        let mut raised = None;
        while !py.detach(|| running.wait(SIGNALS)) {
            if raised.is_none()
                && let Err(error) = py.check_signals()
            {
                self.inner.stop();
                raised = Some(error);
            }
        }
        let ended = py.detach(|| running.finish()).map_err(|error| to_python(py, &error));
        let ended = ended.and_then(|measured| Py::new(py, TrialResult::new(py, measured)?));
        *self.state() = match &ended {
            Ok(result) => State::Done(result.clone_ref(py)),
            Err(_) => State::Failed,
        };
        // An exception of a signal handler comes first, because it is the reason for the end.
        raised.map_or(ended, Err)
    }

    /// The planted faults that the checker must find: pairs of a kind and whether the checker found exactly that.
    fn planted(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, bool)>> {
        let planted = py
            .detach(|| self.inner.planted())
            .map_err(|error| to_python(py, &error))?;
        Ok(planted.into_iter().map(|plant| (plant.kind, plant.caught)).collect())
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn progress(&self) -> Progress {
        self.inner.progress().into()
    }

    #[getter]
    fn result(&self, py: Python<'_>) -> Option<Py<TrialResult>> {
        match &*self.state() {
            State::Done(result) => Some(result.clone_ref(py)),
            State::New | State::Running | State::Failed => None,
        }
    }
}

impl Trial {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_python(py: Python<'_>, error: &TrialError) -> PyErr {
    match error {
        TrialError::Load(LoadError::Connect { refusal, .. }) => {
            let raised = ConnectError::new_err(error.to_string());
            match with_refusal(py, &raised, refusal.as_deref()) {
                Ok(()) => raised,
                Err(other) => other,
            }
        }
        TrialError::Recording(reason) => PyOSError::new_err((reason.raw_os_error(), reason.to_string())),
        TrialError::Load(LoadError::Poll(_)) => PyRuntimeError::new_err(error.to_string()),
        TrialError::Field(_) | TrialError::Lock(_) => PyValueError::new_err(error.to_string()),
    }
}

/// Sets the `refusal` of a `ConnectError`: the server's error, or `None` if it sent none.
fn with_refusal(py: Python<'_>, raised: &PyErr, refusal: Option<&ServerRefusal>) -> PyResult<()> {
    let parts = refusal.map(|it| (it.server, it.call.as_str(), it.code.as_str(), it.text.as_str()));
    raised.value(py).setattr("refusal", parts)
}
