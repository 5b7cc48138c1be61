//! The driver without Python, to measure the cost of the checker and the histograms: built with the feature `bare` it
//! has neither.
//!
//! `drive SOCKET CLIENTS CONNECTIONS KEYS SECONDS RELEASE` runs a closed loop of `mutex` without holds and prints one
//! line of JSON: `{"grants_per_s": .., "cpu_us_per_grant": .., "grants_per_write": ..}`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::time::Duration;

use load::{
    Address, AfterLease, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, RedisServer, ServerSpec, Speaks,
    Trial, TrialSpec,
};
use locks::{Lease, Nanos, Retry, RetryKind, Strategy};
use wire::{CompareAndDelete, Protocol};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, clients, connections, keys, seconds, release] = &arguments[..] else {
        return Err("drive SOCKET CLIENTS CONNECTIONS KEYS SECONDS script|delifeq".into());
    };
    let seconds: f64 = seconds.parse()?;
    let server = server(address, release)?;
    let trial = Trial::new(TrialSpec {
        strategy: Strategy::Mutex,
        lock: locks::Spec {
            servers: 1,
            lease: Lease::new(10_000)?,
            reply_timeout: Nanos::from_secs(1),
            retry: Retry {
                kind: RetryKind::FullJitter,
                base: Nanos::from_millis(1),
                factor: 2.0,
                cap: Nanos::from_millis(50),
                max_attempts: None,
                max_wait: Nanos::from_secs(10),
            },
        },
        servers: vec![server],
        connections: Connections::SharedByClients(connections.parse()?),
        client_name: "drive".to_owned(),
        key_prefix: format!("drive:{}:", std::process::id()).into_bytes(),
        keys: keys.parse()?,
        key_choice: KeyChoice::Uniform,
        keys_per_grant: 1,
        key_order: KeyOrder::Random,
        read_share: 0.0,
        nesting: 1,
        hold: Distribution::Fixed(Nanos::ZERO),
        think: Distribution::Fixed(Nanos::ZERO),
        after_lease: AfterLease::Continue,
        pace: Pace::Closed,
        concurrency: clients.parse()?,
        warmup: Nanos::from_millis(200),
        until_steady: false,
        duration: Nanos((seconds * 1e9) as u64),
        stages: Vec::new(),
        drain: Nanos::from_secs(1),
        dies: false,
        seed: 1,
        threads: 1,
        process: None,
        cores: Vec::new(),
        poll: Poll::Block,
        least_belief: Nanos::ZERO,
        faults: Vec::new(),
        fault_periods: Vec::new(),
        guard: None,
    })?;
    let mut running = trial.start();
    while !running.wait(Duration::from_secs(1)) {}
    let measured = running.finish()?;
    let grants = measured.counters.grants as f64;
    let rate = grants / (measured.window.0 as f64 / 1e9);
    let cpu_us = measured.counters.client_cpu_ns as f64 / 1e3 / grants;
    let grants_per_write = grants / measured.counters.writes as f64;
    println!(
        "{{\"grants_per_s\": {rate:.0}, \"cpu_us_per_grant\": {cpu_us:.3}, \"grants_per_write\": {grants_per_write:.2}}}"
    );
    Ok(())
}

fn server(address: &str, release: &str) -> Result<ServerSpec, Box<dyn Error>> {
    Ok(ServerSpec {
        address: if address.contains('/') {
            Address::Unix(address.into())
        } else {
            Address::Tcp(address.parse()?)
        },
        speaks: Speaks::Redis(RedisServer {
            username: None,
            password: None,
            db: 0,
            protocol: Protocol::Resp3,
            compare_and_delete: match release {
                "script" => CompareAndDelete::Script,
                "delifeq" => CompareAndDelete::DelIfEq,
                other => return Err(format!("no release {other}").into()),
            },
        }),
        rtt: Distribution::Fixed(Nanos::ZERO),
    })
}
