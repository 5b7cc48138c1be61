//! `none`: takes no lock. The control of every run: it proves that the checker detects overlaps.
//!
//! ```text
//!            Acquire: settle Held for ever
//!          ┌───────────────────────────────┐
//!        Idle                             Held
//!          └───────────────────────────────┘
//!            Release, Cancel: settle Released
//! ```
//!
//! Promises nothing, and sends nothing.

use crate::{Actions, Event, Lasts, LockMachine, Nanos, Outcome, Traits};

pub(crate) const TRAITS: Traits = Traits {
    name: "none",
    takes_skew_margin_off: false,
    ..Traits::LEASE
};

#[derive(Debug, Default)]
pub(crate) struct NoLock {
    state: State,
    attempts: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    Held,
}

impl LockMachine for NoLock {
    fn on(&mut self, _now: Nanos, event: Event, out: &mut Actions) {
        match (self.state, event) {
            (State::Idle, Event::Acquire { .. }) => {
                self.attempts = 1;
                self.state = State::Held;
                out.settle(Outcome::Held {
                    lasts: Lasts::Unbounded,
                    fence: None,
                });
            }
            (State::Held, Event::Release | Event::Cancel) => {
                self.state = State::Idle;
                out.settle(Outcome::Released);
            }
            (State::Idle, Event::Cancel) => out.settle(Outcome::Released),
            (State::Idle, Event::Release) => panic!("Release, but nothing is held"),
            (State::Held, Event::Acquire { .. }) => panic!("Acquire, but the last grant was not released"),
            // Nothing was sent and no wake-up asked for, so the event is not for this client.
            (
                State::Idle | State::Held,
                Event::Replied { .. }
                | Event::Lost { .. }
                | Event::Published { .. }
                | Event::Disconnected
                | Event::Woke,
            ) => {}
            (State::Idle | State::Held, Event::Retry) => panic!("Retry, but nothing is written"),
            (State::Idle | State::Held, Event::Extend) => panic!("Extend, but it renews no lease"),
            (State::Idle | State::Held, Event::Enter) => panic!("Enter, but it does not nest"),
        }
    }

    fn attempts(&self) -> u32 {
        self.attempts
    }
}
