//! Runs the worlds of many seeds, and tells which broke a promise of their lock.

use std::collections::BTreeMap;

use check::{Violation, ViolationKind};
use history::Exclusion;
use locks::{Nanos, SpecError};

use crate::plan::{Fault, FaultKind};
use crate::scene::{Part, Scene, Setting};
use crate::world::World;

/// The setting of the worlds, and how far their lock promises to limit its holders.
#[derive(Clone, Debug)]
pub struct Fuzz {
    pub setting: Setting,
    pub exclusion: Exclusion,
}

/// Whether a lock is to blame for what is wrong in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A violation that the lock does not promise to avoid: it promises no exclusion, or a fault struck that its
    /// promise does not cover.
    Outside,
    /// A violation under faults that the promise covers.
    Broken,
}

/// What is wrong in a world.
#[derive(Clone, Debug)]
pub enum Wrong {
    Violation(Violation),
    /// An acknowledged write is missing, or one is there that nobody sent; as a sentence.
    Writes(String),
    /// The driver or the checker is wrong.
    Finding(String),
    /// A client did what no lock may do: see `conduct`.
    Conduct(Nanos, String),
    /// Nobody was granted a lock that was wanted, or only the end of a lease freed it: see `quiet`.
    Progress(String),
}

/// A world that went wrong, and what is left of it.
#[derive(Debug)]
pub struct Found {
    pub verdict: Verdict,
    pub part: Part,
    pub world: World,
    pub wrong: Wrong,
}

/// The counts of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub worlds: u64,
    /// What happened in all of them: see `World::events`.
    pub events: u64,
    pub grants: u64,
    /// The faults that struck, by their kinds.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Worlds in which a client was granted the lock while another still worked past its lease.
    pub overruns: u64,
    /// The seeds of the worlds with a violation.
    pub outside: Vec<u64>,
    pub broken: Vec<u64>,
}

impl Found {
    /// When it went wrong; the end of the world where no time can be told.
    pub fn at(&self) -> Nanos {
        self.wrong.at().unwrap_or(self.world.ended)
    }
}

impl Wrong {
    const fn at(&self) -> Option<Nanos> {
        match self {
            Self::Violation(violation) => Some(violation.at),
            Self::Conduct(at, _) => Some(*at),
            Self::Writes(_) | Self::Finding(_) | Self::Progress(_) => None,
        }
    }
}

impl World {
    /// The first thing that is wrong.
    pub fn wrong(&self) -> Option<Wrong> {
        if let Some(finding) = &self.report.first_finding {
            return Some(Wrong::Finding(finding.clone()));
        }
        if let Some((at, breach)) = &self.breach {
            return Some(Wrong::Conduct(*at, breach.clone()));
        }
        if let Some(stuck) = &self.stuck {
            return Some(Wrong::Progress(stuck.clone()));
        }
        if let Some(update) = &self.lost_update {
            return Some(Wrong::Writes(update.clone()));
        }
        if self.judged_by_writes {
            return None;
        }
        let is_wrong = |violation: &&Violation| {
            matches!(
                violation.kind,
                ViolationKind::DoubleGrant | ViolationKind::DoubleGrantAfterOverrun | ViolationKind::StaleFence
            )
        };
        self.report
            .violations
            .iter()
            .find(is_wrong)
            .copied()
            .map(Wrong::Violation)
    }
}

impl Fuzz {
    /// Runs the worlds of `count` seeds from `first`; with `stops` only up to the first broken promise.
    ///
    /// # Errors
    /// When the strategy cannot work under the setting.
    pub fn run(&self, first: u64, count: u64, stops: bool) -> Result<Tally, SpecError> {
        let mut tally = Tally::default();
        for seed in (0..count).map(|index| first.wrapping_add(index)) {
            let scene = Scene::draw(&self.setting, seed)?;
            let world = World::of_scene(&scene, false);
            tally.add(&scene, &world);
            let Some(wrong) = self.wrong(&world) else { continue };
            match self.blame(&scene, world, wrong).verdict {
                Verdict::Outside => tally.outside.push(seed),
                Verdict::Broken => {
                    tally.broken.push(seed);
                    if stops {
                        break;
                    }
                }
            }
        }
        Ok(tally)
    }

    /// What the world of one seed shows, or a part of it: `None` when nothing is wrong. Adds to `events`.
    ///
    /// # Errors
    /// When the strategy cannot work under the setting.
    pub fn find(&self, seed: u64, part: &Part, events: &mut u64) -> Result<Option<Found>, SpecError> {
        let scene = Scene::draw(&self.setting, seed)?.cut(part);
        let world = World::of_scene(&scene, false);
        *events += world.events;
        let found = self.wrong(&world).map(|wrong| self.blame(&scene, world, wrong));
        Ok(found.map(|found| Found {
            part: Part {
                faults: found.part.faults.or_else(|| part.faults.clone()),
                ..part.clone()
            },
            ..found
        }))
    }

    /// The first thing that is wrong, as far as it is asked of the lock: one that excludes nobody need not get on.
    fn wrong(&self, world: &World) -> Option<Wrong> {
        let promises = self.exclusion != Exclusion::Nothing;
        let wrong = world.wrong();
        wrong.filter(|wrong| promises || !matches!(wrong, Wrong::Progress(_)))
    }

    /// Whether the lock is to blame. If a fault struck that its promise does not cover, the same world without such
    /// faults decides.
    fn blame(&self, scene: &Scene, world: World, wrong: Wrong) -> Found {
        let all = |verdict, world, wrong| Found {
            verdict,
            part: Part::default(),
            world,
            wrong,
        };
        if !self.is_promised(&wrong) {
            return all(Verdict::Outside, world, wrong);
        }
        let is_survived = |fault: &Fault| fault.is_survived_by(scene.strategy);
        let at = wrong.at().unwrap_or(world.ended);
        let mut struck = scene.faults.iter().filter(|fault| fault.at <= at);
        if !matches!(wrong, Wrong::Violation(_)) || struck.all(is_survived) {
            return all(Verdict::Broken, world, wrong);
        }
        let covered = scene.faults.iter().filter(|fault| is_survived(fault));
        let part = Part {
            faults: Some(covered.map(|fault| fault.number).collect()),
            ..Part::default()
        };
        let less = World::of_scene(&scene.cut(&part), false);
        match self.wrong(&less) {
            Some(wrong) => Found {
                verdict: Verdict::Broken,
                part,
                world: less,
                wrong,
            },
            None => all(Verdict::Outside, world, wrong),
        }
    }

    /// Whether the lock promises to avoid this while no fault strikes that its promise does not cover.
    fn is_promised(&self, wrong: &Wrong) -> bool {
        let Wrong::Violation(violation) = wrong else {
            return true;
        };
        match self.exclusion {
            Exclusion::Nothing => false,
            Exclusion::WhileNobodyOutlives => violation.kind != ViolationKind::DoubleGrantAfterOverrun,
            Exclusion::Always => true,
        }
    }
}

impl Tally {
    fn add(&mut self, scene: &Scene, world: &World) {
        self.worlds += 1;
        self.events += world.events;
        self.grants += world.outcomes.get("held").copied().unwrap_or(0);
        self.overruns += u64::from(world.report.counts.lease_overruns > 0);
        for fault in scene.faults.iter().filter(|fault| fault.at <= world.ended) {
            *self.faults.entry(fault.kind).or_default() += 1;
        }
    }
}
