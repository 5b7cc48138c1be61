//! A client that takes several keys at once is reported as one client per key.

use crate::script::{A, B, C, D, KEY, NONE, OTHER_KEY, Script, script};
use check::ViolationCounts;

/// A and B are the two keys of one set, C and D those of another.
fn takes_both(story: Script, [one, other]: [u32; 2], until: u64) -> Script {
    let story = story.waits_for(one, KEY).waits_for(other, OTHER_KEY);
    story.granted(one, until).granted(other, until)
}

#[test]
fn sets_one_after_another_are_no_violation() {
    let story = takes_both(script(), [A, B], 100).at(5).releases(A).releases(B);
    let report = takes_both(story, [C, D], 105).ends();
    assert_eq!((report.counts, report.figures.grants), (NONE, 4));
}

#[test]
fn sets_with_a_key_in_common_are_a_double_grant_of_that_key() {
    let story = takes_both(script(), [A, B], 100).at(5).releases(A).waits_for(C, KEY);
    let report = story.waits_for(D, OTHER_KEY).granted(C, 105).granted(D, 105).ends();
    assert_eq!(
        report.counts,
        ViolationCounts {
            double_grants: 1,
            ..NONE
        }
    );
    assert_eq!(report.violations[0].key, OTHER_KEY);
}
