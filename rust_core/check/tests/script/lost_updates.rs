use check::{LostUpdates, UpdateVerdict};

fn writes(acknowledged: u64, unknown: u64) -> LostUpdates {
    let mut writes = LostUpdates::default();
    (0..acknowledged).for_each(|_| writes.acknowledge());
    (0..unknown).for_each(|_| writes.lose_answer());
    writes
}

#[test]
fn a_counter_that_holds_each_acknowledged_write_is_kept() {
    assert_eq!(writes(10, 0).judge(10), UpdateVerdict::Kept);
    assert_eq!(writes(0, 0).judge(0), UpdateVerdict::Kept);
}

#[test]
fn a_missing_write_is_lost() {
    assert_eq!(writes(10, 0).judge(9), UpdateVerdict::Lost { at_least: 1 });
    assert!(writes(10, 3).judge(9).is_violation());
}

#[test]
fn a_lost_answer_leaves_it_undecided_and_is_no_violation() {
    for final_value in 10..=12 {
        let verdict = writes(10, 2).judge(final_value);
        assert_eq!(verdict, UpdateVerdict::Undecided { unknown: 2 });
        assert!(!verdict.is_violation());
    }
}

#[test]
fn more_than_was_ever_sent_is_a_surplus() {
    assert_eq!(writes(10, 2).judge(13), UpdateVerdict::Surplus { at_least: 1 });
    assert!(writes(10, 0).judge(11).is_violation());
}

#[test]
fn the_counts_of_two_threads_add_up() {
    let mut all = writes(4, 1);
    all.join(&writes(6, 1));
    assert_eq!(all, writes(10, 2));
}
