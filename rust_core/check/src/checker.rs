//! The checker: takes the events of a trial one by one and keeps the verdict and the figures up to date.
//!
//! One grant costs three events, each a look at one client and one key. Everything that a rule asks for (who waits
//! longest, does anybody hold, does anybody believe) stands ready in the key's record; see `table`.
//!
//! Promises: an event that its client's state does not allow is a panic, for then the driver is wrong and no verdict
//! would be worth anything.

use crate::report::{Figures, GrantSpan, Report, Violation, ViolationKind};
use crate::table::{Client, KeyRecord, NOBODY, State};
use crate::violations::{Noted, ViolationLog};
use crate::{ClientId, Event};
use locks::{Key, Nanos};

/// The window number of the time before, between and after windows.
const OUTSIDE: u32 = 0;

#[derive(Debug)]
pub struct Checker {
    clients: Box<[Client]>,
    keys: Box<[KeyRecord]>,
    /// The present window, or `OUTSIDE`. A grant remembers its own: what happens to a grant of the warm-up later on
    /// must not enter the figures.
    window: u32,
    windows_begun: u32,
    now: Nanos,
    figures: Figures,
    log: ViolationLog,
}

impl Checker {
    pub fn new(clients: u32, keys: u32) -> Self {
        assert!(clients < NOBODY, "one client number is kept for nobody");
        Self {
            clients: vec![Client::IDLE; clients as usize].into_boxed_slice(),
            keys: vec![KeyRecord::UNUSED; keys as usize].into_boxed_slice(),
            window: OUTSIDE,
            windows_begun: 0,
            now: Nanos::ZERO,
            figures: Figures::default(),
            log: ViolationLog::new(),
        }
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
    #[inline] // Where the event is known, so is what follows from it.
    pub fn on(&mut self, at: Nanos, event: Event) -> Option<Nanos> {
        assert!(
            at >= self.now,
            "{event:?} is stamped {at:?}, but it is {:?} already",
            self.now
        );
        self.now = at;
        match event {
            Event::Waiting { client, key } => self.waiting(at, client, key),
            Event::GaveUp { client } => self.gave_up(client),
            Event::Granted { client, until, hold } => return self.granted(at, client, until, hold),
            Event::LeaseLost { client } => self.lease_lost(at, client),
            Event::Stopped { client } => self.stopped(at, client),
            Event::Released { client } => self.released(at, client),
        }
        None
    }

    /// Ends the trial. Violations whose grants still go on are reported without their ends.
    pub fn finish(self, at: Nanos) -> Report {
        assert!(
            at >= self.now,
            "the trial ends at {at:?}, but it is {:?} already",
            self.now
        );
        let (counts, violations) = self.log.finish(at);
        Report {
            figures: self.figures,
            counts,
            violations,
        }
    }

    fn waiting(&mut self, at: Nanos, id: ClientId, key: Key) {
        let client = &mut self.clients[id as usize];
        match client.state {
            // A holder that stopped need not release: its lease is over.
            State::Idle | State::Stopped => {}
            State::Waiting | State::Holding => refuse(id, client.state, "begin to wait"),
        }
        client.state = State::Waiting;
        client.key = key.0;
        client.since = at;
        let record = &mut self.keys[key.0 as usize];
        record.waiters.push_back(&mut self.clients, id);
        // Only the last grant can be uncontended yet held: two that stood beside each other both are contended.
        if !record.holders.is_empty() {
            contend(record, self.window, &mut self.figures);
        }
    }

    fn gave_up(&mut self, id: ClientId) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Waiting => client.state = State::Idle,
            State::Idle | State::Holding | State::Stopped => refuse(id, client.state, "give up waiting"),
        }
        let record = &mut self.keys[client.key as usize];
        record.waiters.unlink(&mut self.clients, id);
        if record.waiters.is_empty() {
            // From here on the key lies idle because nobody wants it, not because it is slow to change hands.
            record.handed_off = Nanos::NEVER;
        }
    }

    fn granted(&mut self, at: Nanos, id: ClientId, until: Nanos, hold: Nanos) -> Option<Nanos> {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Waiting => client.state = State::Holding,
            State::Idle | State::Holding | State::Stopped => refuse(id, client.state, "be granted a lock"),
        }
        let (key, sent) = (client.key as usize, client.since);
        let record = &mut self.keys[key];
        let overtakes = self.clients[record.waiters.head as usize].since < sent;
        record.waiters.unlink(&mut self.clients, id);
        let handoff = (record.handed_off != Nanos::NEVER).then(|| at.since(record.handed_off));
        record.handed_off = Nanos::NEVER;
        if self.window != OUTSIDE {
            self.figures.grants += 1;
            self.figures.overtakes += u64::from(overtakes);
        }
        won(record, self.window, &mut self.figures, id, at, hold);

        let client = &mut self.clients[id as usize];
        client.since = at;
        client.until = until;
        client.believes_until = until;
        if !record.holders.is_empty() {
            self.judge(at, id);
        }
        let record = &mut self.keys[key];
        record.believed_at_most = if record.holders.is_empty() {
            until
        } else {
            record.believed_at_most.max(until)
        };
        record.holders.push_front(&mut self.clients, id);
        handoff
    }

    /// `second` was granted at `at` a key that has other holders.
    #[cold]
    fn judge(&mut self, at: Nanos, second: ClientId) {
        let key = self.clients[second as usize].key;
        let record = &mut self.keys[key as usize];
        let (first, kind) = match record.believer(&self.clients, at) {
            Some(first) if record.released_late => (first, ViolationKind::DoubleGrantAfterOverrun),
            Some(first) => (first, ViolationKind::DoubleGrant),
            None => (record.holders.head, ViolationKind::LeaseOverrun),
        };
        let span = |id: ClientId| {
            let Client { since, until, .. } = self.clients[id as usize];
            GrantSpan {
                client: id,
                granted: since,
                until: (until != Nanos::NEVER).then_some(until),
                ended: None,
            }
        };
        let (first_span, second_span) = (span(first), span(second));
        let violation = Violation {
            kind,
            key: Key(key),
            at,
            overlap: Nanos::ZERO,
            first: first_span,
            second: second_span,
        };
        match self.log.note(violation) {
            Noted::Recorded => {
                self.clients[first as usize].in_violation = true;
                self.clients[second as usize].in_violation = true;
            }
            Noted::OnlyCounted => {}
        }
    }

    fn lease_lost(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Holding => client.believes_until = client.believes_until.min(at),
            State::Stopped => {} // Neither belief nor work is left to end.
            State::Idle | State::Waiting => refuse(id, client.state, "lose a lease"),
        }
    }

    fn stopped(&mut self, at: Nanos, id: ClientId) {
        match self.clients[id as usize].state {
            State::Holding => self.end_work(at, id),
            state @ (State::Idle | State::Waiting | State::Stopped) => refuse(id, state, "stop working"),
        }
        self.clients[id as usize].state = State::Stopped;
    }

    fn released(&mut self, at: Nanos, id: ClientId) {
        let Client {
            state,
            key,
            believes_until,
            ..
        } = self.clients[id as usize];
        let late = at > believes_until;
        match state {
            State::Holding => {
                self.end_work(at, id);
                self.log.counts.outlived += u64::from(late);
            }
            State::Stopped => {} // Its work ended when it stopped.
            State::Idle | State::Waiting => refuse(id, state, "release"),
        }
        self.clients[id as usize].state = State::Idle;
        let record = &mut self.keys[key as usize];
        record.released_late |= late;
        record.handed_off = if record.waiters.is_empty() { Nanos::NEVER } else { at };
    }

    fn end_work(&mut self, at: Nanos, id: ClientId) {
        let client = &mut self.clients[id as usize];
        if client.in_violation {
            client.in_violation = false;
            self.log.work_ended(id, at);
        }
        let record = &mut self.keys[client.key as usize];
        record.holders.unlink(&mut self.clients, id);
    }
}

/// Enters a win in the key's record and in the figures that compare it with the grant before it. To be called after
/// the winner left the waiters and before it joins the holders.
fn won(record: &mut KeyRecord, window: u32, figures: &mut Figures, id: ClientId, at: Nanos, hold: Nanos) {
    let same_client = record.last_client == id;
    let within_last_hold = !same_client && at < record.last_hold_end;
    if within_last_hold {
        contend(record, window, figures);
    }
    let rival_waits = !record.waiters.is_empty();
    record.streak = match (rival_waits, same_client && record.last_window == window) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => record.streak + 1,
    };
    record.last_client = id;
    record.last_window = window;
    record.last_hold_end = at.after(hold);
    record.last_contended = false;
    if rival_waits || within_last_hold || !record.holders.is_empty() {
        contend(record, window, figures);
    }
    if window != OUTSIDE {
        figures.longest_streak = figures.longest_streak.max(record.streak);
    }
}

/// The key's last grant is contended; it counts once, and only in the window that it fell in.
fn contend(record: &mut KeyRecord, window: u32, figures: &mut Figures) {
    if !record.last_contended && window != OUTSIDE && record.last_window == window {
        figures.contended_grants += 1;
    }
    record.last_contended = true;
}

#[cold]
#[inline(never)]
fn refuse(id: ClientId, state: State, what: &str) -> ! {
    panic!("client {id} cannot {what}: it is {state:?}")
}
