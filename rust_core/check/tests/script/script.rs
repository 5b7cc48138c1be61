//! The steps of the script tests.

use check::{Checker, ClientId, Event, Report, Rules, ViolationCounts};
use locks::{Fence, Key, Mode, Nanos};
use std::num::NonZeroU64;

pub(crate) const A: ClientId = 0;
pub(crate) const B: ClientId = 1;
pub(crate) const C: ClientId = 2;
pub(crate) const D: ClientId = 3;
pub(crate) const KEY: Key = Key(0);
pub(crate) const OTHER_KEY: Key = Key(1);
/// The end of a lock without a lease.
pub(crate) const NEVER: u64 = Nanos::NEVER.0;
/// No violation.
pub(crate) const NONE: ViolationCounts = ViolationCounts {
    double_grants: 0,
    double_grants_after_overrun: 0,
    lease_overruns: 0,
    sessions_lost: 0,
    outlived: 0,
    stale_fences: 0,
    fifo_inversions: 0,
    stalls: 0,
    starved: 0,
    denied_releases: 0,
    findings: 0,
};
/// The nominal hold of the clients, unless a script says otherwise.
const HOLD: u64 = 10;

pub(crate) struct Script {
    checker: Checker,
    now: Nanos,
    handoff: Option<Nanos>,
}

/// A plain lock with four clients, two keys, and a window from the start.
pub(crate) fn script() -> Script {
    script_of(Rules::default())
}

pub(crate) fn script_of(rules: Rules) -> Script {
    let mut checker = Checker::new(4, 2, rules);
    checker.begin_window(Nanos::ZERO);
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
        self.waits_as(client, key, Mode::Exclusive)
    }

    pub(crate) fn waits_to_share(self, client: ClientId) -> Self {
        self.waits_as(client, KEY, Mode::Shared)
    }

    fn waits_as(self, client: ClientId, key: Key, mode: Mode) -> Self {
        self.tell(Event::Waiting { client, key, mode })
    }

    pub(crate) fn queued(self, client: ClientId) -> Self {
        self.tell(Event::Queued { client })
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
            fence: None,
        })
    }

    pub(crate) fn granted_with_fence(self, client: ClientId, until: u64, number: u64) -> Self {
        self.tell(Event::Granted {
            client,
            until: Nanos(until),
            hold: Nanos(HOLD),
            fence: fence(number),
        })
    }

    /// Waits and is granted in the same instant.
    pub(crate) fn takes(self, client: ClientId, until: u64) -> Self {
        self.waits(client).granted(client, until)
    }

    /// Waits to share and is granted in the same instant.
    pub(crate) fn shares(self, client: ClientId, until: u64) -> Self {
        self.waits_to_share(client).granted(client, until)
    }

    pub(crate) fn renews(self, client: ClientId, until: u64) -> Self {
        let until = Nanos(until);
        self.tell(Event::Renewed { client, until })
    }

    pub(crate) fn loses_lease(self, client: ClientId) -> Self {
        self.tell(Event::LeaseLost { client })
    }

    pub(crate) fn hangs_up(self, client: ClientId) -> Self {
        self.tell(Event::HungUp { client })
    }

    pub(crate) fn cut_off_in_place(self, client: ClientId) -> Self {
        self.tell(Event::CutOff { client, placed: true })
    }

    pub(crate) fn cut_off_without_place(self, client: ClientId) -> Self {
        self.tell(Event::CutOff { client, placed: false })
    }

    pub(crate) fn driver_stood(self) -> Self {
        self.tell(Event::DriverStalled { client: A })
    }

    pub(crate) fn denied_its_release(self, client: ClientId) -> Self {
        self.tell(Event::DeniedRelease { client })
    }

    pub(crate) fn stops(self, client: ClientId) -> Self {
        self.tell(Event::Stopped { client })
    }

    pub(crate) fn dies(self, client: ClientId) -> Self {
        self.tell(Event::Died { client })
    }

    pub(crate) fn releases(self, client: ClientId) -> Self {
        self.tell(Event::Released { client })
    }

    pub(crate) fn window_begins(mut self) -> Self {
        self.checker.begin_window(self.now);
        self
    }

    pub(crate) fn window_ends(mut self) -> Self {
        self.checker.end_window(self.now);
        self
    }

    /// What the last event returned.
    pub(crate) fn expect_handoff(self, expected: Option<u64>) -> Self {
        assert_eq!(self.handoff, expected.map(Nanos), "handoff at {:?}", self.now);
        self
    }

    /// The trial ends with one finding, whose text contains `text`.
    pub(crate) fn finds(self, text: &str) {
        let report = self.ends();
        let first = report.first_finding.expect("something was found");
        assert!(first.contains(text), "{first:?} has no {text:?}");
        assert_eq!(report.counts.findings, 1);
    }

    pub(crate) fn ends(self) -> Report {
        self.checker.finish(self.now)
    }

    fn tell(mut self, event: Event) -> Self {
        self.handoff = self.checker.on(self.now, event);
        self
    }
}

pub(crate) fn fence(number: u64) -> Option<Fence> {
    NonZeroU64::new(number).map(Fence)
}
