//! The timers against a table of the clients' times.

use proptest::prelude::*;

use super::*;

const CLIENTS: u32 = 6;

#[test]
fn clients_are_fired_in_order_of_their_points() {
    let mut timers = Timers::new(3);
    timers.arm(0, Nanos(30));
    timers.arm(1, Nanos(10));
    timers.arm(2, Nanos(20));
    assert_eq!(timers.next(), Nanos(10));
    assert_eq!(timers.pop(Nanos(25)), Some(1));
    assert_eq!(timers.pop(Nanos(25)), Some(2));
    assert_eq!(timers.pop(Nanos(25)), None);
    assert_eq!(timers.pop(Nanos(30)), Some(0));
    assert_eq!(timers.next(), Nanos::NEVER);
}

#[test]
fn a_later_point_is_free_and_an_earlier_one_replaces() {
    let mut timers = Timers::new(1);
    timers.arm(0, Nanos(50));
    timers.arm(0, Nanos(90));
    assert_eq!(timers.next(), Nanos(50), "the later point is not written");
    timers.arm(0, Nanos(20));
    assert_eq!(timers.pop(Nanos(20)), Some(0));
    assert_eq!(timers.pop(Nanos(100)), None, "nothing is left of the point at 50");
}

/// Each attempt sets a reply timeout of a second, and then a backoff of some milliseconds.
#[test]
fn the_timeouts_of_many_attempts_leave_nothing_behind() {
    let mut timers = Timers::new(2);
    timers.arm(1, Nanos::from_secs(100));
    for attempt in 0..10_000 {
        let now = attempt * 3_000_000;
        timers.arm(0, Nanos(now + 1_000_000_000));
        timers.arm(0, Nanos(now + 2_000_000));
        assert_eq!(timers.next(), Nanos(now + 2_000_000));
        assert_eq!(timers.pop(Nanos(now + 2_000_000)), Some(0));
        assert_eq!(timers.next(), Nanos::from_secs(100));
    }
    assert_eq!(timers.soon.len(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Arm { client: u32, after: u64 },
    ArmAt { client: u32, at: u64 },
    Pass { time: u64 },
}

/// A time of any magnitude, and often one that is close to others.
fn times() -> impl Strategy<Value = u64> {
    let of_any_size = (0_u32..64, any::<u64>()).prop_map(|(bits, time)| time >> bits);
    prop_oneof![0_u64..300_000, 0_u64..60_000_000, Just(1_000_000_000), of_any_size]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..CLIENTS, times()).prop_map(|(client, after)| Step::Arm { client, after }),
        1 => (0..CLIENTS, times()).prop_map(|(client, at)| Step::ArmAt { client, at }),
        3 => times().prop_map(|time| Step::Pass { time }),
    ];
    prop::collection::vec(step, 0..150)
}

/// What is to be fired first: the earliest time and its client, `NEVER` if no client has a time.
fn earliest(times: &[Nanos]) -> (Nanos, u32) {
    times.iter().copied().zip(0..).min().expect("there are clients")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(500), ..ProptestConfig::default() })]

    #[test]
    fn the_timers_fire_what_a_plain_table_of_times_would_fire(steps in steps()) {
        let mut timers = Timers::new(CLIENTS as usize);
        let mut times = [Nanos::NEVER; CLIENTS as usize];
        let mut now = Nanos::ZERO;
        for step in steps {
            let (client, at) = match step {
                Step::Arm { client, after } => (client, now.after(Nanos(after))),
                Step::ArmAt { client, at } => (client, Nanos(at)),
                Step::Pass { time } => {
                    now = now.after(Nanos(time));
                    while let Some(client) = timers.pop(now) {
                        let due = (times[client as usize], client);
                        prop_assert!(due.0 <= now && due == earliest(&times));
                        times[client as usize] = Nanos::NEVER;
                        prop_assert_eq!(timers.next(), earliest(&times).0);
                    }
                    prop_assert!(earliest(&times).0 > now || now == Nanos::NEVER);
                    continue;
                }
            };
            timers.arm(client, at);
            times[client as usize] = times[client as usize].min(at);
            prop_assert_eq!(timers.next(), earliest(&times).0);
        }
    }
}

/// A thousand clients that are refused again and again: few of them are ever in the heap.
#[test]
fn only_the_clients_that_are_due_soon_are_kept_in_order() {
    let mut timers = Timers::new(1_000);
    let (mut now, mut most) = (0, 0);
    for client in 0..1_000 {
        timers.arm(client, Nanos(1_000_000_000));
    }
    for client in 0..1_000 {
        timers.arm(client, Nanos(u64::from(client) * 50_000));
    }
    for attempt in 0..50_000 {
        now = timers.next().0;
        let client = timers.pop(Nanos(now)).expect("its time has come");
        timers.arm(client, Nanos(now + 1_000_000_000));
        timers.arm(client, Nanos(now + 1_000_000 + attempt * 7_919 % 49_000_000));
        if now > 50_000_000 {
            // The clients that had the same timeout at the start have had their backoff.
            most = most.max(timers.soon.len());
        }
    }
    assert!(now > 1_000_000_000, "longer than the timeouts");
    assert!(most < 50, "{most} in the heap");
}
