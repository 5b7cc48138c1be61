//! Planted faults. A trial's checker must find each of them; only then does it prove anything when it finds nothing.
//!
//! Each plant is a short invented history of a few clients with one fault in it. The same functions of `Clients` report
//! it, through the same rings and under the same rules as the steps of real clients in the trial; only the commands are
//! missing and the stamps are invented. The last plant has no fault, and the checker must find nothing in it.
//!
//! Does not show that locks send what they should, or that a trial takes its stamps at the right moments.

use std::num::NonZeroU64;
use std::sync::Arc;

use check::{Event as Judged, LostUpdates, Report, UpdateVerdict};
use locks::{AnyLock, Fence, Key, Lasts, Mode, Nanos, Outcome, Strategy};

use crate::TrialError;
use crate::control::Control;
use crate::recorder::judge::Judge;
use crate::setup::{self, Part};
use crate::spec::{AfterLease, Distribution, KeyChoice, Pace, TrialSpec};
use crate::trial;

const STEP: Nanos = Nanos::from_micros(10);
/// Longer than any plant.
const LONG: Nanos = Nanos::from_millis(100);

/// One planted fault, or "no fault", and whether the checker found exactly that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planted {
    pub kind: &'static str,
    pub caught: bool,
}

type Script = fn(&mut Scene);

/// Plants every fault that the rules of `spec` can detect.
pub(crate) fn all(spec: &TrialSpec) -> Result<Vec<Planted>, TrialError> {
    let mut found = Vec::new();
    let mut plant = |kind, script: Script, is_found: &dyn Fn(&Report) -> bool| {
        let report = report_of(spec, script)?;
        let caught = is_found(&report);
        found.push(Planted { kind, caught });
        Ok::<(), TrialError>(())
    };
    let strategy = spec.strategy;
    // Each key of a set is judged by itself.
    let on_each_key = |report: &Report| has_double_grants(report, spec.keys_per_grant.into());
    let on_one_key = |report: &Report| has_double_grants(report, 1);
    if strategy.has_belief() {
        let kind = if strategy.permits() > 1 {
            "one permit too many"
        } else {
            "double grant"
        };
        plant(kind, one_holder_too_many, &on_each_key)?;
        if spec.keys_per_grant > 1 {
            plant("overlap in a second key", overlap_in_the_second_key, &on_one_key)?;
        }
        if strategy.has_lease() {
            plant("double grant in a renewed lease", past_the_first_lease, &on_each_key)?;
        }
        if strategy.shares() {
            plant("reader beside a writer", a_reader_beside_a_writer, &on_each_key)?;
        }
        if strategy.fences() {
            plant("stale fence", a_stale_fence, &|report| report.counts.stale_fences == 1)?;
        }
        if strategy.acknowledges_places() {
            plant("FIFO inversion", an_inversion, &|report| {
                report.counts.fifo_inversions == 1
            })?;
        }
        plant("no fault", no_fault, &|report| {
            report.violations.is_empty() && has_double_grants(report, 0)
        })?;
    }
    if strategy.writes() {
        found.push(Planted {
            kind: "lost update",
            caught: finds_a_lost_update(spec)?,
        });
    }
    Ok(found)
}

fn has_double_grants(report: &Report, count: u64) -> bool {
    report.counts.double_grants == count && report.counts.lease_overruns == 0
}

fn one_holder_too_many(scene: &mut Scene) {
    let most = scene.permits();
    for client in 0..=most {
        scene.takes(client);
    }
    for client in 0..=most {
        scene.releases(client);
    }
}

/// Two sets of keys that share only their second key.
fn overlap_in_the_second_key(scene: &mut Scene) {
    let count = scene.parts[0].params.keys_per_grant();
    let ours: Vec<Key> = (0..count).map(Key).collect();
    let mut theirs: Vec<Key> = (count..2 * count).map(Key).collect();
    theirs[1] = ours[1];
    scene.asks(0, &ours, Mode::Exclusive);
    scene.granted(0, LONG, None);
    scene.asks(1, &theirs, Mode::Exclusive);
    scene.granted(1, LONG, None);
    scene.releases(0);
    scene.releases(1);
}

/// All permits are held, one of them under a renewed lease, when another client is granted after that lease's first
/// end.
fn past_the_first_lease(scene: &mut Scene) {
    let most = scene.permits();
    scene.asks_for_all(0);
    scene.granted(0, Nanos(STEP.0 * 2), None);
    scene.renewed(0);
    for client in 1..=most {
        scene.takes(client);
    }
    scene.passes(Nanos(STEP.0 * 4));
    for client in 0..=most {
        scene.releases(client);
    }
}

fn a_reader_beside_a_writer(scene: &mut Scene) {
    scene.takes(0);
    let keys = scene.all_keys();
    scene.asks(1, &keys, Mode::Shared);
    scene.granted(1, LONG, None);
    scene.releases(0);
    scene.releases(1);
}

fn a_stale_fence(scene: &mut Scene) {
    for (client, fence) in [(0, 7), (1, 6)] {
        scene.asks_for_all(client);
        scene.granted(client, LONG, NonZeroU64::new(fence));
        scene.releases(client);
    }
}

fn an_inversion(scene: &mut Scene) {
    scene.asks_for_all(0);
    scene.queued(0);
    scene.asks_for_all(1);
    scene.queued(1);
    for client in [1, 0] {
        scene.granted(client, LONG, None);
        scene.releases(client);
    }
}

/// As many holders as allowed, readers at the same time, a renewed lease and an ended one: all correct.
fn no_fault(scene: &mut Scene) {
    let most = scene.permits();
    for client in 0..most {
        scene.takes(client);
        scene.renewed(client);
    }
    for client in 0..most {
        scene.releases(client);
    }
    if scene.strategy().shares() {
        let keys = scene.all_keys();
        for client in 0..2 {
            scene.asks(client, &keys, Mode::Shared);
            scene.granted(client, LONG, None);
        }
        scene.releases(0);
        scene.releases(1);
    }
    scene.takes(most);
    scene.releases(most);
}

/// Two writes are acknowledged, and the row contains one.
fn finds_a_lost_update(spec: &TrialSpec) -> Result<bool, TrialError> {
    let mut acknowledged = 0;
    played(spec, |scene| {
        let Part { clients, recorder, .. } = &mut scene.parts[0];
        clients.write_answered(0, Outcome::Released, recorder);
        clients.write_answered(0, Outcome::Released, recorder);
        let written = recorder.written();
        let writes = LostUpdates {
            acknowledged: written.acknowledged.iter().sum(),
            unknown: written.unknown.iter().sum(),
        };
        acknowledged = u64::from(writes.judge(1) == UpdateVerdict::Lost { at_least: 1 });
    })?;
    Ok(acknowledged == 1)
}

fn report_of(spec: &TrialSpec, script: Script) -> Result<Report, TrialError> {
    played(spec, script)
}

fn played(spec: &TrialSpec, script: impl FnOnce(&mut Scene)) -> Result<Report, TrialError> {
    let (spec, control) = (scene_of(spec), Arc::new(Control::new(spec.threads)));
    let strategy = spec.strategy;
    let play = |judges| {
        let parts = setup::parts(&spec, &control, judges, |spec, chance| {
            AnyLock::new(strategy, spec, chance)
        })?;
        let mut scene = Scene::of(parts);
        script(&mut scene);
        Ok(((), scene.close()))
    };
    let ((), judged) = trial::judged(&spec, &control, play)?;
    Ok(judged.report)
}

/// The trial's spec with enough clients and keys for every plant; each client does only what the plant says.
fn scene_of(spec: &TrialSpec) -> TrialSpec {
    TrialSpec {
        guard: None,
        keys: 2 * spec.keys_per_grant,
        key_choice: KeyChoice::Uniform,
        nesting: 1,
        read_share: 0.0,
        hold: Distribution::Fixed(LONG),
        after_lease: AfterLease::Continue,
        pace: Pace::Closed,
        concurrency: (spec.strategy.permits() + 1).max(2 * spec.threads),
        ..spec.clone()
    }
}

struct Scene {
    parts: Vec<Part<AnyLock>>,
    /// The thread and the index there of each client of the plant: neighbours are clients of different threads.
    places: Vec<(usize, u32)>,
    now: Nanos,
    fence: u64,
}

impl Scene {
    fn of(parts: Vec<Part<AnyLock>>) -> Self {
        let mut places: Vec<(usize, u32)> = (0..)
            .zip(&parts)
            .flat_map(|(thread, of): (usize, &Part<AnyLock>)| {
                (0..of.clients.count() as u32).map(move |client| (thread, client))
            })
            .collect();
        places.sort_by_key(|&(thread, client)| (client, thread));
        Self {
            parts,
            places,
            now: STEP,
            fence: 0,
        }
    }

    fn strategy(&self) -> Strategy {
        self.parts[0].params.strategy
    }

    /// Taken from the strategy, because the rules are what is tested.
    fn permits(&self) -> u32 {
        self.strategy().permits()
    }

    fn all_keys(&self) -> Vec<Key> {
        (0..self.parts[0].params.keys_per_grant()).map(Key).collect()
    }

    fn at(&mut self, client: u32) -> (&mut Part<AnyLock>, u32, Nanos) {
        self.now = self.now.after(STEP);
        let (thread, index) = self.places[client as usize];
        (&mut self.parts[thread], index, self.now)
    }

    fn passes(&mut self, length: Nanos) {
        self.now = self.now.after(length);
    }

    fn takes(&mut self, client: u32) {
        self.asks_for_all(client);
        self.granted(client, LONG, None);
    }

    fn asks_for_all(&mut self, client: u32) {
        let keys = self.all_keys();
        self.asks(client, &keys, Mode::Exclusive);
    }

    fn asks(&mut self, client: u32, keys: &[Key], mode: Mode) {
        let (Part { clients, recorder, .. }, index, now) = self.at(client);
        clients.asks(index, now, keys, mode, LONG);
        clients.tell(recorder, index, now, |client, key| Judged::Waiting {
            client,
            key,
            mode,
        });
    }

    fn queued(&mut self, client: u32) {
        let (Part { clients, recorder, .. }, index, now) = self.at(client);
        clients.tell(recorder, index, now, |client, _| Judged::Queued { client });
    }

    /// Grants the lock for `lasts`, if it has a lease; with the next fence, if it has fences and none is given.
    fn granted(&mut self, client: u32, lasts: Nanos, fence: Option<NonZeroU64>) {
        let strategy = self.strategy();
        self.fence += 1;
        let fence = fence.or(NonZeroU64::new(self.fence)).map(Fence);
        let (Part { clients, recorder, .. }, index, now) = self.at(client);
        let lasts = lasts_of(strategy, now.after(lasts));
        let fence = fence.filter(|_| strategy.fences());
        clients.granted(index, now, (lasts, fence), 1, recorder);
    }

    fn renewed(&mut self, client: u32) {
        let strategy = self.strategy();
        let (Part { clients, recorder, .. }, index, now) = self.at(client);
        if strategy.has_lease() {
            let lasts = lasts_of(strategy, now.after(Nanos(LONG.0 * 2)));
            clients.renewed(index, now, lasts, recorder);
        }
    }

    fn releases(&mut self, client: u32) {
        let (Part { clients, recorder, .. }, index, now) = self.at(client);
        clients.releases(index);
        clients.stamp_release(index, now, recorder);
    }

    /// Ends the plant: no event follows.
    fn close(self) -> Vec<Judge> {
        let judges: Vec<Judge> = self.parts.into_iter().map(|part| part.recorder.into_judge()).collect();
        for judge in &judges {
            judge.reached(Nanos::NEVER);
        }
        judges
    }
}

const fn lasts_of(strategy: Strategy, until: Nanos) -> Lasts {
    if strategy.holds_by_session() {
        Lasts::Session
    } else {
        Lasts::Until(until)
    }
}

#[cfg(test)]
mod tests;
