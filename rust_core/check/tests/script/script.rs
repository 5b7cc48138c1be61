//! The words that the script tests are written in.

use check::{Checker, ClientId, Event, Report};
use locks::{Key, Nanos};

pub(crate) const A: ClientId = 0;
pub(crate) const B: ClientId = 1;
pub(crate) const C: ClientId = 2;
pub(crate) const KEY: Key = Key(0);
pub(crate) const OTHER_KEY: Key = Key(1);
/// The end of a lock that has none.
pub(crate) const NEVER: u64 = Nanos::NEVER.0;
/// What clients mean to hold, unless a script says otherwise.
const HOLD: u64 = 10;

pub(crate) struct Script {
    checker: Checker,
    now: Nanos,
    handoff: Option<Nanos>,
}

/// Three clients, two keys, and a window from the start.
pub(crate) fn script() -> Script {
    let mut checker = Checker::new(3, 2);
    checker.begin_window();
    Script {
        checker,
        now: Nanos::ZERO,
        handoff: None,
    }
}

impl Script {
    pub(crate) fn at(mut self, ns: u64) -> Self {
        self.now = Nanos(ns);
        self
    }

    pub(crate) fn waits(self, client: ClientId) -> Self {
        self.waits_for(client, KEY)
    }

    pub(crate) fn waits_for(self, client: ClientId, key: Key) -> Self {
        self.tell(Event::Waiting { client, key })
    }

    pub(crate) fn gives_up(self, client: ClientId) -> Self {
        self.tell(Event::GaveUp { client })
    }

    pub(crate) fn granted(self, client: ClientId, until: u64) -> Self {
        self.granted_to_hold(client, until, HOLD)
    }

    pub(crate) fn granted_to_hold(self, client: ClientId, until: u64, hold: u64) -> Self {
        self.tell(Event::Granted {
            client,
            until: Nanos(until),
            hold: Nanos(hold),
        })
    }

    /// Waits and is granted in the same instant.
    pub(crate) fn takes(self, client: ClientId, until: u64) -> Self {
        self.waits(client).granted(client, until)
    }

    pub(crate) fn loses_lease(self, client: ClientId) -> Self {
        self.tell(Event::LeaseLost { client })
    }

    pub(crate) fn stops(self, client: ClientId) -> Self {
        self.tell(Event::Stopped { client })
    }

    pub(crate) fn releases(self, client: ClientId) -> Self {
        self.tell(Event::Released { client })
    }

    pub(crate) fn window_begins(mut self) -> Self {
        self.checker.begin_window();
        self
    }

    pub(crate) fn window_ends(mut self) -> Self {
        self.checker.end_window();
        self
    }

    /// What the last event returned.
    pub(crate) fn expect_handoff(self, expected: Option<u64>) -> Self {
        assert_eq!(self.handoff, expected.map(Nanos), "hand-off at {:?}", self.now);
        self
    }

    pub(crate) fn ends(self) -> Report {
        self.checker.finish(self.now)
    }

    fn tell(mut self, event: Event) -> Self {
        self.handoff = self.checker.on(self.now, event);
        self
    }
}
