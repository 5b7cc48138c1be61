//! Locks that depend on a session, with replies by hand.

use check::ViolationCounts;
use locks::{Event, Reply, Scope, SessionOwner, Strategy, Wait};

use crate::by_hand::{A, B, Rig, rig};

/// B was granted the key at 2 ms while A held it; A sends its release at 3 ms.
fn overlapping() -> Rig {
    let lock = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    let first = rig(lock, 2).begins_to_hold(A, 2).at_ms(1).answered(Reply::Int(1));
    first.begins_to_hold(B, 9).at_ms(2).answered(Reply::Int(1)).at_ms(3)
}

fn lost() -> ViolationCounts {
    ViolationCounts {
        sessions_lost: 1,
        ..ViolationCounts::default()
    }
}

fn doubled() -> ViolationCounts {
    ViolationCounts {
        double_grants: 1,
        ..ViolationCounts::default()
    }
}

#[test]
fn a_release_that_met_a_closed_session_shows_that_the_lock_was_lost() {
    let mut released = overlapping();
    released.driver.transport.disconnected.push(A);
    assert_eq!(released.loses_its_reply().judged().counts, lost());
}

#[test]
fn a_release_that_got_its_reply_shows_that_it_was_granted_twice() {
    assert_eq!(overlapping().answered(Reply::Int(1)).judged().counts, doubled());
}

#[test]
fn a_reply_that_was_lost_beside_a_session_that_stands_shows_nothing_of_it() {
    assert_eq!(overlapping().loses_its_reply().judged().counts, doubled());
}

#[test]
fn a_release_of_what_was_not_held_is_no_lost_session() {
    assert_eq!(overlapping().answered(Reply::Int(0)).judged().counts, doubled());
}

/// A's lock has closed the session of its own hold, and then receives `Disconnected`.
#[test]
fn a_session_that_the_lock_itself_closed_is_not_lost() {
    let lock = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    let mut held = rig(lock, 2).begins_to_hold(A, 2).at_ms(1).answered(Reply::Int(1));
    held.driver.clients.hung_up.push(A);
    held.dispatch(A, Event::Disconnected);
    let granted = held.begins_to_hold(B, 9).at_ms(2).answered(Reply::Int(1));
    assert_eq!(granted.at_ms(3).judged().counts, doubled());
}

#[test]
fn a_holder_that_sees_its_session_close_has_lost_the_lock() {
    let mut holding = overlapping();
    holding.dispatch(B, Event::Disconnected);
    let answered = holding.answered(Reply::Int(1));
    assert_eq!(answered.driver.recorder.counters().lapsed, 1);
    assert_eq!(answered.judged().counts, doubled(), "that was the later of the two");
}
