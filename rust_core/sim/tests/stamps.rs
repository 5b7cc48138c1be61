//! What the judge hears is compared with what the transports did, and when: every verdict stands on these stamps.
//!
//! Reads and writes take time here, so that a stamp that is taken on the wrong side of one shows.

use std::collections::BTreeMap;

use check::Event;
use load::{Doing, Sender};
use locks::{Command, Key, KeyList, Nanos, Reply, Script, Strategy};
use sim::{Asked, Logged, Mistake, World};

/// Clients that share the connections of one process.
const EACH: u32 = 12;

const LOCKS: [&str; 12] = [
    "naive",
    "mutex",
    "watchdog",
    "reentrant",
    "read-write",
    "semaphore",
    "fenced",
    "replicated",
    "redlock",
    "multilock",
    "notify",
    "pg-lease",
];

/// Holds that end while replies are read and commands written all the time.
const BUSY: Nanos = Nanos::from_micros(300);

fn world(name: &str, seed: u64) -> World {
    world_of(name, seed, Some(BUSY))
}

fn world_of(name: &str, seed: u64, hold: Option<Nanos>) -> World {
    let strategy = Strategy::named(name, &[]).expect("it is in the catalogue");
    let world = World::of(Asked {
        calm: true,
        clients_each: EACH,
        call_takes: Nanos::from_micros(7),
        keeps_logs: true,
        true_clocks: true,
        hold,
        ..Asked::new(strategy, Mistake::None, seed)
    });
    assert!(
        world.heard.len() > 100,
        "{name}: too little was heard: {}",
        world.heard.len()
    );
    world
}

/// What passed the transport for each client of the world, in order.
fn by_client(world: &World) -> BTreeMap<u32, Vec<(Nanos, Logged)>> {
    let mut all: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for (process, log) in (0..).zip(&world.logs) {
        for &(at, what) in log {
            let (Logged::Wrote { sender, .. } | Logged::Read { sender, .. }) = what;
            all.entry(process * EACH + sender.client).or_default().push((at, what));
        }
    }
    all
}

/// What the judge heard of each client. A client that takes several keys is one of the judge's for each.
fn heard_by_client(world: &World, keys: u32) -> BTreeMap<u32, Vec<(Nanos, Event)>> {
    let mut all: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for &(at, event) in &world.heard {
        all.entry(event.client() / keys).or_default().push((at, event));
    }
    all
}

fn keys_per_grant(name: &str) -> u32 {
    if name == "multilock" { 2 } else { 1 }
}

/// When the first command was written after `from` that a client sent to release.
fn first_release(log: &[(Nanos, Logged)], from: Nanos) -> Option<Nanos> {
    log.iter().find_map(|&(at, what)| match what {
        Logged::Wrote {
            sender: Sender {
                doing: Doing::Releasing,
                ..
            },
            ..
        } if at >= from => Some(at),
        _ => None,
    })
}

#[test]
fn a_grant_is_stamped_when_the_read_that_brought_it_has_ended() {
    for name in LOCKS {
        for seed in 0..2 {
            let world = world(name, seed);
            let done = by_client(&world);
            for &(stamp, event) in &world.heard {
                let Event::Granted { client, .. } = event else { continue };
                let log = &done[&(client / keys_per_grant(name))];
                let brought = log.iter().any(|&(at, what)| {
                    let to_acquire = |sender: Sender| sender.doing == Doing::Acquiring;
                    at == stamp && matches!(what, Logged::Read { sender, .. } if to_acquire(sender))
                });
                assert!(
                    brought,
                    "{name}, seed {seed}: {event:?} at {stamp:?}, but no read of an answer ended then"
                );
            }
        }
    }
}

#[test]
fn a_release_is_stamped_when_the_write_that_sends_it_begins() {
    for name in LOCKS {
        for seed in 0..2 {
            let world = world(name, seed);
            let done = by_client(&world);
            let mut granted: BTreeMap<u32, Nanos> = BTreeMap::new();
            let mut releases = 0;
            for &(stamp, event) in &world.heard {
                match event {
                    Event::Granted { client, .. } => drop(granted.insert(client, stamp)),
                    Event::Released { client } => {
                        let log = &done[&(client / keys_per_grant(name))];
                        let wrote = first_release(log, granted[&client]);
                        assert_eq!(Some(stamp), wrote, "{name}, seed {seed}: {event:?}");
                        releases += 1;
                    }
                    _ => {}
                }
            }
            assert!(releases > 10, "{name}, seed {seed}: {releases} releases");
        }
    }
}

/// The stamps would be the same wherever they are taken if no time passed between a timer and its write.
#[test]
fn the_worlds_let_time_pass_between_the_end_of_a_hold_and_the_write_of_its_release() {
    let world = world("mutex", 1);
    let mut planned: BTreeMap<u32, Nanos> = BTreeMap::new();
    let late = world.heard.iter().filter(|&&(stamp, event)| match event {
        Event::Granted { client, hold, .. } => {
            planned.insert(client, stamp.after(hold));
            false
        }
        Event::Released { client } => stamp > planned[&client],
        _ => false,
    });
    assert!(late.count() > 10);
}

#[test]
fn each_lease_that_was_renewed_is_told_when_the_answer_was_read() {
    for name in ["watchdog", "fenced"] {
        let mut renewals = 0;
        for seed in 0..8 {
            let world = world_of(name, seed, None);
            let heard = heard_by_client(&world, 1);
            for (client, log) in by_client(&world) {
                let asked = |call| {
                    log.iter().any(|(_, what)| match what {
                        Logged::Wrote { sender, command } => sender.call == call && extends(command),
                        Logged::Read { .. } => false,
                    })
                };
                for &(at, what) in &log {
                    // What is answered while the release is under way comes too late for belief.
                    let Logged::Read {
                        sender,
                        reply: Reply::Int(1),
                    } = what
                    else {
                        continue;
                    };
                    if sender.doing != Doing::Holding || !asked(sender.call) || !believes(&heard[&client], at) {
                        continue;
                    }
                    let told = heard[&client].iter().any(|&(stamp, event)| {
                        stamp == at && matches!(event, Event::Renewed { until, .. } if until > at)
                    });
                    assert!(told, "{name}, seed {seed}: client {client} read a renewal at {at:?}");
                    renewals += 1;
                }
            }
        }
        assert!(renewals > 50, "{name}: {renewals} renewals");
    }
}

fn extends(command: &Command) -> bool {
    matches!(
        command,
        Command::Run {
            script: Script::CompareAndExpire,
            ..
        }
    )
}

/// Whether the judge takes the client for a believer at `at`.
fn believes(heard: &[(Nanos, Event)], at: Nanos) -> bool {
    // Its release may have been due at that very time.
    let before = heard.iter().take_while(|&&(stamp, _)| stamp <= at);
    let end = before.fold(Nanos::ZERO, |end, &(stamp, event)| match event {
        Event::Renewed { .. } if stamp == at => end,
        Event::Granted { until, .. } | Event::Renewed { until, .. } => until,
        Event::Released { .. } | Event::LeaseLost { .. } | Event::Waiting { .. } => Nanos::ZERO,
        _ => end,
    });
    end > at
}

#[test]
fn the_judge_hears_of_every_key_that_a_command_names() {
    for seed in 0..8 {
        let world = world("multilock", seed);
        let heard = heard_by_client(&world, 2);
        let mut sets = 0;
        for (client, log) in by_client(&world) {
            for &(at, what) in &log {
                let Logged::Wrote {
                    sender,
                    command: Command::RunAll { keys, .. },
                } = what
                else {
                    continue;
                };
                if sender.doing == Doing::Acquiring {
                    assert_eq!(
                        asked_for(&heard[&client], at),
                        keys_of(keys),
                        "seed {seed}, client {client}"
                    );
                    sets += 1;
                }
            }
        }
        assert!(sets > 10, "seed {seed}: {sets} sets");
    }
}

fn keys_of(keys: KeyList) -> Vec<Key> {
    keys.sorted().as_slice().to_vec()
}

/// The keys that a client waits for at `at`, as the judge heard it, sorted.
fn asked_for(heard: &[(Nanos, Event)], at: Nanos) -> Vec<Key> {
    let waits = heard.iter().filter_map(|&(stamp, event)| match event {
        Event::Waiting { key, .. } if stamp <= at => Some((stamp, key)),
        _ => None,
    });
    let waits: Vec<_> = waits.collect();
    let last = waits.last().map(|&(stamp, _)| stamp);
    let of_last = waits.iter().filter(|&&(stamp, _)| Some(stamp) == last);
    let mut keys: Vec<Key> = of_last.map(|&(_, key)| key).collect();
    keys.sort();
    keys
}
