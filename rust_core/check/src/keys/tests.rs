//! A checker that recycles records finds and counts what one finds and counts that keeps them all.

use crate::{Checker, ClientId, Event, Order, Report, Rules};
use locks::{Fence, Key, Mode, Nanos};
use proptest::prelude::*;
use std::num::NonZeroU64;

const CLIENTS: u32 = 5;
const KEYS: u32 = 3;

/// One step of the trial: of one client, or of the window.
#[derive(Clone, Debug)]
struct Step {
    client: ClientId,
    /// Which of the events that the client's state allows; beyond them, one that it may not allow, or a window's.
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
    Holding,
    Stopped,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lease = prop_oneof![1 => Just(None), 6 => (1_u64..40).prop_map(Some)];
    let mode = prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::Shared)];
    let fence = (1_u64..20).prop_map(|fence| NonZeroU64::new(fence).unwrap());
    let hold = prop_oneof![Just(0), 0_u64..30];
    let step = (0..CLIENTS, 0_u8..40, 0_u64..6, 0..KEYS, lease, hold, mode, fence);
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
    prop::collection::vec(step, 0..200)
}

fn rules() -> impl Strategy<Value = Rules> {
    let order = prop_oneof![2 => Just(Order::Ignored), 1 => Just(Order::Counted), 1 => Just(Order::Promised)];
    let permits = prop_oneof![3 => Just(1_u32), 1 => 2_u32..4];
    let time = || prop_oneof![Just(Nanos::ZERO), (0_u64..30).prop_map(Nanos)];
    let within = prop_oneof![Just(Nanos::NEVER), (5_u64..30).prop_map(Nanos)];
    (permits, order, any::<(bool, bool)>(), time(), time(), within).prop_map(
        |(permits, order, (fences, sessions), least_belief, release_seen_within, granted_within)| Rules {
            permits,
            fences,
            order,
            sessions: sessions && permits == 1,
            least_belief,
            release_seen_within,
            granted_within,
            ..Rules::default()
        },
    )
}

/// The event of a step for a client in this state, and its next state.
fn event(step: &Step, state: State, now: u64) -> (Event, State) {
    let client = step.client;
    let until = step.lease.map_or(Nanos::NEVER, |lease| Nanos(now + lease));
    let granted = Event::Granted {
        client,
        until,
        hold: Nanos(step.hold),
        fence: Some(Fence(step.fence)),
    };
    let waiting = Event::Waiting {
        client,
        key: Key(step.key),
        mode: step.mode,
    };
    match (step.choice, state) {
        (0, _) => (Event::DriverStalled { client }, state),
        (1, _) => (Event::LeaseLost { client }, state),
        (2, _) => (Event::HungUp { client }, state),
        (3, _) => (Event::DeniedRelease { client }, state),
        (4 | 5, _) => (Event::Queued { client }, state),
        // Choice 6 even while it waits or holds.
        (6, _) | (_, State::Idle) | (10..25, State::Stopped) => (waiting, State::Waiting),
        (7, State::Waiting) => (Event::Died { client }, State::Idle),
        (..10, State::Waiting) => (Event::GaveUp { client }, State::Idle),
        (10, State::Waiting) => (Event::CutOff { client, placed: true }, State::Idle),
        (_, State::Waiting) => (granted, State::Holding),
        (..10, State::Holding) => (Event::Renewed { client, until }, State::Holding),
        (10, State::Holding) => (Event::Died { client }, State::Stopped),
        (11..13, State::Holding) => (Event::Stopped { client }, State::Stopped),
        (_, State::Holding | State::Stopped) => (Event::Released { client }, State::Idle),
    }
}

fn judge(steps: &[Step], rules: Rules, never_recycles: bool) -> (Report, Vec<Option<Nanos>>) {
    let mut checker = Checker::new(CLIENTS, KEYS, rules);
    checker.keys.never_recycles = never_recycles;
    let mut states = [State::Idle; CLIENTS as usize];
    let mut now = 0;
    let mut handoffs = Vec::new();
    for step in steps {
        now += step.later;
        match step.choice {
            38 => checker.begin_window(Nanos(now)),
            39 => checker.end_window(Nanos(now)),
            _ => {
                let state = &mut states[step.client as usize];
                let (event, next) = event(step, *state, now);
                *state = next;
                handoffs.push(checker.on(Nanos(now), event));
            }
        }
    }
    (checker.finish(Nanos(now)), handoffs)
}

proptest! {
    // Cheap enough for more cases than the default; `PROPTEST_CASES` can raise the number.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2_000), ..ProptestConfig::default() })]

    #[test]
    fn recycling_changes_no_finding_and_no_figure(steps in steps(), rules in rules()) {
        prop_assert_eq!(judge(&steps, rules, false), judge(&steps, rules, true));
    }
}

/// One client takes one key after another, and another client beside it a second one.
fn one_after_another(keys: u32, hold: u64) -> Checker {
    let mut checker = Checker::new(2, keys, Rules::default());
    for key in 0..keys {
        let at = Nanos(u64::from(key) * 10);
        let mode = Mode::Exclusive;
        checker.on(
            at,
            Event::Waiting {
                client: 0,
                key: Key(key),
                mode,
            },
        );
        let (hold, until, fence) = (Nanos(hold), Nanos::NEVER, None);
        checker.on(
            at,
            Event::Granted {
                client: 0,
                until,
                hold,
                fence,
            },
        );
        checker.on(at.after(Nanos(5)), Event::Released { client: 0 });
    }
    checker
}

#[test]
fn keys_that_are_taken_one_after_another_share_one_record() {
    assert_eq!(one_after_another(1_000, 5).keys.places(), 1);
}

#[test]
fn a_record_outlasts_a_hold_that_ended_before_its_nominal_end() {
    assert_eq!(one_after_another(1_000, 6).keys.places(), 1_000);
}

#[test]
fn a_run_of_wins_outlasts_the_time_in_which_nobody_wants_the_key() {
    let mut checker = Checker::new(2, 1, Rules::default());
    checker.begin_window(Nanos::ZERO);
    for at in [Nanos(0), Nanos(10), Nanos(20)] {
        for client in [0, 1] {
            let (key, mode) = (Key(0), Mode::Exclusive);
            checker.on(at, Event::Waiting { client, key, mode });
        }
        let (hold, until, fence) = (Nanos::ZERO, Nanos::NEVER, None);
        checker.on(
            at,
            Event::Granted {
                client: 0,
                until,
                hold,
                fence,
            },
        );
        checker.on(at, Event::GaveUp { client: 1 });
        checker.on(at, Event::Released { client: 0 });
    }
    assert_eq!(checker.finish(Nanos(30)).figures.longest_streak, 3);
}
