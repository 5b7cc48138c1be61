//! A world: processes that each run the measuring loop, the network between them and the servers, and the checker.
//!
//! One seed determines all of it. Between two rounds of a process the world's time moves to whatever happens next.

mod drain;
mod judging;
mod quiet;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use check::{Checker, Event, Merge, Report, Rules};
use load::rules;
use locks::{Chance, Nanos, Strategy};

use crate::asked::Asked;
use crate::clock::{Skew, Time};
use crate::conditions::{Conditions, Mistake};
use crate::log::{Logged, Served};
use crate::machine::Tally;
use crate::network::{Happening, Network};
use crate::process::{self, Process};
use crate::scene::Scene;
use drain::Drain;
use quiet::Quiet;

/// How long after the end of the faults each client must have been served again, besides `HOLDS` for each client.
const BOUND: Nanos = Nanos::from_secs(6);
/// Most locks serve in no order. If each of n clients has the same chance, one of them is missed by 28 n grants with a
/// probability of 1e-12; a hold is half of the longest, and chances are not quite the same.
const HOLDS: u64 = 40;
/// Between two rounds of a process that has always something to do.
const ROUND: Nanos = Nanos::from_micros(1);
/// More than the longest delay of a connection's end and the longest stop of a process together.
const SESSION_END_SEEN_WITHIN: Nanos = Nanos::from_secs(1);
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
    /// What the servers of a scene did. Empty unless it was asked for.
    pub served: Vec<(Nanos, Served)>,
    /// What happened: messages that arrived, rounds of the loops, faults.
    pub events: u64,
    /// When it ended.
    pub ended: Nanos,
    /// The most acquires that a client began.
    pub most_requests: u64,
    pub judged_by_writes: bool,
    /// What a client did that no lock may do, and when.
    pub breach: Option<(Nanos, String)>,
    /// How the clients did not get on. Only in a scene.
    pub stuck: Option<String>,
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
        let mut streams = Chance::streams(asked.seed);
        let mut chance = streams.next().expect("streams do not end");
        let conditions = if asked.calm {
            Conditions::draw(&mut chance).without_faults()
        } else {
            Conditions::draw(&mut chance).over_servers(asked.strategy, &mut chance)
        };
        let mut run = Run::new(asked, conditions, chance, SESSION_END_SEEN_WITHIN);
        run.go();
        run.finish()
    }

    /// The world of a scene, up to the first violation. `keeps_all` keeps what was heard and noted.
    pub fn of_scene(scene: &Scene, keeps_all: bool) -> Self {
        let mut run = Run::new(scene.asked(), scene.conditions.clone(), scene.clocks(), scene.until);
        // It runs to its end, and not until each client has been served.
        (run.end, run.faults_end) = (scene.until, Nanos::NEVER);
        run.requests = scene.requests;
        run.keeps_heard = keeps_all;
        run.judged_by_writes = scene.strategy.writes();
        run.watch_progress(scene);
        let absent = |process: &usize| !scene.present.contains(&(*process as u32));
        run.absent = (0..run.processes.len()).filter(absent).collect();
        {
            let mut network = run.network.borrow_mut();
            network.own_delays = scene.delays();
            network.served = keeps_all.then(Vec::new);
            network.follow_plan(&scene.faults);
        }
        run.go();
        run.finish()
    }

    /// A hash of all that was heard.
    pub fn trace(&self) -> u64 {
        let mut trace = DefaultHasher::new();
        for (at, event) in &self.heard {
            (at, format!("{event:?}")).hash(&mut trace);
        }
        trace.finish()
    }
}

struct Run {
    asked: Asked,
    time: Time,
    network: Rc<RefCell<Network>>,
    processes: Vec<Process>,
    merge: Merge,
    checker: Checker,
    heard: Vec<(Nanos, Event)>,
    keeps_heard: bool,
    faults_end: Nanos,
    end: Nanos,
    /// How many acquires each process begins.
    requests: u64,
    /// The processes that never run.
    absent: Vec<usize>,
    /// An overlap of holders does not end the world.
    judged_by_writes: bool,
    /// What processes told that the judge has not heard yet.
    untold: usize,
    /// When each process has something to do next.
    due: Vec<Nanos>,
    events: u64,
    breach: Option<(Nanos, String)>,
    quiet: Quiet,
    /// `None` before the end of the world.
    drain: Option<Drain>,
    /// No fault strikes, and each release wakes a waiter.
    expects_wakeups: bool,
}

impl Run {
    fn new(asked: Asked, conditions: Conditions, mut chance: Chance, seen_within: Nanos) -> Self {
        let strategy = asked.strategy;
        let (count, servers) = (conditions.clients, conditions.spec.servers);
        let spec = asked.trial(&conditions);
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
        let max_wait = conditions.spec.retry.max_wait;
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
        let processes = process::all(&asked, &spec, &skews, &network, &time);
        let rules = Rules {
            // A connection of a world closes late, and a process that is stopped sees it later still.
            session_end_seen_within: seen_within,
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
            keeps_heard: true,
            faults_end,
            requests: u64::MAX,
            absent: Vec::new(),
            judged_by_writes: false,
            untold: 0,
            due: vec![Nanos::ZERO; count],
            events: 0,
            breach: None,
            quiet: Quiet::default(),
            drain: None,
            expects_wakeups: false,
            end: faults_end.after(BOUND).after(Nanos(hold.0 * HOLDS * count as u64)),
        }
    }

    fn go(&mut self) {
        for process in &mut self.processes {
            let local = process.skew.reads(Nanos::ZERO);
            process.driver.begin(local);
        }
        for &process in &self.absent {
            self.due[process] = Nanos::NEVER;
        }
        loop {
            let next_event = self.network.borrow().next();
            let (process, next_round) = self.next_round();
            let at = next_event.min(next_round);
            if self.is_broken() {
                return;
            }
            if self.is_over(at) {
                if self.begins_drain() {
                    continue;
                }
                if !self.drains(at) {
                    return;
                }
            }
            self.events += 1;
            self.time.set(at.max(self.time.now()));
            if next_event <= next_round {
                self.happen();
            } else {
                self.round(process);
                self.due[process] = self.due_of(process);
            }
        }
    }

    fn happen(&mut self) {
        let mut network = self.network.borrow_mut();
        let happening = network.take_next();
        let mine = happening.and_then(|happening| Some((happening, network.happen(happening)?)));
        let mut touched = std::mem::take(&mut network.mail.touched);
        drop(network);
        if let Some((Happening::Cancels { acquires, .. }, process)) = mine {
            self.cancel(process, acquires);
            self.due[process] = self.due_of(process);
        }
        for process in touched.drain(..) {
            self.due[process] = self.due_of(process);
        }
        // The memory is used again.
        self.network.borrow_mut().mail.touched = touched;
    }

    /// Which process has something to do first, and when.
    fn next_round(&self) -> (usize, Nanos) {
        let all = self.due.iter().copied().enumerate();
        all.min_by_key(|&(index, at)| (at, index)).expect("a world has clients")
    }

    fn due_of(&self, index: usize) -> Nanos {
        let network = self.network.borrow();
        let process = &self.processes[index];
        if process.has_finished(self.requests) || self.absent.contains(&index) {
            return Nanos::NEVER;
        }
        let wake = if network.mail.is_unread(index) {
            Nanos::ZERO
        } else {
            process.skew.shows(process.driver.next_wake())
        };
        wake.max(process.free_at).max(network.stopped_until[index])
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
        self.perhaps_stops(index);
        self.listen();
        self.note_breach(index);
        self.perhaps_cancels(index);
    }

    /// Now and then a process gives up soon after it has begun an acquire.
    fn perhaps_cancels(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let acquires = process.tallies.iter().map(|tally| tally.borrow().acquires).sum();
        if acquires == process.acquires || self.drain.is_some() {
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
        if process.acquires == acquires && !process.restarts && !is_stopped && self.drain.is_none() {
            process.driver.stop();
            process.restarts = true;
            self.listen();
        }
    }

    /// What happens next, happens at `at`.
    fn is_over(&mut self, at: Nanos) -> bool {
        self.drain.is_some() || self.are_all_served() || at > self.end && !self.goes_on(at)
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
        let tallies = self.processes.iter().flat_map(|process| &process.tallies);
        let most_requests = tallies.clone().map(|tally| tally.borrow().acquires).max().unwrap_or(0);
        for tally in tallies {
            for (&outcome, times) in &tally.borrow().outcomes {
                *outcomes.entry(outcome).or_default() += times;
            }
        }
        let wipes = self.network.borrow().wipes();
        for index in 0..self.processes.len() {
            self.merge.finish(index);
        }
        self.judge();
        let report = self.checker.finish(self.time.now());
        outcomes.insert("overtaken", report.counts.fifo_inversions);
        let stuck = self.quiet.stuck.take();
        let stuck = stuck.or_else(|| quiet::freed_by_lease(self.expects_wakeups, report.figures.lease_freed_grants));
        let broken = self.asked.promises_broken(report.counts) > 0 && !wipes;
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
            served: self.network.borrow_mut().served.take().unwrap_or_default(),
            events: self.events,
            ended: self.time.now(),
            most_requests,
            judged_by_writes: self.judged_by_writes,
            breach: self.breach,
            stuck,
        }
    }
}
