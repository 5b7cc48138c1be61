//! The lock client as Python objects. Waiting threads let Python handle its signals; the native thread never calls into
//! Python, so it may live on while the interpreter ends.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use load::lock_client::{Answer, Asked, LockClientSpec, Port, Settled, Ticket, Wanted, time_left};
use load::{LoadError, TrialError};
use locks::{Lease, Mode, Nanos, Retry};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::spec::{lock_client_spec, retry, value_error};

/// How often Python handles its signals while a thread waits.
const SIGNALS: Nanos = Nanos::from_millis(50);
/// How long a thread that was interrupted waits for its lock to be released.
const UNDO: Nanos = Nanos::from_secs(3);

/// The answer that only a forked child gets.
const FORKED: u8 = Answer::NAMES.len() as u8;

/// The names of the answers, indexed by their numbers.
pub(crate) const ANSWERS: [&str; Answer::NAMES.len() + 1] = {
    let mut names = ["forked"; Answer::NAMES.len() + 1];
    let mut at = 0;
    while at < Answer::NAMES.len() {
        names[at] = Answer::NAMES[at];
        at += 1;
    }
    names
};

/// A client that has been started, and the process of its thread.
struct Started {
    client: Option<load::lock_client::LockClient>,
    process: u32,
}

impl Started {
    /// `None` in a forked child: its thread and its connections belong to the parent.
    fn client(&self) -> Option<&load::lock_client::LockClient> {
        self.client.as_ref().filter(|_| self.process == std::process::id())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Closing it would wake the parent's thread.
            std::mem::forget(self.client.take());
        }
    }
}

/// A retry policy, checked.
#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct LockRetry(Retry);

#[pymethods]
impl LockRetry {
    #[new]
    fn new(spec: &Bound<'_, PyDict>) -> PyResult<Self> {
        let retry = retry(spec)?;
        retry.check().map_err(value_error)?;
        Ok(Self(retry))
    }
}

#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct LockClient {
    spec: LockClientSpec,
    state: Mutex<State>,
}

enum State {
    New,
    Started(Arc<Started>),
    Closed,
}

#[pymethods]
impl LockClient {
    #[new]
    fn new(spec: &Bound<'_, PyDict>) -> PyResult<Self> {
        let spec = lock_client_spec(spec)?;
        // A lease that every strategy takes: here only the rest is checked.
        let lease = Lease::new(10_000).map_err(value_error)?;
        spec.check(lease).map_err(|error| to_python(&error))?;
        Ok(Self {
            spec,
            state: Mutex::new(State::New),
        })
    }

    /// Whether a holder can ask for more time.
    #[getter]
    fn extends(&self) -> bool {
        self.spec.strategy.extends()
    }

    /// Whether holders can share a lock.
    #[getter]
    fn shares(&self) -> bool {
        self.spec.strategy.shares()
    }

    /// Refuses a lease that this client cannot have.
    fn check_lease(&self, ttl_ms: i64) -> PyResult<()> {
        let lease = Lease::new(ttl_ms).map_err(value_error)?;
        self.spec.check(lease).map_err(|error| to_python(&error))
    }

    /// A lock that nobody has asked for yet. Starts the client's thread if it was not started.
    #[pyo3(signature = (name, ttl_ms, wait_ns, shared, retry, port))]
    fn ticket(
        &self,
        name: &[u8],
        ttl_ms: i64,
        wait_ns: u64,
        shared: bool,
        retry: Option<&Bound<'_, LockRetry>>,
        port: Option<&Bound<'_, LockPort>>,
    ) -> PyResult<LockTicket> {
        if name.len() > wire::GivenNames::LONGEST {
            return Err(PyValueError::new_err("a name has at most 1024 bytes"));
        }
        let wanted = Wanted {
            name: name.into(),
            lease: Lease::new(ttl_ms).map_err(value_error)?,
            wait: Nanos(wait_ns),
            retry: retry.map(|retry| retry.get().0),
            mode: if shared { Mode::Shared } else { Mode::Exclusive },
        };
        let port = port.map(|port| Arc::clone(&port.get().port));
        Ok(LockTicket {
            started: self.started()?,
            ticket: Arc::new(Ticket::new(wanted, port)),
        })
    }

    /// Releases all locks, and ends the thread.
    fn close(&self, py: Python<'_>) {
        let before = std::mem::replace(&mut *self.state(), State::Closed);
        if let State::Started(started) = before
            && let Some(client) = started.client()
        {
            py.detach(|| client.close());
        }
    }
}

impl LockClient {
    fn started(&self) -> PyResult<Arc<Started>> {
        let mut state = self.state();
        if let State::Started(started) = &*state {
            return Ok(Arc::clone(started));
        }
        if let State::Closed = &*state {
            return Err(PyValueError::new_err("the client is closed"));
        }
        let client = load::lock_client::LockClient::start(&self.spec).map_err(|error| to_python(&error))?;
        let started = Arc::new(Started {
            client: Some(client),
            process: std::process::id(),
        });
        *state = State::Started(Arc::clone(&started));
        Ok(started)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One lock, from its request to its end. A ticket that is dropped is cancelled.
#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct LockTicket {
    started: Arc<Started>,
    ticket: Arc<Ticket>,
}

#[pymethods]
impl LockTicket {
    #[getter]
    fn id(&self) -> u64 {
        self.ticket.id()
    }

    #[getter]
    fn fence(&self) -> Option<u64> {
        self.ticket.fence()
    }

    /// Seconds of belief that are left; 0 when it is lost or over, `None` for a lock without a lease.
    #[getter]
    fn time_left(&self) -> Option<f64> {
        if self.ticket.is_over() || self.ticket.is_lost() {
            return Some(0.0);
        }
        self.ticket.until().map(|until| time_left(until).0 as f64 / 1e9)
    }

    #[getter]
    fn is_lost(&self) -> bool {
        let is_past = || self.ticket.until().is_some_and(|until| time_left(until) == Nanos::ZERO);
        self.ticket.is_lost() || (!self.ticket.is_over() && is_past())
    }

    #[getter]
    fn is_over(&self) -> bool {
        self.ticket.is_over()
    }

    #[getter]
    fn text(&self) -> Option<String> {
        self.ticket.text()
    }

    /// Asks for the lock. An answer if it is known already; otherwise it comes through the port, after a `wake`.
    fn acquire(&self) -> Option<u8> {
        self.submit(|client| client.acquire(&self.ticket))
    }

    fn release(&self) -> Option<u8> {
        self.submit(|client| client.release(&self.ticket))
    }

    fn extend(&self) -> Option<u8> {
        self.submit(|client| client.extend(&self.ticket))
    }

    /// Has what was asked for so far handled, for all tickets of the client.
    fn wake(&self) {
        self.submit(load::lock_client::LockClient::wake);
    }

    /// Seconds that the holder had left when the lock was refused, if the server told.
    #[getter]
    fn holder_left(&self) -> Option<f64> {
        self.ticket.holder_left().map(|left| left.0 as f64 / 1e9)
    }

    /// Frees what was or will be taken. Returns at once; harmless when the lock is over, and in a forked child.
    fn cancel(&self) {
        self.submit(|client| client.cancel(&self.ticket));
    }

    /// Asks for the lock, and waits for the answer. If a signal handler raises, what was taken is released first.
    fn acquire_and_wait(&self, py: Python<'_>) -> PyResult<u8> {
        self.waited(py, Asked::Lock, |client| client.acquire(&self.ticket))
    }

    fn release_and_wait(&self, py: Python<'_>) -> PyResult<u8> {
        self.waited(py, Asked::Lock, |client| client.release(&self.ticket))
    }

    fn extend_and_wait(&self, py: Python<'_>) -> PyResult<u8> {
        self.waited(py, Asked::Extension, |client| client.extend(&self.ticket))
    }

    /// Waits until the lock is lost or over; with a limit in seconds at most so long. Whether it is lost.
    #[pyo3(signature = (timeout_s))]
    fn wait_for_loss(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let Some(client) = self.started.client() else {
            return Ok(true);
        };
        let mut left = timeout_s.map_or(Nanos::NEVER, |seconds| Nanos((seconds.max(0.0) * 1e9) as u64));
        loop {
            let slice = left.min(SIGNALS);
            if py.detach(|| client.wait_for_loss(&self.ticket, slice)) || self.is_lost() {
                return Ok(self.is_lost());
            }
            py.check_signals()?;
            if left != Nanos::NEVER {
                left = left.since(slice);
                if left == Nanos::ZERO {
                    return Ok(self.is_lost());
                }
            }
        }
    }
}

impl LockTicket {
    fn submit(&self, ask: impl FnOnce(&load::lock_client::LockClient)) -> Option<u8> {
        let Some(client) = self.started.client() else {
            return Some(FORKED);
        };
        ask(client);
        None
    }

    fn waited(
        &self,
        py: Python<'_>,
        asked: Asked,
        push: impl FnOnce(&load::lock_client::LockClient) + Send,
    ) -> PyResult<u8> {
        let Some(client) = self.started.client() else {
            return Ok(FORKED);
        };
        let ticket = &self.ticket;
        let mut answer = py.detach(|| {
            push(client);
            client.wait(ticket, asked, SIGNALS)
        });
        loop {
            if let Some(answer) = answer {
                return Ok(answer as u8);
            }
            if let Err(raised) = py.check_signals() {
                if asked == Asked::Lock {
                    py.detach(|| {
                        client.cancel(ticket);
                        client.wait(ticket, asked, UNDO)
                    });
                }
                return Err(raised);
            }
            answer = py.detach(|| client.wait(ticket, asked, SIGNALS));
        }
    }
}

impl Drop for LockTicket {
    fn drop(&mut self) {
        if !self.ticket.is_over() {
            self.cancel();
        }
    }
}

/// The way of answers into an event loop, for all clients that it uses.
#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct LockPort {
    port: Arc<Port>,
    /// Memory that is used again.
    settled: Mutex<Vec<Settled>>,
}

#[pymethods]
impl LockPort {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self {
            port: Arc::new(Port::new().map_err(|error| kernel(&error))?),
            settled: Mutex::default(),
        })
    }

    /// The descriptor that can be read when `settle` has something to do.
    fn fileno(&self) -> i32 {
        self.port.descriptor()
    }

    /// Sets the result of each future whose answer has come, and removes it. Returns the ids of locks that were lost.
    fn settle(&self, py: Python<'_>, futures: &Bound<'_, PyDict>) -> PyResult<Vec<u64>> {
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        self.port.swap(&mut settled);
        let mut lost = Vec::new();
        for Settled { ticket, asked, answer } in settled.drain(..) {
            let key = match asked {
                Asked::Lock => 2 * ticket,
                Asked::Extension => 2 * ticket + 1,
                Asked::Loss => {
                    lost.push(ticket);
                    continue;
                }
            };
            let Some(future) = futures.get_item(key)? else { continue };
            futures.del_item(key)?;
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                future.call_method1(intern!(py, "set_result"), (answer as u8,))?;
            }
        }
        Ok(lost)
    }
}

fn kernel(error: &io::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn to_python(error: &TrialError) -> PyErr {
    match error {
        TrialError::Load(LoadError::Poll(error)) => kernel(error),
        TrialError::Load(LoadError::Connect { .. }) | TrialError::Field(_) | TrialError::Lock(_) => {
            PyValueError::new_err(error.to_string())
        }
        TrialError::Recording(_) => unreachable!("a client of a program records nothing"),
    }
}
