//! `layered`: a mutex on Redis, which keeps most waiters away from the database. Inside it a row of the database issues
//! a fence, and accepts the work's write only from the client with the newest fence.
//!
//! ```text
//!          Acquire              held           fence and value             Release, Cancel
//!    Idle ─────────▶ Outside ────────▶ Entering ──────────────▶ Held ───────────────────────▶ Writing
//!     ▲              (the mutex)  ▲    │ too late, Cancel                                        │ written, or not
//!     │                           │    ▼                                                         ▼
//!     │                           └─ Outside ◀── the policy allows another                    Leaving
//!     └───────────────────────────────┴──────────────────────────────────────────── the mutex is released
//! ```
//! `Outside` is all that the mutex does by itself: asking, pausing, releasing. Not drawn: an error, a lost call or a
//! reply timeout of the database releases the mutex with a command whose reply nobody awaits, and ends in `Idle` at
//! once. A statement that met another transaction is sent again until the reply timeout has passed.
//!
//! Promises what the mutex does. It also promises, even when Redis loses everything, that no write is acknowledged once
//! a later holder has its fence. `Expired` says that a write was refused for that reason. The write alone decides the
//! outcome of a release: if it was acknowledged and the reply about the mutex is lost, the lease frees the mutex.

use std::sync::Arc;

use crate::calls::{Deadline, check_deadline};
use crate::leased::Leased;
use crate::mutex::Mutex;
use crate::{
    Action, Actions, CallId, Chance, Event, Fence, Key, LockMachine, Mode, Nanos, Outcome, Reply, Spec, Statement,
};

#[derive(Debug)]
pub(crate) struct Layered {
    spec: Arc<Spec>,
    mutex: Leased<Mutex>,
    /// The actions of the mutex, before they are passed on. Empty between events; kept for its memory.
    mutex_actions: Actions,
    key: Key,
    /// Conflicts of the current request.
    conflicts: u32,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The mutex is at work, or idle. Its outcome is passed on as this lock's outcome.
    Outside,
    /// The mutex is held; the fence or the value has no reply yet.
    Entering(Entering),
    Held(Fence, u64),
    /// The write has no reply yet.
    Writing(PendingWrite),
    /// The mutex is being released. Whatever its outcome, this lock settles with this one.
    Leaving(Outcome),
}

#[derive(Clone, Copy, Debug)]
struct Entering {
    fence_call: CallId,
    value_call: CallId,
    deadline: Nanos,
    fence: Option<Fence>,
    value: Option<u64>,
}

impl Entering {
    fn awaits(&self, call: CallId) -> bool {
        (call == self.fence_call && self.fence.is_none()) || (call == self.value_call && self.value.is_none())
    }
}

#[derive(Clone, Copy, Debug)]
struct PendingWrite {
    call: CallId,
    deadline: Nanos,
    /// Fence and value, in case the write has to be sent again.
    numbers: [u64; 2],
}

impl Layered {
    pub(crate) fn new(spec: Arc<Spec>, chance: Chance) -> Self {
        Self {
            mutex: Leased::new(Arc::clone(&spec), chance, Mutex),
            spec,
            mutex_actions: Actions::default(),
            key: Key(0),
            conflicts: 0,
            state: State::Outside,
        }
    }

    fn acquire(&mut self, now: Nanos, event: Event, key: Key, out: &mut Actions) {
        match self.state {
            // If the mutex is not idle, it panics itself.
            State::Outside => {
                self.key = key;
                self.conflicts = 0;
                self.pass_to_mutex(now, event, out);
            }
            State::Held(..) => panic!("Acquire, but the last grant was not released"),
            State::Entering(_) | State::Writing(_) | State::Leaving(_) => {
                panic!("Acquire, but the last request is not settled")
            }
        }
    }

    fn release(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Held(fence, value) => {
                self.conflicts = 0;
                let numbers = [fence.0.get(), value];
                let call = self.send(Statement::FencedWrite, numbers, out);
                let deadline = self.guard(now, out);
                self.state = State::Writing(PendingWrite {
                    call,
                    deadline,
                    numbers,
                });
            }
            State::Outside | State::Entering(_) | State::Writing(_) | State::Leaving(_) => {
                panic!("Release, but nothing is held")
            }
        }
    }

    fn cancel(&mut self, now: Nanos, out: &mut Actions) {
        match self.state {
            State::Outside => self.pass_to_mutex(now, Event::Cancel, out),
            // An unused fence harms nobody.
            State::Entering(_) => self.leave(now, Outcome::Released, out),
            State::Held(..) => self.release(now, out),
            // Its one settlement answers both requests.
            State::Writing(_) | State::Leaving(_) => {}
        }
    }

    fn replied(&mut self, now: Nanos, call: CallId, reply: Reply, out: &mut Actions) {
        match self.state {
            State::Entering(entering) if entering.awaits(call) => self.entering(now, entering, call, reply, out),
            State::Writing(writing) if writing.call == call => self.written(now, writing, reply, out),
            // A call of the mutex, or of an earlier attempt: the mutex recognises its own calls.
            State::Outside | State::Entering(_) | State::Held(..) | State::Writing(_) | State::Leaving(_) => {
                self.pass_to_mutex(now, Event::Replied { call, reply }, out);
            }
        }
    }

    fn lost(&mut self, now: Nanos, call: CallId, out: &mut Actions) {
        let lost = match self.state {
            State::Entering(entering) => call == entering.fence_call || call == entering.value_call,
            State::Writing(writing) => call == writing.call,
            State::Outside | State::Held(..) | State::Leaving(_) => false,
        };
        if lost {
            self.abandon(now, Outcome::Unknown, out);
        } else {
            self.pass_to_mutex(now, Event::Lost { call }, out);
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) {
        let deadline = match self.state {
            State::Entering(entering) => entering.deadline,
            State::Writing(writing) => writing.deadline,
            // The wake-up was for a call that has been answered since.
            State::Held(..) => return,
            State::Outside | State::Leaving(_) => return self.pass_to_mutex(now, Event::Woke, out),
        };
        match check_deadline(now, deadline, out) {
            Deadline::Ahead => {}
            Deadline::Passed => self.abandon(now, Outcome::Unknown, out),
        }
    }

    fn pass_to_mutex(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        self.run_mutex(now, out, |mutex, actions| mutex.on(now, event, actions));
    }

    /// Runs the mutex and passes on its actions, except an outcome that is not the end of the request.
    fn run_mutex(&mut self, now: Nanos, out: &mut Actions, ask: impl FnOnce(&mut Leased<Mutex>, &mut Actions)) {
        let mut actions = std::mem::take(&mut self.mutex_actions);
        ask(&mut self.mutex, &mut actions);
        self.pass_on(now, &mut actions, out);
        self.mutex_actions = actions;
    }

    fn pass_on(&mut self, now: Nanos, actions: &mut Actions, out: &mut Actions) {
        for action in actions.drain() {
            match action {
                Action::Send {
                    call,
                    to,
                    over,
                    command,
                } => out.send_over(over, call, to, command),
                Action::WakeAt(at) => out.wake_at(at),
                Action::Settle(outcome) => self.mutex_settled(now, outcome, out),
                Action::HangUp | Action::Queued | Action::Renewed { .. } | Action::Lapsed => {
                    unreachable!("a mutex never emits {action:?}")
                }
            }
        }
    }

    fn mutex_settled(&mut self, now: Nanos, outcome: Outcome, out: &mut Actions) {
        match (self.state, outcome) {
            (State::Outside, Outcome::Held { .. }) => self.enter(now, out),
            (State::Outside, outcome) => out.settle(outcome),
            (State::Leaving(decided), _) => {
                self.state = State::Outside;
                out.settle(decided);
            }
            (State::Entering(_) | State::Held(..) | State::Writing(_), outcome) => {
                unreachable!("the mutex is held, but settles {outcome:?}")
            }
        }
    }
}

mod steps;

impl LockMachine for Layered {
    fn on(&mut self, now: Nanos, event: Event, out: &mut Actions) {
        match event {
            Event::Acquire {
                keys,
                mode: Mode::Exclusive,
            } => self.acquire(now, event, keys.only(), out),
            Event::Acquire { mode: Mode::Shared, .. } => panic!("a shared Acquire, but it excludes everybody"),
            Event::Enter => panic!("Enter, but it does not nest"),
            // This lock has no connection of its own.
            Event::Published { .. } | Event::Disconnected => {}
            Event::Release => self.release(now, out),
            Event::Cancel => self.cancel(now, out),
            Event::Replied { call, reply } => self.replied(now, call, reply, out),
            Event::Lost { call } => self.lost(now, call, out),
            Event::Woke => self.woke(now, out),
        }
    }

    fn attempts(&self) -> u32 {
        self.mutex.attempts()
    }

    fn conflicts(&self) -> u32 {
        self.conflicts
    }
}
