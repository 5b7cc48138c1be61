//! The planned faults of a trial: from Python, and what became of them.

use check::Report;
use load::{ClientFault, Distribution, Fault, FaultAction, FaultFigures, LinkFault, Links, Period, PeriodFigures};
use locks::Nanos;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::histograms::encode;
use crate::spec::{distribution, field, nanos};

/// The faults of a trial's spec; none if it has no such key.
pub(crate) fn faults(spec: &Bound<'_, PyDict>) -> PyResult<Vec<Fault>> {
    if !spec.contains("faults")? {
        return Ok(Vec::new());
    }
    let given = field::<Vec<Bound<'_, PyAny>>>(spec, "faults")?;
    given
        .into_iter()
        .map(|fault| match fault.cast_into() {
            Ok(fault) => one(&fault),
            Err(_) => Err(PyValueError::new_err("`faults` must hold dictionaries")),
        })
        .collect()
}

fn one(fault: &Bound<'_, PyDict>) -> PyResult<Fault> {
    let what: String = field(fault, "do")?;
    let server: Option<u16> = optional(fault, "server")?;
    let client: Option<u32> = optional(fault, "client")?;
    let action = if let Some(how) = of_links(fault, &what)? {
        FaultAction::OfLinks(Links { server, client }, how)
    } else {
        let how = of_client(&what)?;
        let client = client.ok_or_else(|| PyValueError::new_err(format!("a fault {what:?} needs a `client`")))?;
        FaultAction::OfClient(client, how)
    };
    Ok(Fault {
        at: nanos(fault, "at_ns")?,
        lasts: nanos(fault, "for_ns")?,
        action,
    })
}

/// What is done to connections; `None` if that is no fault of connections.
fn of_links(fault: &Bound<'_, PyDict>, what: &str) -> PyResult<Option<LinkFault>> {
    Ok(Some(match what {
        "delay" => LinkFault::Delay(match field::<Bound<'_, PyAny>>(fault, "by_ns")?.cast_into::<PyDict>() {
            Ok(by) => distribution(&by)?,
            Err(_) => Distribution::Fixed(nanos(fault, "by_ns")?),
        }),
        "jitter" => LinkFault::Delay(Distribution::Uniform {
            low: Nanos::ZERO,
            high: nanos(fault, "by_ns")?,
        }),
        "throttle" => LinkFault::Throttle {
            bytes_per_s: field(fault, "bytes_per_s")?,
        },
        "cut" => LinkFault::Cut,
        "blackhole" => LinkFault::BlackHole,
        "half-open" => LinkFault::HalfOpen,
        "reset" => LinkFault::Reset,
        "lose-reply" => LinkFault::LoseReplies {
            nth: optional(fault, "nth")?,
        },
        _ => return Ok(None),
    }))
}

fn of_client(what: &str) -> PyResult<ClientFault> {
    match what {
        "crash" => Ok(ClientFault::Crash),
        "pause" => Ok(ClientFault::Pause),
        "drop-renewals" => Ok(ClientFault::DropRenewals),
        _ => Err(PyValueError::new_err(format!(
            "`do` is {what:?}; it must be one of delay, jitter, throttle, cut, blackhole, half-open, reset, lose-reply, \
             crash, pause, drop-renewals"
        ))),
    }
}

/// A field that may be missing or `None`.
fn optional<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    match dict.get_item(name)? {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(None),
        Some(_) => field(dict, name).map(Some),
    }
}

/// Further times in which the trial is disturbed.
pub(crate) fn fault_periods(spec: &Bound<'_, PyDict>) -> PyResult<Vec<(Nanos, Nanos)>> {
    if !spec.contains("fault_periods")? {
        return Ok(Vec::new());
    }
    let periods = field::<Vec<(u64, u64)>>(spec, "fault_periods")?;
    Ok(periods.into_iter().map(|(from, to)| (Nanos(from), Nanos(to))).collect())
}

/// What happened before, during and after the faults; empty without faults.
pub(crate) fn periods<'py>(py: Python<'py>, figures: &[PeriodFigures]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (period, figures) in Period::ALL.iter().zip(figures) {
        let dict = PyDict::new(py);
        dict.set_item("period", period.name())?;
        dict.set_item("length_ns", figures.length.0)?;
        dict.set_item("grants", figures.grants)?;
        dict.set_item("errors", figures.errors)?;
        dict.set_item("phase", "response")?;
        dict.set_item("outcome", "granted")?;
        dict.set_item("count", figures.response.len())?;
        dict.set_item("hdr", PyBytes::new(py, &encode(&figures.response)))?;
        list.append(dict)?;
    }
    Ok(list)
}

/// What the faults did to clients; `None` without faults.
pub(crate) fn outcome<'py>(
    py: Python<'py>,
    figures: &FaultFigures,
    report: &Report,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    if figures.periods.is_empty() {
        return Ok(None);
    }
    let times = |times: &[Nanos]| times.iter().map(|time| time.0).collect::<Vec<_>>();
    let spans: Vec<_> = figures
        .spans
        .iter()
        .map(|span| (span.began.map(|at| at.0), span.ended.map(|at| at.0)))
        .collect();
    let dict = PyDict::new(py);
    dict.set_item("spans", spans)?;
    dict.set_item("crashes", figures.crashes)?;
    dict.set_item("orphans", report.orphans)?;
    dict.set_item("dropped_renewals", figures.dropped_renewals)?;
    dict.set_item("time_to_free_ns", times(&report.time_to_free))?;
    dict.set_item("time_to_know_ns", times(&figures.time_to_know))?;
    Ok(Some(dict))
}
