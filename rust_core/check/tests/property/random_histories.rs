//! Whatever clients do, the checker counts what the oracle counts.

use crate::oracle::{History, Oracle};
use check::{Checker, ClientId, Event, Order, Report, Rules, ViolationCounts, ViolationKind};
use locks::{Fence, Key, Mode, Nanos};
use proptest::prelude::*;
use std::num::NonZeroU64;

const CLIENTS: u32 = 5;
const KEYS: u32 = 2;

/// One step of one client, as far as the client's state allows it.
#[derive(Clone, Debug)]
struct Step {
    client: ClientId,
    choice: u8,
    later: u64,
    key: u32,
    lease: Option<u64>,
    hold: u64,
    mode: Mode,
    fence: NonZeroU64,
}

#[derive(Clone, Copy)]
enum State {
    Idle,
    Waiting,
    /// Holds, and believes until this time.
    Holding(Nanos),
    Stopped,
    /// Its release was sent and has no reply yet.
    Released,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lease = prop_oneof![1 => Just(None), 6 => (1_u64..40).prop_map(Some)];
    let mode = prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared)];
    let fence = (1_u64..20).prop_map(|fence| NonZeroU64::new(fence).unwrap());
    let step = (0..CLIENTS, 0_u8..10, 0_u64..4, 0..KEYS, lease, 0_u64..40, mode, fence);
    let step = step.prop_map(|(client, choice, later, key, lease, hold, mode, fence)| Step {
        client,
        choice,
        later,
        key,
        lease,
        hold,
        mode,
        fence,
    });
    prop::collection::vec(step, 0..120)
}

/// The rules of plain locks, of locks with readers, and of semaphores, with and without fences and an order.
fn rules() -> impl Strategy<Value = (Rules, bool)> {
    let order = prop_oneof![Just(Order::Ignored), Just(Order::Counted), Just(Order::Promised)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let within = prop_oneof![Just(Nanos::NEVER), (0_u64..40).prop_map(Nanos)];
    let bounds = (within, (0_u64..20).prop_map(Nanos));
    (1_u32..4, order, flags, bounds).prop_map(|(permits, order, (fences, sessions, shares), (within, least))| {
        let rules = Rules {
            permits,
            fences,
            order,
            sessions: sessions && permits == 1,
            session_end_seen_within: within,
            least_belief: least,
            ..Rules::default()
        };
        (rules, shares && permits == 1)
    })
}

fn histories() -> impl Strategy<Value = History> {
    (steps(), rules(), 0..60_usize, 0..90_usize).prop_map(|(mut steps, (rules, shares), begin, length)| {
        if !shares {
            for step in &mut steps {
                step.mode = Mode::Exclusive;
            }
        }
        let events = play(steps, rules);
        let begin = begin.min(events.len());
        let end = (begin + length).min(events.len());
        History {
            events,
            window: begin..end,
            rules,
        }
    })
}

fn play(steps: Vec<Step>, rules: Rules) -> Vec<(Nanos, Event)> {
    let mut states = [State::Idle; CLIENTS as usize];
    let mut now = 0;
    let mut events = Vec::new();
    for step in steps {
        now += step.later;
        let state = &mut states[step.client as usize];
        let (event, next) = take(&step, *state, now, rules);
        // An end is the first event of its stamp, as the driver promises.
        if matches!(
            event,
            Event::LeaseLost { .. } | Event::Stopped { .. } | Event::Died { .. } | Event::Released { .. }
        ) {
            now += 1;
        }
        *state = next;
        events.push((Nanos(now), event));
    }
    events
}

/// The event of the step for a client in this state, and the client's next state.
fn take(step: &Step, state: State, now: u64, rules: Rules) -> (Event, State) {
    let client = step.client;
    let until = step.lease.map_or(Nanos::NEVER, |lease| Nanos(now + lease));
    let waiting = Event::Waiting {
        client,
        key: Key(step.key),
        mode: step.mode,
    };
    let granted = Event::Granted {
        client,
        until,
        hold: Nanos(step.hold),
        fence: Some(Fence(step.fence)),
    };
    match (state, step.choice) {
        (State::Released, ..4) if rules.sessions => (Event::LeaseLost { client }, State::Idle),
        (State::Idle | State::Released, _) | (State::Stopped, 4..) => (waiting, State::Waiting),
        (State::Waiting, 0) if step.hold.is_multiple_of(2) => (Event::Died { client }, State::Idle),
        (State::Waiting, 0) => (Event::GaveUp { client }, State::Idle),
        (State::Waiting, 1..=3) => (Event::Queued { client }, State::Waiting),
        (State::Waiting, 4..) => (granted, State::Holding(until)),
        (State::Holding(end), 0..=2) if Nanos(now) < end => (Event::Renewed { client, until }, State::Holding(until)),
        (State::Holding(_), 3) => (Event::LeaseLost { client }, State::Holding(Nanos::ZERO)),
        (State::Holding(_), 4) if step.hold.is_multiple_of(2) => (Event::Died { client }, State::Stopped),
        (State::Holding(_), 4) => (Event::Stopped { client }, State::Stopped),
        (State::Holding(_), _) | (State::Stopped, ..4) => (Event::Released { client }, State::Released),
    }
}

fn judge(history: &History) -> (Report, Vec<Option<Nanos>>) {
    let mut checker = Checker::new(CLIENTS, KEYS, history.rules);
    let mut handoffs = Vec::new();
    for index in 0..=history.events.len() {
        let at = history.events.get(index).or(history.events.last());
        let at = at.map_or(Nanos::ZERO, |event| event.0);
        if index == history.window.start {
            checker.begin_window(at);
        }
        if index == history.window.end {
            checker.end_window(at);
        }
        if let Some(&(at, event)) = history.events.get(index) {
            handoffs.push(checker.on(at, event));
        }
    }
    let end = history.events.last().map_or(Nanos::ZERO, |last| last.0);
    (checker.finish(end), handoffs)
}

proptest! {
    // Cheap enough for more cases than the default; `PROPTEST_CASES` can raise the number.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), ..ProptestConfig::default() })]

    #[test]
    fn the_checker_agrees_with_the_oracle(history in histories()) {
        let oracle = Oracle::new(&history);
        let (report, handoffs) = judge(&history);
        prop_assert_eq!(report.counts, oracle.counts());
        prop_assert_eq!(report.figures, oracle.figures());
        for (index, handoff) in handoffs.into_iter().enumerate() {
            prop_assert_eq!(handoff, oracle.handoff(index), "at event {}", index);
        }
        prop_assert!(report.figures.contended_grants <= report.figures.grants);
        let ViolationCounts {
            double_grants, double_grants_after_overrun, lease_overruns, sessions_lost, outlived: _, stale_fences,
            fifo_inversions, ..
        } = report.counts;
        let starved = if history.rules.order == Order::Promised { report.counts.starved } else { 0 };
        let inversions = if history.rules.order == Order::Promised { fifo_inversions } else { 0 };
        let all = double_grants + double_grants_after_overrun + lease_overruns + sessions_lost + stale_fences + inversions + starved;
        prop_assert_eq!(report.violations.len() as u64, all.min(100));
    }

    #[test]
    fn the_record_of_a_violation_fits_the_history(history in histories()) {
        let (report, _) = judge(&history);
        let end = history.events.last().map_or(Nanos::ZERO, |last| last.0);
        for violation in report.violations {
            let (first, second) = (violation.first, violation.second.unwrap());
            let ends = [first.ended, second.ended, Some(end)].into_iter().flatten().min().unwrap();
            prop_assert_eq!(violation.overlap, ends.since(violation.at));
            prop_assert_eq!(Some(violation.at), second.granted);
            let one_after_another = violation.kind == ViolationKind::StaleFence && first.ended.is_some();
            prop_assert!(one_after_another || first.client != second.client);
            prop_assert!(first.granted <= second.granted);
            for span in [first, second] {
                let granted_at = span.granted.unwrap();
                let lease_set = |event: Event| match event {
                    Event::Granted { until, .. } | Event::Renewed { until, .. } => Some(until),
                    _ => None,
                };
                let set = history.events.iter().any(|&(at, event)| {
                    let told = event.client() == span.client && at >= granted_at;
                    told && lease_set(event) == Some(span.until.unwrap_or(Nanos::NEVER))
                });
                let granted = history.events.iter().any(|&(at, event)| matches!(
                    event, Event::Granted { client, fence, .. }
                        if client == span.client && fence.filter(|_| history.rules.fences) == span.fence
                            && at == granted_at
                ));
                // For a lost session this is when the loss was found.
                let found = violation.kind == ViolationKind::SessionLost && history.events.iter().any(|&(at, event)| {
                    Some(at) == first.until && Some(at) >= second.granted && matches!(event, Event::LeaseLost { .. })
                });
                prop_assert!(granted && (set || found), "{:?} never happened", span);
                let ended = span.ended.is_none_or(|ended| history.events.iter().any(|&(at, event)| {
                    at == ended && at >= granted_at && event.client() == span.client
                        && matches!(event, Event::Stopped { .. } | Event::Died { .. } | Event::Released { .. })
                }));
                prop_assert!(ended, "{:?} did not end then", span);
            }
        }
    }
}
