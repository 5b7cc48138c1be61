//! A world: processes that each run the measuring loop, the network between them and the servers, and the checker.
//!
//! One seed determines all of it. Between two rounds of a process the world's time moves to whatever happens next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use check::{Checker, Event, LostUpdates, Merge, Report, Rules, UpdateVerdict};
use load::{
    AfterLease, Connections, Distribution, Driver, Heard, KeyChoice, KeyOrder, Member, Pace, Poll, TrialSpec, drivers,
    rules,
};
use locks::{AnyLock, Chance, Key, Nanos, Strategy};

use crate::clock::{LocalClock, Skew, Time};
use crate::conditions::{Conditions, Mistake};
use crate::log::Logged;
use crate::machine::{Observed, Tally};
use crate::network::{Happening, Network};
use crate::transport::VirtualTransport;

/// How long after the end of the faults each client must have been served again, besides thirty holds.
const BOUND: Nanos = Nanos::from_secs(6);
/// Between two rounds of a process that has always something to do.
const ROUND: Nanos = Nanos::from_micros(1);
/// More than the longest delay of a connection's end and the longest stop of a process together.
const SESSION_END_SEEN_WITHIN: Nanos = Nanos::from_secs(1);
/// The longest think time.
const THINK: Nanos = Nanos::from_millis(5);

/// The result of a world.
#[derive(Debug)]
pub struct World {
    pub report: Report,
    /// What the strategy promises and the world broke; with the seed.
    pub violation: Option<String>,
    pub lost_update: Option<String>,
    /// The clients that were granted nothing after the faults had ended.
    pub unserved: Vec<usize>,
    pub outcomes: BTreeMap<&'static str, u64>,
    /// What the judge heard, by the world's time.
    pub heard: Vec<(Nanos, Event)>,
    /// What the transports did, each process by itself. Empty unless it was asked for.
    pub logs: Vec<Vec<(Nanos, Logged)>>,
    /// A hash of all that was heard.
    pub trace: u64,
}

/// What a test may choose of a world; the rest is drawn from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub strategy: Strategy,
    pub mistake: Mistake,
    pub seed: u64,
    /// Nothing breaks, nobody is stopped or cancelled, and nobody gives up waiting.
    pub calm: bool,
    /// Clients of one process; processes are as many as the seed says.
    pub clients_each: u32,
    /// How long a read and a write take.
    pub call_takes: Nanos,
    pub keeps_logs: bool,
    /// No clock is fast or slow.
    pub true_clocks: bool,
    /// The longest hold, after which nobody thinks; `None`: the seed decides.
    pub hold: Option<Nanos>,
}

impl Asked {
    pub const fn new(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self {
            strategy,
            mistake,
            seed,
            calm: false,
            clients_each: 1,
            call_takes: Nanos::ZERO,
            keeps_logs: false,
            true_clocks: false,
            hold: None,
        }
    }
}

impl World {
    pub fn run(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self::of(Asked::new(strategy, mistake, seed))
    }

    /// As `run`, but without faults.
    pub fn without_faults(strategy: Strategy, mistake: Mistake, seed: u64) -> Self {
        Self::of(Asked {
            calm: true,
            ..Asked::new(strategy, mistake, seed)
        })
    }

    pub fn of(asked: Asked) -> Self {
        let mut run = Run::new(asked);
        run.go();
        run.finish()
    }
}

struct Process {
    driver: Driver<Observed<AnyLock>, VirtualTransport, LocalClock>,
    heard: Heard,
    skew: Skew,
    tallies: Vec<Rc<RefCell<Tally>>>,
    /// When it may run again after its last round.
    free_at: Nanos,
    /// It gave up what it did, and begins anew once that is over.
    restarts: bool,
    acquires: u64,
}

struct Run {
    asked: Asked,
    time: Time,
    network: Rc<RefCell<Network>>,
    processes: Vec<Process>,
    merge: Merge,
    checker: Checker,
    heard: Vec<(Nanos, Event)>,
    faults_end: Nanos,
    end: Nanos,
}

impl Run {
    fn new(asked: Asked) -> Self {
        let mut streams = Chance::streams(asked.seed);
        let mut chance = streams.next().expect("streams do not end");
        let strategy = asked.strategy;
        let conditions = if asked.calm {
            Conditions::draw(&mut chance).without_faults()
        } else {
            Conditions::draw(&mut chance).over_servers(strategy, &mut chance)
        };
        let (count, servers) = (conditions.clients, conditions.spec.servers);
        let spec = trial(&asked, &conditions);
        let (hold, faults_end) = (conditions.faults.hold, conditions.faults.end);
        let skew = |_| {
            if asked.true_clocks {
                Skew::NONE
            } else {
                Skew::draw(&mut chance)
            }
        };
        let skews: Vec<Skew> = (0..count).map(skew).collect();
        let time = Time::default();
        let (lease, max_wait) = (conditions.spec.lease, conditions.spec.retry.max_wait);
        let mut network = Network::new(
            time.clone(),
            (strategy, asked.mistake),
            conditions.faults,
            servers,
            count,
            chance,
        );
        network.lock_timeout = max_wait;
        let network = Rc::new(RefCell::new(network));
        let tallies: Vec<Vec<Rc<RefCell<Tally>>>> = (0..count)
            .map(|_| (0..asked.clients_each).map(|_| Rc::default()).collect())
            .collect();
        let ends = skews.iter().enumerate().map(|(process, &skew)| {
            let clock = LocalClock {
                time: time.clone(),
                skew,
            };
            let network = Rc::clone(&network);
            let tallies = tallies[process].clone();
            let mut transport =
                VirtualTransport::new(process, network, tallies, time.clone(), servers, asked.call_takes);
            transport.log.is_kept = asked.keeps_logs;
            (transport, clock)
        });
        let mut unobserved = tallies.iter().flatten();
        let lock = |spec, chance| {
            let tally = unobserved.next().expect("one for each client");
            let how = (asked.mistake, strategy.is_optimistic());
            Observed::new(
                AnyLock::new(strategy, spec, chance),
                Rc::clone(tally),
                time.clone(),
                lease,
                how,
            )
        };
        let drivers = drivers(&spec, lock, ends.collect()).expect("the trial is sound");
        let processes = drivers.into_iter().zip(&skews).zip(&tallies);
        let processes: Vec<Process> = processes
            .map(|((Member { driver, heard }, &skew), tallies)| Process {
                driver,
                heard,
                skew,
                tallies: tallies.clone(),
                free_at: Nanos::ZERO,
                restarts: false,
                acquires: 0,
            })
            .collect();
        let rules = Rules {
            // A connection of a world closes late, and a process that is stopped sees it later still.
            session_end_seen_within: SESSION_END_SEEN_WITHIN,
            ..rules(&spec)
        };
        Self {
            merge: Merge::new(processes.len(), 64),
            checker: Checker::new(spec.concurrency * spec.keys_per_grant, spec.keys, rules),
            asked,
            time,
            network,
            processes,
            heard: Vec::new(),
            faults_end,
            end: faults_end.after(BOUND).after(Nanos(hold.0 * 30)),
        }
    }

    fn go(&mut self) {
        for process in &mut self.processes {
            let local = process.skew.reads(Nanos::ZERO);
            process.driver.begin(local);
        }
        loop {
            let next_event = self.network.borrow().next();
            let (process, next_round) = self.next_round();
            let at = next_event.min(next_round);
            if at > self.end || self.is_broken() || self.are_all_served() {
                return;
            }
            self.time.set(at.max(self.time.now()));
            if next_event <= next_round {
                let happening = self.network.borrow_mut().take_next();
                let mine =
                    happening.and_then(|happening| Some((happening, self.network.borrow_mut().happen(happening)?)));
                if let Some((Happening::Cancels { acquires, .. }, process)) = mine {
                    self.cancel(process, acquires);
                }
            } else {
                self.round(process);
            }
        }
    }

    /// Which process has something to do first, and when.
    fn next_round(&self) -> (usize, Nanos) {
        let network = self.network.borrow();
        let at = |(index, process): (usize, &Process)| {
            let wake = if network.has_mail(index) {
                Nanos::ZERO
            } else {
                process.skew.shows(process.driver.next_wake())
            };
            (index, wake.max(process.free_at).max(network.stopped_until[index]))
        };
        let all = self.processes.iter().enumerate().map(at);
        all.min_by_key(|&(index, at)| (at, index)).expect("a world has clients")
    }

    fn round(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let local = process.skew.reads(self.time.now());
        process.driver.round(local, local).expect("no connection has to stand");
        if process.restarts && process.driver.is_at_rest() {
            process.restarts = false;
            process.driver.begin(process.skew.reads(self.time.now()));
        }
        process.free_at = self.time.now().after(ROUND);
        self.listen();
        self.perhaps_cancels(index);
    }

    /// Takes what the processes told their judges. What a process will tell is not older than its clock.
    fn listen(&mut self) {
        let now = self.time.now();
        for (index, process) in self.processes.iter_mut().enumerate() {
            let (skew, merge) = (process.skew, &mut self.merge);
            process
                .heard
                .take(|at, event| merge.push(index, skew.shows(at), in_true_time(event, skew)));
            merge.watermark(index, skew.shows(skew.reads(now)));
        }
        let (checker, heard) = (&mut self.checker, &mut self.heard);
        self.merge.drain(|at, event| {
            heard.push((at, event));
            checker.on(at, event);
        });
    }

    /// Now and then a process gives up soon after it has begun an acquire.
    fn perhaps_cancels(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let acquires = process.tallies.iter().map(|tally| tally.borrow().acquires).sum();
        if acquires == process.acquires {
            return;
        }
        process.acquires = acquires;
        let mut network = self.network.borrow_mut();
        let percent = network.faults.cancel_percent;
        if network.strikes(percent) {
            let at = self.time.now().after(network.up_to(Nanos::from_millis(20)));
            let process = index;
            network.later(at, Happening::Cancels { process, acquires });
        }
    }

    fn cancel(&mut self, index: usize, acquires: u64) {
        let process = &mut self.processes[index];
        let is_stopped = self.network.borrow().stopped_until[index] > self.time.now();
        if process.acquires == acquires && !process.restarts && !is_stopped {
            process.driver.stop();
            process.restarts = true;
            self.listen();
        }
    }

    fn is_broken(&self) -> bool {
        promises_broken(&self.asked, self.checker.counts()) > 0 && !self.network.borrow().wipes()
    }

    fn are_all_served(&self) -> bool {
        self.time.now() > self.faults_end && self.unserved().next().is_none()
    }

    fn unserved(&self) -> impl Iterator<Item = usize> {
        let tallies = self.processes.iter().flat_map(|process| &process.tallies);
        let is_served = |tally: &Rc<RefCell<Tally>>| tally.borrow().served.is_some_and(|at| at >= self.faults_end);
        tallies
            .enumerate()
            .filter(move |(_, tally)| !is_served(tally))
            .map(|(client, _)| client)
    }

    fn finish(mut self) -> World {
        self.listen();
        let unserved = self.unserved().collect();
        let lost_update = self.lost_update();
        let mut outcomes = self.network.borrow().outcomes.clone();
        for tally in self.processes.iter().flat_map(|process| &process.tallies) {
            for (&outcome, times) in &tally.borrow().outcomes {
                *outcomes.entry(outcome).or_default() += times;
            }
        }
        let wipes = self.network.borrow().wipes();
        for index in 0..self.processes.len() {
            self.merge.finish(index);
        }
        let (checker, heard) = (&mut self.checker, &mut self.heard);
        self.merge.drain(|at, event| {
            heard.push((at, event));
            checker.on(at, event);
        });
        let report = self.checker.finish(self.time.now());
        outcomes.insert("overtaken", report.counts.fifo_inversions);
        let broken = promises_broken(&self.asked, report.counts) > 0 && !wipes;
        let mut trace = DefaultHasher::new();
        for (at, event) in &self.heard {
            (at, format!("{event:?}")).hash(&mut trace);
        }
        World {
            violation: broken
                .then(|| format!("{:?}, {:?}; seed {}", report.counts, report.violations, self.asked.seed)),
            report,
            lost_update,
            unserved,
            outcomes,
            heard: self.heard,
            logs: self
                .processes
                .into_iter()
                .map(|process| process.driver.into_transport().log.entries)
                .collect(),
            trace: trace.finish(),
        }
    }

    /// An acknowledged write that is missing. Writes under way may be visible or not.
    fn lost_update(&mut self) -> Option<String> {
        if !self.asked.strategy.writes() {
            return None;
        }
        let none = LostUpdates {
            acknowledged: 0,
            unknown: 0,
        };
        let mut sums: BTreeMap<u32, LostUpdates> = BTreeMap::new();
        for process in &mut self.processes {
            process.driver.count_unanswered_writes();
            let written = process.driver.written();
            for (key, (&acknowledged, &unknown)) in (0..).zip(written.acknowledged.iter().zip(&written.unknown)) {
                let sum = sums.entry(key).or_insert(none);
                sum.acknowledged += acknowledged;
                sum.unknown += unknown;
            }
        }
        let network = self.network.borrow();
        sums.iter().find_map(|(&key, writes)| {
            let value = network.database.value(Key(key));
            let verdict = writes.judge(value);
            matches!(verdict, UpdateVerdict::Lost { .. } | UpdateVerdict::Surplus { .. }).then(|| {
                format!(
                    "key {key} is {value} after {writes:?}: {verdict:?}; seed {}",
                    self.asked.seed
                )
            })
        })
    }
}

/// What the report counts that this strategy promises not to do. An order is promised only where nothing breaks.
fn promises_broken(asked: &Asked, counts: check::ViolationCounts) -> u64 {
    let order = if asked.calm && asked.strategy.is_fifo() {
        counts.fifo_inversions
    } else {
        0
    };
    counts.double_grants + counts.double_grants_after_overrun + counts.stale_fences + counts.findings + order
}

/// The ends of leases by the world's time.
fn in_true_time(event: Event, skew: Skew) -> Event {
    match event {
        Event::Granted {
            client,
            until,
            hold,
            fence,
        } => Event::Granted {
            client,
            until: skew.shows(until),
            hold,
            fence,
        },
        Event::Renewed { client, until } => Event::Renewed {
            client,
            until: skew.shows(until),
        },
        other => other,
    }
}

/// The trial that all processes of the world are threads of.
fn trial(asked: &Asked, conditions: &Conditions) -> TrialSpec {
    let Conditions {
        spec,
        faults,
        clients,
        keys,
    } = conditions;
    let strategy = asked.strategy;
    let processes = *clients as u32;
    let keys_per_grant = if strategy.takes_many_keys() { 2 } else { 1 };
    TrialSpec {
        strategy,
        lock: *spec,
        servers: Vec::new(),
        connections: Connections::SharedByClients(processes),
        client_name: String::new(),
        key_prefix: Vec::new(),
        keys: (*keys as u32).max(keys_per_grant),
        key_choice: KeyChoice::Uniform,
        keys_per_grant,
        key_order: KeyOrder::Random,
        read_share: if strategy.shares() { 0.5 } else { 0.0 },
        nesting: 1,
        hold: uniform(asked.hold.unwrap_or(faults.hold)),
        think: uniform(if asked.hold.is_some() { Nanos::ZERO } else { THINK }),
        after_lease: AfterLease::Continue,
        pace: Pace::Closed,
        concurrency: processes * asked.clients_each,
        warmup: Nanos::ZERO,
        duration: Nanos::from_secs(1),
        drain: Nanos::ZERO,
        dies: false,
        seed: asked.seed,
        threads: processes,
        cores: Vec::new(),
        poll: Poll::Block,
        least_belief: Nanos::ZERO,
    }
}

const fn uniform(high: Nanos) -> Distribution {
    Distribution::Uniform { low: Nanos::ZERO, high }
}
