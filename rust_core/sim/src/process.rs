//! The processes of a world, each with the loop that measures.

use std::cell::RefCell;
use std::rc::Rc;

use load::{Driver, Heard, Member, TrialSpec, drivers};
use locks::{AnyLock, Nanos};

use crate::asked::Asked;
use crate::clock::{LocalClock, Skew, Time};
use crate::machine::{Observed, Tally};
use crate::network::Network;
use crate::transport::VirtualTransport;

pub(crate) struct Process {
    pub(crate) driver: Driver<Observed<AnyLock>, VirtualTransport, LocalClock>,
    pub(crate) heard: Heard,
    pub(crate) skew: Skew,
    pub(crate) tallies: Vec<Rc<RefCell<Tally>>>,
    /// When it may run again after its last round.
    pub(crate) free_at: Nanos,
    /// It gave up what it did, and begins anew once that is over.
    pub(crate) restarts: bool,
    pub(crate) acquires: u64,
}

impl Process {
    /// Whether its clients have ended as many requests as they were allowed.
    pub(crate) fn has_finished(&self, requests: u64) -> bool {
        let is_done = |tally: &Rc<RefCell<Tally>>| {
            let tally = tally.borrow();
            tally.is_idle && tally.acquires >= requests
        };
        requests < u64::MAX && self.tallies.iter().all(is_done)
    }
}

/// A process for each of the clocks.
pub(crate) fn all(
    asked: &Asked,
    spec: &TrialSpec,
    skews: &[Skew],
    network: &Rc<RefCell<Network>>,
    time: &Time,
) -> Vec<Process> {
    let strategy = asked.strategy;
    let tallies: Vec<Vec<Rc<RefCell<Tally>>>> = skews
        .iter()
        .map(|_| (0..asked.clients_each).map(|_| Rc::default()).collect())
        .collect();
    let ends = skews
        .iter()
        .zip(&tallies)
        .enumerate()
        .map(|(process, (&skew, tallies))| {
            let (network, tallies) = (Rc::clone(network), tallies.clone());
            let servers = spec.lock.servers;
            let mut transport =
                VirtualTransport::new(process, network, tallies, time.clone(), servers, asked.call_takes);
            transport.log.is_kept = asked.keeps_logs;
            let time = time.clone();
            (transport, LocalClock { time, skew })
        });
    let mut unobserved = tallies.iter().flatten();
    let lock = |lock_spec, chance| {
        let tally = unobserved.next().expect("one for each client");
        let machine = AnyLock::new(strategy, lock_spec, chance);
        let how = (asked.mistake, strategy.is_optimistic());
        Observed::new(machine, Rc::clone(tally), time.clone(), spec.lock.lease, how)
    };
    let members = drivers(spec, lock, ends.collect()).expect("the trial is sound");
    let processes = members.into_iter().zip(skews).zip(&tallies);
    processes
        .map(|((Member { driver, heard }, &skew), tallies)| Process {
            driver,
            heard,
            skew,
            tallies: tallies.clone(),
            free_at: Nanos::ZERO,
            restarts: false,
            acquires: 0,
        })
        .collect()
}
