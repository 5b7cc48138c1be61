//! The clients of a thread: what each does next, with its lock and its workload.
//!
//! A client is driven by what its lock answers and by its timers. What it sends goes to the transport, what it does is
//! told to the recorder; both are handed in with each event, as `Ports`. `steps.rs` has the way from the request to the
//! release, `hold.rs` what happens in between, `guarded.rs` the guarded work, `writes.rs` the locks whose release writes, `starting.rs` how
//! clients begin; `starts.rs` says who starts when.

pub(crate) mod arrivals;
mod client;
mod faults;
pub(crate) mod guarded;
mod hold;
mod starting;
mod starts;
mod steps;

pub(crate) mod stages;
pub(crate) mod trial_params;
pub(crate) mod workload;
mod writes;

use std::sync::Arc;

use check::{ClientId, Event as Judged};
use locks::{
    Action, Actions, CallId, Command, ConnectionKind, Event, Key, KeyList, LockMachine, Mode, Nanos, ServerId,
};

use crate::recorder::Recorder;
use crate::timers::Timers;
use crate::transport::{Outgoing, Sender, Transport};
pub use client::Doing;
pub(crate) use client::{Asked, Client, Tried};
use faults::Disturbed;
use guarded::Guards;
use stages::Stages;
pub(crate) use starts::Starts;
use trial_params::{Thread, TrialParams};

/// The pause of a client that met an error or found no server: a dead server must not be asked in a tight loop.
const ERROR_PAUSE: Nanos = Nanos::from_millis(10);

/// Where the commands of clients go, and who is told what they do.
pub(crate) struct Ports<'a, T> {
    pub(crate) transport: &'a mut T,
    pub(crate) recorder: &'a mut Recorder,
}

#[derive(Debug)]
pub(crate) struct Clients<L> {
    params: Arc<TrialParams>,
    thread: Thread,
    /// The number of the first of them in the whole trial.
    first: ClientId,
    list: Vec<Client<L>>,
    /// The keys that each client names; empty if each names only one.
    key_sets: Vec<KeyList>,
    timers: Timers,
    starts: Starts,
    /// Clients whose lock closed the session of its own hold; until their release.
    hung_up: Vec<u32>,
    /// Those that a planned fault concerns just now.
    disturbed: Disturbed<L>,
    guards: Guards,
    /// Empty lists, one for each depth of nested calls.
    spare: Vec<Actions>,
    /// Whether clients may start.
    running: bool,
    /// In a closed loop only so many of the first may start.
    active: u32,
    /// How many may start over time, in a closed loop with stages; taken from `stages_begin` on.
    stages: Option<Stages>,
    stages_begin: Nanos,
    /// When that number next changes.
    next_stage: Nanos,
    /// After a `stop`: this many of the first are known to be at rest.
    rested: usize,
}

impl<L: LockMachine> Clients<L> {
    pub(crate) fn new(params: Arc<TrialParams>, thread: Thread, list: Vec<Client<L>>, starts: Starts) -> Self {
        // Room for the keys of each client, if an acquire names several.
        let sets = if params.keys_per_grant() == 1 { 0 } else { list.len() };
        Self {
            first: thread.share(params.concurrency).0,
            params,
            thread,
            key_sets: vec![KeyList::one(Key(0)); sets],
            timers: Timers::new(list.len()),
            list,
            starts,
            hung_up: Vec::new(),
            disturbed: Disturbed::with(Vec::new()),
            guards: Guards::NONE,
            spare: Vec::new(),
            running: false,
            active: u32::MAX,
            stages: None,
            stages_begin: Nanos::NEVER,
            next_stage: Nanos::NEVER,
            rested: 0,
        }
    }

    /// The number of the first of them in the whole trial.
    pub(crate) const fn first(&self) -> ClientId {
        self.first
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// How many clients may start; those above finish what they do.
    #[inline]
    pub(crate) fn working(&self) -> usize {
        self.list.len().min(self.active as usize)
    }

    /// Passes an event to the lock of a client, and carries out the resulting actions.
    pub(crate) fn dispatch<T: Transport>(&mut self, index: u32, now: Nanos, event: Event, to: &mut Ports<'_, T>) {
        if self.disturbed.keeps(index, event) {
            return;
        }
        if self.guards.are_any()
            && let Event::Replied { call, .. } | Event::Lost { call } = event
            && call.is_guarded()
        {
            return self.work_answered(index, now, event, to);
        }
        // Moved out, so that the list can be read while the clients are changed. A nested call takes another one.
        let mut actions = self.spare.pop().unwrap_or_default();
        self.list[index as usize].lock.on(now, event, &mut actions);
        let (mut settled, mut hung_up) = (None, false);
        for action in actions.as_slice() {
            match *action {
                Action::Send {
                    call,
                    to: server,
                    over,
                    ref command,
                } => self.send(index, now, (call, server, over), command, to),
                Action::WakeAt(at) => {
                    self.list[index as usize].lock_wake = at;
                    self.timers.arm(index, at);
                }
                Action::HangUp => {
                    hung_up = true;
                    // If closing the connection is the release, the release leaves now.
                    self.stamp_release(index, now, to.recorder);
                    if self.params.strategy.holds_by_session() {
                        self.tell(to.recorder, index, now, |client, _| Judged::HungUp { client });
                    }
                    to.transport.hang_up(index, self.list[index as usize].key, now);
                }
                Action::Queued => self.tell(to.recorder, index, now, |client, _| Judged::Queued { client }),
                Action::Renewed { lasts } => self.renewed(index, now, lasts, to.recorder),
                Action::Lapsed => self.lapsed(index, now, to.recorder),
                Action::Settle(ref outcome) => settled = Some(outcome),
            }
        }
        if let Some(outcome) = settled {
            self.settled(index, now, outcome, to);
        }
        if hung_up {
            self.note_hang_up(index);
        }
        actions.clear();
        self.spare.push(actions);
    }

    fn send<T: Transport>(
        &self,
        index: u32,
        now: Nanos,
        (call, server, over): (CallId, ServerId, ConnectionKind),
        command: &Command,
        to: &mut Ports<'_, T>,
    ) {
        let client = &self.list[index as usize];
        // While it is held, a lock sends only renewals, and commands about channels.
        let may_renew = client.doing == Doing::Holding && over != ConnectionKind::Subscribing;
        if may_renew && self.disturbed.is_unrenewed(index) {
            return to.recorder.dropped_renewal();
        }
        let sent = to.transport.send(Outgoing {
            sender: Sender {
                client: index,
                call,
                doing: client.doing,
            },
            to: server,
            over,
            command,
            ends_hold: client.ends_hold(),
        });
        if let Some(bytes) = sent {
            to.recorder.sent(bytes);
        }
        if L::servers_vote() && command.asks_for_vote() {
            to.recorder.asked((index, call), server.0, now, sent.is_some());
        }
    }

    /// Tells the judge of a step of a client, once for each of its keys. To the judge each key is a client of its own,
    /// because exclusion concerns one key, whatever else was taken with it.
    #[inline]
    pub(crate) fn tell(&self, recorder: &mut Recorder, index: u32, at: Nanos, event: impl Fn(ClientId, Key) -> Judged) {
        let number = self.first + index;
        match self.key_sets.get(index as usize) {
            None => recorder.judge(at, event(number, self.list[index as usize].key)),
            Some(keys) => {
                let first = number * self.params.keys_per_grant();
                for (client, &key) in (first..).zip(keys.as_slice()) {
                    recorder.judge(at, event(client, key));
                }
            }
        }
    }

    /// Fires every timer that is due.
    pub(crate) fn fire_timers<T: Transport>(&mut self, now: Nanos, to: &mut Ports<'_, T>) {
        while let Some(index) = self.timers.pop(now) {
            if self.disturbed.held_up_until(index).is_some() {
                continue; // Its timers are set again when it goes on.
            }
            let client = &mut self.list[index as usize];
            if client.own_wake <= now {
                let due = std::mem::replace(&mut client.own_wake, Nanos::NEVER);
                let doing = client.doing;
                to.recorder.timer_fired(now.since(due));
                match doing {
                    Doing::Holding => self.hold_over(index, now, to),
                    Doing::Pausing => self.free(index),
                    // The timer was for a hold or a pause that has already ended.
                    Doing::Idle | Doing::Acquiring | Doing::Entering | Doing::Releasing | Doing::Cancelling => {}
                }
            }
            let client = &mut self.list[index as usize];
            if client.lock_wake <= now {
                let due = std::mem::replace(&mut client.lock_wake, Nanos::NEVER);
                to.recorder.timer_fired(now.since(due));
                self.dispatch(index, now, Event::Woke, to);
            }
            let next = self.list[index as usize].next_wake();
            if next != Nanos::NEVER {
                self.timers.arm(index, next);
            }
        }
    }

    /// When the next timer may be due; firing none then is harmless.
    #[inline]
    pub(crate) fn next_timer(&self) -> Nanos {
        self.timers.next()
    }

    /// When the next arrival is due.
    pub(crate) fn next_arrival(&self) -> Nanos {
        self.starts.next_due()
    }

    pub(crate) fn has_starting(&self) -> bool {
        !self.starts.starting().is_empty()
    }

    /// Whether the reply to this call may still decide the client's attempt: see `LockMachine::servers_vote`.
    pub(crate) fn awaits_vote(&self, index: u32, call: CallId) -> bool {
        self.list[index as usize].lock.awaits_vote(call)
    }

    #[inline]
    pub(crate) fn doing(&self, index: u32) -> Doing {
        self.list[index as usize].doing
    }

    /// For an invented history: the client has asked for these keys, to hold them for so long.
    pub(crate) fn asks(&mut self, index: u32, now: Nanos, keys: &[Key], mode: Mode, hold: Nanos) {
        let client = &mut self.list[index as usize];
        client.doing = Doing::Acquiring;
        (client.due, client.sent) = (now, now);
        client.key = keys[0];
        client.mode = mode;
        client.hold = hold;
        client.release_sent = Nanos::NEVER;
        if let Some(set) = self.key_sets.get_mut(index as usize) {
            *set = KeyList::new(keys).expect("as many as an acquire names");
        }
    }

    /// For an invented history: the client has begun to release.
    pub(crate) fn releases(&mut self, index: u32) {
        self.list[index as usize].doing = Doing::Releasing;
    }

    /// Whether no client has anything under way, after a `stop`. Who has come to rest stays at rest, so no client is
    /// looked at twice.
    pub(crate) fn are_at_rest(&mut self) -> bool {
        let resting = self.list[self.rested..].iter().take_while(|client| client.is_at_rest());
        self.rested += resting.count();
        self.rested == self.list.len()
    }

    pub(crate) fn under_way(&self) -> usize {
        self.list.iter().filter(|client| !client.is_at_rest()).count()
    }

    /// Prefetches the records for the next event of a client. A batch of replies concerns many clients, each with its
    /// own records; read in a row, their cache misses overlap instead of following one another.
    #[inline]
    pub(crate) fn touch(&self, index: u32, recorder: &Recorder) {
        let client = &self.list[index as usize];
        client.touch();
        // The checker needs nothing from the reply to a release.
        let judged = (client.doing != Doing::Releasing).then_some((self.first + index, client.key));
        recorder.touch(index, judged);
    }

    /// The acquires under way, with what each has tried so far. A try of an optimistic lock is not a grant yet.
    pub(crate) fn acquiring(&self) -> impl Iterator<Item = (u32, Asked, Tried)> {
        let tries = self.params.strategy.is_optimistic();
        let acquiring = (0..)
            .zip(&self.list)
            .filter(move |(_, client)| client.doing == Doing::Acquiring || (tries && !client.is_at_rest()));
        acquiring.map(|(index, client)| (index, client.asked(), client.tried()))
    }

    /// The due times of arrivals that wait for a client.
    pub(crate) fn queued(&self) -> impl Iterator<Item = Nanos> {
        self.starts.queued()
    }

    /// What is left at `at` of all holds under way, as the workload wants them.
    pub(crate) fn nominal_holds_beyond(&self, at: Nanos) -> u64 {
        if self.params.strategy.is_optimistic() {
            return 0; // Their holds count when they have become grants.
        }
        let holders = self.list.iter().filter(|client| client.holds());
        holders
            .map(|client| client.granted.after(client.hold).since(at).0)
            .sum()
    }

    /// How many of these calls may have taken a lock that nobody can release before its lease ends.
    pub(crate) fn count_orphans<'a>(&self, calls: impl IntoIterator<Item = &'a Sender>) -> u64 {
        let may_take = |call: &&Sender| matches!(self.doing(call.client), Doing::Acquiring | Doing::Cancelling);
        calls.into_iter().filter(may_take).count() as u64
    }

    /// Ends the work: waiting clients cancel, holders release, nobody starts. `undisturbed`: no connection has broken
    /// and no reply was lost, so that a place that a client knows of is still there on the server.
    pub(crate) fn stop<T: Transport>(&mut self, now: Nanos, undisturbed: bool, to: &mut Ports<'_, T>) {
        self.running = false;
        self.rested = 0;
        self.starts.end();
        for index in 0..self.list.len() as u32 {
            match self.list[index as usize].doing {
                Doing::Acquiring => {
                    let client = &mut self.list[index as usize];
                    client.doing = Doing::Cancelling;
                    let placed = undisturbed && client.lock.is_placed(now);
                    self.tell(to.recorder, index, now, |client, _| Judged::CutOff { client, placed });
                    self.dispatch(index, now, Event::Cancel, to);
                }
                Doing::Holding if self.guards.is_writing(index) => {}
                Doing::Entering | Doing::Holding => self.cut_short(index, now, to),
                Doing::Idle | Doing::Releasing | Doing::Cancelling | Doing::Pausing => {}
            }
        }
    }
}

#[cfg(test)]
impl<L: LockMachine> Clients<L> {
    /// Clients may start, but none does.
    pub(crate) fn run(&mut self) {
        self.running = true;
    }

    pub(crate) fn granted_at(&self, index: u32) -> Nanos {
        self.list[index as usize].granted
    }

    /// An arrival that no client has taken.
    pub(crate) fn enqueue(&mut self, due: Nanos) {
        self.starts.enqueue(due);
    }

    /// The client starts in the next round.
    pub(crate) fn starts_next(&mut self, index: u32) {
        self.free(index);
    }
}
