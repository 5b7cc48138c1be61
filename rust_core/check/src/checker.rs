//! The checker: takes the events of a trial one by one and keeps the verdict and the figures up to date.
//!
//! One grant costs three events, each with a lookup of one client and of its key's record. The key's record holds everything that a
//! rule needs: who has waited longest, whether anyone holds, whether anyone believes; see `table`.
//!
//! Promises: an event that its client's state does not allow is a finding, and never a panic.

use crate::contention::{self, Rivals};
use crate::crowd::Crowd;
use crate::deaths::Deaths;
use crate::fences::Fences;
use crate::fifo::Fifo;
use crate::findings::Findings;
use crate::keys::Keys;
use crate::report::{Figures, Report, ViolationCounts, ViolationKind};
use crate::sessions::Sessions;
use crate::stalls::lease_was_over;
use crate::table::{Client, NOBODY, SessionState, State};
use crate::turns::{self, OUTSIDE};
use crate::violations::ViolationLog;
use crate::{ClientId, Event, Order, Rules};
use locks::{Fence, Key, Mode, Nanos};

#[derive(Debug)]
pub struct Checker {
    pub(crate) clients: Box<[Client]>,
    pub(crate) keys: Keys,
    /// Whether several clients may hold a key: with several permits from the start, otherwise from the first time that
    /// a client asks to share.
    pub(crate) has_crowds: bool,
    /// With `has_crowds` one for each place of `keys` that somebody waited at, otherwise empty, so that plain locks pay
    /// nothing for it.
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) permits: u32,
    pub(crate) fences: Option<Fences>,
    pub(crate) fifo: Option<Fifo>,
    pub(crate) sessions: Option<Sessions>,
    pub(crate) deaths: Deaths,
    /// No crowds, no fences, no order, no sessions: the usual trial takes a short path.
    pub(crate) is_plain: bool,
    /// The current window, or `OUTSIDE`. A grant stores its own window: what later happens to a grant of the warm-up
    /// must not enter the figures.
    pub(crate) window: u32,
    pub(crate) windows_begun: u32,
    pub(crate) window_began: Nanos,
    pub(crate) now: Nanos,
    pub(crate) least_belief: Nanos,
    pub(crate) granted_within: Nanos,
    /// When a driver last ran again after a standstill: the time before that does not count towards a stall of a key.
    pub(crate) driver_stalled_until: Nanos,
    pub(crate) session_end_seen_within: Nanos,
    pub(crate) release_seen_within: Nanos,
    pub(crate) findings: Findings,
    pub(crate) figures: Figures,
    pub(crate) log: ViolationLog,
}

impl Checker {
    pub fn new(clients: u32, keys: u32, rules: Rules) -> Self {
        assert!(clients < NOBODY, "the largest client number is reserved for `NOBODY`");
        assert!(rules.permits > 0, "a lock without permits can be granted to nobody");
        assert!(
            rules.permits == 1 || !rules.sessions,
            "a lock that depends on a session has one permit"
        );
        let mut checker = Self {
            clients: vec![Client::IDLE; clients as usize].into_boxed_slice(),
            keys: Keys::new(keys),
            has_crowds: false,
            crowds: Vec::new(),
            permits: rules.permits,
            fences: rules.fences.then(|| Fences::new(clients, keys)),
            fifo: Fifo::judging(rules.order, clients, keys),
            sessions: rules.sessions.then(Sessions::default),
            deaths: Deaths::default(),
            is_plain: !rules.fences && rules.order == Order::Ignored && !rules.sessions,
            window: OUTSIDE,
            windows_begun: 0,
            window_began: Nanos::ZERO,
            now: Nanos::ZERO,
            least_belief: rules.least_belief,
            granted_within: rules.granted_within,
            driver_stalled_until: Nanos::ZERO,
            session_end_seen_within: rules.session_end_seen_within,
            release_seen_within: rules.release_seen_within,
            findings: Findings::default(),
            figures: Figures::default(),
            log: ViolationLog::new(),
        };
        if rules.permits > 1 {
            checker.expect_crowds();
        }
        checker
    }

    #[cold]
    pub(crate) fn expect_crowds(&mut self) {
        self.crowds = Crowd::of_all(&self.keys, &self.clients);
        self.has_crowds = true;
        self.is_plain = false;
    }

    /// Prefetches the records for the next event of `client`, which is about `key`. A caller with a batch of events can
    /// so overlap their cache misses.
    #[inline]
    pub fn touch(&self, client: ClientId, key: Key) {
        let client = &self.clients[client as usize];
        match client.state {
            // It knows the place of the key's record, so its grant does not read the slot.
            State::Waiting => self.keys.touch_record(client.place),
            State::Idle | State::Holding | State::Stopped | State::Unconfirmed => self.keys.touch_slot(key),
        }
    }

    /// Starts the figures anew. Waiters, holders and the violations so far stay.
    pub fn begin_window(&mut self, start: Nanos) {
        self.figures = Figures::default();
        self.window_began = start;
        self.windows_begun += 1;
        self.window = self.windows_begun;
    }

    /// Stops the figures, except for grants of the window whose belief goes on. Violations are still recorded.
    pub fn end_window(&mut self, end: Nanos) {
        if self.window != OUTSIDE {
            self.judge_starvation(end);
        }
        self.window = OUTSIDE;
    }

    /// Whether a grant beside a session's believer is not judged yet: the believer has not been heard of since.
    pub fn has_undecided(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.undecided() > 0)
    }

    /// Takes one event. For a grant it returns the hand-over, inside a window or not: the time since the key's last
    /// release, if no other client was granted the key in between and a client waited for it all the time.
    #[expect(
        clippy::inline_always,
        reason = "where the event is known, so is what follows from it"
    )]
    #[inline(always)]
    pub fn on(&mut self, at: Nanos, event: Event) -> Option<Nanos> {
        if at < self.now {
            self.came_too_late(at, event);
        }
        let at = at.max(self.now);
        self.now = at;
        match event {
            Event::Waiting { client, key, mode } => self.waiting(at, client, key, mode),
            Event::Queued { client } => self.queued(at, client),
            Event::GaveUp { client } => self.gave_up(at, client),
            Event::CutOff { client, placed } => self.cut_off(at, client, placed),
            Event::Granted {
                client,
                until,
                hold,
                fence,
            } => return self.granted(at, client, until, hold, fence),
            Event::Renewed { client, until } => self.renewed(at, client, until),
            Event::LeaseLost { client } => self.lease_lost(at, client),
            Event::HungUp { client } => self.hung_up(at, client),
            Event::Stopped { client } => self.stopped(at, client),
            Event::Died { client } => self.died(at, client),
            Event::Released { client } => self.released(at, client),
            Event::DeniedRelease { client } => self.denied(at, client),
            Event::DriverStalled { .. } => self.driver_stalled_until = at,
        }
        None
    }

    /// What was counted so far. Some overlaps are judged only by how their grants end: see `finish`.
    pub const fn counts(&self) -> ViolationCounts {
        self.log.counts
    }

    /// The first violations so far, at most 100. What had not ended then has no end yet.
    pub fn violations(&self) -> &[crate::Violation] {
        self.log.recorded()
    }

    /// How many events so far their clients' states, or their stamps, did not allow.
    pub const fn findings(&self) -> u64 {
        self.findings.count
    }

    /// Ends the trial. Violations whose grants have not ended are reported without their ends.
    pub fn finish(mut self, at: Nanos) -> Report {
        if at < self.now {
            self.ended_too_early(at);
        }
        let at = at.max(self.now);
        self.settle_all(at);
        self.judge_stalls(at);
        self.log.counts.double_grants += self.sessions.as_ref().map_or(0, Sessions::undecided);
        self.log.counts.findings = self.findings.count;
        let (counts, violations) = self.log.finish(at);
        Report {
            figures: self.figures,
            orphans: self.deaths.orphans,
            time_to_free: self.deaths.freed,
            counts,
            violations,
            first_finding: self.findings.first,
        }
    }

    fn waiting(&mut self, at: Nanos, id: ClientId, key: Key, mode: Mode) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Idle => {}
            // A holder that stopped need not release, because its lease has ended.
            State::Stopped | State::Unconfirmed => self.kept_session(id),
            State::Waiting | State::Holding => self.abandon(at, id),
        }
        let place = self.keys.place_of(key, at);
        let client = &mut self.clients[id as usize];
        client.state = State::Waiting;
        client.key = key.0;
        client.place = place;
        client.since = at;
        client.tally = 0;
        let record = &mut self.keys[place];
        record.waiters.push_back(&mut self.clients, id);
        if mode == Mode::Shared || self.has_crowds {
            self.rival_came(id, mode);
        } else if !record.holders.is_empty() {
            contention::contend(record, &mut self.figures);
        }
    }

    /// Recycles the record of the key of `id`, whose wait or work has ended, if nothing in it can matter later.
    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    #[inline(always)]
    pub(crate) fn recycle(&mut self, at: Nanos, id: ClientId, place: u32) {
        let crowd = self.crowds.get(place as usize);
        if crowd.is_none_or(|crowd| crowd.sharers.is_empty()) {
            self.keys.recycle(Key(self.clients[id as usize].key), place, at);
        }
    }

    fn queued(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Waiting => {}
            State::Idle | State::Holding | State::Stopped | State::Unconfirmed => {
                return self.cannot(at, id, "have a place in the queue");
            }
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.queued(id, at);
        }
    }

    fn cut_off(&mut self, at: Nanos, id: ClientId, placed: bool) {
        if placed && self.clients[id as usize].state == State::Waiting {
            self.judge_unserved(at, id);
        }
        self.gave_up(at, id);
    }

    pub(crate) fn gave_up(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Waiting => {}
            State::Idle | State::Holding | State::Stopped | State::Unconfirmed => {
                return self.cannot(at, id, "give up waiting");
            }
        }
        let client = &mut self.clients[id as usize];
        client.state = State::Idle;
        let (place, mode) = (client.place, client.mode);
        if self.may_have_stalled(at, place) {
            self.judge_stall(at, place);
        }
        let record = &mut self.keys[place];
        turns::give_up(record, &mut self.clients, self.window, &mut self.figures, id);
        if record.waiters.is_empty() {
            // From now on the key is idle because nobody wants it, and not because the hand-over is slow.
            record.wanted = false;
        }
        if let Some(crowd) = self.crowds.get_mut(place as usize) {
            crowd.left_waiting(mode);
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.gave_up(id);
        }
        self.recycle(at, id, place);
    }

    fn granted(&mut self, at: Nanos, id: ClientId, until: Nanos, hold: Nanos, fence: Option<Fence>) -> Option<Nanos> {
        if self.clients[id as usize].state != State::Waiting {
            self.cannot(at, id, "be granted a lock");
            return None;
        }
        let place = self.clients[id as usize].place;
        if self.may_have_stalled(at, place) {
            self.judge_stall(at, place);
        }
        let (clients, window, figures) = (&mut *self.clients, self.window, &mut self.figures);
        let client = &mut clients[id as usize];
        client.state = State::Holding;
        let sent = client.since;
        let record = &mut self.keys[place];
        let handoff = record.wanted.then(|| at.since(record.freed));
        record.wanted = false;
        if window != OUTSIDE {
            figures.grants += 1;
            let freed = handoff.is_some_and(|handoff| lease_was_over(record.lease_left, handoff));
            figures.lease_freed_grants += u64::from(freed);
        }
        turns::serve(record, clients, window, figures, id);
        self.deaths.granted(at, clients[id as usize].key);

        let client = &mut clients[id as usize];
        client.since = at;
        client.until = until;
        client.believes_until = until;
        client.tally_window = window;
        if !self.is_plain {
            self.granted_beyond_plain(at, id, hold, fence, sent);
            return handoff;
        }
        let rivals = Rivals::of_plain(record);
        contention::enter(record, window, figures, id, (at, hold), rivals);
        if rivals.hold {
            self.judge_exclusion(at, id);
        }
        self.keys[place].holders.add(&mut self.clients, id, until);
        handoff
    }

    /// The second half of `granted`, for locks with more to judge or count than a plain lock.
    #[inline(never)]
    fn granted_beyond_plain(&mut self, at: Nanos, id: ClientId, hold: Nanos, fence: Option<Fence>, sent: Nanos) {
        self.clients[id as usize].session = SessionState::Fine;
        if let Some(fences) = &mut self.fences {
            fences.came_with(id, fence);
            if fence.is_none() {
                self.cannot(at, id, "be granted a lock that promises fences without one");
            }
        }
        if self.has_crowds {
            self.join_crowd(at, id, hold);
        } else {
            let client = &self.clients[id as usize];
            let (place, until) = (client.place, client.until);
            let record = &mut self.keys[place];
            let rivals = Rivals::of_plain(record);
            contention::enter(record, self.window, &mut self.figures, id, (at, hold), rivals);
            if rivals.hold {
                self.judge_exclusion(at, id);
            }
            self.keys[place].holders.add(&mut self.clients, id, until);
        }
        self.judge_order(at, id, sent);
    }

    /// Judges the order of a grant of `id`, whose first attempt was sent at `sent`, for a lock that promises fences or
    /// has an order.
    fn judge_order(&mut self, at: Nanos, id: ClientId, sent: Nanos) {
        let (key, grant) = (self.clients[id as usize].key, self.span(id));
        if let Some(first) = self.fences.as_mut().and_then(|fences| fences.granted(key, grant)) {
            self.note(ViolationKind::StaleFence, at, first, id);
        }
        if let Some(fifo) = &mut self.fifo
            && let Some(first) = fifo.granted(key, sent, grant)
        {
            if fifo.is_promised() {
                self.note(ViolationKind::FifoInversion, at, first, id);
            } else {
                // Counted but not recorded: a figure must not take the room of violations.
                self.log.count(ViolationKind::FifoInversion);
            }
        }
    }
}
