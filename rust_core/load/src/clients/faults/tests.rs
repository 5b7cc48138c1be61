//! Clients that crash, are held up, or whose renewals are lost; with replies by hand, on a clock that is set by hand.

use check::ViolationCounts;
use locks::{ArgValue, Event, Nanos, Reply, Strategy};

use crate::by_hand::{A, B, ByHand, MS, Rig, rig_of, spec};
use crate::clients::Doing;
use crate::faults::{ClientFault, Fault, FaultAction};
use crate::recorder::periods::FaultFigures;
use crate::spec::TrialSpec;
use crate::transport::Caller;

fn none() -> ViolationCounts {
    ViolationCounts::default()
}

fn fault(client: u32, how: ClientFault, at: u64, lasts: u64) -> Fault {
    Fault {
        at: Nanos(at * MS),
        lasts: Nanos(lasts * MS),
        action: FaultAction::OfClient(client, how),
    }
}

/// Two clients of one key, with a lease of 100 ms.
fn rig(strategy: Strategy, faults: &[Fault]) -> Rig {
    let mut spec = TrialSpec {
        faults: faults.to_vec(),
        ..spec(strategy, 2)
    };
    spec.lock.lease = locks::Lease::new(100).expect("it is a lease");
    spec.lock.reply_timeout = Nanos::from_millis(40);
    rig_of(&spec, ByHand::default())
}

impl Rig {
    fn rounds(mut self, ms: u64) -> Self {
        self.round_at(ms);
        self
    }

    fn replies(&mut self, Caller { client, call }: Caller, reply: Reply) {
        self.dispatch(client, Event::Replied { call, reply });
    }

    fn figures(self) -> FaultFigures {
        self.driver.recorder.finish(Vec::new()).0.faults
    }
}

#[test]
fn a_holder_that_crashes_leaves_its_lock_behind_and_begins_anew() {
    let crash = fault(A, ClientFault::Crash, 10, 0);
    let mut rig = rig(Strategy::Mutex, &[crash])
        .begins_to_hold(A, 50)
        .answered(Reply::Ok)
        .rounds(10);
    assert_eq!(rig.doing(A), Doing::Acquiring);
    assert_eq!(rig.driver.transport.sent.len(), 1, "nothing is released");
    rig = rig
        .answered(Reply::Nil)
        .at_ms(110)
        .begins(B)
        .at_ms(111)
        .answered(Reply::Ok);
    assert_eq!(rig.driver.recorder.counters().all_grants, 2);
    let report = rig.judged();
    assert_eq!(report.counts, none(), "the belief ended with the crash");
    assert_eq!((report.orphans, report.time_to_free), (1, vec![Nanos(101 * MS)]));
}

#[test]
fn a_reply_to_a_call_from_before_the_crash_means_nothing_to_the_new_machine() {
    let crash = fault(A, ClientFault::Crash, 10, 5);
    let mut rig = rig(Strategy::Mutex, &[crash]).begins_to_hold(A, 50);
    let Caller { client, .. } = rig.last_sent();
    rig = rig.rounds(10);
    assert_eq!(rig.doing(A), Doing::Pausing);
    // The transport gives such a call a number that no machine has.
    let call = locks::CallId(u64::MAX);
    rig.replies(Caller { client, call }, Reply::Ok);
    rig = rig.rounds(14);
    assert_eq!(rig.doing(A), Doing::Pausing, "until the fault ends");
    rig = rig.rounds(15);
    rig.replies(Caller { client, call }, Reply::Ok);
    assert_eq!(rig.doing(A), Doing::Acquiring);
    let counters = rig.driver.recorder.counters();
    assert_eq!((counters.all_grants, counters.unknown, counters.unsettled), (0, 1, 1));
    assert_eq!(rig.judged().counts, none());
}

#[test]
fn a_client_that_is_held_up_acts_on_nothing_until_it_goes_on() {
    let pause = fault(A, ClientFault::Pause, 10, 140);
    let mut rig = rig(Strategy::Mutex, &[pause])
        .begins_to_hold(A, 20)
        .answered(Reply::Ok)
        .rounds(10)
        .rounds(30);
    assert_eq!(rig.doing(A), Doing::Holding, "its hold is over, and it does not know");
    rig = rig.at_ms(80).begins_to_hold(B, 90).at_ms(101).answered(Reply::Ok);
    rig = rig.rounds(150);
    assert_eq!(rig.doing(A), Doing::Releasing);
    rig = rig.answered(Reply::Int(0));
    let expected = ViolationCounts {
        lease_overruns: 1,
        outlived: 1,
        ..none()
    };
    let found = rig.driver.recorder.counters();
    assert_eq!(found.all_grants, 2);
    assert_eq!(rig.judged().counts, expected);
}

#[test]
fn what_arrives_meanwhile_is_acted_on_when_the_client_goes_on() {
    let pause = fault(A, ClientFault::Pause, 10, 15);
    let longer = fault(A, ClientFault::Pause, 20, 15);
    let mut rig = rig(Strategy::Mutex, &[pause, longer]).begins_to_hold(A, 500).rounds(10);
    let call = rig.last_sent();
    rig.replies(call, Reply::Ok);
    rig = rig.rounds(20).rounds(25);
    assert_eq!(rig.doing(A), Doing::Acquiring, "the longer pause lasts");
    rig = rig.rounds(35);
    assert_eq!(rig.doing(A), Doing::Holding);
    assert_eq!(rig.driver.clients.granted_at(A), Nanos(35 * MS));
}

#[test]
fn the_time_until_a_held_up_holder_knows_counts_from_the_end_of_its_lease() {
    let pause = fault(A, ClientFault::Pause, 10, 140);
    let rig = rig(Strategy::Mutex, &[pause])
        .begins_to_hold(A, 20)
        .answered(Reply::Ok)
        .rounds(10)
        .rounds(150)
        .answered(Reply::Int(0));
    // The lease of 100 ms, less its clock-skew margin of 1 % and 2 ms.
    assert_eq!(rig.figures().time_to_know, [Nanos(53 * MS)]);
}

#[test]
fn renewals_are_lost_for_as_long_as_the_fault_lasts() {
    let watchdog = Strategy::named("watchdog", &[] as &[(String, ArgValue)]).expect("it is in the catalogue");
    let drops = fault(A, ClientFault::DropRenewals, 10, 40);
    let mut rig = rig(watchdog, &[drops])
        .begins_to_hold(A, 5_000)
        .answered(Reply::Ok)
        .rounds(10);
    // It renews after a third of the lease.
    rig = rig.rounds(40);
    assert!(rig.driver.transport.sent.is_empty());
    rig = rig.rounds(50);
    let mut ms = 50;
    while rig.driver.transport.sent.is_empty() {
        ms += 10;
        assert!(ms < 5_000, "it never renews again");
        rig = rig.rounds(ms);
    }
    assert_eq!(rig.figures().dropped_renewals, 1);
}

/// How many stalls are found where A asks again and again for 300 ms, and is refused.
fn stalls(disturbed: &[(u64, u64)]) -> u64 {
    let period = |&(from, to): &(u64, u64)| (Nanos(from * MS), Nanos(to * MS));
    let mut spec = TrialSpec {
        fault_periods: disturbed.iter().map(period).collect(),
        ..spec(Strategy::Mutex, 1)
    };
    spec.lock.lease = locks::Lease::new(50).expect("it is a lease");
    spec.lock.reply_timeout = Nanos::from_millis(40);
    let mut rig = rig_of(&spec, ByHand::default()).expecting_a_window(0, 1_000).begins(A);
    for ms in (0..300).step_by(10) {
        rig = rig.answered(Reply::Nil).at_ms(ms + 10);
    }
    rig.answered(Reply::Ok).judged().counts.stalls
}

#[test]
fn a_key_that_nobody_can_be_granted_because_of_a_fault_has_not_stalled() {
    assert_eq!(stalls(&[]), 1);
    assert_eq!(stalls(&[(20, 280)]), 0);
    assert_eq!(stalls(&[(20, 100)]), 1, "long before the grant");
}
