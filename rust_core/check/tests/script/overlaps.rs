//! Which overlaps are violations, and of which kind.

use crate::script::{A, B, C, KEY, NEVER, NONE, OTHER_KEY, script};
use check::ViolationCounts;

#[test]
fn holders_one_after_another_are_no_violation() {
    let report = script()
        .takes(A, 100)
        .at(50)
        .releases(A)
        .at(51)
        .takes(B, 151)
        .at(60)
        .releases(B)
        .ends();
    assert_eq!(report.counts, NONE);
    assert_eq!(report.violations, []);
}

#[test]
fn a_grant_while_another_holder_believes_is_a_double_grant() {
    let report = script().takes(A, 100).at(99).takes(B, 199).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..NONE
        }
    );
}

#[test]
fn a_grant_in_the_instant_of_a_release_is_no_violation() {
    let report = script().takes(A, 100).at(50).releases(A).takes(B, 150).ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn a_grant_in_the_instant_a_lease_ends_beside_work_is_a_lease_overrun() {
    let report = script().takes(A, 100).at(100).takes(B, 200).at(101).releases(A).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            lease_overruns: 1,
            outlived: 1,
            ..NONE
        }
    );
}

#[test]
fn a_release_in_the_instant_the_lease_ends_has_not_outlived_it() {
    let report = script().takes(A, 100).at(100).releases(A).takes(B, 200).ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn outliving_a_lease_that_nobody_else_wants_is_no_violation() {
    let report = script().takes(A, 100).at(300).releases(A).at(301).takes(B, 401).ends();
    assert_eq!(report.counts, ViolationCounts { outlived: 1, ..NONE });
}

#[test]
fn a_lock_without_end_is_believed_for_ever() {
    let report = script().takes(A, NEVER).at(1_000_000).takes(B, NEVER).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..NONE
        }
    );
}

#[test]
fn a_grant_beside_two_holders_counts_once() {
    let report = script().takes(A, 100).at(1).takes(B, 101).at(2).takes(C, 102).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 2,
            ..NONE
        }
    );
}

#[test]
fn a_grant_beside_a_believer_and_an_overrunning_holder_is_a_double_grant_only() {
    let report = script().takes(A, 100).at(1).takes(B, 50).at(60).takes(C, 160).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 2,
            ..NONE
        }
    );
}

#[test]
fn the_believer_is_found_behind_a_holder_whose_lease_is_over() {
    let report = script()
        .takes(A, 100)
        .at(1)
        .takes(B, 200)
        .at(2)
        .takes(C, 50)
        .at(60)
        .releases(B)
        .at(61);
    let report = report.takes(B, 161).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 3,
            ..NONE
        }
    );
}

#[test]
fn a_believer_that_released_leaves_only_the_overrun_of_the_other() {
    let report = script()
        .takes(A, 10)
        .at(10)
        .takes(B, 110)
        .at(20)
        .releases(B)
        .at(21)
        .takes(C, 121)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            lease_overruns: 2,
            ..NONE
        }
    );
}

#[test]
fn holders_of_different_keys_do_not_overlap() {
    let report = script().takes(A, 100).waits_for(B, OTHER_KEY).granted(B, 100).ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn a_holder_that_learned_of_the_loss_believes_no_longer_but_may_still_work() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .loses_lease(A)
        .takes(B, 140)
        .at(50)
        .releases(A)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            lease_overruns: 1,
            outlived: 1,
            ..NONE
        }
    );
}

#[test]
fn a_holder_that_learned_of_the_loss_and_releases_at_once_overruns_nothing() {
    let report = script()
        .takes(A, 100)
        .at(40)
        .loses_lease(A)
        .releases(A)
        .takes(B, 140)
        .ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn learning_of_a_loss_after_the_lease_does_not_end_the_work() {
    let report = script()
        .takes(A, 100)
        .at(120)
        .loses_lease(A)
        .at(130)
        .takes(B, 230)
        .at(140)
        .releases(A)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            lease_overruns: 1,
            outlived: 1,
            ..NONE
        }
    );
}

#[test]
fn learning_of_a_loss_after_the_lease_does_not_lengthen_it() {
    let report = script().takes(A, 100).at(120).loses_lease(A).releases(A).ends();
    assert_eq!(report.counts, ViolationCounts { outlived: 1, ..NONE });
}

#[test]
fn a_holder_that_stopped_at_the_end_of_its_lease_is_out_of_the_way() {
    let report = script()
        .takes(A, 100)
        .at(100)
        .stops(A)
        .takes(B, 200)
        .at(105)
        .releases(A)
        .ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn a_stopped_holder_may_wait_again_without_a_release() {
    let report = script()
        .takes(A, 100)
        .at(100)
        .stops(A)
        .at(101)
        .takes(A, 201)
        .at(150)
        .releases(A)
        .ends();
    assert_eq!(report.counts, NONE);
}

#[test]
fn a_double_grant_after_a_late_release_is_kept_apart() {
    let chain = script()
        .takes(A, 100)
        .at(110)
        .takes(B, 210)
        .at(120)
        .releases(A)
        .at(121)
        .takes(C, 221);
    let report = chain.at(130).releases(B).at(131).takes(A, 231).ends();
    let expected = ViolationCounts {
        double_grants_after_overrun: 2,
        lease_overruns: 1,
        outlived: 1,
        ..NONE
    };
    assert_eq!(report.counts, expected);
}

#[test]
fn the_mark_of_a_late_release_stays_when_nobody_holds_the_key() {
    // The late delete may be under way while nobody holds the key, and hit the next holder's key.
    let report = script()
        .takes(A, 100)
        .at(120)
        .releases(A)
        .at(121)
        .takes(B, 221)
        .at(122)
        .takes(C, 222)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants_after_overrun: 1,
            outlived: 1,
            ..NONE
        }
    );
}

#[test]
fn a_late_release_of_a_stopped_holder_marks_the_key_too() {
    let report = script()
        .takes(A, 100)
        .at(100)
        .stops(A)
        .at(101)
        .takes(B, 201)
        .at(102)
        .releases(A);
    let report = report.at(103).takes(C, 203).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants_after_overrun: 1,
            ..NONE
        }
    );
}

#[test]
fn a_holder_still_at_work_past_its_lease_has_deleted_nothing_yet() {
    let report = script()
        .takes(A, 100)
        .at(110)
        .takes(B, 210)
        .at(111)
        .takes(C, 211)
        .ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            lease_overruns: 1,
            ..NONE
        }
    );
}

#[test]
fn the_mark_is_on_one_key_alone() {
    let late = script().waits_for(A, OTHER_KEY).granted(A, 100).at(120).releases(A);
    let report = late.waits_for(A, KEY).granted(A, 220).at(121).takes(B, 221).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            outlived: 1,
            ..NONE
        }
    );
}
