//! The reference for the driver's speed: a bare loop that sets and deletes, and nothing else.
//!
//! `pump SOCKET CONNECTIONS PAIRS SECONDS RELEASE` keeps `PAIRS` pairs in flight on each of `CONNECTIONS` connections
//! to the server at the Unix socket, or `host:port`, `SOCKET`. A pair is a `SET NX PX` that succeeds and a release that
//! succeeds: by `script` (EVALSHA) or `delifeq`. No clients, tokens, checker or histograms. Prints one line of JSON:
//! `{"pairs_per_s": .., "cpu_us_per_pair": ..}`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::VecDeque;
use std::error::Error;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use locks::{Command, Key, Script, ScriptForm, Token};
use rustix::event::epoll;
use rustix::thread::ClockId;
use wire::{CompareAndDelete, Encoder, KeyNames};

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn open(address: &str) -> std::io::Result<Self> {
        if address.contains('/') {
            return Ok(Self::Unix(UnixStream::connect(address)?));
        }
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// One connection: the pairs in the order of their replies, each with its next command.
struct Line {
    socket: Socket,
    order: VecDeque<(usize, bool)>,
    out: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, connections, pairs, seconds, release] = &arguments[..] else {
        return Err("pump SOCKET CONNECTIONS PAIRS SECONDS script|delifeq".into());
    };
    let (connections, pairs): (usize, usize) = (connections.parse()?, pairs.parse()?);
    let how = match release.as_str() {
        "script" => CompareAndDelete::Script,
        "delifeq" => CompareAndDelete::DelIfEq,
        other => return Err(format!("no release {other}").into()),
    };
    let commands = commands(connections * pairs, how);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut lines = open(address, connections, &epoll)?;
    for (index, line) in lines.iter_mut().enumerate() {
        line.order = (0..pairs).map(|pair| (index * pairs + pair, true)).collect();
        let first: Vec<u8> = line
            .order
            .iter()
            .flat_map(|&(pair, _)| commands[pair].0.clone())
            .collect();
        line.socket.write_all(&first)?;
    }
    let mut buffer = vec![0; 256 * 1024];
    run(&epoll, &mut lines, &commands, &mut buffer, Duration::from_millis(200))?;
    let cpu = cpu_ns();
    let began = Instant::now();
    let done = run(
        &epoll,
        &mut lines,
        &commands,
        &mut buffer,
        Duration::from_secs_f64(seconds.parse()?),
    )?;
    let rate = done as f64 / began.elapsed().as_secs_f64();
    let cpu_us = (cpu_ns() - cpu) as f64 / 1e3 / done as f64;
    println!("{{\"pairs_per_s\": {rate:.0}, \"cpu_us_per_pair\": {cpu_us:.3}}}");
    Ok(())
}

/// For each pair the command that takes and the command that releases, as bytes.
fn commands(pairs: usize, how: CompareAndDelete) -> Vec<(Vec<u8>, Vec<u8>)> {
    let names = KeyNames::new(format!("pump:{}:", std::process::id()).as_bytes(), pairs as u32);
    let encoder = Encoder::new(&names, how);
    (0..pairs as u32)
        .map(|pair| {
            let (key, token) = (
                Key(pair),
                Token {
                    high: 0,
                    low: pair.into(),
                },
            );
            let (mut set, mut delete) = (Vec::new(), Vec::new());
            encoder.encode(
                &Command::SetNxPx {
                    key,
                    token,
                    lease_ms: 10_000,
                },
                &mut set,
            );
            encoder.encode(
                &Command::CompareAndDelete {
                    key,
                    token,
                    form: ScriptForm::Sha,
                },
                &mut delete,
            );
            (set, delete)
        })
        .collect()
}

fn open(address: &str, connections: usize, epoll: impl AsFd) -> Result<Vec<Line>, Box<dyn Error>> {
    let source = Script::CompareAndDelete.source();
    let load = format!("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n${}\r\n{source}\r\n", source.len());
    (0..connections)
        .map(|index| {
            let mut socket = Socket::open(address)?;
            socket.write_all(load.as_bytes())?;
            let answered = socket.read(&mut [0; 128])?;
            assert!(answered > 40, "the server loaded the script");
            socket.set_nonblocking()?;
            epoll::add(
                &epoll,
                socket.fd(),
                epoll::EventData::new_u64(index as u64),
                epoll::EventFlags::IN,
            )?;
            Ok(Line {
                socket,
                order: VecDeque::new(),
                out: Vec::new(),
            })
        })
        .collect()
}

/// Pumps for `length`, and returns how many pairs were completed.
fn run(
    epoll: impl AsFd,
    lines: &mut [Line],
    commands: &[(Vec<u8>, Vec<u8>)],
    buffer: &mut [u8],
    length: Duration,
) -> Result<u64, Box<dyn Error>> {
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < length {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 64];
        let (ready, _) = epoll::wait(&epoll, &mut events[..], None)?;
        for event in ready {
            let line = &mut lines[event.data.u64() as usize];
            let count = line.socket.read(buffer)?;
            // Every reply is one line: `+OK`, `:1`; nothing here may be refused.
            for _ in buffer[..count].iter().filter(|&&byte| byte == b'\n') {
                let (pair, held) = line.order.pop_front().ok_or("an answer too many")?;
                let next = if held { &commands[pair].1 } else { &commands[pair].0 };
                done += u64::from(!held);
                line.out.extend_from_slice(next);
                line.order.push_back((pair, !held));
            }
            assert!(
                !buffer[..count].contains(&b'$') && !buffer[..count].contains(&b'-'),
                "nothing is refused"
            );
            line.socket.write_all(&line.out)?;
            line.out.clear();
        }
    }
    Ok(done)
}

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
