//! Worlds on virtual time for Python: counts of many seeds, the shortest world that goes wrong, and what happens in one.

use check::Event;
use locks::{Mode, Nanos, Strategy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sim::{FaultKind, Found, Part, Scene, Setting, Tally, Verdict, World, Wrong, command_words, reply_words};

use crate::result::{Namer, violation_dict};
use crate::spec::{arguments, dict, exclusion, field, value_error};

/// The worlds of one setting.
#[pyclass(frozen, module = "pybench._core")]
pub(crate) struct Fuzz {
    inner: sim::Fuzz,
}

#[pymethods]
impl Fuzz {
    #[new]
    fn new(spec: &Bound<'_, PyDict>) -> PyResult<Self> {
        let strategy: String = field(spec, "strategy")?;
        let strategy = Strategy::named(&strategy, &arguments(&dict(spec, "args")?)?).map_err(value_error)?;
        let faults: Vec<String> = field(spec, "faults")?;
        let faults = faults.iter().map(|name| fault_kind(name)).collect::<PyResult<_>>()?;
        let inner = sim::Fuzz {
            setting: Setting {
                strategy,
                faults,
                clients: field(spec, "clients")?,
                ttl_ms: field(spec, "ttl_ms")?,
                hold: field::<Option<u64>>(spec, "hold_ns")?.map(Nanos),
                until: field::<Option<u64>>(spec, "until_ns")?.map(Nanos),
            },
            exclusion: exclusion(spec)?,
        };
        Scene::draw(&inner.setting, 0).map_err(value_error)?;
        Ok(Self { inner })
    }

    /// The faults that its worlds can have, and whether the promise of a lock covers each.
    fn faults(&self) -> Vec<(&'static str, bool)> {
        let befalls = |kind: &FaultKind| kind.befalls(self.inner.setting.strategy);
        let known = FaultKind::ALL.into_iter().filter(befalls);
        known.map(|kind| (kind.name(), kind.is_survived())).collect()
    }

    fn run<'py>(&self, py: Python<'py>, first: u64, count: u64, stops: bool) -> PyResult<Bound<'py, PyDict>> {
        let tally = py.detach(|| self.inner.run(first, count, stops)).map_err(value_error)?;
        tally_dict(py, &tally)
    }

    fn shrink<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        // A world cannot leave its thread: it becomes a dictionary where it was made.
        let found = self.inner.shrink(seed).map_err(value_error)?;
        found.map(|found| self.found_dict(py, &found)).transpose()
    }

    fn replay<'py>(&self, py: Python<'py>, seed: u64, part: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let part = Part {
            faults: field(part, "faults")?,
            earlier: Nanos(field(part, "earlier_ns")?),
            clients: field(part, "clients")?,
            requests: field(part, "requests")?,
        };
        let drawn = Scene::draw(&self.inner.setting, seed).map_err(value_error)?;
        let scene = drawn.cut(&part);
        let found = self.inner.find(seed, &part, &mut 0).map_err(value_error)?;
        let world = World::of_scene(&scene, true);
        let replay = scene_dict(py, &scene)?;
        replay.set_item("drawn_faults", drawn.faults.len())?;
        replay.set_item("found", found.map(|found| self.found_dict(py, &found)).transpose()?)?;
        replay.set_item("heard", self.heard(py, &world)?)?;
        replay.set_item("served", served(py, &world)?)?;
        replay.set_item("ended_ns", world.ended.0)?;
        Ok(replay)
    }
}

impl Fuzz {
    fn keys_per_grant(&self) -> u32 {
        sim::keys_per_grant(self.inner.setting.strategy)
    }

    fn found_dict<'py>(&self, py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("broken", found.verdict == Verdict::Broken)?;
        dict.set_item("at_ns", found.at().0)?;
        dict.set_item("faults", &found.part.faults)?;
        dict.set_item("earlier_ns", found.part.earlier.0)?;
        dict.set_item("clients", &found.part.clients)?;
        dict.set_item("requests", found.part.requests)?;
        let (mut violation, mut other) = (None, None);
        match &found.wrong {
            Wrong::Violation(seen) => {
                let namer = Namer {
                    began: Nanos::ZERO,
                    key: &|key| format!("{{{}}}", key.0),
                    client: &|client| Ok((client / self.keys_per_grant()).into_pyobject(py)?.into_any()),
                };
                violation = Some(violation_dict(py, &namer, seen)?);
            }
            Wrong::Writes(text) | Wrong::Finding(text) | Wrong::Conduct(_, text) | Wrong::Progress(text) => {
                other = Some(text);
            }
        }
        dict.set_item("violation", violation)?;
        dict.set_item("other", other)?;
        Ok(dict)
    }

    /// What the judge heard: time, step, client, the end of a lease, fence.
    fn heard<'py>(&self, py: Python<'py>, world: &World) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for &(at, event) in &world.heard {
            let (mut until, mut number) = (None, None);
            let step = match event {
                Event::Waiting {
                    mode: Mode::Exclusive, ..
                } => "waiting",
                Event::Waiting { mode: Mode::Shared, .. } => "waiting-shared",
                Event::Queued { .. } => "queued",
                Event::GaveUp { .. } | Event::CutOff { .. } => "gave-up",
                Event::Granted { until: end, fence, .. } => {
                    (until, number) = (Some(end), fence.map(|fence| fence.0));
                    "granted"
                }
                Event::Renewed { until: end, .. } => {
                    until = Some(end);
                    "renewed"
                }
                Event::LeaseLost { .. } => "lost",
                Event::HungUp { .. } => "hung-up",
                Event::Stopped { .. } => "stopped",
                Event::Died { .. } => "died",
                Event::Released { .. } => "released",
                Event::DeniedRelease { .. } => "denied",
                Event::DriverStalled { .. } => continue,
            };
            let until = until.filter(|&end| end != Nanos::NEVER).map(|end| end.0);
            list.append((at.0, step, event.client() / self.keys_per_grant(), until, number))?;
        }
        Ok(list)
    }
}

fn fault_kind(name: &str) -> PyResult<FaultKind> {
    let known = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| PyValueError::new_err(format!("`faults` has {name:?}, which is none")))
}

fn tally_dict<'py>(py: Python<'py>, tally: &Tally) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("worlds", tally.worlds)?;
    dict.set_item("events", tally.events)?;
    dict.set_item("grants", tally.grants)?;
    let faults = PyDict::new(py);
    for (kind, count) in &tally.faults {
        faults.set_item(kind.name(), count)?;
    }
    dict.set_item("faults", faults)?;
    dict.set_item("overruns", tally.overruns)?;
    dict.set_item("outside", &tally.outside)?;
    dict.set_item("broken", &tally.broken)?;
    Ok(dict)
}

/// What the seed drew, and what is left of it.
fn scene_dict<'py>(py: Python<'py>, scene: &Scene) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("drawn_clients", scene.clients)?;
    dict.set_item("clients", &scene.present)?;
    dict.set_item("servers", scene.servers())?;
    dict.set_item("ttl_ns", scene.strategy.has_lease().then(|| scene.ttl().0))?;
    dict.set_item("hold_ns", scene.hold().0)?;
    let faults = PyList::empty(py);
    for fault in &scene.faults {
        let client = fault.is_of_process().then_some(fault.process);
        let server = fault.is_of_server().then_some(fault.server.0);
        faults.append((
            fault.number,
            fault.at.0,
            fault.kind.name(),
            client,
            server,
            fault.lasts().0,
        ))?;
    }
    dict.set_item("faults", faults)?;
    Ok(dict)
}

/// What servers did: time, client, server, command, reply.
fn served<'py>(py: Python<'py>, world: &World) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (at, served) in &world.served {
        let (command, reply) = (command_words(&served.command), reply_words(served.reply));
        list.append((at.0, served.client, served.server.0, command, reply))?;
    }
    Ok(list)
}
