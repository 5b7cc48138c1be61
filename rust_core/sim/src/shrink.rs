//! From a world that went wrong to the shortest that still does: with fewer faults, clients and requests, and sooner.

use locks::{Nanos, SpecError};

use crate::fuzz::{Found, Fuzz};
use crate::scene::{Part, Scene};

/// No further world is tried once so much has happened in those before.
const MOST_EVENTS: u64 = 5_000_000;

/// Steps of the search for an earlier time.
const STEPS: u64 = 8;

struct Search<'a> {
    fuzz: &'a Fuzz,
    scene: Scene,
    best: Found,
    events: u64,
}

impl Fuzz {
    /// The shortest world found that goes wrong as the one of `seed` does; `None` when that does not.
    ///
    /// # Errors
    /// When the strategy cannot work under the setting.
    pub fn shrink(&self, seed: u64) -> Result<Option<Found>, SpecError> {
        let Some(best) = self.find(seed, &Part::default(), &mut 0)? else {
            return Ok(None);
        };
        let mut search = Search {
            fuzz: self,
            scene: Scene::draw(&self.setting, seed)?,
            best,
            events: 0,
        };
        while search.fewer_faults()? | search.fewer_clients()? | search.fewer_requests()? | search.sooner()? {}
        Ok(Some(search.best))
    }
}

impl Search<'_> {
    /// Takes this part if its world goes wrong in the same way.
    fn takes(&mut self, part: &Part) -> Result<bool, SpecError> {
        self.takes_if(part, |_| true)
    }

    fn takes_if(&mut self, part: &Part, suits: impl FnOnce(&Found) -> bool) -> Result<bool, SpecError> {
        if self.events >= MOST_EVENTS {
            return Ok(false);
        }
        let found = self.fuzz.find(self.scene.seed, part, &mut self.events)?;
        let found = found.filter(|found| found.verdict == self.best.verdict && suits(found));
        let is_better = found.is_some();
        if let Some(found) = found {
            self.best = found;
        }
        Ok(is_better)
    }

    /// The faults that are left.
    fn faults(&self) -> Vec<u32> {
        let scene = self.scene.cut(&self.best.part);
        let struck = scene.faults.iter().filter(|fault| fault.at <= self.best.at());
        struck.map(|fault| fault.number).collect()
    }

    fn fewer_faults(&mut self) -> Result<bool, SpecError> {
        let mut kept = self.faults();
        let mut improved = self
            .best
            .part
            .faults
            .as_ref()
            .is_none_or(|faults| faults.len() > kept.len())
            && self.takes(&self.with_faults(kept.clone()))?;
        for number in kept.clone().into_iter().rev() {
            let without: Vec<u32> = kept.iter().copied().filter(|&other| other != number).collect();
            if self.takes(&self.with_faults(without.clone()))? {
                kept = without;
                improved = true;
            }
        }
        Ok(improved)
    }

    fn with_faults(&self, faults: Vec<u32>) -> Part {
        Part {
            faults: Some(faults),
            ..self.best.part.clone()
        }
    }

    fn fewer_clients(&mut self) -> Result<bool, SpecError> {
        let mut improved = false;
        let all = (0..self.scene.clients).collect();
        let mut kept: Vec<u32> = self.best.part.clients.clone().unwrap_or(all);
        for client in kept.clone().into_iter().rev() {
            let clients: Vec<u32> = kept.iter().copied().filter(|&other| other != client).collect();
            let part = Part {
                clients: Some(clients.clone()),
                ..self.best.part.clone()
            };
            if !clients.is_empty() && self.takes(&part)? {
                kept = clients;
                improved = true;
            }
        }
        Ok(improved)
    }

    fn fewer_requests(&mut self) -> Result<bool, SpecError> {
        let made = self.best.world.most_requests;
        let most = self.best.part.requests.unwrap_or(u64::MAX).min(made + 1);
        for requests in 1..most {
            let part = Part {
                requests: Some(requests),
                ..self.best.part.clone()
            };
            if self.takes(&part)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets all faults strike earlier, if the world then goes wrong earlier.
    fn sooner(&mut self) -> Result<bool, SpecError> {
        let scene = self.scene.cut(&self.best.part);
        let first_ms = scene.faults.first().map_or(0, |fault| fault.at.0 / 1_000_000);
        let wrong_at = self.best.at();
        let most = (0..STEPS).map(|step| first_ms >> step).take_while(|&step| step > 0);
        for step in most {
            let part = Part {
                earlier: self.best.part.earlier.after(Nanos::from_millis(step)),
                ..self.best.part.clone()
            };
            if self.takes_if(&part, |found| found.at() < wrong_at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
