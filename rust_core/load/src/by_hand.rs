//! For tests: clients whose calls get their replies by hand, on a clock that is set by hand.

mod transport;

use std::cell::Cell;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use check::Report;
use locks::{AnyLock, Event, Key, Lease, Mode, Nanos, Reply, Retry, RetryKind, Spec, Strategy};
use wire::postgres::Prepare;
use wire::{CompareAndDelete, Protocol};

use crate::clients::Doing;
use crate::clock::{self, Clock};
use crate::control::Control;
use crate::driver::Driver;
use crate::recorder::judge::{Judge, WindowedChecker};
use crate::rules::rules;
use crate::setup;
use crate::sockets::Sockets;
use crate::spec::{
    Address, AfterLease, Connections, Distribution, KeyChoice, KeyOrder, Pace, Poll, PostgresServer, RedisServer,
    ServerSpec, Speaks, TrialSpec,
};
use crate::transport::{Caller, Transport};
pub(crate) use transport::ByHand;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const A: u32 = 0;
pub(crate) const B: u32 = 1;

pub(crate) fn spec(strategy: Strategy, concurrency: u32) -> TrialSpec {
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
        until_steady: false,
        duration: Nanos::from_secs(1),
        stages: Vec::new(),
        drain: Nanos::ZERO,
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
    }
}

/// A clock that shows what it was last set to, or the real time.
#[derive(Clone, Debug)]
pub(crate) struct SetClock(Rc<Cell<Option<Nanos>>>);

impl SetClock {
    pub(crate) fn set(&self, now: Nanos) {
        self.0.set(Some(now));
    }

    /// From now on it shows the real time.
    pub(crate) fn unset(&self) {
        self.0.set(None);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Nanos {
        self.0.get().unwrap_or_else(clock::now)
    }

    fn thread_cpu(&self) -> Nanos {
        Nanos::ZERO
    }
}

pub(crate) struct Rig<T = ByHand> {
    pub(crate) driver: Driver<AnyLock, T, SetClock>,
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
    rig_of(&spec(strategy, clients), ByHand::default())
}

/// Clients of a Redis lock, each of which enters `nesting` times.
pub(crate) fn nested_rig(strategy: Strategy, clients: u32, nesting: u8) -> Rig {
    let spec = TrialSpec {
        nesting,
        ..spec(strategy, clients)
    };
    rig_of(&spec, ByHand::default())
}

/// A server that nobody asks, without a delay.
pub(crate) fn server(strategy: Strategy) -> ServerSpec {
    let speaks = if strategy.database().is_some() {
        Speaks::Postgres(PostgresServer {
            user: "user".to_owned(),
            password: None,
            database: "database".to_owned(),
            table: "locks".to_owned(),
            settings: Vec::new(),
            prepare: Prepare::Named,
        })
    } else {
        Speaks::Redis(RedisServer {
            username: None,
            password: None,
            db: 0,
            protocol: Protocol::Resp3,
            compare_and_delete: CompareAndDelete::Script,
        })
    };
    ServerSpec {
        address: Address::Unix("/nowhere".into()),
        speaks,
        rtt: Distribution::Fixed(Nanos::ZERO),
    }
}

/// Clients of a database lock. The session of each is one end of a pair of sockets; the other ends are returned.
pub(crate) fn rig_in_sessions(strategy: Strategy, clients: u32) -> (Rig<Sockets>, Vec<UnixStream>) {
    rig_at_distance(strategy, clients, Distribution::Fixed(Nanos::ZERO))
}

/// The same, with this round-trip time added.
pub(crate) fn rig_at_distance(strategy: Strategy, clients: u32, rtt: Distribution) -> (Rig<Sockets>, Vec<UnixStream>) {
    rig_over_sockets(&TrialSpec {
        servers: vec![ServerSpec {
            rtt,
            ..server(strategy)
        }],
        hold: Distribution::Fixed(Nanos::from_secs(60)),
        ..spec(strategy, clients)
    })
}

/// The clients of a trial. Each of its connections is one end of a pair of sockets; the other ends are returned.
pub(crate) fn rig_over_sockets(spec: &TrialSpec) -> (Rig<Sockets>, Vec<UnixStream>) {
    let mut sockets = setup::sockets(spec).expect("the trial is sound").remove(0);
    let others = (0..sockets.count()).map(|index| sockets.attach(index)).collect();
    sockets.all_opened();
    (rig_of(spec, sockets), others)
}

pub(crate) fn rig_of<T: Transport>(spec: &TrialSpec, transport: T) -> Rig<T> {
    let mut driver = driver(spec, transport);
    driver.clients.run();
    driver.recorder.open(Nanos::ZERO, Nanos::NEVER);
    Rig {
        driver,
        now: Nanos::ZERO,
    }
}

pub(crate) fn driver<T: Transport>(spec: &TrialSpec, transport: T) -> Driver<AnyLock, T, SetClock> {
    let strategy = spec.strategy;
    let control = Arc::new(Control::new(1));
    let judge = if strategy.has_belief() {
        let (clients, rules) = (spec.concurrency * spec.keys_per_grant, rules(spec));
        let checker = WindowedChecker::new(clients, spec.keys, rules, Arc::clone(&control));
        Judge::Inline(Box::new(checker))
    } else {
        Judge::NotJudged
    };
    let lock = |spec, chance| AnyLock::new(strategy, spec, chance);
    let mut parts = setup::parts(spec, &control, vec![judge], lock).expect("the trial is sound");
    let part = parts.remove(0);
    let clock = SetClock(Rc::new(Cell::new(Some(Nanos::ZERO))));
    Driver::new(part.params, part.clients, transport, part.recorder, clock)
}

impl<T: Transport> Rig<T> {
    /// The window has not opened yet; it opens at `start_ms`.
    pub(crate) fn expecting_a_window(mut self, start_ms: u64, end_ms: u64) -> Self {
        self.driver
            .recorder
            .expect_anew(Nanos(start_ms * MS), Nanos(end_ms * MS));
        self
    }

    /// Sets the clock, as when the loop reads it.
    pub(crate) fn at_ms(mut self, ms: u64) -> Self {
        self.reads(ms);
        self.driver.fire_timers(self.now);
        self
    }

    pub(crate) fn reads(&mut self, ms: u64) {
        self.now = Nanos(ms * MS);
        self.driver.clock.set(self.now);
        self.driver.read_clock();
    }

    /// A round of the loop at this time.
    pub(crate) fn round_at(&mut self, ms: u64) {
        self.now = Nanos(ms * MS);
        self.driver.clock.set(self.now);
        self.driver
            .round(self.now, self.now)
            .expect("no connection has to stand");
    }

    pub(crate) fn dispatch(&mut self, client: u32, event: Event) {
        self.driver.dispatch(client, self.now, event);
    }

    /// The client asks for the key, to hold it for 1 ms.
    pub(crate) fn begins(self, client: u32) -> Self {
        self.begins_to_hold(client, 1)
    }

    pub(crate) fn begins_to_hold(mut self, client: u32, ms: u64) -> Self {
        let (key, mode) = (Key(0), Mode::Exclusive);
        let Driver { clients, recorder, .. } = &mut self.driver;
        clients.asks(client, self.now, &[key], mode, Nanos(ms * MS));
        clients.tell(recorder, client, self.now, |client, key| check::Event::Waiting {
            client,
            key,
            mode,
        });
        self.dispatch(client, Event::Acquire { keys: key.into(), mode });
        self
    }

    pub(crate) fn doing(&self, client: u32) -> Doing {
        self.driver.clients.doing(client)
    }

    pub(crate) fn judged(self) -> Report {
        let judged = self.driver.recorder.into_judge().finish(self.now);
        judged.expect("the lock has beliefs").report
    }
}

impl Rig {
    /// The last command gets this reply.
    pub(crate) fn answered(mut self, reply: Reply) -> Self {
        let Caller { client, call } = self.last_sent();
        self.dispatch(client, Event::Replied { call, reply });
        self
    }

    /// The reply to the last command is lost.
    pub(crate) fn loses_its_reply(mut self) -> Self {
        let Caller { client, call } = self.last_sent();
        self.dispatch(client, Event::Lost { call });
        self
    }

    pub(crate) fn last_sent(&mut self) -> Caller {
        self.driver.transport.sent.pop().expect("something was sent")
    }

    /// At the end of a phase: the holder releases all entries.
    pub(crate) fn cut_short(&mut self, client: u32) {
        let (clients, mut to) = self.driver.split();
        clients.cut_short(client, self.now, &mut to);
    }
}
