//! Whatever clients do, the checker counts what the oracle counts.

use crate::oracle::{History, Oracle};
use check::{Checker, ClientId, Event, Report, ViolationCounts};
use locks::{Key, Nanos};
use proptest::prelude::*;

const CLIENTS: u32 = 5;
const KEYS: u32 = 2;

/// One step of one client, whatever its state lets it do.
#[derive(Clone, Debug)]
struct Step {
    client: ClientId,
    choice: u8,
    later: u64,
    key: u32,
    lease: Option<u64>,
    hold: u64,
}

#[derive(Clone, Copy)]
enum State {
    Idle,
    Waiting,
    Holding,
    Stopped,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lease = prop_oneof![1 => Just(None), 6 => (1_u64..40).prop_map(Some)];
    let step = (0..CLIENTS, 0_u8..8, 0_u64..4, 0..KEYS, lease, 0_u64..40);
    let step = step.prop_map(|(client, choice, later, key, lease, hold)| Step {
        client,
        choice,
        later,
        key,
        lease,
        hold,
    });
    prop::collection::vec(step, 0..120)
}

fn histories() -> impl Strategy<Value = History> {
    (steps(), 0..60_usize, 0..90_usize).prop_map(|(steps, begin, length)| {
        let events = play(steps);
        let begin = begin.min(events.len());
        let end = (begin + length).min(events.len());
        History {
            events,
            window: begin..end,
        }
    })
}

fn play(steps: Vec<Step>) -> Vec<(Nanos, Event)> {
    let mut states = [State::Idle; CLIENTS as usize];
    let mut now = 0;
    let mut events = Vec::new();
    for Step {
        client,
        choice,
        later,
        key,
        lease,
        hold,
    } in steps
    {
        now += later;
        let state = &mut states[client as usize];
        let granted = Event::Granted {
            client,
            until: lease.map_or(Nanos::NEVER, |lease| Nanos(now + lease)),
            hold: Nanos(hold),
        };
        let (event, next) = match (*state, choice) {
            (State::Idle, _) | (State::Stopped, 4..) => (Event::Waiting { client, key: Key(key) }, State::Waiting),
            (State::Waiting, 0) => (Event::GaveUp { client }, State::Idle),
            (State::Waiting, 1..) => (granted, State::Holding),
            (State::Holding, 0) => (Event::LeaseLost { client }, State::Holding),
            (State::Holding, 1) => (Event::Stopped { client }, State::Stopped),
            (State::Holding, 2..) | (State::Stopped, ..4) => (Event::Released { client }, State::Idle),
        };
        *state = next;
        // An end is the first event of its stamp, as the driver promises.
        if matches!(
            event,
            Event::LeaseLost { .. } | Event::Stopped { .. } | Event::Released { .. }
        ) {
            now += 1;
        }
        events.push((Nanos(now), event));
    }
    events
}

fn judge(history: &History) -> (Report, Vec<Option<Nanos>>) {
    let mut checker = Checker::new(CLIENTS, KEYS);
    let mut handoffs = Vec::new();
    for index in 0..=history.events.len() {
        if index == history.window.start {
            checker.begin_window();
        }
        if index == history.window.end {
            checker.end_window();
        }
        if let Some(&(at, event)) = history.events.get(index) {
            handoffs.push(checker.on(at, event));
        }
    }
    let end = history.events.last().map_or(Nanos::ZERO, |last| last.0);
    (checker.finish(end), handoffs)
}

proptest! {
    // Cheap enough for more than the default; `PROPTEST_CASES` asks for more still.
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
        let ViolationCounts { double_grants, double_grants_after_overrun, lease_overruns, outlived: _ } = report.counts;
        let all = double_grants + double_grants_after_overrun + lease_overruns;
        prop_assert_eq!(report.violations.len() as u64, all.min(100));
    }

    #[test]
    fn the_record_of_a_violation_fits_the_history(history in histories()) {
        let (report, _) = judge(&history);
        let end = history.events.last().map_or(Nanos::ZERO, |last| last.0);
        for violation in report.violations {
            let (first, second) = (violation.first, violation.second);
            let ends = [first.ended, second.ended, Some(end)].into_iter().flatten().min().unwrap();
            prop_assert_eq!(violation.overlap, ends.since(violation.at));
            prop_assert_eq!(violation.at, second.granted);
            prop_assert!(first.client != second.client && first.granted <= second.granted);
            for span in [first, second] {
                let until = span.until.unwrap_or(Nanos::NEVER);
                let granted = history.events.iter().any(|&(at, event)| matches!(
                    event, Event::Granted { client, until: to, .. }
                        if client == span.client && to == until && at == span.granted
                ));
                prop_assert!(granted, "{:?} never happened", span);
            }
        }
    }
}
