//! `naive`: keeps its flaws, and never hangs.

use locks::{Command, ErrorKind, Outcome, Refusal, Reply, Spec, Strategy};

use crate::words::{BELIEF_MS, KEY, LEASE_MS, Script, every_10_ms, lease, one_attempt};

const SET_NX: Command = Command::SetNx { key: KEY };
const EXPIRE: Command = Command::Expire {
    key: KEY,
    seconds: LEASE_MS / 1_000,
};
const DEL: Command = Command::Del { key: KEY };

fn script(spec: Spec) -> Script {
    crate::words::script(Strategy::Naive, spec)
}

fn asking() -> Script {
    script(every_10_ms()).at(0).acquire().expect_command("setnx", SET_NX)
}

/// The key is taken; `EXPIRE` is sent at 4 ms.
fn leasing() -> Script {
    asking()
        .at(4)
        .reply("setnx", Reply::Int(1))
        .expect_command("expire", EXPIRE)
}

fn held() -> Script {
    leasing()
        .at(9)
        .reply("expire", Reply::Int(1))
        .expect_held_until(4 + BELIEF_MS)
}

#[test]
fn the_lease_counts_from_before_the_expire() {
    held().expect_attempts(1);
}

#[test]
fn a_lease_is_rounded_up_to_whole_seconds() {
    for (ms, seconds) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (1 << 53, 9_007_199_254_741)] {
        script(Spec {
            lease: lease(ms),
            ..one_attempt()
        })
        .acquire()
        .expect_command("setnx", SET_NX)
        .reply("setnx", Reply::Int(1))
        .expect_command("expire", Command::Expire { key: KEY, seconds });
    }
}

#[test]
fn a_release_deletes_the_key_whoever_has_it() {
    held()
        .release()
        .expect_command("del", DEL)
        .reply("del", Reply::Int(1))
        .expect(Outcome::Released);
    held()
        .at(99_000)
        .release()
        .expect_command("del", DEL)
        .reply("del", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn a_busy_lock_is_tried_again_as_the_policy_says() {
    asking()
        .reply("setnx", Reply::Int(0))
        .expect_pause(0..=10)
        .reply("setnx", Reply::Int(1))
        .expect_nothing()
        .sleep()
        .expect_command("again", SET_NX)
        .expect_attempts(2);
    script(one_attempt())
        .acquire()
        .expect_command("setnx", SET_NX)
        .reply("setnx", Reply::Int(0))
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_key_that_vanished_before_its_expire_is_believed_in_all_the_same() {
    leasing()
        .at(9)
        .reply("expire", Reply::Int(0))
        .expect_held_until(4 + BELIEF_MS);
}

#[test]
fn a_setnx_without_reply_is_unknown_and_cannot_be_released() {
    asking().sleep().expect(Outcome::Unknown);
    asking().lose("setnx").expect(Outcome::Unknown);
    asking().cancel().expect_nothing().sleep().expect(Outcome::Unknown);
    asking()
        .cancel()
        .expect_nothing()
        .lose("setnx")
        .expect(Outcome::Unknown);
}

#[test]
fn an_expire_without_reply_is_unknown_and_the_key_is_deleted() {
    leasing().sleep().expect_unguarded("del", DEL).expect(Outcome::Unknown);
    leasing()
        .lose("expire")
        .expect_unguarded("del", DEL)
        .expect(Outcome::Unknown);
}

#[test]
fn a_release_without_reply_is_unknown() {
    held()
        .release()
        .expect_command("del", DEL)
        .sleep()
        .expect(Outcome::Unknown);
    held()
        .release()
        .expect_command("del", DEL)
        .lose("del")
        .expect(Outcome::Unknown);
}

#[test]
fn a_late_reply_to_an_earlier_request_does_not_grant_the_present_one() {
    asking()
        .sleep()
        .expect(Outcome::Unknown)
        .at(1_500)
        .acquire()
        .expect_command("second", SET_NX)
        .reply("setnx", Reply::Int(1))
        .expect_nothing()
        .reply("second", Reply::Int(1))
        .expect_command("expire", EXPIRE)
        .reply("setnx", Reply::Int(1))
        .expect_nothing()
        .reply("expire", Reply::Int(1))
        .expect_held_until(1_500 + BELIEF_MS);
}

#[test]
fn an_error_is_an_outcome_at_each_step() {
    use ErrorKind::{Loading, Moved, NoAuth, Other, OutOfMemory, ReadOnly, WrongType};
    for kind in [ReadOnly, Loading, Moved, OutOfMemory, WrongType, NoAuth, Other] {
        let failed = Outcome::Failed(kind);
        asking().reply("setnx", Reply::Error(kind)).expect(failed);
        leasing()
            .reply("expire", Reply::Error(kind))
            .expect_unguarded("del", DEL)
            .expect(failed);
        held()
            .release()
            .expect_command("del", DEL)
            .reply("del", Reply::Error(kind))
            .expect(failed);
    }
    for reply in [Reply::Ok, Reply::Nil, Reply::Int(2), Reply::Other] {
        let failed = Outcome::Failed(ErrorKind::Unexpected);
        asking().reply("setnx", reply).expect(failed);
        leasing()
            .reply("expire", reply)
            .expect_unguarded("del", DEL)
            .expect(failed);
        held()
            .release()
            .expect_command("del", DEL)
            .reply("del", reply)
            .expect(failed);
    }
}

/// A lease of one second: less 1 % and 2 ms, and counted from the `EXPIRE` at 4 ms, it is believed until 992 ms.
fn leasing_for_a_second(spec: Spec) -> Script {
    script(Spec {
        lease: lease(1),
        ..spec
    })
    .acquire()
    .expect_command("setnx", SET_NX)
    .at(4)
    .reply("setnx", Reply::Int(1))
    .expect_command("expire", Command::Expire { key: KEY, seconds: 1 })
}

#[test]
fn a_lease_confirmed_when_it_is_over_is_left_to_end_by_itself() {
    leasing_for_a_second(one_attempt())
        .at(991)
        .reply("expire", Reply::Int(1))
        .expect_held_until(992);
    let late = |spec: Spec| leasing_for_a_second(spec).at(992).reply("expire", Reply::Int(1));
    late(one_attempt()).expect(Outcome::Refused(Refusal::TooLate));
    late(every_10_ms())
        .expect_pause(0..=10)
        .sleep()
        .expect_command("again", SET_NX);
}

#[test]
fn no_delete_is_sent_for_a_grant_that_nobody_held_once_its_lease_may_be_over() {
    let over = || leasing_for_a_second(one_attempt()).at(992);
    over().sleep().expect(Outcome::Unknown);
    over().lose("expire").expect(Outcome::Unknown);
    over().cancel().expect(Outcome::Unknown);
    let refused = Reply::Error(ErrorKind::Other);
    over()
        .reply("expire", refused)
        .expect(Outcome::Failed(ErrorKind::Other));
}

#[test]
fn a_cancel_while_asking_deletes_what_was_granted() {
    let cancelled = || asking().at(1).cancel().expect_nothing();
    cancelled()
        .reply("setnx", Reply::Int(1))
        .expect_command("del", DEL)
        .reply("del", Reply::Int(1))
        .expect(Outcome::Released);
    cancelled().reply("setnx", Reply::Int(0)).expect(Outcome::Released);
    cancelled()
        .reply("setnx", Reply::Error(ErrorKind::ReadOnly))
        .expect(Outcome::Released);
    cancelled()
        .reply("setnx", Reply::Error(ErrorKind::Other))
        .expect(Outcome::Unknown);
    cancelled().reply("setnx", Reply::Other).expect(Outcome::Unknown);
    cancelled().cancel().expect_nothing();
}

#[test]
fn a_cancel_before_the_expire_gets_its_reply_deletes_at_once() {
    leasing()
        .cancel()
        .expect_command("del", DEL)
        .reply("expire", Reply::Int(1))
        .expect_nothing()
        .cancel()
        .expect_nothing()
        .reply("del", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_settles_at_once_in_the_pause_and_releases_while_held() {
    asking()
        .reply("setnx", Reply::Int(0))
        .expect_pause(0..=10)
        .cancel()
        .expect(Outcome::Released);
    held()
        .cancel()
        .expect_command("del", DEL)
        .reply("del", Reply::Int(0))
        .expect(Outcome::Expired);
    held()
        .release()
        .expect_command("del", DEL)
        .cancel()
        .expect_nothing()
        .reply("del", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_long_lease_is_honoured_and_does_not_wrap() {
    script(Spec {
        lease: lease(1 << 53),
        ..one_attempt()
    })
    .acquire()
    .expect_command("setnx", SET_NX)
    .reply("setnx", Reply::Int(1))
    .expect_command(
        "expire",
        Command::Expire {
            key: KEY,
            seconds: 9_007_199_254_741,
        },
    )
    .reply("expire", Reply::Int(1))
    .expect_held_until(u64::MAX);
}
