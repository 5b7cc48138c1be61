use check::{Spread, jain};
use locks::Nanos;

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

fn spread(values: &[u64]) -> Spread {
    let mut spread = Spread::default();
    for &value in values {
        spread.add(Nanos(value));
    }
    spread
}

#[test]
fn the_spread_divides_by_all_that_was_added() {
    let spread = spread(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert!(close(spread.mean_ns(), 5.0));
    assert!(close(spread.std_ns(), 2.0));
    assert_eq!(spread.count(), 8);
}

#[test]
fn a_small_spread_of_long_waits_is_not_rounded_away() {
    let hour = 3_600_000_000_000;
    assert!(close(
        spread(&[hour, hour + 2, hour + 4, hour + 6]).std_ns(),
        5.0_f64.sqrt()
    ));
}

#[test]
fn joined_spreads_are_as_one() {
    let mut left = spread(&[2, 4, 4]);
    left.join(&spread(&[4, 5, 5, 7, 9]));
    left.join(&Spread::default());
    assert!(close(left.mean_ns(), 5.0));
    assert!(close(left.std_ns(), 2.0));
    let mut empty = Spread::default();
    empty.join(&left);
    assert_eq!(empty, left);
}

#[test]
fn nothing_has_no_spread_and_one_has_none_around_itself() {
    assert_eq!(Spread::default().std_ns(), None);
    assert_eq!(Spread::default().mean_ns(), None);
    assert_eq!(spread(&[5]).std_ns(), Some(0.0));
}
