//! A scene: a whole world as data, drawn from a seed, of which any part can be left out.

use locks::{Chance, Lease, Nanos, Retry, RetryKind, Spec, SpecError, Strategy};

use crate::asked::Asked;
use crate::conditions::{Conditions, Faults, Mistake};
use crate::plan::{self, Extent, Fault, FaultKind};

/// What is the same in all worlds; the seed draws the rest.
#[derive(Clone, Debug)]
pub struct Setting {
    pub strategy: Strategy,
    /// The kinds of faults that a world may have.
    pub faults: Vec<FaultKind>,
    pub clients: Option<u32>,
    pub ttl_ms: Option<i64>,
    /// The longest hold.
    pub hold: Option<Nanos>,
    /// When the world ends.
    pub until: Option<Nanos>,
}

/// What is left of a world; `None` leaves all.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The numbers of the faults that strike.
    pub faults: Option<Vec<u32>>,
    /// How much earlier they strike.
    pub earlier: Nanos,
    /// The clients that take part.
    pub clients: Option<Vec<u32>>,
    /// How many requests each client makes: the first so many.
    pub requests: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Scene {
    pub seed: u64,
    pub strategy: Strategy,
    /// One process each.
    pub clients: u32,
    /// The clients that take part.
    pub present: Vec<u32>,
    pub faults: Vec<Fault>,
    pub requests: u64,
    pub until: Nanos,
    /// The longest think time, if it is drawn: only where no fault strikes.
    think: Option<Nanos>,
    pub(crate) conditions: Conditions,
}

/// How often conditions are drawn until they suit the strategy.
const DRAWS: usize = 500;
const CLIENTS: [u32; 4] = [2, 3, 4, 6];
const TTLS_MS: [i64; 4] = [20, 100, 300, 1_000];
const REPLY_TIMEOUTS_MS: [u64; 3] = [5, 20, 200];
/// The longest hold, in percent of the lease.
const HOLDS_PERCENT: [u64; 4] = [10, 50, 90, 150];
/// The longest think time, in leases.
const THINK_LEASES: [Option<u64>; 3] = [None, Some(1), Some(3)];
/// The end of a world, in leases.
const LEASES: u64 = 4;

impl Scene {
    /// The world of `seed`.
    ///
    /// # Errors
    /// When the strategy cannot work under such a setting.
    pub fn draw(setting: &Setting, seed: u64) -> Result<Self, SpecError> {
        let mut streams = Chance::streams(seed ^ OF_SCENES);
        let mut of = || streams.next().expect("streams do not end");
        let (mut common, mut of_plan, mut of_think) = (of(), of(), of());
        let drawn = pick(&mut common, &CLIENTS);
        let clients = setting.clients.unwrap_or(drawn);
        let (spec, hold_percent) = Self::spec(setting, &mut common)?;
        let lease = Nanos::from(spec.lease.ttl());
        let hold = setting.hold.unwrap_or(Nanos(lease.0 * hold_percent / 100));
        let until = setting.until.unwrap_or(Nanos(lease.0.max(hold.0) * LEASES));
        let extent = Extent {
            processes: clients,
            until,
            lease,
        };
        let faults = plan::draw(setting.strategy, &setting.faults, extent, &mut of_plan);
        // Where clients seldom ask, nobody else wakes one that a release has not woken.
        let leases = faults.is_empty().then(|| pick(&mut of_think, &THINK_LEASES)).flatten();
        Ok(Self {
            seed,
            strategy: setting.strategy,
            clients,
            present: (0..clients).collect(),
            faults,
            requests: u64::MAX,
            until,
            think: leases.map(|leases| Nanos(lease.0 * leases)),
            conditions: Conditions {
                spec,
                faults: Faults::none(hold),
                clients: clients as usize,
                keys: 1,
            },
        })
    }

    fn spec(setting: &Setting, chance: &mut Chance) -> Result<(Spec, u64), SpecError> {
        let mut refused = None;
        for _ in 0..DRAWS {
            let (ttl, timeout) = (pick(chance, &TTLS_MS), pick(chance, &REPLY_TIMEOUTS_MS));
            let hold_percent = pick(chance, &HOLDS_PERCENT);
            let spec = Spec {
                servers: setting.strategy.nodes().unwrap_or(1),
                lease: Lease::new(setting.ttl_ms.unwrap_or(ttl))?,
                reply_timeout: Nanos::from_millis(timeout),
                retry: Retry {
                    kind: pick(chance, &RetryKind::ALL),
                    base: Nanos::from_millis(1),
                    factor: 2.0,
                    cap: Nanos::from_millis(10),
                    max_attempts: None,
                    max_wait: Nanos::from_secs(1),
                },
            };
            match setting.strategy.check(&spec) {
                Ok(()) => return Ok((spec, hold_percent)),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.expect("each draw was refused"))
    }

    /// What is left of this world.
    #[must_use]
    pub fn cut(&self, part: &Part) -> Self {
        let mut scene = self.clone();
        if let Some(clients) = &part.clients {
            scene.present.retain(|client| clients.contains(client));
        }
        scene.requests = part.requests.unwrap_or(self.requests);
        if let Some(kept) = &part.faults {
            scene.faults.retain(|fault| kept.contains(&fault.number));
        }
        let present = &scene.present;
        scene
            .faults
            .retain(|fault| !fault.is_of_process() || present.contains(&fault.process));
        for fault in &mut scene.faults {
            fault.at = Nanos(fault.at.0.saturating_sub(part.earlier.0));
        }
        scene
    }

    pub fn servers(&self) -> u16 {
        self.conditions.spec.servers
    }

    pub fn ttl(&self) -> Nanos {
        Nanos::from(self.conditions.spec.lease.ttl())
    }

    pub const fn hold(&self) -> Nanos {
        self.conditions.faults.hold
    }

    pub(crate) fn asked(&self) -> Asked {
        let asked = Asked::new(self.strategy, Mistake::None, self.seed);
        Asked {
            think: self.think.unwrap_or(asked.think),
            ..asked
        }
    }

    /// Draws the clocks of the processes.
    pub(crate) fn clocks(&self) -> Chance {
        Chance::seeded(self.seed ^ OF_CLOCKS)
    }

    /// A stream of delays for each process.
    pub(crate) fn delays(&self) -> Vec<Chance> {
        Chance::streams(self.seed ^ OF_DELAYS)
            .take(self.clients as usize)
            .collect()
    }
}

/// Apart from the streams of the clients, which begin with the seed itself.
const OF_DELAYS: u64 = 0x6a09_e667_f3bc_c908;
const OF_CLOCKS: u64 = 0xbb67_ae85_84ca_a73b;
const OF_SCENES: u64 = 0x3c6e_f372_fe94_f82b;

fn pick<T: Copy>(chance: &mut Chance, values: &[T]) -> T {
    values[chance.below(values.len() as u64) as usize]
}
