//! Builds the threads of a trial from its description.

use std::sync::Arc;

use locks::{Actions, AnyLock, Chance, Key, KeyList, Nanos, Strategy};
use rustix::thread::CpuSet;
use wire::KeyNames;
use wire::postgres::Hashes;

use crate::client::{Client, ClientFigures};
use crate::connection::Connection;
use crate::control::Control;
use crate::dialect;
use crate::error_replies::ErrorReplies;
use crate::judge::Judge;
use crate::poller::Poller;
use crate::spec::{Connections, KeyChoice, Pace, TrialSpec};
use crate::stats::{Counters, Histograms};
use crate::subscriptions::Subscriptions;
use crate::thread::Thread;
use crate::timeline::Timeline;
use crate::timers::Timers;
use crate::trial_params::TrialParams;
use crate::window::Window;
use crate::workload::{Arrivals, streams};
use crate::writes::Writes;
use crate::{LoadError, TrialError};

/// Bytes read at once from a connection; a pipelined batch of 1,000 replies takes 5 kB.
const SCRATCH: usize = 256 * 1024;

/// The server of the clients' own connections, and of those for subscriptions.
const FIRST_SERVER: u16 = 0;

/// An error if no trial can be made of the description.
pub(crate) fn check(spec: &TrialSpec) -> Result<(), TrialError> {
    spec.strategy.check(&spec.lock)?;
    let sound = [
        ("keys", spec.keys > 0),
        ("concurrency", spec.concurrency > 0),
        ("threads", spec.threads > 0 && spec.threads <= spec.concurrency),
        ("duration_ns", spec.duration > Nanos::ZERO),
        (
            "servers",
            !spec.servers.is_empty()
                && u16::try_from(spec.servers.len()).is_ok()
                && dialect::fits(spec.strategy, &spec.servers),
        ),
        (
            "connections",
            !matches!(spec.connections, Connections::SharedByClients(0)),
        ),
        ("keys_per_grant", keys_per_grant_is_sound(spec)),
        (
            "read_share",
            spec.read_share == 0.0 || ((0.0..=1.0).contains(&spec.read_share) && spec.strategy.shares()),
        ),
        (
            "nesting",
            spec.nesting == 1 || (spec.nesting > 1 && spec.strategy.nests()),
        ),
        (
            "cores",
            spec.cores.iter().all(|core| (*core as usize) < CpuSet::MAX_CPU)
                && (spec.cores.is_empty() || spec.cores.len() == spec.threads as usize),
        ),
        ("key_prefix", spec.key_prefix.len() <= 512),
    ];
    match sound.into_iter().find(|(_, sound)| !sound) {
        Some((field, _)) => Err(TrialError::Field(field)),
        // Builds the distributions once for this check, so that a bad one is refused before anything starts.
        None => TrialParams::new(spec).and(arrivals(spec, 0)).map(|_| ()),
    }
}

/// Too few distinct keys would make the drawing of a set endless.
fn keys_per_grant_is_sound(spec: &TrialSpec) -> bool {
    match spec.keys_per_grant {
        0 => false,
        1 => true,
        several => {
            several as usize <= KeyList::MOST
                && several <= spec.keys
                && spec.key_choice != KeyChoice::Single
                && spec.strategy.takes_many_keys()
                && spec.concurrency.checked_mul(several).is_some()
        }
    }
}

/// The part of `whole` that thread `index` of `threads` takes: its first element and its length.
fn share(whole: u32, index: u32, threads: u32) -> (u32, u32) {
    let first = |index: u32| (u64::from(whole) * u64::from(index) / u64::from(threads)) as u32;
    (first(index), first(index + 1) - first(index))
}

pub(crate) fn threads(spec: &TrialSpec, control: &Arc<Control>, judges: Vec<Judge>) -> Result<Vec<Thread>, TrialError> {
    let params = Arc::new(TrialParams::new(spec)?);
    let names = KeyNames::new(&spec.key_prefix, spec.keys);
    let hashes = Arc::new(Hashes::new(&names, spec.strategy.statements()));
    let mut chances = Chance::streams(spec.seed);
    let lock_spec = Arc::new(spec.lock);
    let mut threads = Vec::new();
    for (index, judge) in (0..spec.threads).zip(judges) {
        let (first_client, count) = share(spec.concurrency, index, spec.threads);
        let clients: Vec<Client> = streams(spec.seed, first_client, count)
            .into_iter()
            .zip(&mut chances)
            .map(|(stream, chance)| Client::new(AnyLock::new(spec.strategy, Arc::clone(&lock_spec), chance), stream))
            .collect();
        let per_server = match spec.connections {
            _ if !spec.strategy.shares_connections() => 0,
            Connections::SharedByClients(whole) => share(whole, index, spec.threads).1.clamp(1, count),
            Connections::PerClient => count,
        };
        threads.push(Thread {
            index: index as usize,
            core: spec.cores.get(index as usize).copied(),
            params: Arc::clone(&params),
            control: Arc::clone(control),
            judge,
            first_client,
            timers: Timers::new(clients.len()),
            delays: Timers::new(0),
            figures: vec![ClientFigures::default(); clients.len()],
            clients,
            key_sets: key_sets(spec.keys_per_grant, count),
            connections: connections(spec, count, per_server),
            per_server,
            targets: dialect::targets(spec)?,
            encoders: dialect::encoders(spec, &names, &hashes)?,
            poller: Poller::new().map_err(|error| TrialError::Load(LoadError::Poll(error)))?,
            arrivals: arrivals(spec, index)?,
            idle: std::collections::VecDeque::new(),
            queue: std::collections::VecDeque::new(),
            starting: Vec::new(),
            unsendable: Vec::new(),
            disconnected: Vec::new(),
            hung_up: Vec::new(),
            subscriptions: Subscriptions::default(),
            confirmed: Vec::new(),
            messages: Vec::new(),
            dirty: Vec::new(),
            kept: Vec::new(),
            held_back: Nanos::NEVER,
            outstanding: 0,
            actions: Actions::default(),
            scratch: vec![0; SCRATCH],
            ready: Vec::with_capacity(256),
            next_upkeep: Nanos::ZERO,
            running: false,
            counting: false,
            connecting: Some(Nanos::ZERO),
            ending: false,
            counters: Counters::default(),
            histograms: Histograms::new(),
            timeline: Timeline::new(spec.duration),
            error_replies: ErrorReplies::default(),
            window: Window::new(count),
            writes: Writes::to(if spec.strategy.writes() { spec.keys as usize } else { 0 }),
            first_cut: Nanos::NEVER,
        });
    }
    Ok(threads)
}

/// The connections of a thread with this many clients: the shared ones, server by server, then the others.
fn connections(spec: &TrialSpec, clients: u32, per_server: u32) -> Vec<Connection> {
    let extra = extra_connections(spec.strategy, clients, per_server);
    (0..spec.servers.len() as u16)
        .flat_map(|server| (0..per_server).map(move |_| Connection::new(server)))
        .chain((0..extra).map(|_| Connection::new(FIRST_SERVER)))
        .collect()
}

/// How many connections to the first server this many clients have besides the shared ones.
const fn extra_connections(strategy: Strategy, clients: u32, shared: u32) -> u32 {
    if strategy.owns_connection() {
        clients
    } else if strategy.subscribes() {
        shared // as many again for subscriptions
    } else {
        0
    }
}

/// Room for the keys of each client, if an acquire names several.
fn key_sets(keys_per_grant: u32, clients: u32) -> Vec<KeyList> {
    let room = if keys_per_grant == 1 { 0 } else { clients };
    vec![KeyList::one(Key(0)); room as usize]
}

fn arrivals(spec: &TrialSpec, thread: u32) -> Result<Option<Arrivals>, TrialError> {
    let Pace::Open {
        arrivals, rate_per_s, ..
    } = spec.pace
    else {
        return Ok(None);
    };
    // A separate random stream, apart from those of the clients.
    let stream = streams(spec.seed ^ 0x9216_d5d9_8979_fb1b, thread, 1).remove(0);
    let arrivals = Arrivals::new(arrivals, rate_per_s / f64::from(spec.threads), stream);
    arrivals.map(Some).ok_or(TrialError::Field("rate_per_s"))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_cover_the_whole_without_overlap() {
        for (whole, threads) in [(7, 3), (64, 2), (3, 3), (100_000, 7)] {
            let shares: Vec<_> = (0..threads).map(|index| share(whole, index, threads)).collect();
            assert_eq!(shares.iter().map(|(_, count)| count).sum::<u32>(), whole);
            assert!(shares.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0));
            assert!(shares.iter().all(|(_, count)| *count > 0));
        }
    }
}
