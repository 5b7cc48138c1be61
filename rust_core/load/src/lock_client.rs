//! The lock client: the machines that are measured, as locks for a program.
//!
//! ```text
//!   threads of the program ──requests──▶ engine: slots with machines ──commands──▶ Sockets
//!            ◀── answers ──┘  (one loop, led by one thread at a time)  ◀──replies──┘
//! ```
//! `leading.rs` says which thread runs the loop, `engine.rs` is the loop, `acting.rs` what follows from requests and
//! events, `slots.rs` the locks under way, `ticket.rs` one lock as the program sees it, `port.rs` the way into an event
//! loop.
//!
//! Promises: a lock whose request was cancelled, at any moment, is released; each request is answered exactly once, also
//! when the client is closed or its thread panics; the loss of a lock is told before its lease is over on the server.
//! Does not promise anything in a forked child: there is no thread there. The caller must not use a client in it.

mod acting;
mod engine;
mod entropy;
mod leading;
mod port;
mod slots;
mod specs;
mod ticket;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use locks::{Lease, Millis, Nanos, Retry, Spec, Strategy};
use wire::GivenNames;

use crate::sockets::{self, Layout, Naming, Peers, Sockets};
use crate::spec::ServerSpec;
use crate::transport::Transport;
use crate::{LoadError, TrialError, clock};
use engine::{Engine, Parts, Request};
use leading::Shared;
use port::Wake;
pub use port::{Port, Settled};
pub use ticket::{Answer, Asked, Ticket, Wanted};

/// Locks at once of a client whose locks share connections.
pub const MOST_LOCKS: u32 = 1 << 14;

#[derive(Clone, Debug)]
pub struct LockClientSpec {
    pub strategy: Strategy,
    pub servers: Vec<ServerSpec>,
    pub client_name: String,
    /// How long a reply may take before a call is given up.
    pub reply_timeout: Nanos,
    /// Of a strategy whose locks need a connection each: how many, and so how many locks at once. Otherwise one
    /// connection to each server is enough, because commands are pipelined.
    pub own_connections: u32,
}

/// The locks of one process on one set of servers.
#[derive(Debug)]
pub struct LockClient {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LockClientSpec {
    /// Whether locks with this lease can be had.
    ///
    /// # Errors
    /// When the strategy, the servers and the lease do not fit each other.
    pub fn check(&self, lease: Lease) -> Result<(), TrialError> {
        let servers = u16::try_from(self.servers.len()).map_err(|_| TrialError::Field("servers"))?;
        self.strategy.check(&Spec {
            servers,
            lease,
            reply_timeout: self.reply_timeout,
            retry: Retry::NONE,
        })?;
        if self.servers.is_empty() || !sockets::fits(self.strategy, &self.servers) {
            return Err(TrialError::Field("servers"));
        }
        if self.own_connections == 0 || self.own_connections > MOST_LOCKS {
            return Err(TrialError::Field("own_connections"));
        }
        Ok(())
    }
}

impl LockClient {
    /// Starts the thread of the client, which opens its connections. The spec must have been checked.
    ///
    /// # Errors
    /// When the kernel refuses what the loop needs.
    pub fn start(spec: &LockClientSpec) -> Result<Self, TrialError> {
        let most = if spec.strategy.owns_connection() {
            spec.own_connections
        } else {
            MOST_LOCKS
        };
        let names = GivenNames::default();
        let peers = Peers {
            guard: None,
            strategy: spec.strategy,
            servers: &spec.servers,
            client_name: &spec.client_name,
        };
        let servers = spec.servers.len() as u16;
        let per_server = u32::from(spec.strategy.shares_connections());
        let layout = Layout::new(spec.strategy, servers, most, per_server, false);
        let mut sockets = Sockets::for_programs(&peers, layout, &Naming::Given(names.clone()))?;
        let kernel = |error| TrialError::Load(LoadError::Poll(error));
        let wake = Arc::new(Wake::new().map_err(kernel)?);
        sockets.wake_by(&*wake).map_err(kernel)?;
        // An old kernel refuses the exact timeouts here, and not in the middle of the work.
        sockets.wait(Nanos::ZERO, &mut Vec::new()).map_err(kernel)?;
        let engine = Engine::new(Parts {
            strategy: spec.strategy,
            servers,
            reply_timeout: spec.reply_timeout,
            names,
            sockets,
            connections: layout.servers().count() as u32,
            most,
            wake: Arc::clone(&wake),
        });
        let shared = Arc::new(Shared::new(engine, wake));
        let native = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("pybench-locks".to_owned());
        let thread = thread.spawn(move || native.run_native()).map_err(kernel)?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks for the lock of a new ticket. Its answer comes once somebody calls `wake`, `wait` or `cancel`.
    pub fn acquire(&self, ticket: &Arc<Ticket>) {
        self.push(Request::Acquire(Arc::clone(ticket)));
    }

    /// Asks for its release, as `acquire`.
    pub fn release(&self, ticket: &Arc<Ticket>) {
        self.push(Request::Release(Arc::clone(ticket)));
    }

    /// Asks for a renewal of its lease, as `acquire`; only where `Strategy::extends`.
    pub fn extend(&self, ticket: &Arc<Ticket>) {
        self.push(Request::Extend(Arc::clone(ticket)));
    }

    /// Has what was asked for so far handled, by another thread.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Stops whatever is under way for a ticket, and frees what was or will be taken. Harmless when it is over.
    pub fn cancel(&self, ticket: &Arc<Ticket>) {
        self.shared.submit(Request::Cancel(Arc::clone(ticket)));
    }

    fn push(&self, request: Request) {
        self.shared.push(request);
        if self.shared.is_finished() {
            self.shared.refuse_all();
        }
    }

    /// Waits at most `length` for the answer to a request of a ticket without a port; `None` if it has not come.
    pub fn wait(&self, ticket: &Ticket, asked: Asked, length: Nanos) -> Option<Answer> {
        self.shared.wait(ticket, asked, clock::now().after(length))
    }

    /// Waits at most `length` until the lock of a ticket is lost or over.
    pub fn wait_for_loss(&self, ticket: &Ticket, length: Nanos) -> bool {
        Shared::wait_for_loss(ticket, clock::now().after(length))
    }

    /// Releases all locks, closes the connections and ends the thread; at most two reply timeouts. Harmless when closed.
    pub fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.shared.submit(Request::Close);
            // A panic of the thread was reported by it, and everybody was answered.
            let _ = thread.join();
        }
    }
}

impl Drop for LockClient {
    /// As `close`, but does not wait: a collector of garbage must not hang on a silent server.
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some() {
            self.shared.submit(Request::Close);
        }
    }
}

/// The strategy by which the client takes its locks: a mutex whose holder can have the lease renewed sends the same
/// commands as a mutex, and is never renewed unasked.
pub fn extendable(strategy: Strategy) -> Strategy {
    match strategy {
        Strategy::Mutex => Strategy::Watchdog {
            renewals_per_ttl: 2,
            max_hold: Some(Millis(0)),
        },
        other => other,
    }
}

/// How long a lock is still believed in, for a reader of `Ticket::until`.
pub fn time_left(until: Nanos) -> Nanos {
    until.since(clock::now())
}
