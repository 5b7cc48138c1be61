//! The rules of the judge once more, over a whole history at once, as plainly as they can be put and as slow as may be.
//!
//! Waits are compared by their place in the history, as events of one stamp have an order too; belief and work are
//! compared as half-open intervals of time. A history must have no other event of the same stamp before an end.

use check::{ClientId, Event, Figures, ViolationCounts};
use locks::{Key, Nanos};

/// What was told, and where in it the window began and ended (before the event of that index).
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) events: Vec<(Nanos, Event)>,
    pub(crate) window: std::ops::Range<usize>,
}

#[derive(Clone, Debug)]
struct Wait {
    client: ClientId,
    key: Key,
    sent: Nanos,
    begun: usize,
    over: usize,
}

#[derive(Clone, Debug)]
struct Grant {
    client: ClientId,
    key: Key,
    index: usize,
    sent: Nanos,
    at: Nanos,
    hold_end: Nanos,
    belief_end: Nanos,
    work_end: Nanos,
    work_end_index: usize,
    /// When and where its release was sent, and whether it still worked then.
    release: Option<(Nanos, usize, bool)>,
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
                Event::Waiting { key, .. } => {
                    waits.push(Wait {
                        client,
                        key,
                        sent: at,
                        begun: index,
                        over: usize::MAX,
                    });
                }
                Event::GaveUp { .. } => wait.unwrap().over = index,
                Event::Granted { until, hold, .. } => {
                    let wait = wait.unwrap();
                    wait.over = index;
                    grants.push(Grant {
                        client,
                        key: wait.key,
                        index,
                        sent: wait.sent,
                        at,
                        hold_end: at.after(hold),
                        belief_end: until,
                        work_end: Nanos::NEVER,
                        work_end_index: usize::MAX,
                        release: None,
                    });
                }
                Event::LeaseLost { .. } => {
                    let grant = grant.unwrap();
                    grant.belief_end = grant.belief_end.min(at);
                }
                Event::Stopped { .. } => {
                    let grant = grant.unwrap();
                    (grant.work_end, grant.work_end_index) = (at, index);
                }
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
            let beside = || {
                self.rivals(second)
                    .filter(|first| first.index < second.index && second.at < first.work_end)
            };
            let late_release = self.grants.iter().any(|first| {
                let late = |(at, index, _)| at > first.belief_end && index < second.index;
                first.key == second.key && first.release.is_some_and(late)
            });
            if beside().any(|first| second.at < first.belief_end) {
                if late_release {
                    counts.double_grants_after_overrun += 1;
                } else {
                    counts.double_grants += 1;
                }
            } else if beside().next().is_some() {
                counts.lease_overruns += 1;
            }
            let outlived = |(at, _, works): (Nanos, usize, bool)| works && at > second.belief_end;
            counts.outlived += u64::from(second.release.is_some_and(outlived));
        }
        counts
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for grant in self
            .grants
            .iter()
            .filter(|grant| self.history.window.contains(&grant.index))
        {
            figures.grants += 1;
            figures.contended_grants += u64::from(self.contended_from(grant) < self.history.window.end);
            figures.overtakes += u64::from(self.waiters(grant.key, grant.index).any(|wait| wait.sent < grant.sent));
            figures.longest_streak = figures.longest_streak.max(self.streak_at(grant));
        }
        figures
    }

    /// What the checker should return for the event at `index`.
    pub(crate) fn handoff(&self, index: usize) -> Option<Nanos> {
        let grant = self.grants.iter().find(|grant| grant.index == index)?;
        let sent = self
            .grants
            .iter()
            .filter(|other| other.key == grant.key)
            .filter_map(|other| other.release);
        let (released, release, _) = sent.filter(|&(_, place, _)| place < index).max_by_key(|sent| sent.1)?;
        let taken = self
            .grants
            .iter()
            .any(|g| g.key == grant.key && release < g.index && g.index < index);
        let wanted = (release..index).all(|place| self.waiters(grant.key, place).next().is_some());
        (!taken && wanted).then(|| grant.at.since(released))
    }

    /// Who waits for `key` right after the event at `index`.
    fn waiters(&self, key: Key, index: usize) -> impl Iterator<Item = &Wait> {
        self.waits
            .iter()
            .filter(move |wait| wait.key == key && wait.begun <= index && index < wait.over)
    }

    fn rivals(&self, grant: &Grant) -> impl Iterator<Item = &Grant> {
        self.grants
            .iter()
            .filter(move |other| other.key == grant.key && other.client != grant.client)
    }

    /// The place in the history from which on the grant counts as contended.
    fn contended_from(&self, grant: &Grant) -> usize {
        let waiting = self.waits.iter().filter(|wait| {
            let overlaps = wait.begun < grant.work_end_index && grant.index < wait.over;
            wait.key == grant.key && wait.client != grant.client && overlaps
        });
        let waiting = waiting.map(|wait| wait.begun.max(grant.index));
        let beside = self
            .rivals(grant)
            .filter(|first| first.index < grant.index && grant.at < first.work_end);
        let on_key = |other: &&Grant| other.key == grant.key;
        let before = self
            .grants
            .iter()
            .filter(on_key)
            .rfind(|other| other.index < grant.index);
        let after = self
            .grants
            .iter()
            .filter(on_key)
            .find(|other| other.index > grant.index);
        let before = before.filter(|first| first.client != grant.client && grant.at < first.hold_end);
        let after = after.filter(|next| next.client != grant.client && next.at < grant.hold_end);
        let at_once = beside.chain(before).map(|_| grant.index);
        waiting
            .chain(at_once)
            .chain(after.map(|next| next.index))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// Contended wins of the client in a row up to `grant`, within the window.
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
