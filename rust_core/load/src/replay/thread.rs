//! The thread that is replayed: the real loop over real sockets of the test, on a clock that is set by hand.

use std::os::unix::net::UnixStream;

use locks::{AnyLock, Lease, Nanos, Strategy};

use crate::by_hand::{SetClock, driver, server, spec};
use crate::driver::Driver;
use crate::setup;
use crate::sockets::Sockets;
use crate::spec::{AfterLease, ArrivalKind, Connections, Distribution, KeyChoice, Pace, TrialSpec};
use crate::transport::Transport;

pub(crate) struct Replayed {
    driver: Driver<AnyLock, Sockets, SetClock>,
}

/// Clients of this strategy over several keys, and how many connections they have.
pub(crate) fn replayed(strategy: Strategy, seed: u64) -> (Replayed, u32) {
    let servers = strategy.nodes().unwrap_or(1);
    let mut spec = TrialSpec {
        servers: vec![server(strategy); servers.into()],
        connections: Connections::SharedByClients(2),
        key_prefix: b"replay:".to_vec(),
        keys: 3,
        key_choice: KeyChoice::Uniform,
        keys_per_grant: if strategy.takes_many_keys() { 2 } else { 1 },
        read_share: if strategy.shares() { 0.5 } else { 0.0 },
        nesting: if strategy.nests() { 3 } else { 1 },
        hold: Distribution::Exp { mean: Nanos(300_000) },
        think: if seed == 2 {
            Distribution::Exp { mean: Nanos(200_000) }
        } else {
            Distribution::Fixed(Nanos::ZERO)
        },
        after_lease: if seed == 2 {
            AfterLease::Stop
        } else {
            AfterLease::Continue
        },
        pace: if seed == 3 {
            Pace::Open {
                arrivals: ArrivalKind::Poisson,
                rate_per_s: 5_000.0,
                max_in_flight: 12,
            }
        } else {
            Pace::Closed
        },
        seed,
        ..spec(strategy, 6)
    };
    spec.lock.servers = servers;
    spec.lock.lease = Lease::new(40).expect("it is a lease");
    spec.lock.reply_timeout = Nanos::from_millis(8);
    let mut sockets = setup::sockets(&spec).expect("the trial is sound").remove(0);
    sockets.all_opened();
    let connections = sockets.count();
    let driver = driver(&spec, sockets);
    (Replayed { driver }, connections)
}

impl Replayed {
    pub(crate) fn attach(&mut self, index: u32) -> UnixStream {
        self.driver.transport.attach(index)
    }

    pub(crate) fn is_closed(&self, index: u32) -> bool {
        !self.driver.transport.is_open(index)
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.driver.clock.set(now);
        self.driver
            .recorder
            .expect_window(Nanos::from_millis(50), Nanos::from_millis(400));
        self.driver.begin(now);
    }

    pub(crate) fn next_wake(&self) -> Nanos {
        self.driver.next_wake()
    }

    pub(crate) fn round(&mut self, now: Nanos) {
        self.driver.clock.set(now);
        self.driver.round(now, now).expect("no connection has to stand");
    }

    pub(crate) fn stop(&mut self) {
        self.driver.stop();
    }

    /// Everything that was counted, but the CPU time.
    pub(crate) fn counted(self) -> Vec<(String, u64)> {
        let (share, _) = self.driver.recorder.finish(Vec::new());
        let counters = share.counters.named().into_iter();
        let counters = counters.map(|(name, count)| (name.to_owned(), count));
        let histograms = share.histograms.filled().flat_map(|(phase, ended, histogram)| {
            let name = format!("{} {}", phase.name(), ended.name());
            [histogram.len(), histogram.max(), histogram.value_at_quantile(0.5)].map(|figure| (name.clone(), figure))
        });
        let figures = share.clients.figures.iter().flat_map(|figures| {
            [
                figures.grants,
                figures.attempts,
                figures.wait_sum_ns,
                figures.wait_max_ns,
            ]
            .map(|figure| ("client".to_owned(), figure))
        });
        counters.chain(histograms).chain(figures).collect()
    }
}
