//! The guarded work: what a client does to a shared resource while it holds its lock. It shows what a lock protects: two
//! works at once lose an update, sell what is not there, or create money.
//!
//! ```text
//!          begin            values read            Woke: the think time is over
//!    Idle ───────▶ Reading ─────────────▶ Thinking ────────────────────────────▶ Writing ──▶ Idle: Wrote, SoldOut, ..
//!                     │ nothing left, an error, no reply        Thinking ──▶ Idle: abandon, or a reader
//!                     └──▶ Idle: SoldOut, Abandoned
//! ```
//! One atomic step (`GuardRules::is_atomic`) begins with `Thinking`, and its write checks and changes at once.
//!
//! Promises: a work sends nothing after its end; each write that was sent is reported once, with whether its reply came;
//! call ids are never used twice, and no lock uses them; a reply that comes late changes nothing.
//! Does not promise exclusion: that is the lock's part.

mod rules;

use crate::calls::TakeEffect;
use crate::{Actions, CallId, Command, ConnectionKind, ErrorKind, Fence, Key, Nanos, Reply};
use rules::number_of;
pub use rules::{GuardKind, GuardRules};

/// One work, as its client wants it.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The second counts for `Transfer` only.
    pub keys: [Key; 2],
    /// A reader thinks about what it has read, and writes nothing.
    pub writes: bool,
    pub think: Nanos,
    /// Of the present grant; `FencedWrite` needs it.
    pub fence: Option<Fence>,
}

#[derive(Clone, Copy, Debug)]
pub enum WorkEvent {
    Replied { call: CallId, reply: Reply },
    Lost { call: CallId },
    Woke,
}

/// How a work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEnd {
    /// Everything was read, and what had to be written was sent: see `GuardedWork::writes`.
    Done,
    /// Nothing was left to take.
    SoldOut,
    /// A constraint of the resource refused the write.
    Refused,
    /// The resource had met a higher fence.
    Stale,
    /// The read or the write failed, or nobody wanted the work any more; nothing was written.
    Abandoned,
}

/// One write that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: Key,
    /// By how much it changes the value that was read.
    pub delta: i64,
    /// Whether it was acknowledged. If not, its reply did not come or did not tell: it may have been carried out.
    pub is_known: bool,
}

/// The guarded works of one client, one at a time.
#[derive(Debug)]
pub struct GuardedWork {
    rules: GuardRules,
    /// Ids that were used so far.
    calls: u64,
    state: State,
    work: Work,
    /// The values that were read.
    read: [i64; 2],
    /// How much a transfer moves.
    moved: i64,
    /// The calls that have no reply yet.
    pending: [Option<Pending>; 2],
    /// What became of the writes; `None`: not sent, or certainly not carried out.
    written: [Option<bool>; 2],
    /// Why the first write was not carried out.
    refusal: WorkEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Reading { until: Nanos },
    Thinking { until: Nanos },
    Writing { until: Nanos },
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    call: CallId,
    command: Command,
}

/// Where the ids of guarded works begin: a lock counts its calls from one.
const FIRST_CALL: u64 = 1 << 62;
/// The most that one transfer moves. Different amounts, so that errors rarely cancel each other out.
const MOST_MOVED: u64 = 7;

impl CallId {
    /// Whether a guarded work made this call, and not a lock.
    #[inline]
    pub const fn is_guarded(self) -> bool {
        self.0 & FIRST_CALL != 0
    }
}

impl GuardedWork {
    pub const fn new(rules: GuardRules) -> Self {
        Self {
            rules,
            calls: FIRST_CALL,
            state: State::Idle,
            work: Work {
                keys: [Key(0); 2],
                writes: true,
                think: Nanos::ZERO,
                fence: None,
            },
            read: [0; 2],
            moved: 0,
            pending: [None; 2],
            written: [None; 2],
            refusal: WorkEnd::Abandoned,
        }
    }

    /// Begins a work; only when idle. What it sends goes to `out`.
    pub fn begin(&mut self, now: Nanos, work: Work, out: &mut Actions) {
        assert!(
            self.state == State::Idle,
            "a work begins, but the last one has not ended"
        );
        self.work = work;
        self.written = [None; 2];
        self.refusal = WorkEnd::Abandoned;
        if self.rules.is_atomic {
            return self.think(now, out);
        }
        self.state = State::Reading {
            until: now.after(self.rules.reply_timeout),
        };
        let fence = number_of(self.work.fence);
        for place in 0..self.rules.kind.keys() {
            let read = self.rules.read(self.work.keys[place], fence);
            self.send(place, read, out);
        }
    }

    /// Handles an event. Returns how the work ended, once it has.
    pub fn on(&mut self, now: Nanos, event: WorkEvent, out: &mut Actions) -> Option<WorkEnd> {
        match event {
            WorkEvent::Replied { call, reply } => {
                let place = self.place_of(call)?;
                if reply == Reply::Error(ErrorKind::NoScript)
                    && let Some(source) = self.pending[place].and_then(|pending| pending.command.as_source())
                {
                    // The server has forgotten its scripts. The deadline stays.
                    self.send(place, source, out);
                    return None;
                }
                self.pending[place] = None;
                self.replied(now, place, reply, out)
            }
            WorkEvent::Lost { call } => {
                let place = self.place_of(call)?;
                self.pending[place] = None;
                match self.state {
                    State::Writing { .. } => self.written(place, Some(false)),
                    State::Reading { .. } => Some(self.end(WorkEnd::Abandoned)),
                    State::Idle | State::Thinking { .. } => unreachable!("nothing is awaited"),
                }
            }
            WorkEvent::Woke => self.woke(now, out),
        }
    }

    /// Ends the work before it writes. Writes that were sent may have been carried out.
    pub fn abandon(&mut self) {
        for place in 0..2 {
            if self.is_writing() && self.pending[place].is_some() {
                self.written[place] = Some(false);
            }
        }
        self.rest();
    }

    /// When it wants `Woke`: at the end of its think time, or when a reply is overdue.
    pub const fn wake_at(&self) -> Nanos {
        match self.state {
            State::Idle => Nanos::NEVER,
            State::Reading { until } | State::Thinking { until } | State::Writing { until } => until,
        }
    }

    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub const fn is_reading(&self) -> bool {
        matches!(self.state, State::Reading { .. })
    }

    /// Whether a write was sent whose reply has not come.
    pub const fn is_writing(&self) -> bool {
        matches!(self.state, State::Writing { .. })
    }

    /// The writes of the work that ended last which were carried out, or may have been.
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        (0..2).filter_map(|place| {
            Some(Write {
                key: self.work.keys[place],
                delta: self.delta(place),
                is_known: self.written[place]?,
            })
        })
    }

    fn replied(&mut self, now: Nanos, place: usize, reply: Reply, out: &mut Actions) -> Option<WorkEnd> {
        match (self.state, reply) {
            (State::Reading { .. }, Reply::Int(value)) => {
                self.read[place] = value;
                if self.pending.iter().any(Option::is_some) {
                    return None;
                }
                if self.rules.kind == GuardKind::Stock && self.work.writes && value < 1 {
                    return Some(self.end(WorkEnd::SoldOut));
                }
                self.think(now, out);
                None
            }
            (State::Reading { .. }, Reply::Nil) if self.rules.kind == GuardKind::FencedWrite => {
                Some(self.end(WorkEnd::Stale))
            }
            // An error, or there is no such row.
            (State::Reading { .. }, _) => Some(self.end(WorkEnd::Abandoned)),
            (State::Writing { .. }, Reply::Int(_)) => self.written(place, Some(true)),
            (State::Writing { .. }, Reply::Nil) => {
                self.refusal = match self.rules.kind {
                    GuardKind::Stock => WorkEnd::SoldOut,
                    GuardKind::FencedWrite => WorkEnd::Stale,
                    GuardKind::Counter | GuardKind::Transfer => WorkEnd::Abandoned,
                };
                self.written(place, None)
            }
            (State::Writing { .. }, Reply::Error(ErrorKind::CheckViolation)) => {
                self.refusal = WorkEnd::Refused;
                self.written(place, None)
            }
            (State::Writing { .. }, Reply::Error(kind)) if TakeEffect::of(kind) == TakeEffect::Nothing => {
                self.written(place, None)
            }
            (State::Writing { .. }, _) => self.written(place, Some(false)),
            (State::Idle | State::Thinking { .. }, _) => unreachable!("nothing is awaited"),
        }
    }

    /// Thinks, for no time at all if the work does.
    fn think(&mut self, now: Nanos, out: &mut Actions) {
        let until = now.after(self.work.think);
        self.state = State::Thinking { until };
        if until <= now && self.work.writes {
            self.write(now, out);
        }
    }

    fn woke(&mut self, now: Nanos, out: &mut Actions) -> Option<WorkEnd> {
        match self.state {
            State::Thinking { until } if now >= until => {
                if !self.work.writes {
                    return Some(self.end(WorkEnd::Done));
                }
                self.write(now, out);
                None
            }
            State::Reading { until } if now >= until => Some(self.end(WorkEnd::Abandoned)),
            State::Writing { until } if now >= until => {
                for place in 0..2 {
                    if self.pending[place].is_some() {
                        self.written[place] = Some(false);
                    }
                }
                Some(self.end(WorkEnd::Done))
            }
            // It came early.
            State::Idle | State::Reading { .. } | State::Thinking { .. } | State::Writing { .. } => None,
        }
    }

    fn write(&mut self, now: Nanos, out: &mut Actions) {
        self.state = State::Writing {
            until: now.after(self.rules.reply_timeout),
        };
        let most = (self.calls % MOST_MOVED + 1).cast_signed();
        self.moved = most.min(self.read[self.larger()]);
        let fence = number_of(self.work.fence);
        for place in 0..self.rules.kind.keys() {
            let value = self.read[place].saturating_add(self.delta(place)).cast_unsigned();
            let write = self.rules.write(self.work.keys[place], fence, value);
            self.send(place, write, out);
        }
    }

    fn larger(&self) -> usize {
        usize::from(self.read[1] > self.read[0])
    }

    /// By how much the write changes the value of this key.
    fn delta(&self, place: usize) -> i64 {
        match self.rules.kind {
            GuardKind::Counter | GuardKind::FencedWrite => 1,
            GuardKind::Stock => -1,
            GuardKind::Transfer => {
                if place == self.larger() {
                    -self.moved
                } else {
                    self.moved
                }
            }
        }
    }

    /// What became of a write: `Some` with whether it was acknowledged, or `None` if it certainly was not carried out.
    fn written(&mut self, place: usize, fate: Option<bool>) -> Option<WorkEnd> {
        self.written[place] = fate;
        if self.pending.iter().any(Option::is_some) {
            return None;
        }
        let end = if self.written.iter().any(Option::is_some) {
            WorkEnd::Done
        } else {
            self.refusal
        };
        Some(self.end(end))
    }

    fn end(&mut self, end: WorkEnd) -> WorkEnd {
        self.rest();
        end
    }

    fn rest(&mut self) {
        self.state = State::Idle;
        self.pending = [None; 2];
    }

    fn place_of(&self, call: CallId) -> Option<usize> {
        (0..2).find(|&place| self.pending[place].is_some_and(|pending| pending.call == call))
    }

    fn send(&mut self, place: usize, command: Command, out: &mut Actions) {
        self.calls += 1;
        let call = CallId(self.calls);
        self.pending[place] = Some(Pending { call, command });
        out.send_over(ConnectionKind::Guard, call, self.rules.server, command);
    }
}
