//! The result of a trial, as Python sees it.

use check::{GrantSpan, Report, Violation, ViolationCounts, ViolationKind};
use hdrhistogram::Histogram;
use load::{Columns, Ended, Histograms, Measured, NodeFigures, Phase};
use locks::{Key, Nanos};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use wire::KeyNames;

use crate::faults;
use crate::histograms::encode;

#[pyclass(frozen, get_all, module = "pybench._core")]
pub(crate) struct HistogramRow {
    phase: &'static str,
    outcome: &'static str,
    count: u64,
    hdr: Py<PyBytes>,
}

impl HistogramRow {
    fn new(py: Python<'_>, phase: Phase, ended: Ended, histogram: &Histogram<u64>) -> PyResult<Py<Self>> {
        let row = Self {
            phase: phase.name(),
            outcome: ended.name(),
            count: histogram.len(),
            hdr: PyBytes::new(py, &encode(histogram)).unbind(),
        };
        Py::new(py, row)
    }

    pub(crate) fn of_handoffs(py: Python<'_>, histogram: &Histogram<u64>) -> PyResult<Py<Self>> {
        Self::new(py, Phase::Handoff, Ended::Granted, histogram)
    }
}

#[pyclass(frozen, get_all, module = "pybench._core")]
pub(crate) struct TrialResult {
    stopped: bool,
    totals: Py<PyDict>,
    jain: Option<f64>,
    histograms: Py<PyList>,
    timeline: Py<PyDict>,
    clients: Py<PyDict>,
    commands: Py<PyDict>,
    nodes: Py<PyList>,
    periods: Py<PyList>,
    faults: Option<Py<PyDict>>,
    violations: Py<PyList>,
    finding: Option<String>,
    errors: Py<PyList>,
    writes: Py<PyDict>,
    recorded: Option<Py<PyDict>>,
}

#[pyclass(frozen, get_all, module = "pybench._core")]
pub(crate) struct Progress {
    phase: &'static str,
    elapsed_ns: u64,
    grants: u64,
    grants_per_s: f64,
    p99_ns: u64,
    errors: u64,
    reconnects: u64,
}

impl From<load::Progress> for Progress {
    fn from(progress: load::Progress) -> Self {
        Self {
            phase: progress.phase.name(),
            elapsed_ns: progress.elapsed.0,
            grants: progress.grants,
            grants_per_s: progress.grants_per_s,
            p99_ns: progress.p99.0,
            errors: progress.errors,
            reconnects: progress.reconnects,
        }
    }
}

/// What was counted since the last drain of a running trial.
#[pyclass(frozen, get_all, module = "pybench._core")]
pub(crate) struct Drained {
    counters: Py<PyDict>,
    histograms: Py<PyList>,
    violations: Py<PyList>,
}

impl Drained {
    pub(crate) fn new(py: Python<'_>, drained: &load::Drained) -> PyResult<Self> {
        let counters = PyDict::new(py);
        for (name, value) in drained.counters.named() {
            counters.set_item(name, value)?;
        }
        set_counts(&counters, &drained.counts)?;
        let context = Context {
            began: drained.began,
            names: &drained.names,
            keys_per_grant: drained.keys_per_grant,
        };
        Ok(Self {
            counters: counters.unbind(),
            histograms: histograms(py, &drained.histograms)?.unbind(),
            violations: violations(py, &context, &drained.violations)?.unbind(),
        })
    }
}

impl TrialResult {
    pub(crate) fn new(py: Python<'_>, measured: Measured) -> PyResult<Self> {
        let context = Context {
            began: measured.began,
            names: &measured.names,
            keys_per_grant: measured.keys_per_grant,
        };
        Ok(Self {
            stopped: measured.stopped,
            totals: totals(py, &measured)?.unbind(),
            jain: measured.jain,
            histograms: histograms(py, &measured.histograms)?.unbind(),
            violations: violations(py, &context, &measured.report.violations)?.unbind(),
            finding: measured.report.first_finding.clone(),
            recorded: recorded(py, &measured)?,
            errors: errors(py, &measured)?.unbind(),
            writes: writes(py, measured.writes)?,
            timeline: timeline(py, measured.timeline)?,
            clients: columns(
                py,
                [
                    ("grants", measured.clients.grants),
                    ("attempts", measured.clients.attempts),
                    ("refused", measured.clients.refused),
                    ("errors", measured.clients.errors),
                    ("waits", measured.clients.waits),
                    ("wait_sum_ns", measured.clients.wait_sum_ns),
                    ("wait_max_ns", measured.clients.wait_max_ns),
                    ("wait_p50_ns", measured.clients.wait_p50_ns),
                    ("wait_p90_ns", measured.clients.wait_p90_ns),
                    ("wait_p99_ns", measured.clients.wait_p99_ns),
                ],
            )?,
            commands: columns(
                py,
                [
                    ("start_ns", measured.commands.start_ns),
                    ("commands", measured.commands.commands),
                ],
            )?,
            nodes: nodes(py, &measured.nodes)?.unbind(),
            periods: faults::periods(py, &measured.faults.periods)?.unbind(),
            faults: faults::outcome(py, &measured.faults, &measured.report)?.map(Bound::unbind),
        })
    }
}

fn totals<'py>(py: Python<'py>, measured: &Measured) -> PyResult<Bound<'py, PyDict>> {
    let totals = PyDict::new(py);
    for (name, value) in measured.counters.named() {
        totals.set_item(name, value)?;
    }
    for (name, value) in [
        ("began_ns", measured.began.0),
        ("window_start_ns", measured.window_start.0),
        ("window_ns", measured.window.0),
        ("longest_stall_ns", measured.longest_stall.0),
        ("longest_wait_ns", measured.longest_wait.0),
    ] {
        totals.set_item(name, value)?;
    }
    totals.update(report_totals(py, &measured.report, measured.keys_per_grant)?.as_mapping())?;
    if let Some(warmed) = measured.warmed {
        totals.set_item("steady", u64::from(warmed.steady))?;
        totals.set_item("warmup_ns", warmed.length.0)?;
    }
    if let Some(cut) = measured.first_cut {
        totals.set_item("first_cut_ns", cut.0)?;
    }
    Ok(totals)
}

/// What the checker counted. It counts each key of a set as a grant of its own.
pub(crate) fn report_totals<'py>(
    py: Python<'py>,
    report: &Report,
    keys_per_grant: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let (figures, counts) = (&report.figures, &report.counts);
    let sets = u64::from(keys_per_grant);
    let totals = PyDict::new(py);
    for (name, value) in [
        ("contended_grants", figures.contended_grants / sets),
        ("overtakes", figures.overtakes / sets),
        ("longest_streak", figures.longest_streak),
        ("lease_freed_grants", figures.lease_freed_grants / sets),
    ] {
        totals.set_item(name, value)?;
    }
    set_counts(&totals, counts)?;
    Ok(totals)
}

fn set_counts(dict: &Bound<'_, PyDict>, counts: &ViolationCounts) -> PyResult<()> {
    for (name, value) in [
        ("double_grants", counts.double_grants),
        ("double_grants_after_overrun", counts.double_grants_after_overrun),
        ("sessions_lost", counts.sessions_lost),
        ("lease_overruns", counts.lease_overruns),
        ("outlived", counts.outlived),
        ("stale_fences", counts.stale_fences),
        ("fifo_inversions", counts.fifo_inversions),
        ("stalls", counts.stalls),
        ("starved", counts.starved),
        ("denied_releases", counts.denied_releases),
        ("findings", counts.findings),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(())
}

/// The files of a recorded trial, and the times for `RecordedLines`.
fn recorded(py: Python<'_>, measured: &Measured) -> PyResult<Option<Py<PyDict>>> {
    let Some(recorded) = &measured.recorded else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    let files: Vec<_> = recorded.files.iter().map(|path| path.as_os_str()).collect();
    dict.set_item("files", files)?;
    let (start, end) = recorded.window;
    dict.set_item("window", (start.map(|at| at.0), end.map(|at| at.0)))?;
    dict.set_item("ended_ns", recorded.ended.0)?;
    Ok(Some(dict.unbind()))
}

fn histograms<'py>(py: Python<'py>, histograms: &Histograms) -> PyResult<Bound<'py, PyList>> {
    let rows = histograms
        .filled()
        .map(|(phase, ended, histogram)| HistogramRow::new(py, phase, ended, histogram));
    PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

fn errors<'py>(py: Python<'py>, measured: &Measured) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for reply in &measured.errors {
        let dict = PyDict::new(py);
        dict.set_item("phase", reply.phase.name())?;
        dict.set_item("code", &reply.code)?;
        dict.set_item("server", reply.server)?;
        dict.set_item("count", reply.count)?;
        dict.set_item("warmup", reply.warmup)?;
        dict.set_item("first", &reply.first)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn nodes<'py>(py: Python<'py>, nodes: &[NodeFigures]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (server, node) in nodes.iter().enumerate() {
        let dict = PyDict::new(py);
        dict.set_item("server", server)?;
        for (name, count) in [
            ("asked", node.asked),
            ("granted", node.granted),
            ("refused", node.refused),
            ("errors", node.errors),
            ("late", node.late),
            ("decided", node.decided),
        ] {
            dict.set_item(name, count)?;
        }
        dict.set_item("reply_hdr", PyBytes::new(py, &encode(&node.reply)))?;
        dict.set_item("validity_hdr", PyBytes::new(py, &encode(&node.validity)))?;
        list.append(dict)?;
    }
    Ok(list)
}

/// The writes to each row; with a guard also by how much those that were acknowledged changed it.
fn writes(py: Python<'_>, writes: load::Writes) -> PyResult<Py<PyDict>> {
    let counted = [("acknowledged", writes.acknowledged), ("unknown", writes.unknown)];
    let dict = columns(py, counted)?;
    if !writes.changed.is_empty() {
        dict.bind(py).set_item("changed", writes.changed.into_pyarray(py))?;
    }
    Ok(dict)
}

fn columns<const N: usize>(py: Python<'_>, columns: [(&str, Vec<u64>); N]) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in columns {
        dict.set_item(name, column.into_pyarray(py))?;
    }
    Ok(dict.unbind())
}

/// What the times, keys and clients of violations of a trial mean.
pub(crate) struct Context<'a> {
    pub(crate) began: Nanos,
    pub(crate) names: &'a KeyNames,
    /// How many of the checker's clients belong to each client of the trial.
    pub(crate) keys_per_grant: u32,
}

fn timeline(py: Python<'_>, timeline: Columns) -> PyResult<Py<PyDict>> {
    let dict = columns(
        py,
        [
            ("start_ns", timeline.start_ns),
            ("grants", timeline.grants),
            ("refused", timeline.refused),
            ("errors", timeline.errors),
            ("p50_ns", timeline.p50_ns),
            ("p99_ns", timeline.p99_ns),
        ],
    )?;
    if !timeline.offered.is_empty() {
        dict.bind(py).set_item("offered", timeline.offered.into_pyarray(py))?;
    }
    Ok(dict)
}

pub(crate) fn violations<'py>(py: Python<'py>, of: &Context<'_>, found: &[Violation]) -> PyResult<Bound<'py, PyList>> {
    let namer = Namer {
        began: of.began,
        key: &|key| String::from_utf8_lossy(&of.names.name(key)).into_owned(),
        client: &|client| Ok((client / of.keys_per_grant).into_pyobject(py)?.into_any()),
    };
    let list = PyList::empty(py);
    for violation in found {
        list.append(violation_dict(py, &namer, violation)?)?;
    }
    Ok(list)
}

/// The names of keys and clients, and the time from which a report counts.
pub(crate) struct Namer<'a, 'py> {
    pub(crate) began: Nanos,
    pub(crate) key: &'a dyn Fn(Key) -> String,
    pub(crate) client: &'a dyn Fn(u32) -> PyResult<Bound<'py, PyAny>>,
}

pub(crate) fn violation_dict<'py>(
    py: Python<'py>,
    namer: &Namer<'_, 'py>,
    violation: &Violation,
) -> PyResult<Bound<'py, PyDict>> {
    let since = |point: Nanos| point.since(namer.began).0;
    let dict = PyDict::new(py);
    dict.set_item("kind", kind(violation.kind))?;
    dict.set_item("key", (namer.key)(violation.key))?;
    dict.set_item("at_ns", since(violation.at))?;
    dict.set_item("overlap_ns", violation.overlap.0)?;
    let span = |names: [&str; 5], span: Option<GrantSpan>| -> PyResult<()> {
        dict.set_item(names[0], span.map(|span| (namer.client)(span.client)).transpose()?)?;
        dict.set_item(names[1], span.and_then(|span| span.granted).map(since))?;
        dict.set_item(names[2], span.and_then(|span| span.until).map(since))?;
        dict.set_item(names[3], span.and_then(|span| span.fence).map(|fence| fence.0))?;
        dict.set_item(names[4], span.and_then(|span| span.ended).map(since))
    };
    span(
        [
            "first_client",
            "first_granted_ns",
            "first_until_ns",
            "first_fence",
            "first_ended_ns",
        ],
        Some(violation.first),
    )?;
    span(
        [
            "second_client",
            "second_granted_ns",
            "second_until_ns",
            "second_fence",
            "second_ended_ns",
        ],
        violation.second,
    )?;
    Ok(dict)
}

fn kind(kind: ViolationKind) -> &'static str {
    match kind {
        ViolationKind::DoubleGrant => "double-grant",
        ViolationKind::DoubleGrantAfterOverrun => "double-grant-after-overrun",
        ViolationKind::LeaseOverrun => "lease-overrun",
        ViolationKind::SessionLost => "session-lost",
        ViolationKind::StaleFence => "stale-fence",
        ViolationKind::FifoInversion => "fifo-inversion",
        ViolationKind::StalledKey => "stalled-key",
        ViolationKind::StarvedClient => "starved-client",
        ViolationKind::DeniedRelease => "denied-release",
    }
}
