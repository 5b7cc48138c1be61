use check::jain;

fn close(left: Option<f64>, right: f64) -> bool {
    left.is_some_and(|left| (left - right).abs() <= right.abs() * 1e-12)
}

#[test]
fn equal_shares_are_wholly_fair() {
    assert!(close(jain(&[7, 7, 7, 7]), 1.0));
}

#[test]
fn one_winner_of_four_has_a_quarter() {
    assert!(close(jain(&[0, 9, 0, 0]), 0.25));
}

#[test]
fn unequal_shares_lie_between() {
    assert!(close(jain(&[1, 2, 3]), 36.0 / 42.0));
}

#[test]
fn nothing_to_share_has_no_fairness() {
    assert_eq!(jain(&[]), None);
    assert_eq!(jain(&[0, 0]), None);
}

#[test]
fn the_largest_counts_do_not_overflow() {
    assert!(close(jain(&[u64::MAX, u64::MAX]), 1.0));
}
