//! Locks that depend on a session: whether a grant during another holder's belief was the lock's fault is known when
//! that hold ends.

use crate::script::{A, B, C, NEVER, NONE, Script, script, script_of};
use check::{Report, Rules, ViolationCounts, ViolationKind};
use locks::Nanos;

fn of_sessions() -> Script {
    script_of(Rules {
        sessions: true,
        ..Rules::default()
    })
}

const ONE_LOST: ViolationCounts = ViolationCounts {
    sessions_lost: 1,
    ..NONE
};
const ONE_DOUBLE: ViolationCounts = ViolationCounts {
    double_grants: 1,
    ..NONE
};

fn kinds(report: &Report) -> Vec<ViolationKind> {
    report.violations.iter().map(|violation| violation.kind).collect()
}

#[test]
fn a_holder_that_later_finds_its_session_gone_had_lost_it() {
    let report = of_sessions()
        .takes(A, NEVER)
        .at(50)
        .takes(B, NEVER)
        .at(70)
        .loses_lease(A)
        .at(80)
        .releases(A)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            outlived: 1,
            ..ONE_LOST
        }
    );
    assert_eq!(kinds(&report), [ViolationKind::SessionLost]);
    assert_eq!(report.violations[0].first.until, Some(Nanos(70)));
}

#[test]
fn the_reply_to_a_release_may_say_that_the_session_was_gone() {
    let told = of_sessions().takes(A, NEVER).at(50).takes(B, NEVER).at(70).releases(A);
    let report = told.at(75).loses_lease(A).takes(A, NEVER).at(76).ends();
    // B still believes, and A was granted the key at the same time.
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..ONE_LOST
        }
    );
    assert_eq!(kinds(&report), [ViolationKind::SessionLost, ViolationKind::DoubleGrant]);
}

#[test]
fn a_holder_whose_session_was_there_to_the_end_makes_it_a_double_grant() {
    let told = of_sessions().takes(A, NEVER).at(50).takes(B, NEVER).at(60).releases(B);
    let report = told
        .at(70)
        .releases(A)
        .at(75)
        .takes(A, NEVER)
        .at(80)
        .loses_lease(A)
        .ends();
    assert_eq!(report.counts, ONE_DOUBLE, "what A loses now is another grant");
    assert_eq!(kinds(&report), [ViolationKind::DoubleGrant]);
}

#[test]
fn what_the_later_holder_loses_excuses_nothing() {
    let told = of_sessions()
        .takes(A, NEVER)
        .at(50)
        .takes(B, NEVER)
        .at(60)
        .loses_lease(B);
    let report = told.at(70).releases(A).at(71).releases(B).at(72).waits(A).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            outlived: 1,
            ..ONE_DOUBLE
        }
    );
}

#[test]
fn of_several_earlier_holders_one_that_kept_its_session_decides() {
    let two = || of_sessions().shares(A, NEVER).shares(B, NEVER).at(50).takes(C, NEVER);
    let kept = two().at(60).loses_lease(B).at(70).releases(A).at(71).waits(A).ends();
    assert_eq!(kept.counts, ONE_DOUBLE);
    let lost = two().at(60).loses_lease(B).at(70).loses_lease(A).ends();
    assert_eq!(lost.counts, ONE_LOST);
}

#[test]
fn who_shares_is_in_no_readers_way() {
    let told = of_sessions().takes(A, NEVER).at(10).loses_lease(A).at(11).releases(A);
    let report = told
        .at(12)
        .shares(B, NEVER)
        .shares(C, NEVER)
        .at(13)
        .loses_lease(B)
        .ends();
    assert_eq!(report.counts, ViolationCounts { outlived: 1, ..NONE });
}

#[test]
fn what_nobody_found_gone_when_the_trial_ends_is_a_double_grant() {
    let holding = of_sessions().takes(A, NEVER).at(50).takes(B, NEVER);
    assert_eq!(holding.ends().counts, ONE_DOUBLE);
    let released = of_sessions().takes(A, NEVER).at(50).takes(B, NEVER).at(60).releases(A);
    assert_eq!(released.ends().counts, ONE_DOUBLE);
}

#[test]
fn work_that_goes_on_without_its_session_overruns_as_it_would_without_its_lease() {
    let report = of_sessions()
        .takes(A, NEVER)
        .at(10)
        .loses_lease(A)
        .at(20)
        .takes(B, NEVER)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            lease_overruns: 1,
            ..NONE
        }
    );
}

#[test]
fn a_session_that_has_ended_unlocks_nothing_of_anothers() {
    let overran = of_sessions().takes(A, NEVER).at(10).loses_lease(A).at(20).releases(A);
    let report = overran.at(30).takes(B, NEVER).at(40).takes(C, NEVER).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            outlived: 1,
            ..ONE_DOUBLE
        }
    );
}

#[test]
fn a_release_that_found_no_session_and_had_nobody_beside_it_is_no_violation() {
    let report = of_sessions()
        .takes(A, NEVER)
        .at(10)
        .releases(A)
        .at(11)
        .loses_lease(A)
        .at(12)
        .takes(A, NEVER);
    assert_eq!(report.ends().counts, NONE);
}

#[test]
fn other_locks_lose_nothing_that_they_have_released() {
    script()
        .takes(A, 100)
        .at(10)
        .releases(A)
        .at(11)
        .loses_lease(A)
        .finds("cannot lose a lease");
}

#[test]
fn the_end_of_a_session_hands_its_key_to_whoever_waits() {
    let lost = of_sessions().takes(A, NEVER).at(10).waits(B).at(50).loses_lease(A);
    // The holder's further work frees nothing.
    let released = lost.at(53).releases(A);
    released.at(57).granted(B, NEVER).expect_handoff(Some(7));
}

#[test]
fn a_session_whose_end_is_seen_when_the_next_has_the_key_hands_nothing_on() {
    let told = of_sessions().takes(A, NEVER).at(10).waits(B).waits(C);
    let told = told.at(50).granted(B, NEVER).at(52).loses_lease(A).at(55).releases(A);
    told.at(58)
        .loses_lease(B)
        .at(59)
        .releases(B)
        .at(60)
        .granted(C, NEVER)
        .expect_handoff(Some(2));
}

fn seen_within(ns: u64) -> Script {
    script_of(Rules {
        sessions: true,
        session_end_seen_within: Nanos(ns),
        ..Rules::default()
    })
}

#[test]
fn a_session_that_is_found_gone_too_late_was_there_at_the_grant() {
    let found = |at| {
        let beside = seen_within(30).takes(A, NEVER).at(50).takes(B, NEVER);
        beside.at(at).loses_lease(A).ends().counts
    };
    assert_eq!(found(80), ONE_LOST);
    assert_eq!(found(81), ONE_DOUBLE);
    // Its driver stood still until 60 and could not notice before.
    let stood = |at| {
        let beside = seen_within(30).takes(A, NEVER).at(50).takes(B, NEVER);
        beside.at(60).driver_stood().at(at).loses_lease(A).ends().counts
    };
    assert_eq!(stood(90), ONE_LOST);
    assert_eq!(stood(91), ONE_DOUBLE);
}

#[test]
fn a_session_that_the_lock_closed_excuses_nothing() {
    let closed = seen_within(30).takes(A, NEVER).at(10).hangs_up(A).at(11).loses_lease(A);
    let report = closed.at(12).takes(B, NEVER).at(20).releases(A).ends();
    assert_eq!(report.counts, ONE_DOUBLE, "A was promised the lock until its release");
    let later = seen_within(30)
        .takes(A, NEVER)
        .at(10)
        .takes(B, NEVER)
        .at(11)
        .hangs_up(A);
    assert_eq!(later.at(12).loses_lease(A).ends().counts, ONE_DOUBLE);
}

#[test]
fn a_release_without_a_reply_leaves_open_when_the_session_ended() {
    let beside = seen_within(30)
        .takes(A, NEVER)
        .at(50)
        .takes(B, NEVER)
        .at(60)
        .releases(A);
    let report = beside.at(900).hangs_up(A).loses_lease(A).ends();
    assert_eq!(report.counts, ONE_LOST);
}

#[test]
fn what_is_hung_up_while_it_waits_concerns_nobody() {
    let report = seen_within(30).takes(A, NEVER).at(1).waits(B).at(2).hangs_up(B);
    let report = report.at(3).releases(A).granted(B, NEVER).at(4).releases(B).ends();
    assert_eq!(report.counts, NONE);
}
