//! The checker: takes the events of a trial one by one and keeps the verdict and the figures up to date.
//!
//! One grant costs three events, each a look at one client and one key. Everything that a rule asks for (who waits
//! longest, does anybody hold, does anybody believe) stands ready in the key's record; see `table`.
//!
//! Promises: an event that its client's state does not allow is a panic, for then the driver is wrong and no verdict
//! would be worth anything.

use crate::contention::{self, Rivals};
use crate::crowd::Crowd;
use crate::fences::Fences;
use crate::fifo::Fifo;
use crate::report::{Figures, Report, ViolationKind};
use crate::sessions::Sessions;
use crate::table::{Client, KeyRecord, NOBODY, State};
use crate::turns::{self, OUTSIDE};
use crate::violations::ViolationLog;
use crate::{ClientId, Event, Order, Rules};
use locks::{Fence, Key, Mode, Nanos};

#[derive(Debug)]
pub struct Checker {
    pub(crate) clients: Box<[Client]>,
    pub(crate) keys: Box<[KeyRecord]>,
    /// One a key where several may hold: with several permits from the start, otherwise from the first time that a
    /// client asks to share. Empty until then, so that plain locks pay nothing for it.
    pub(crate) crowds: Box<[Crowd]>,
    pub(crate) permits: u32,
    pub(crate) fences: Option<Fences>,
    fifo: Option<Fifo>,
    pub(crate) sessions: Option<Sessions>,
    /// No crowds, no fences, no order, no sessions: what most trials ask for has a short way.
    is_plain: bool,
    /// The present window, or `OUTSIDE`. A grant remembers its own: what happens to a grant of the warm-up later on
    /// must not enter the figures.
    pub(crate) window: u32,
    windows_begun: u32,
    now: Nanos,
    pub(crate) figures: Figures,
    pub(crate) log: ViolationLog,
}

impl Checker {
    pub fn new(clients: u32, keys: u32, rules: Rules) -> Self {
        assert!(clients < NOBODY, "one client number is kept for nobody");
        assert!(rules.permits > 0, "a lock without permits can be granted to nobody");
        assert!(
            rules.permits == 1 || !rules.sessions,
            "a lock that lives with a session has one permit"
        );
        let mut checker = Self {
            clients: vec![Client::IDLE; clients as usize].into_boxed_slice(),
            keys: vec![KeyRecord::UNUSED; keys as usize].into_boxed_slice(),
            crowds: Box::default(),
            permits: rules.permits,
            fences: rules.fences.then(|| Fences::new(clients, keys)),
            fifo: Fifo::judging(rules.order, clients, keys),
            sessions: rules.sessions.then(Sessions::default),
            is_plain: !rules.fences && rules.order == Order::Ignored && !rules.sessions,
            window: OUTSIDE,
            windows_begun: 0,
            now: Nanos::ZERO,
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
        self.crowds = Crowd::of_all(self.keys.len(), &self.clients);
        self.is_plain = false;
    }

    /// Reads the records that an event of `client` on `key` will need and changes nothing: a caller that knows a batch
    /// of them beforehand can have their cache misses side by side.
    #[inline]
    pub fn touch(&self, client: ClientId, key: Key) {
        std::hint::black_box((
            self.clients[client as usize].state,
            self.keys[key.0 as usize].last_client,
        ));
    }

    /// Figures start anew; who waits and holds, and the violations so far, stay.
    pub fn begin_window(&mut self) {
        self.figures = Figures::default();
        self.windows_begun += 1;
        self.window = self.windows_begun;
    }

    /// Figures stop counting; violations go on.
    pub fn end_window(&mut self) {
        self.window = OUTSIDE;
    }

    /// Takes one event. On a grant it returns the hand-off, inside a window or not: the time since the key's last
    /// release, if nobody was granted the key in between and somebody waited for it all the while.
    #[expect(
        clippy::inline_always,
        reason = "where the event is known, so is what follows from it"
    )]
    #[inline(always)]
    pub fn on(&mut self, at: Nanos, event: Event) -> Option<Nanos> {
        if at < self.now {
            refuse_stamp(at, event, self.now);
        }
        self.now = at;
        match event {
            Event::Waiting { client, key, mode } => self.waiting(at, client, key, mode),
            Event::Queued { client } => self.queued(at, client),
            Event::GaveUp { client } | Event::CutOff { client, .. } => self.gave_up(client),
            Event::Granted {
                client,
                until,
                hold,
                fence,
            } => return self.granted(at, client, until, hold, fence),
            Event::Renewed { client, until } => self.renewed(at, client, until),
            Event::LeaseLost { client } => self.lease_lost(at, client),
            Event::HungUp { .. } => {}
            Event::Stopped { client } => self.stopped(at, client),
            Event::Released { client } => self.released(at, client),
            Event::DeniedRelease { client } => self.denied(at, client),
        }
        None
    }

    /// Ends the trial. Violations whose grants still go on are reported without their ends.
    pub fn finish(mut self, at: Nanos) -> Report {
        assert!(
            at >= self.now,
            "the trial ends at {at:?}, but it is {:?} already",
            self.now
        );
        self.log.counts.double_grants += self.sessions.as_ref().map_or(0, Sessions::undecided);
        let (counts, violations) = self.log.finish(at);
        Report {
            figures: self.figures,
            counts,
            violations,
            first_finding: None,
        }
    }

    fn waiting(&mut self, at: Nanos, id: ClientId, key: Key, mode: Mode) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Idle => {}
            // A holder that stopped need not release: its lease is over.
            State::Stopped | State::Unconfirmed => self.kept_session(id),
            State::Waiting | State::Holding => refuse(id, client.state, "begin to wait"),
        }
        let client = &mut self.clients[id as usize];
        client.state = State::Waiting;
        client.key = key.0;
        client.since = at;
        client.tally = 0;
        let record = &mut self.keys[key.0 as usize];
        record.waiters.push_back(&mut self.clients, id);
        let crowded = mode == Mode::Shared || !self.crowds.is_empty();
        if crowded {
            self.rival_came(id, key, mode);
        } else if !record.holders.is_empty() {
            contention::contend(record, self.window, &mut self.figures);
        }
    }

    fn queued(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Waiting => {}
            state @ (State::Idle | State::Holding | State::Stopped | State::Unconfirmed) => {
                refuse(id, state, "have a place in the queue")
            }
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.queued(id, at);
        }
    }

    fn gave_up(&mut self, id: ClientId) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Waiting => client.state = State::Idle,
            State::Idle | State::Holding | State::Stopped | State::Unconfirmed => {
                refuse(id, client.state, "give up waiting")
            }
        }
        let (key, mode) = (client.key as usize, client.mode);
        let record = &mut self.keys[key];
        turns::give_up(record, &mut self.clients, self.window, &mut self.figures, id);
        if record.waiters.is_empty() {
            // From here on the key lies idle because nobody wants it, not because it is slow to change hands.
            record.handed_off = Nanos::NEVER;
        }
        if let Some(crowd) = self.crowds.get_mut(key) {
            crowd.left_waiting(mode);
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.gave_up(id);
        }
    }

    fn granted(&mut self, at: Nanos, id: ClientId, until: Nanos, hold: Nanos, fence: Option<Fence>) -> Option<Nanos> {
        let (clients, window, figures) = (&mut *self.clients, self.window, &mut self.figures);
        let client = &mut clients[id as usize];
        match client.state {
            State::Waiting => client.state = State::Holding,
            State::Idle | State::Holding | State::Stopped | State::Unconfirmed => {
                refuse(id, client.state, "be granted a lock")
            }
        }
        let (key, sent) = (client.key as usize, client.since);
        let record = &mut self.keys[key];
        let handoff = (record.handed_off != Nanos::NEVER).then(|| at.since(record.handed_off));
        record.handed_off = Nanos::NEVER;
        figures.grants += u64::from(window != OUTSIDE);
        turns::serve(record, clients, window, figures, id);

        let client = &mut clients[id as usize];
        client.since = at;
        client.until = until;
        client.believes_until = until;
        if !self.is_plain {
            self.granted_beyond_plain(at, id, hold, fence, sent);
            return handoff;
        }
        let rivals = Rivals::of_plain(record);
        contention::enter(record, window, figures, id, (at, hold), rivals);
        if rivals.hold {
            self.judge_exclusion(at, id);
        }
        self.keys[key].holders.add(&mut self.clients, id, until);
        handoff
    }

    /// The second half of `granted`, where more is to be judged or counted than of a plain lock.
    #[inline(never)]
    fn granted_beyond_plain(&mut self, at: Nanos, id: ClientId, hold: Nanos, fence: Option<Fence>, sent: Nanos) {
        if let Some(fences) = &mut self.fences {
            fences.came_with(id, fence);
        }
        if self.crowds.is_empty() {
            let client = &self.clients[id as usize];
            let (key, until) = (client.key as usize, client.until);
            let record = &mut self.keys[key];
            let rivals = Rivals::of_plain(record);
            contention::enter(record, self.window, &mut self.figures, id, (at, hold), rivals);
            if rivals.hold {
                self.judge_exclusion(at, id);
            }
            self.keys[key].holders.add(&mut self.clients, id, until);
        } else {
            self.join_crowd(at, id, hold);
        }
        self.judge_order(at, id, sent);
    }

    /// `id` was granted what it had `sent` then, by a lock that promises fences or has an order.
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
                // Not recorded: what is no violation must not take the room of those that are.
                self.log.count(ViolationKind::FifoInversion);
            }
        }
    }

    fn renewed(&mut self, at: Nanos, id: ClientId, until: Nanos) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Holding => {}
            State::Idle | State::Waiting | State::Stopped | State::Unconfirmed => {
                refuse(id, client.state, "renew a lease")
            }
        }
        assert!(
            at < client.believes_until,
            "client {id} cannot renew a lease at {at:?}: it ended at {:?}",
            client.believes_until
        );
        client.until = until;
        // Belief that was is not undone by a lease that is set anew to end earlier.
        client.believes_until = until.max(at);
        match client.mode {
            Mode::Exclusive => self.keys[client.key as usize].holders.renew(until),
            Mode::Shared => self.crowds[client.key as usize].sharers.renew(until),
        }
    }

    fn lease_lost(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Holding => {
                let believed = at < client.believes_until;
                client.believes_until = client.believes_until.min(at);
                if believed {
                    self.free_with_session(at, id);
                }
            }
            State::Stopped => {} // Neither belief nor work is left to end.
            State::Unconfirmed => client.state = State::Idle,
            State::Idle if self.sessions.is_some() => {} // It released, and nobody was granted the lock beside it.
            State::Idle | State::Waiting => refuse(id, client.state, "lose a lease"),
        }
        self.lost_session(at, id);
    }

    fn stopped(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Holding => self.end_work(at, id),
            state @ (State::Idle | State::Waiting | State::Stopped | State::Unconfirmed) => {
                refuse(id, state, "stop working")
            }
        }
        self.clients[id as usize].state = State::Stopped;
    }

    fn released(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        let late = at > client.believes_until;
        let key = client.key as usize;
        match client.state {
            State::Holding => {
                self.end_work(at, id);
                self.log.counts.outlived += u64::from(late);
            }
            State::Stopped => {} // Its work ended when it stopped.
            State::Idle | State::Waiting | State::Unconfirmed => refuse(id, client.state, "release"),
        }
        self.clients[id as usize].state = if self.is_plain {
            State::Idle
        } else {
            self.state_after_release(id)
        };
        let record = &mut self.keys[key];
        record.released_late |= late;
        if late && self.sessions.is_some() {
            return; // It was free since the session ended.
        }
        record.handed_off = if record.waiters.is_empty() { Nanos::NEVER } else { at };
    }

    #[inline]
    fn end_work(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        let key = client.key as usize;
        if client.in_violation {
            client.in_violation = false;
            self.log.work_ended(id, at);
        }
        if self.is_plain {
            self.keys[key].holders.remove(&mut self.clients, id);
        } else {
            self.end_work_beyond_plain(at, id);
        }
    }

    #[inline(never)]
    fn end_work_beyond_plain(&mut self, at: Nanos, id: ClientId) {
        let (key, grant) = (self.clients[id as usize].key, self.span(id));
        if let Some(fences) = &mut self.fences {
            fences.ended(key, grant, at);
        }
        if let Some(fifo) = &mut self.fifo {
            fifo.ended(key, grant, at);
        }
        let record = &mut self.keys[key as usize];
        match self.crowds.get_mut(key as usize) {
            None => record.holders.remove(&mut self.clients, id),
            Some(crowd) => crowd.leave(record, &mut self.clients, self.permits, id),
        }
    }
}

#[cold]
#[inline(never)]
fn refuse(id: ClientId, state: State, what: &str) -> ! {
    panic!("client {id} cannot {what}: it is {state:?}")
}

#[cold]
#[inline(never)]
fn refuse_stamp(at: Nanos, event: Event, now: Nanos) -> ! {
    panic!("{event:?} is stamped {at:?}, but it is {now:?} already")
}
