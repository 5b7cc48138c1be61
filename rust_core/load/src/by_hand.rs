//! For tests: a thread whose calls get their replies by hand. Its connections are never opened, so what the locks send
//! stays in `unsendable`.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use check::Report;
use locks::{Event, Key, KeyList, Lease, Mode, Nanos, Reply, Retry, RetryKind, Spec, Strategy};

use wire::postgres::Prepare;
use wire::{CompareAndDelete, Protocol};

use crate::client::Doing;
use crate::connection::{Caller, Connection};
use crate::control::Control;
use crate::judge::{Judge, WindowedChecker};
use crate::setup;
use crate::spec::{
    Address, AfterLease, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, PostgresServer, RedisServer,
    ServerSpec, Speaks, TrialSpec,
};
use crate::thread::Thread;
use crate::trial;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const A: u32 = 0;
pub(crate) const B: u32 = 1;

fn spec(strategy: Strategy, concurrency: u32) -> TrialSpec {
    TrialSpec {
        strategy,
        lock: Spec {
            servers: 1,
            lease: Lease::new(10_000).expect("it is a lease"),
            reply_timeout: Nanos::from_secs(1),
            retry: Retry {
                kind: RetryKind::Fixed,
                base: Nanos::from_millis(1),
                factor: 2.0,
                cap: Nanos::from_millis(1),
                max_attempts: None,
                max_wait: Nanos::from_secs(10),
            },
        },
        servers: Vec::new(),
        connections: Connections::SharedByClients(1),
        client_name: String::new(),
        key_prefix: Vec::new(),
        keys: 1,
        key_choice: KeyChoice::Single,
        keys_per_grant: 1,
        key_order: KeyOrder::Random,
        read_share: 0.0,
        nesting: 1,
        hold: Distribution::Fixed(Nanos(MS)),
        think: Distribution::Fixed(Nanos::ZERO),
        after_lease: AfterLease::Continue,
        pace: Pace::Closed,
        concurrency,
        warmup: Nanos::ZERO,
        duration: Nanos::from_secs(1),
        drain: Nanos::ZERO,
        dies: false,
        seed: 1,
        threads: 1,
        cores: Vec::new(),
        poll: Poll::Block,
        least_belief: Nanos::ZERO,
    }
}

pub(crate) struct Rig {
    pub(crate) thread: Thread,
    pub(crate) now: Nanos,
}

/// A trial for plants. It is never run.
pub(crate) fn spec_for_plants(strategy: Strategy, threads: u32, keys_per_grant: u32) -> TrialSpec {
    let concurrency = threads * 2;
    TrialSpec {
        keys_per_grant,
        threads,
        ..spec(strategy, concurrency)
    }
}

/// Clients of one key, all at rest, in an open window.
pub(crate) fn rig(strategy: Strategy, clients: u32) -> Rig {
    rig_of(&spec(strategy, clients))
}

/// A Redis at this distance, which nobody asks.
pub(crate) fn redis_server(rtt: Distribution) -> ServerSpec {
    let speaks = Speaks::Redis(RedisServer {
        username: None,
        password: None,
        db: 0,
        protocol: Protocol::Resp3,
        compare_and_delete: CompareAndDelete::Script,
    });
    ServerSpec {
        address: Address::Unix("/nowhere".into()),
        speaks,
        rtt,
    }
}

/// Clients of a Redis lock, each of which enters `nesting` times.
pub(crate) fn nested_rig(strategy: Strategy, clients: u32, nesting: u8) -> Rig {
    rig_of(&TrialSpec {
        servers: vec![redis_server(Distribution::Fixed(Nanos::ZERO))],
        nesting,
        ..spec(strategy, clients)
    })
}

/// Clients of a database lock. The session of each is one end of a pair of sockets; the other ends are returned.
pub(crate) fn rig_in_sessions(strategy: Strategy, clients: u32) -> (Rig, Vec<UnixStream>) {
    let database = ServerSpec {
        address: Address::Unix("/nowhere".into()),
        speaks: Speaks::Postgres(PostgresServer {
            user: "user".to_owned(),
            password: None,
            database: "database".to_owned(),
            table: "locks".to_owned(),
            settings: Vec::new(),
            prepare: Prepare::Named,
        }),
        rtt: Distribution::Fixed(Nanos::ZERO),
    };
    let mut rig = rig_of(&TrialSpec {
        servers: vec![database],
        hold: Distribution::Fixed(Nanos::from_secs(60)),
        ..spec(strategy, clients)
    });
    rig.thread.connecting = None;
    let thread = &mut rig.thread;
    let attach = |(index, connection): (u32, &mut Connection)| {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets can be made");
        ours.set_nonblocking(true)
            .expect("a socket can be read without waiting");
        connection
            .attach(ours.into(), &thread.poller, index)
            .expect("a socket can be waited for");
        theirs
    };
    let others = (0..).zip(&mut thread.connections).map(attach).collect();
    (rig, others)
}

fn rig_of(spec: &TrialSpec) -> Rig {
    let (strategy, clients) = (spec.strategy, spec.concurrency);
    let control = Arc::new(Control::new(1));
    let judge = if strategy.is_optimistic() {
        Judge::NotJudged
    } else {
        let rules = trial::rules(spec);
        let checker = WindowedChecker::new(clients, 1, rules, Arc::clone(&control));
        Judge::Inline(Box::new(checker))
    };
    let mut threads = setup::threads(spec, &control, vec![judge]).expect("the trial is sound");
    let mut thread = threads.remove(0);
    thread.running = true;
    thread.counting = true;
    thread.window.start = Nanos::ZERO;
    thread.window.end = Nanos::NEVER;
    Rig {
        thread,
        now: Nanos::ZERO,
    }
}

impl Rig {
    /// The window has not opened yet; it opens at `start_ms`.
    pub(crate) fn expecting_a_window(mut self, start_ms: u64, end_ms: u64) -> Self {
        self.thread.counting = false;
        self.thread.expect_window(Nanos(start_ms * MS), Nanos(end_ms * MS));
        self
    }

    /// Sets the clock, as when the loop reads it.
    pub(crate) fn at_ms(mut self, ms: u64) -> Self {
        self.now = Nanos(ms * MS);
        self.thread.has_read(self.now);
        self.thread.fire_timers(self.now);
        self
    }

    /// The client asks for the key, to hold it for 1 ms.
    pub(crate) fn begins(self, client: u32) -> Self {
        self.begins_to_hold(client, 1)
    }

    pub(crate) fn begins_to_hold(mut self, client: u32, ms: u64) -> Self {
        let record = &mut self.thread.clients[client as usize];
        record.doing = Doing::Acquiring;
        (record.due, record.sent) = (self.now, self.now);
        record.hold = Nanos(ms * MS);
        record.release_sent = Nanos::NEVER;
        let (keys, mode) = (KeyList::one(Key(0)), Mode::Exclusive);
        self.thread
            .judge_each(client, self.now, |client, key| check::Event::Waiting {
                client,
                key,
                mode,
            });
        self.thread.dispatch(client, self.now, Event::Acquire { keys, mode });
        self
    }

    /// The last command gets this reply.
    pub(crate) fn answered(mut self, reply: Reply) -> Self {
        let Caller { client, call } = self.thread.unsendable.pop().expect("something was sent");
        self.thread.dispatch(client, self.now, Event::Replied { call, reply });
        self
    }

    /// The reply to the last command is lost.
    pub(crate) fn loses_its_reply(mut self) -> Self {
        let Caller { client, call } = self.thread.unsendable.pop().expect("something was sent");
        self.thread.dispatch(client, self.now, Event::Lost { call });
        self
    }

    pub(crate) fn doing(&self, client: u32) -> Doing {
        self.thread.clients[client as usize].doing
    }

    pub(crate) fn judged(self) -> Report {
        let judged = self.thread.judge.finish(self.now);
        judged.expect("the lock has beliefs").report
    }
}
