use check::{LostUpdates, UpdateVerdict, judge_rows};

fn verdict(acknowledged: u64, unknown: u64, final_value: u64) -> UpdateVerdict {
    LostUpdates { acknowledged, unknown }.judge(final_value)
}

#[test]
fn a_counter_that_holds_each_acknowledged_write_is_kept() {
    assert_eq!(verdict(10, 0, 10), UpdateVerdict::Kept);
    assert_eq!(verdict(0, 0, 0), UpdateVerdict::Kept);
}

#[test]
fn a_missing_write_is_lost() {
    assert_eq!(verdict(10, 0, 9), UpdateVerdict::Lost { at_least: 1 });
    assert_eq!(verdict(10, 3, 9), UpdateVerdict::Lost { at_least: 1 });
}

#[test]
fn a_lost_reply_leaves_it_undecided() {
    for final_value in 10..=12 {
        assert_eq!(verdict(10, 2, final_value), UpdateVerdict::Undecided { unknown: 2 });
    }
}

#[test]
fn more_than_was_ever_sent_is_a_surplus() {
    assert_eq!(verdict(10, 0, 11), UpdateVerdict::Surplus { at_least: 1 });
    assert_eq!(verdict(10, 2, 13), UpdateVerdict::Surplus { at_least: 1 });
}

#[test]
fn a_surplus_of_one_row_hides_no_loss_of_another() {
    let row = |acknowledged, unknown, value| (LostUpdates { acknowledged, unknown }, value);
    let rows = [row(5, 0, 3), row(5, 0, 7), row(4, 2, 5), row(1, 0, 1)];
    let verdict = judge_rows(rows);
    assert_eq!((verdict.lost, verdict.surplus, verdict.undecided), (2, 2, 2));
}
