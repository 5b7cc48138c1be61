//! One trial as a Python object. The waiting thread lets Python handle its signals; nothing else calls into Python.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use load::{LoadError, ServerRefusal, TrialError};
use locks::Nanos;
use numpy::PyArray1;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::result::{Drained, Progress, TrialResult};
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
    /// From the start until the result is kept.
    running: Mutex<Option<load::Running>>,
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
            running: Mutex::new(None),
        })
    }

    fn run(&self, py: Python<'_>) -> PyResult<Py<TrialResult>> {
        if self.inner.is_endless() {
            return Err(PyValueError::new_err(
                "a trial without an end is started, and then stopped: `run` would not return",
            ));
        }
        self.start()?;
        let mut raised = None;
        while !py.detach(|| self.has_ended(SIGNALS)) {
            if raised.is_none()
                && let Err(error) = py.check_signals()
            {
                self.inner.stop();
                raised = Some(error);
            }
        }
        let ended = self.collect(py);
        // An exception of a signal handler comes first, because it is the reason for the end.
        raised.map_or(Ok(()), Err)?;
        ended?;
        self.result(py)?
            .ok_or_else(|| PyRuntimeError::new_err("the trial has failed, and another thread was told why"))
    }

    fn start(&self) -> PyResult<()> {
        self.check_process()?;
        let mut state = self.state();
        if !matches!(*state, State::New) {
            return Err(PyRuntimeError::new_err("a trial runs once"));
        }
        *state = State::Running;
        *self.running() = Some(self.inner.start());
        Ok(())
    }

    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        self.check_process()?;
        let until = timeout_s.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
        loop {
            match *self.state() {
                State::New => return Err(PyRuntimeError::new_err("the trial was not started")),
                State::Running => {}
                State::Done(_) | State::Failed => return Ok(true),
            }
            let left = until.map_or(SIGNALS, |until| until.saturating_duration_since(Instant::now()));
            if py.detach(|| self.has_ended(left.min(SIGNALS))) {
                self.collect(py)?;
                return Ok(true);
            }
            py.check_signals()?;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn drain(&self, py: Python<'_>) -> PyResult<Drained> {
        self.check_process()?;
        let drained = py.detach(|| self.inner.drain());
        Drained::new(py, &drained)
    }

    #[pyo3(signature = (*, concurrency=None, rate=None))]
    fn set(&self, py: Python<'_>, concurrency: Option<u32>, rate: Option<f64>) -> PyResult<()> {
        self.check_process()?;
        if let Some(clients) = concurrency {
            self.inner
                .set_concurrency(clients)
                .map_err(|error| to_python(py, &error))?;
        }
        if let Some(per_s) = rate {
            self.inner.set_rate(per_s).map_err(|error| to_python(py, &error))?;
        }
        Ok(())
    }

    /// The planted faults that the checker must find: pairs of a kind and whether the checker found exactly that.
    fn planted(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, bool)>> {
        let planted = py
            .detach(|| self.inner.planted())
            .map_err(|error| to_python(py, &error))?;
        Ok(planted.into_iter().map(|plant| (plant.kind, plant.caught)).collect())
    }

    fn begin_at(&self, at_ns: u64) {
        self.inner.begin_at(Nanos(at_ns));
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn progress(&self) -> Progress {
        self.inner.progress().into()
    }

    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<TrialResult>>> {
        if self.process == std::process::id() && self.has_ended(Duration::ZERO) {
            self.collect(py)?;
        }
        Ok(match &*self.state() {
            State::Done(result) => Some(result.clone_ref(py)),
            State::New | State::Running | State::Failed => None,
        })
    }
}

impl Trial {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Option<load::Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "this trial was made before a fork: make it in the process that runs it",
        ))
    }

    /// Waits at most `length` for the end of the trial. One that was never started does not end.
    fn has_ended(&self, length: Duration) -> bool {
        if let Some(running) = self.running().as_mut() {
            return running.wait(length);
        }
        !matches!(*self.state(), State::New)
    }

    /// Keeps the result of a trial that has ended; its error is raised once.
    fn collect(&self, py: Python<'_>) -> PyResult<()> {
        let Some(running) = self.running().take() else {
            // Another thread keeps it just now.
            while matches!(*self.state(), State::Running) {
                py.detach(|| std::thread::sleep(Duration::from_millis(1)));
            }
            return Ok(());
        };
        let ended = py.detach(|| running.finish()).map_err(|error| to_python(py, &error));
        let ended = ended.and_then(|measured| Py::new(py, TrialResult::new(py, measured)?));
        let (state, error) = match ended {
            Ok(result) => (State::Done(result), Ok(())),
            Err(error) => (State::Failed, Err(error)),
        };
        *self.state() = state;
        error
    }
}

impl Drop for Trial {
    /// Nobody can ask anything of the trial any more.
    fn drop(&mut self) {
        self.inner.stop();
    }
}

pub(crate) fn to_python(py: Python<'_>, error: &TrialError) -> PyErr {
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
