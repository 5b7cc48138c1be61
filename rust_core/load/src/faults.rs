//! Planned faults of connections and clients: what is done, to whom, and when.
//!
//! The loop carries them out on its own clock, between two rounds, so that a world on virtual time has them too. A fault
//! of connections is handed to the transport (`Transport::disturb`), one of a client to `Clients`.
//!
//! Promises: a fault begins and ends at its time or in the first round after it; all faults end when the window does,
//! so that the drain is never disturbed; of several faults at one time those that end come first.

use locks::Nanos;

use crate::TrialError;
use crate::clients::workload::Length;
use crate::spec::{Distribution, TrialSpec};

/// One planned fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When it begins, counted from the opening of the window.
    pub at: Nanos,
    /// How long it lasts; zero for what is over at once.
    pub lasts: Nanos,
    pub action: FaultAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    OfLinks(Links, LinkFault),
    /// Of the client with this number.
    OfClient(u32, ClientFault),
}

/// Which connections a fault concerns: those to one server or to all, those of one client or of all. A connection that
/// clients share is one of each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    pub server: Option<u16>,
    pub client: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LinkFault {
    /// A round-trip time in addition, half of it in each direction.
    Delay(Distribution),
    /// Each direction of a connection carries so many bytes a second.
    Throttle { bytes_per_s: u64 },
    /// The connections are closed, and new ones refused.
    Cut,
    /// What either side sends is lost; the connections stay. One that has lost bytes is closed at the end, because the
    /// rest of its bytes could not be read.
    BlackHole,
    /// As `BlackHole`, for what the server sends only.
    HalfOpen,
    /// The connections are reset, once.
    Reset,
    /// Replies are lost as they arrive, and their connection is closed: the server has done what it was asked. Each time
    /// that any arrive over a connection, or only the `nth` time over each.
    LoseReplies { nth: Option<u32> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFault {
    /// The client forgets its lock and begins anew, when the fault ends: it neither releases nor renews.
    Crash,
    /// The client acts on nothing: its replies and timers wait.
    Pause,
    /// The renewals that the client sends are lost.
    DropRenewals,
}

impl LinkFault {
    /// Whether it is over at once, so that it has no length.
    const fn is_a_moment(&self) -> bool {
        matches!(self, Self::Reset)
    }

    fn is_sound(&self) -> bool {
        match self {
            Self::Delay(by) => Length::new(by).is_some_and(|by| !by.is_zero()),
            Self::Throttle { bytes_per_s } => *bytes_per_s > 0,
            Self::LoseReplies { nth } => *nth != Some(0),
            Self::Cut | Self::BlackHole | Self::HalfOpen | Self::Reset => true,
        }
    }
}

/// Whether the faults of the trial can be carried out in it.
pub(crate) fn are_sound(spec: &TrialSpec) -> bool {
    let reachable = |client: u32| client < spec.concurrency;
    let is_sound = |fault: &Fault| {
        let action = match &fault.action {
            FaultAction::OfLinks(links, how) => {
                links
                    .server
                    .is_none_or(|server| usize::from(server) < spec.all_servers().count())
                    && links.client.is_none_or(reachable)
                    && how.is_sound()
                    && how.is_a_moment() == (fault.lasts == Nanos::ZERO)
            }
            FaultAction::OfClient(client, how) => {
                reachable(*client) && (*how == ClientFault::Crash || fault.lasts > Nanos::ZERO)
            }
        };
        action && fault.at < spec.duration
    };
    spec.faults.iter().all(is_sound)
}

/// All times in which the trial is disturbed, counted from the opening of the window: in order, without overlaps.
pub(crate) fn periods(spec: &TrialSpec) -> Result<Vec<(Nanos, Nanos)>, TrialError> {
    if spec.fault_periods.iter().any(|(from, to)| from > to) {
        return Err(TrialError::Field("fault_periods"));
    }
    let planned = spec.faults.iter().map(|fault| (fault.at, fault.at.after(fault.lasts)));
    let mut all: Vec<_> = spec.fault_periods.iter().copied().chain(planned).collect();
    all.sort_unstable();
    let mut union: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in all {
        match union.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => union.push((from, to)),
        }
    }
    Ok(union)
}

/// When a fault was begun and ended, counted from the opening of the window; zero-length for what is over at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultSpan {
    pub began: Option<Nanos>,
    pub ended: Option<Nanos>,
}

impl FaultSpan {
    /// Of several threads: from the first to the last.
    pub(crate) fn of_both(self, other: Self) -> Self {
        Self {
            began: self.began.into_iter().chain(other.began).min(),
            ended: self.ended.into_iter().chain(other.ended).max(),
        }
    }
}

/// Something to do for one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at: Nanos,
    /// Ends come before begins.
    begins: bool,
    fault: usize,
}

/// The faults of one thread, and how far they have been carried out.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Of the whole trial, with the thread's own numbers of its clients. `None`: of another thread's client.
    faults: Vec<Option<Fault>>,
    turns: Vec<Turn>,
    done: usize,
    active: Vec<usize>,
    pub(crate) spans: Vec<FaultSpan>,
}

impl Schedule {
    /// For the thread with `count` clients from `first` on.
    pub(crate) fn new(faults: &[Fault], first: u32, count: u32) -> Self {
        let local = |client: u32| client.checked_sub(first).filter(|client| *client < count);
        let faults: Vec<Option<Fault>> = faults.iter().map(|fault| of_thread(fault, local)).collect();
        let ours = faults.iter().enumerate();
        let mut turns: Vec<Turn> = ours
            .filter_map(|(index, fault)| Some((index, fault.as_ref()?)))
            .flat_map(|(fault, Fault { at, lasts, .. })| {
                let turn = |at, begins| Turn { at, begins, fault };
                let end = (*lasts > Nanos::ZERO).then(|| turn(at.after(*lasts), false));
                [Some(turn(*at, true)), end]
            })
            .flatten()
            .collect();
        turns.sort_unstable();
        Self {
            spans: vec![FaultSpan::default(); faults.len()],
            faults,
            turns,
            done: 0,
            active: Vec::new(),
        }
    }

    /// When the next fault begins or ends, counted from the opening of the window; `NEVER` if none does.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.turns.get(self.done).map_or(Nanos::NEVER, |turn| turn.at)
    }

    /// The next thing to do, `open` after the opening of the window.
    pub(crate) fn pop(&mut self, open: Nanos) -> Option<Step> {
        let turn = *self.turns.get(self.done).filter(|turn| turn.at <= open)?;
        self.done += 1;
        let fault = self.faults[turn.fault]
            .clone()
            .expect("only faults of this thread have turns");
        let span = &mut self.spans[turn.fault];
        if turn.begins {
            span.began = Some(open);
            if fault.lasts > Nanos::ZERO {
                self.active.push(turn.fault);
            } else {
                span.ended = Some(open);
            }
        } else {
            span.ended = Some(open);
            self.active.retain(|index| *index != turn.fault);
        }
        Some(Step {
            begins: turn.begins,
            fault,
        })
    }

    /// From now on the ends of the faults under way are due, and nothing else is.
    pub(crate) fn end_all(&mut self) {
        let end = |&fault: &usize| Turn {
            at: Nanos::ZERO,
            begins: false,
            fault,
        };
        (self.turns, self.done) = (self.active.iter().map(end).collect(), 0);
    }

    /// Whether such a fault of this client is under way.
    pub(crate) fn is_under_way(&self, client: u32, how: ClientFault) -> bool {
        let action = FaultAction::OfClient(client, how);
        let mut active = self.active.iter().filter_map(|&index| self.faults[index].as_ref());
        active.any(|fault| fault.action == action)
    }

    /// How many crashes are planned for clients of this thread.
    pub(crate) fn crashes(&self) -> usize {
        let is_crash = |fault: &&Fault| matches!(fault.action, FaultAction::OfClient(_, ClientFault::Crash));
        self.faults.iter().flatten().filter(is_crash).count()
    }

    /// The faults of connections that are under way.
    pub(crate) fn links(&self) -> Vec<(Links, LinkFault)> {
        let active = self.active.iter().filter_map(|&index| self.faults[index].as_ref());
        active
            .filter_map(|fault| match &fault.action {
                FaultAction::OfLinks(links, how) => Some((*links, how.clone())),
                FaultAction::OfClient(..) => None,
            })
            .collect()
    }
}

/// A fault begins or ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) begins: bool,
    pub(crate) fault: Fault,
}

/// The fault with this thread's numbers of its clients; `None` if it concerns another thread's client.
fn of_thread(fault: &Fault, local: impl Fn(u32) -> Option<u32>) -> Option<Fault> {
    let action = match &fault.action {
        FaultAction::OfLinks(links, how) => {
            let client = match links.client {
                Some(client) => Some(local(client)?),
                None => None,
            };
            FaultAction::OfLinks(Links { client, ..*links }, how.clone())
        }
        FaultAction::OfClient(client, how) => FaultAction::OfClient(local(*client)?, *how),
    };
    Some(Fault { action, ..*fault })
}

#[cfg(test)]
mod tests;
