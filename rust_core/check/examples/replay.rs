//! What the checker costs a grant, without a server: the events of a closed loop at full depth, in batches as a driver
//! hands them over.
//!
//! `replay CLIENTS KEYS GRANTS` prints nanoseconds a grant, of the checker alone: the time to make the same events is
//! measured without a checker and subtracted. Of the passes, of so many grants each, the fastest counts, because
//! whatever else runs on the machine only makes a pass slower. Between two batches it walks through memory of its own (`OTHERS` bytes),
//! because in a real loop sockets and clients displace the checker's records from the first caches, too.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use check::{Checker, Event, Rules, ViolationCounts};
use locks::{Key, Mode, Nanos};

const PASSES: usize = 40;
/// How many replies one read brings.
const BATCH: usize = 128;
/// How many replies ahead a driver prefetches.
const AHEAD: usize = 16;
/// The memory that everything else touches in a batch.
const OTHERS: usize = 512 << 10;
const LINE: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, clients, keys, grants] = &arguments[..] else {
        return Err("replay CLIENTS KEYS GRANTS".into());
    };
    let (clients, keys, grants) = (clients.parse()?, keys.parse()?, grants.parse()?);
    let mut checker = Checker::new(clients, keys, Rules::default());
    checker.begin_window(Nanos::ZERO);
    let (mut judged, mut alone) = (Replay::new(clients, keys), Replay::new(clients, keys));
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..PASSES {
        with = with.min(judged.run(grants, &mut checker));
        without = without.min(alone.run(grants, &mut ()));
    }
    assert_eq!(checker.finish(Nanos::NEVER).counts, ViolationCounts::default());
    println!("{:.1} ns a grant", with - without);
    Ok(())
}

/// What the events go to.
trait Judge {
    fn touch(&self, client: u32, key: Key);
    fn on(&mut self, at: Nanos, event: Event);
}

impl Judge for Checker {
    fn touch(&self, client: u32, key: Key) {
        Self::touch(self, client, key);
    }

    fn on(&mut self, at: Nanos, event: Event) {
        black_box(Self::on(self, at, event));
    }
}

impl Judge for () {
    fn touch(&self, client: u32, key: Key) {
        black_box((client, key));
    }

    fn on(&mut self, at: Nanos, event: Event) {
        black_box((at, event));
    }
}

#[derive(Clone, Copy)]
enum Reply {
    Acquired,
    Released,
}

/// A server that answers in order, and clients that never pause.
struct Replay {
    now: u64,
    random: u64,
    keys: u32,
    key_of: Vec<u32>,
    /// Stands for the server's table: whether a key is held.
    held: Vec<bool>,
    under_way: VecDeque<(u32, Reply)>,
    others: Vec<u8>,
}

impl Replay {
    fn new(clients: u32, keys: u32) -> Self {
        Self {
            now: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            keys,
            key_of: vec![0; clients as usize],
            held: vec![false; keys as usize],
            under_way: VecDeque::new(),
            others: vec![0; OTHERS],
        }
    }

    /// Runs until so many grants were made and all locks are released, and returns the nanoseconds for each.
    fn run(&mut self, grants: u64, judge: &mut impl Judge) -> f64 {
        let mut made = 0;
        let clients = 0..self.key_of.len() as u32;
        self.under_way = clients.map(|client| (client, Reply::Released)).collect();
        let mut releasing = Vec::with_capacity(BATCH);
        let mut starting = Vec::with_capacity(BATCH);
        let mut spent = 0;
        while !self.under_way.is_empty() {
            self.others.iter_mut().step_by(LINE).for_each(|byte| *byte ^= 1);
            black_box(&self.others);
            let began = Instant::now();
            self.now += 100_000;
            for place in 0..BATCH.min(self.under_way.len()) {
                if place % AHEAD == 0 {
                    for &(client, reply) in self.under_way.iter().take(AHEAD) {
                        if matches!(reply, Reply::Acquired) {
                            judge.touch(client, Key(self.key_of[client as usize]));
                        }
                    }
                }
                let Some((client, reply)) = self.under_way.pop_front() else {
                    break;
                };
                let key = self.key_of[client as usize] as usize;
                match reply {
                    Reply::Acquired if self.held[key] => self.under_way.push_back((client, Reply::Acquired)),
                    Reply::Acquired => {
                        self.held[key] = true;
                        made += 1;
                        judge.on(Nanos(self.now), granted(client, self.now));
                        releasing.push(client);
                    }
                    Reply::Released => starting.push(client),
                }
            }
            self.start(&mut starting, made < grants, judge);
            self.now += 1_000;
            for client in releasing.drain(..) {
                self.held[self.key_of[client as usize] as usize] = false;
                judge.on(Nanos(self.now), Event::Released { client });
                self.under_way.push_back((client, Reply::Released));
            }
            spent += began.elapsed().as_nanos();
        }
        spent as f64 / made as f64
    }

    fn start(&mut self, starting: &mut Vec<u32>, goes_on: bool, judge: &mut impl Judge) {
        if !goes_on {
            return starting.clear();
        }
        for &client in &*starting {
            self.key_of[client as usize] = self.draw();
            judge.touch(client, Key(self.key_of[client as usize]));
        }
        for client in starting.drain(..) {
            let key = Key(self.key_of[client as usize]);
            let mode = Mode::Exclusive;
            judge.on(Nanos(self.now), Event::Waiting { client, key, mode });
            self.under_way.push_back((client, Reply::Acquired));
        }
    }

    /// Any key, all alike.
    fn draw(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(self.keys)) >> 64) as u32
    }
}

fn granted(client: u32, now: u64) -> Event {
    Event::Granted {
        client,
        until: Nanos(now + 10_000_000_000),
        hold: Nanos::ZERO,
        fence: None,
    }
}
