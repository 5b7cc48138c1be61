//! The same seed over the same replies gives the same events.
//!
//! A thread over pairs of sockets and a clock of the test; the other ends answer whatever comes with replies drawn from
//! the seed, close now and then, and publish messages. What the checker hears, what is counted and which bytes are
//! written is compared, as a hash, with `replay/events.txt`. `PYBENCH_WRITE_REPLAY=1` writes that file anew.

mod thread;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use locks::{ArgValue, Chance, Nanos, Strategy};

use thread::{Replayed, replayed};

/// What the judge of this test's thread was told.
#[derive(Debug, Default)]
pub(crate) struct Hash {
    pub(crate) lines: u64,
    state: u64,
}

impl Hash {
    /// FNV-1a
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.state == 0 {
            self.state = 0xcbf2_9ce4_8422_2325;
        }
        for &byte in bytes {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

thread_local! {
    pub(crate) static HEARD: RefCell<Hash> = RefCell::default();
}

/// The other end of a connection.
struct Server {
    stream: UnixStream,
    received: Vec<u8>,
    /// Replies keep their order.
    last_due: Nanos,
}

struct World {
    thread: Replayed,
    servers: Vec<Server>,
    is_database: bool,
    chance: Chance,
    now: Nanos,
    due: BTreeMap<(Nanos, u64), (usize, Vec<u8>)>,
    order: u64,
    written: Hash,
    /// What a subscriber listens to.
    channel: Vec<u8>,
}

/// The end of the first command of a Redis client, and its parts.
fn command(bytes: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let line = |from: usize| -> Option<(usize, i64)> {
        let end = from + bytes[from..].windows(2).position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[from + 1..end]).ok()?.parse().ok()?;
        Some((end + 2, number))
    };
    let (mut at, count) = line(0)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let (start, length) = line(at)?;
        let end = start + length as usize;
        parts.push(bytes.get(start..end)?.to_vec());
        at = end + 2;
    }
    (at <= bytes.len()).then_some((at, parts))
}

/// The end of the first block of a Postgres client.
fn block(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let head = bytes.get(at..at + 5)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        at += 1 + length;
        if at > bytes.len() {
            return None;
        }
        if head[0] == b'S' {
            return Some(at);
        }
    }
}

fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn row(value: &[u8]) -> Vec<u8> {
    message(
        b'D',
        &[&[0, 1][..], &(value.len() as u32).to_be_bytes(), value].concat(),
    )
}

impl World {
    fn redis_reply(&mut self, parts: &[Vec<u8>]) -> Vec<u8> {
        let name = parts[0].to_ascii_lowercase();
        if name == b"subscribe" || name == b"unsubscribe" {
            self.channel.clone_from(&parts[1]);
            return [&b">3\r\n"[..], &bulk(&name), &bulk(&parts[1]), b":1\r\n"].concat();
        }
        match self.chance.below(40) {
            0..=11 => b"+OK\r\n".to_vec(),
            12..=21 => b":1\r\n".to_vec(),
            22..=26 => b":0\r\n".to_vec(),
            27..=30 => b"$-1\r\n".to_vec(),
            31 => b"_\r\n".to_vec(),
            32 => b":2\r\n".to_vec(),
            33 => b":-1\r\n".to_vec(),
            34 => b"-NOSCRIPT none\r\n".to_vec(),
            35 => b"-ERR something\r\n".to_vec(),
            36 => b":17\r\n".to_vec(),
            37 => b"-READONLY a replica\r\n".to_vec(),
            38 => bulk(b"5-0"),
            _ => bulk(b"0123456789abcdef0123456789abcdef"),
        }
    }

    fn database_reply(&mut self) -> Vec<u8> {
        let done = message(b'C', b"SELECT 1\0");
        let number = |value: i64| row(&value.to_be_bytes());
        let failed = |state: &[u8]| message(b'E', &[b"SERROR\0VERROR\0C", state, b"\0\0"].concat());
        let body = match self.chance.below(20) {
            0..=7 => [row(&[1]), done].concat(),
            8..=9 => [row(&[0]), done].concat(),
            10..=13 => [number(self.chance.below(9).cast_signed()), done].concat(),
            14..=15 => done,
            16 => failed(b"40001"),
            17 => failed(b"55P03"),
            18 => failed(b"57014"),
            _ => failed(b"XX000"),
        };
        [body, message(b'Z', b"I")].concat()
    }

    fn later(&mut self, server: usize, bytes: Vec<u8>) {
        let slow = self.chance.below(50) == 0;
        let delay = self.chance.below(if slow { 30_000_000 } else { 300_000 });
        let last = &mut self.servers[server].last_due;
        *last = self.now.after(Nanos(20_000 + delay)).max(Nanos(last.0 + 1));
        self.order += 1;
        self.due.insert((*last, self.order), (server, bytes));
    }

    /// Connects anew what is closed, on either side.
    fn reconnect(&mut self) {
        for index in 0..self.servers.len() {
            if self.thread.is_closed(index as u32) {
                let stream = self.thread.attach(index as u32);
                self.due.retain(|_, (server, _)| *server != index);
                self.servers[index] = Server {
                    stream,
                    received: Vec::new(),
                    last_due: self.now,
                };
            }
        }
    }

    fn serve(&mut self) {
        for index in 0..self.servers.len() {
            let mut buffer = vec![0; 65_536];
            match self.servers[index].stream.read(&mut buffer) {
                Ok(count) => self.servers[index].received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == IoErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            let mut received = std::mem::take(&mut self.servers[index].received);
            while !received.is_empty() {
                let (used, reply) = if self.is_database {
                    let Some(used) = block(&received) else { break };
                    (used, self.database_reply())
                } else {
                    let Some((used, parts)) = command(&received) else { break };
                    (used, self.redis_reply(&parts))
                };
                self.written.lines += 1;
                self.written.add(&received[..used]);
                received.drain(..used);
                match self.chance.below(300) {
                    0 => self.later(index, Vec::new()),
                    1 => {}
                    2 if !self.channel.is_empty() => {
                        let told = [&b">3\r\n"[..], &bulk(b"message"), &bulk(&self.channel), &bulk(b"1")].concat();
                        self.later(index, [told, reply].concat());
                    }
                    _ => self.later(index, reply),
                }
            }
            self.servers[index].received = received;
        }
    }

    fn steps_until(&mut self, end: Nanos) {
        while self.now < end {
            self.step(end);
        }
    }

    /// One step: what is due next, then a round.
    fn step(&mut self, until: Nanos) {
        let next = self.due.keys().next().map_or(until, |(at, _)| *at);
        let next = next.min(self.thread.next_wake()).min(until);
        self.now = if next > self.now {
            next
        } else {
            Nanos(self.now.0 + 1_000)
        };
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (server, bytes) = entry.remove();
            let stream = &mut self.servers[server].stream;
            if bytes.is_empty() {
                stream.shutdown(std::net::Shutdown::Both).expect("it was open");
            } else {
                // A connection that the lock has closed takes nothing.
                let _ = stream.write_all(&bytes);
            }
        }
        self.thread.round(self.now);
        self.reconnect();
        self.serve();
    }
}

/// One line about the trial of a strategy: how much was heard and written, and the hashes of it.
fn line(name: &str, args: &[(&str, &str)], seed: u64) -> String {
    HEARD.take();
    let given: Vec<_> = args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ArgValue::Text((*value).to_owned())))
        .collect();
    let strategy = Strategy::named(name, &given).expect("it is in the catalogue");
    let (mut thread, connections) = replayed(strategy, seed);
    let servers = (0..connections)
        .map(|index| Server {
            stream: thread.attach(index),
            received: Vec::new(),
            last_due: Nanos::ZERO,
        })
        .collect();
    let mut world = World {
        thread,
        servers,
        is_database: strategy.database().is_some(),
        chance: Chance::seeded(seed ^ 0x517c_c1b7_2722_0a95),
        now: Nanos::from_millis(1),
        due: BTreeMap::new(),
        order: 0,
        written: Hash::default(),
        channel: Vec::new(),
    };
    world.thread.begin(world.now);
    world.steps_until(Nanos::from_millis(400));
    world.thread.stop();
    world.steps_until(Nanos::from_millis(450));
    let mut counted = Hash::default();
    for (name, count) in world.thread.counted() {
        counted.add(format!("{name}={count}\n").as_bytes());
    }
    let heard = HEARD.take();
    let mut line = format!("{name} seed={seed}");
    for (name, value) in args {
        write!(line, " {name}={value}").expect("a string takes it");
    }
    write!(
        line,
        ": heard {} {:016x}, wrote {} {:016x}, counted {:016x}",
        heard.lines, heard.state, world.written.lines, world.written.state, counted.state
    )
    .expect("a string takes it");
    line
}

#[test]
fn the_same_seed_over_the_same_replies_gives_the_same_events() {
    let mut lines = String::new();
    for strategy in Strategy::ALL {
        // Over a cache and a database at once the servers here would need two languages.
        if strategy != Strategy::Layered && !strategy.is_silent() {
            for seed in [1, 2] {
                writeln!(lines, "{}", line(strategy.name(), &[], seed)).expect("a string takes it");
            }
        }
    }
    for (name, args) in [
        ("redlock", &[("fanout", "sequential")][..]),
        ("pg-advisory", &[("wait", "try")]),
        ("pg-advisory", &[("scope", "transaction")]),
        ("pg-advisory", &[("session", "shared"), ("wait", "try")]),
        ("pg-row", &[("wait", "skip-locked")]),
        ("notify", &[("renew", "ttl/3")]),
        ("read-write", &[("prefer", "writers")]),
        ("reentrant", &[("count", "local")]),
    ] {
        writeln!(lines, "{}", line(name, args, 3)).expect("a string takes it");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/replay/events.txt");
    if std::env::var_os("PYBENCH_WRITE_REPLAY").is_some() {
        std::fs::write(path, &lines).expect("the file can be written");
    }
    let before = std::fs::read_to_string(path).expect("the file is there");
    for (now, before) in lines.lines().zip(before.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(lines.lines().count(), before.lines().count());
}
