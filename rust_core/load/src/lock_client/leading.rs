//! Who runs the loop of a client: one thread at a time, the *leader*.
//!
//! The client's own native thread leads while nobody waits. A thread that waits for its lock leads instead: it sends,
//! polls and reads itself, and so saves the two wake-ups of a hand-over. Between two such calls nobody leads for a
//! moment: the native thread stays parked, because the next call mostly comes at once, unless a timer or a request of an
//! event loop is due.
//!
//! ```text
//!   native leads ──a caller comes──▶ a caller leads ──its answer came──▶ another caller, or nobody
//!        ▲                                                                        │
//!        └──────────────────── no caller for `GRACE`, or something is due ────────┘
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use locks::Nanos;

use super::acting::refuse;
use super::engine::{Engine, Request};
use super::port::Wake;
use super::ticket::{Answer, Asked, Ticket};
use crate::clock;

/// How long the native thread leaves the loop to callers after the last of them.
const GRACE: Nanos = Nanos::from_millis(2);

#[derive(Debug)]
pub(super) struct Shared {
    inbox: Mutex<Vec<Request>>,
    wake: std::sync::Arc<Wake>,
    engine: Mutex<Engine>,
    /// Threads that wait for an answer, the leader among them.
    callers: Mutex<Vec<Thread>>,
    caller_count: AtomicUsize,
    is_led: AtomicBool,
    native: OnceLock<Thread>,
    native_is_parked: AtomicBool,
    /// When a caller led last, and when the loop has something to do after that.
    led_at: AtomicU64,
    due: AtomicU64,
    is_finished: AtomicBool,
}

impl Shared {
    pub(super) fn new(engine: Engine, wake: std::sync::Arc<Wake>) -> Self {
        Self {
            inbox: Mutex::default(),
            wake,
            engine: Mutex::new(engine),
            callers: Mutex::default(),
            caller_count: AtomicUsize::new(0),
            is_led: AtomicBool::new(false),
            native: OnceLock::new(),
            native_is_parked: AtomicBool::new(false),
            led_at: AtomicU64::new(0),
            due: AtomicU64::new(u64::MAX),
            is_finished: AtomicBool::new(false),
        }
    }

    /// Hands a request to whoever leads.
    pub(super) fn submit(&self, request: Request) {
        self.push(request);
        self.wake();
        if self.is_finished() {
            self.refuse_all();
        }
    }

    /// Has whoever leads look into the inbox.
    pub(super) fn wake(&self) {
        self.wake.wake();
        if self.native_is_parked.load(SeqCst) {
            self.unpark_native();
        }
    }

    /// Nobody handles what is asked for any more. The native thread calls it after it has set `is_finished`, and every
    /// `submit` that sees that: whichever comes later finds the request.
    pub(super) fn refuse_all(&self) {
        let waiting = std::mem::take(&mut *locked(&self.inbox));
        waiting.iter().for_each(refuse);
    }

    /// For whoever leads next: it is handled by a `wait` or after a `wake`.
    pub(super) fn push(&self, request: Request) {
        locked(&self.inbox).push(request);
    }

    /// Waits for an answer until `limit`, and leads if nobody else does.
    pub(super) fn wait(&self, ticket: &Ticket, asked: Asked, limit: Nanos) -> Option<Answer> {
        let _caller = Caller::enter(self);
        loop {
            if let Some(answer) = ticket.take(asked) {
                return Some(answer);
            }
            if self.is_finished() {
                return Some(Answer::Closed);
            }
            let now = clock::now();
            if now >= limit {
                return None;
            }
            match self.engine.try_lock() {
                Ok(engine) => self.lead(engine, |now| now >= limit || ticket.has(asked), limit),
                Err(TryLockError::WouldBlock) => {
                    self.wake.wake();
                    thread::park_timeout(duration(limit.since(now)));
                }
                // The leader has panicked, and nobody knows what is still true.
                Err(TryLockError::Poisoned(_)) => return Some(Answer::Closed),
            }
        }
    }

    /// Waits, without leading, until the lock is lost or over.
    pub(super) fn wait_for_loss(ticket: &Ticket, limit: Nanos) -> bool {
        while ticket.take(Asked::Loss).is_none() {
            let now = clock::now();
            if now >= limit {
                return false;
            }
            thread::park_timeout(duration(limit.since(now)));
        }
        true
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished.load(SeqCst)
    }

    fn lead(&self, mut engine: MutexGuard<'_, Engine>, is_done: impl Fn(Nanos) -> bool, limit: Nanos) {
        self.is_led.store(true, SeqCst);
        while !engine.is_finished() && !is_done(clock::now()) {
            engine.round(&self.inbox, limit);
        }
        self.is_finished.fetch_or(engine.is_finished(), SeqCst);
        self.due.store(engine.next_due().0, SeqCst);
        self.led_at.store(clock::now().0, SeqCst);
        drop(engine);
        self.is_led.store(false, SeqCst);
    }

    /// The native thread, from its start to its end.
    pub(super) fn run_native(&self) {
        clock::sharpen_timeouts();
        let _ = self.native.set(thread::current());
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            while !self.is_finished() {
                match self.engine.try_lock() {
                    Ok(engine) => {
                        self.lead(engine, |_| self.caller_count.load(SeqCst) > 0, Nanos::NEVER);
                        self.unpark_caller();
                    }
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Poisoned(_)) => break,
                }
                self.park_native();
            }
        }));
        // Also after a panic, so that nobody waits for ever.
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.abandon_all();
        drop(engine);
        self.is_finished.store(true, SeqCst);
        self.refuse_all();
        locked(&self.callers).iter().for_each(Thread::unpark);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }

    /// Parks while callers lead, and for `GRACE` after the last of them.
    fn park_native(&self) {
        self.native_is_parked.store(true, SeqCst);
        while !self.is_finished() && !self.engine.is_poisoned() {
            let now = clock::now();
            let (last, due) = (Nanos(self.led_at.load(SeqCst)), Nanos(self.due.load(SeqCst)));
            let mut until = last.after(GRACE);
            if self.caller_count.load(SeqCst) > 0 {
                until = now.after(GRACE);
            } else {
                until = until.min(due);
                if now >= until || !locked(&self.inbox).is_empty() {
                    break;
                }
            }
            thread::park_timeout(duration(until.since(now)));
        }
        self.native_is_parked.store(false, SeqCst);
    }

    fn unpark_native(&self) {
        if let Some(native) = self.native.get() {
            native.unpark();
        }
    }

    /// Lets another caller lead, if one waits.
    fn unpark_caller(&self) {
        let this = thread::current().id();
        if let Some(caller) = locked(&self.callers).iter().find(|caller| caller.id() != this) {
            caller.unpark();
        }
    }
}

/// The calling thread is among those that wait.
struct Caller<'a>(&'a Shared, ThreadId);

impl<'a> Caller<'a> {
    fn enter(shared: &'a Shared) -> Self {
        let this = thread::current();
        let id = this.id();
        locked(&shared.callers).push(this);
        shared.caller_count.fetch_add(1, SeqCst);
        Self(shared, id)
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        locked(&shared.callers).retain(|caller| caller.id() != self.1);
        if shared.caller_count.fetch_sub(1, SeqCst) > 1 {
            if !shared.is_led.load(SeqCst) {
                shared.unpark_caller();
            }
            return;
        }
        // Nobody is left to lead but the native thread, which mostly may wait for the next caller.
        let soon = clock::now().after(GRACE).after(GRACE);
        if shared.due.load(SeqCst) <= soon.0 || !locked(&shared.inbox).is_empty() || shared.is_finished() {
            shared.unpark_native();
        }
    }
}

fn duration(length: Nanos) -> Duration {
    // Longer ones would overflow the kernel's clock; every caller looks again after a wake-up.
    Duration::from_nanos(length.0.min(Nanos::from_secs(3_600).0))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
