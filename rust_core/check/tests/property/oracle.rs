//! The checker's rules a second time, over a whole history at once, written as plainly as possible and without regard
//! to speed.
//!
//! Waits are compared by their index in the history, because events of one stamp also have an order; belief and work
//! are compared as half-open intervals of time. In a history, the end of a grant must be the first event of its stamp.

use check::{ClientId, Event, Figures, Order, Rules, ViolationCounts};
use locks::{Fence, Key, Mode, Nanos};

/// The events, and the indices in them before which the window began and ended.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) events: Vec<(Nanos, Event)>,
    pub(crate) window: std::ops::Range<usize>,
    pub(crate) rules: Rules,
}

#[derive(Clone, Debug)]
struct Wait {
    client: ClientId,
    key: Key,
    mode: Mode,
    sent: Nanos,
    begun: usize,
    over: usize,
    /// When its last place in the queue was acknowledged.
    place: Option<Nanos>,
    /// How often a place was acknowledged.
    places: u32,
}

#[derive(Clone, Debug)]
struct Grant {
    client: ClientId,
    key: Key,
    mode: Mode,
    index: usize,
    sent: Nanos,
    wait_begun: usize,
    place: Option<Nanos>,
    fence: Option<Fence>,
    at: Nanos,
    hold_end: Nanos,
    belief_end: Nanos,
    work_end: Nanos,
    work_end_index: usize,
    /// When the client learned of a loss, if it did, before it asked for the next lock.
    told_of_loss: Option<Nanos>,
    /// The stamp and index at which the client learned of a loss while it believed.
    lost: Option<(Nanos, usize)>,
    /// The stamp and index of its release, and whether the client still worked then.
    release: Option<(Nanos, usize, bool)>,
}

impl Wait {
    fn of(client: ClientId, key: Key, mode: Mode, sent: Nanos, begun: usize) -> Self {
        Self {
            client,
            key,
            mode,
            sent,
            begun,
            over: usize::MAX,
            place: None,
            places: 0,
        }
    }
}

impl Grant {
    /// Whether the two may not hold one key at the same time, if it has one permit.
    fn excludes(&self, other: &Self) -> bool {
        self.mode == Mode::Exclusive || other.mode == Mode::Exclusive
    }
}

/// A client died while it waited, or while it held.
fn dies(wait: &mut Wait, grant: Option<&mut Grant>, at: Nanos, index: usize) {
    if wait.over == usize::MAX {
        wait.over = index;
    } else {
        let grant = grant.unwrap();
        (grant.work_end, grant.work_end_index) = (at, index);
    }
}

pub(crate) struct Oracle<'a> {
    history: &'a History,
    waits: Vec<Wait>,
    grants: Vec<Grant>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(history: &'a History) -> Self {
        let mut waits: Vec<Wait> = Vec::new();
        let mut grants: Vec<Grant> = Vec::new();
        for (index, &(at, event)) in history.events.iter().enumerate() {
            let client = event.client();
            let wait = waits.iter_mut().rfind(|wait| wait.client == client);
            let grant = grants.iter_mut().rfind(|grant| grant.client == client);
            match event {
                Event::Waiting { key, mode, .. } => {
                    waits.push(Wait::of(client, key, mode, at, index));
                }
                Event::Queued { .. } => {
                    let wait = wait.unwrap();
                    wait.place = Some(at);
                    wait.places += 1;
                }
                Event::GaveUp { .. } | Event::CutOff { .. } => wait.unwrap().over = index,
                Event::Granted { until, hold, fence, .. } => {
                    let wait = wait.unwrap();
                    wait.over = index;
                    grants.push(Grant {
                        client,
                        key: wait.key,
                        mode: wait.mode,
                        index,
                        sent: wait.sent,
                        wait_begun: wait.begun,
                        place: wait.place,
                        fence,
                        at,
                        hold_end: at.after(hold),
                        belief_end: until,
                        work_end: Nanos::NEVER,
                        work_end_index: usize::MAX,
                        told_of_loss: None,
                        lost: None,
                        release: None,
                    });
                }
                // Reported before the end of the earlier belief, so belief has no gap.
                Event::Renewed { until, .. } => grant.unwrap().belief_end = until.max(at),
                Event::LeaseLost { .. } => {
                    let grant = grant.unwrap();
                    if at < grant.belief_end && grant.work_end_index == usize::MAX {
                        grant.lost = Some((at, index));
                    }
                    grant.belief_end = grant.belief_end.min(at);
                    grant.told_of_loss = grant.told_of_loss.or(Some(at));
                }
                Event::HungUp { .. } | Event::DeniedRelease { .. } | Event::DriverStalled { .. } => {}
                Event::Stopped { .. } => {
                    let grant = grant.unwrap();
                    (grant.work_end, grant.work_end_index) = (at, index);
                }
                Event::Died { .. } => dies(wait.unwrap(), grant, at, index),
                Event::Released { .. } => {
                    let grant = grant.unwrap();
                    let works = grant.work_end_index == usize::MAX;
                    grant.release = Some((at, index, works));
                    if works {
                        (grant.work_end, grant.work_end_index) = (at, index);
                    }
                }
            }
        }
        Self { history, waits, grants }
    }

    pub(crate) fn counts(&self) -> ViolationCounts {
        let mut counts = ViolationCounts::default();
        for second in &self.grants {
            // With sessions, a late release unlocks nothing.
            let late_release = !self.history.rules.sessions
                && self.grants.iter().any(|first| {
                    let late = |(at, index, _)| at > first.belief_end && index < second.index;
                    first.key == second.key && first.release.is_some_and(late)
                });
            let believe = |first: &&Grant| second.at < first.belief_end;
            if self.excluded(second, self.beside(second).filter(believe)) {
                let mut in_the_way = self
                    .beside(second)
                    .filter(believe)
                    .filter(|first| first.excludes(second));
                let in_time = |told: Nanos| told.since(second.at) <= self.history.rules.session_end_seen_within;
                if self.history.rules.sessions && in_the_way.all(|first| first.told_of_loss.is_some_and(in_time)) {
                    counts.sessions_lost += 1;
                } else if late_release {
                    counts.double_grants_after_overrun += 1;
                } else {
                    counts.double_grants += 1;
                }
            } else if self.excluded(second, self.beside(second)) {
                counts.lease_overruns += 1;
            }
            let outlived = |(at, _, works): (Nanos, usize, bool)| works && at > second.belief_end;
            counts.outlived += u64::from(second.release.is_some_and(outlived));
            let mut before = self.on_key(second.key).filter(|first| first.index < second.index);
            let stale = self.history.rules.fences && before.clone().any(|first| first.fence >= second.fence);
            counts.stale_fences += u64::from(stale);
            let passed = second.place.is_some_and(|place| before.any(|first| first.sent > place));
            counts.fifo_inversions += u64::from(self.history.rules.order != Order::Ignored && passed);
        }
        counts.starved = self.starved();
        counts
    }

    fn on_key(&self, key: Key) -> impl Iterator<Item = &Grant> + Clone {
        self.grants.iter().filter(move |grant| grant.key == key)
    }

    /// The other grants of the key that still work when `second` is granted.
    fn beside(&self, second: &Grant) -> impl Iterator<Item = &Grant> {
        self.on_key(second.key)
            .filter(|first| first.index < second.index && second.at < first.work_end)
    }

    /// Whether `firsts` leave no room for `second`.
    fn excluded<'b>(&self, second: &Grant, firsts: impl Iterator<Item = &'b Grant>) -> bool {
        let (sharing, alone): (Vec<_>, Vec<_>) = firsts.partition(|first| first.mode == Mode::Shared);
        match second.mode {
            Mode::Shared => !alone.is_empty(),
            Mode::Exclusive => !sharing.is_empty() || alone.len() >= self.history.rules.permits as usize,
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for grant in self
            .grants
            .iter()
            .filter(|grant| self.history.window.contains(&grant.index))
        {
            figures.grants += 1;
            figures.contended_grants += u64::from(self.contended_from(grant) != usize::MAX && self.is_believed(grant));
            figures.overtakes += u64::from(self.overtakes(grant));
            figures.longest_streak = figures.longest_streak.max(self.streak_at(grant));
        }
        let overtaken = self.waits.iter().map(|wait| self.times_overtaken(wait));
        figures.longest_overtake = overtaken.max().unwrap_or(0);
        figures
    }

    /// Whether the grant was believed in for long enough to count.
    fn is_believed(&self, grant: &Grant) -> bool {
        let end = self.stamp(self.history.events.len());
        let over = grant.belief_end.min(grant.work_end).min(end);
        over.since(grant.at) >= self.history.rules.least_belief
    }

    /// The stamp of the event at `index`, or of the last event.
    fn stamp(&self, index: usize) -> Nanos {
        let events = &self.history.events;
        events.get(index).or(events.last()).map_or(Nanos::ZERO, |event| event.0)
    }

    /// The clients that wait when the window ends, have waited for half of it, and were overtaken 20 times.
    fn starved(&self) -> u64 {
        let window = &self.history.window;
        let (start, end) = (self.stamp(window.start), self.stamp(window.end));
        let starves = |wait: &&Wait| {
            let half = end.since(start).0 / 2;
            let kept = self.history.rules.order != Order::Promised || wait.places == 1;
            let waits = wait.begun < window.end && window.end <= wait.over;
            waits && kept && end.since(wait.sent.max(start)).0 >= half && self.times_overtaken(wait) >= 20
        };
        self.waits.iter().filter(starves).count() as u64
    }

    fn overtakes(&self, grant: &Grant) -> bool {
        self.waiters(grant.key, grant.index).any(|wait| wait.sent < grant.sent)
    }

    /// Overtakes in the window by clients that came after `wait` began, while it lasted.
    fn times_overtaken(&self, wait: &Wait) -> u64 {
        let came_later = |grant: &&Grant| wait.begun < grant.wait_begun && grant.index < wait.over;
        let in_window = |grant: &&Grant| self.history.window.contains(&grant.index);
        let passed = self.on_key(wait.key).filter(came_later).filter(in_window);
        passed.filter(|grant| self.overtakes(grant)).count() as u64
    }

    /// What the checker should return for the event at `index`.
    pub(crate) fn handoff(&self, index: usize) -> Option<Nanos> {
        let grant = self.grants.iter().find(|grant| grant.index == index)?;
        let freed = self.on_key(grant.key).flat_map(|other| self.freed_by(other));
        let (released, release) = freed.filter(|&(_, place)| place < index).max_by_key(|freed| freed.1)?;
        let taken = self
            .grants
            .iter()
            .any(|g| g.key == grant.key && release < g.index && g.index < index);
        let wanted = (release..index).all(|place| self.waiters(grant.key, place).next().is_some());
        (!taken && wanted).then(|| grant.at.since(released))
    }

    /// The stamp and index at which a grant freed its key: by its release, or by the end of its session, if no other
    /// grant had come by then.
    fn freed_by(&self, grant: &Grant) -> Vec<(Nanos, usize)> {
        let of_sessions = self.history.rules.sessions;
        let release = grant.release.map(|(at, place, _)| (at, place));
        let lost = grant.lost.filter(|&(_, place)| {
            let later = |other: &&Grant| grant.index < other.index && other.index < place;
            of_sessions && self.on_key(grant.key).find(later).is_none()
        });
        let release = release.filter(|&(at, _)| !(of_sessions && at > grant.belief_end));
        lost.into_iter().chain(release).collect()
    }

    /// The clients that wait for `key` right after the event at `index`.
    fn waiters(&self, key: Key, index: usize) -> impl Iterator<Item = &Wait> {
        self.waits
            .iter()
            .filter(move |wait| wait.key == key && wait.begun <= index && index < wait.over)
    }

    /// The index in the history from which on the grant counts as contended.
    fn contended_from(&self, grant: &Grant) -> usize {
        if self.history.rules.permits > 1 {
            return self.permits_wanted_from(grant);
        }
        let rivals = |mode: Mode, client: ClientId| {
            let both_share = mode == Mode::Shared && grant.mode == Mode::Shared;
            client != grant.client && !both_share
        };
        let waiting = self.waits.iter().filter(|wait| {
            let overlaps = wait.begun < grant.work_end_index && grant.index < wait.over;
            wait.key == grant.key && rivals(wait.mode, wait.client) && overlaps
        });
        let waiting = waiting.map(|wait| wait.begun.max(grant.index));
        let is_rival = |other: &&Grant| rivals(other.mode, other.client);
        let beside = self.beside(grant).filter(is_rival);
        let before = self.on_key(grant.key).filter(|other| other.index < grant.index).last();
        let after = self.on_key(grant.key).find(|other| other.index > grant.index);
        let before = before.filter(is_rival).filter(|first| grant.at < first.hold_end);
        let after = after.filter(is_rival).filter(|next| next.at < grant.hold_end);
        let at_once = beside.chain(before).map(|_| grant.index);
        waiting
            .chain(at_once)
            .chain(after.map(|next| next.index))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The same for a key with several permits.
    fn permits_wanted_from(&self, grant: &Grant) -> usize {
        let permits = self.history.rules.permits as usize;
        if self.beside(grant).count() >= permits {
            return grant.index;
        }
        let works = |index: usize| move |other: &&Grant| other.index <= index && index < other.work_end_index;
        let mut held = grant.index..grant.work_end_index.min(self.history.events.len());
        let wanted = held.find(|&index| {
            let all_held = self.on_key(grant.key).filter(works(index)).count() >= permits;
            all_held && self.waiters(grant.key, index).next().is_some()
        });
        wanted.unwrap_or(usize::MAX)
    }

    /// The number of consecutive contended wins of the client up to `grant`, within the window.
    fn streak_at(&self, grant: &Grant) -> u64 {
        let in_window = self
            .grants
            .iter()
            .filter(|other| self.history.window.contains(&other.index));
        let up_to = in_window.filter(|other| other.key == grant.key && other.index <= grant.index);
        let wins = up_to.collect::<Vec<_>>().into_iter().rev();
        let run =
            wins.take_while(|win| win.client == grant.client && self.waiters(win.key, win.index).next().is_some());
        run.count() as u64
    }
}
