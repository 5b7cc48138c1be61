//! `notify`, waiting: no wake-up is lost, no wait is in vain, and a broken connection does not hang it.

use locks::{Chance, Command, ErrorKind, Event, Key, LockMachine, Mode, Nanos, Outcome, Refusal, Reply, Strategy};

use crate::notify::{SUBSCRIBE, script};
use crate::words::{BELIEF_MS, KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms};

/// Refused at 1 ms with 4,000 ms left; the subscription labelled `sub` is under way.
fn subscribing() -> Script {
    script(every_10_ms())
        .at(0)
        .acquire()
        .expect_try("first")
        .at(1)
        .reply("first", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
}

/// Subscribed at 2 ms, tried once more, and waiting since 3 ms for a lease that ends at 3,003 ms.
fn listening() -> Script {
    subscribing()
        .at(2)
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .at(3)
        .reply("second", Reply::Int(3_000))
        .expect_wake_in(3_000..=3_010)
}

/// Woken at 900 ms, when another client was quicker, and waiting since 901 ms for a lease that began about then.
fn listening_again() -> Script {
    let mut spec = every_10_ms();
    spec.retry.max_wait = Nanos::NEVER;
    script(spec)
        .at(0)
        .acquire()
        .expect_try("first")
        .reply("first", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .reply("second", Reply::Int(3_000))
        .expect_wake_in(3_000..=3_010)
        .at(900)
        .publish()
        .expect_try("third")
        .at(901)
        .reply("third", Reply::Nil)
        .expect_wake_in(LEASE_MS..=LEASE_MS + 10)
}

#[test]
fn who_is_not_the_first_to_be_woken_gives_the_first_a_millisecond_and_then_tries_all_the_same() {
    let yielding = || {
        listening()
            .at(900)
            .publish_to_others_first()
            .expect_wake_at_ms(901)
            .expect_attempts(2)
    };
    yielding()
        .publish_to_others_first()
        .expect_nothing()
        .sleep()
        .expect_try("third")
        .at(902)
        .reply("third", Reply::Ok)
        .expect_held_until(901 + BELIEF_MS);
    yielding().publish().expect_try("third");
    yielding().cancel().expect(Outcome::Released);
    yielding()
        .disconnect()
        .expect_nothing()
        .sleep()
        .expect_try("third")
        .reply("third", Reply::Nil)
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard();
}

#[test]
fn it_tries_once_more_when_the_subscription_stands_and_then_waits_for_the_message() {
    listening()
        .at(900)
        .publish()
        .expect_try("third")
        .expect_attempts(3)
        .at(901)
        .reply("third", Reply::Ok)
        .expect_held_until(900 + BELIEF_MS);
}

#[test]
fn a_holder_that_dies_is_outlived_without_a_message() {
    listening().sleep().expect_look("third");
    // A client that was quicker after a message has a whole lease.
    listening_again().sleep().expect_look("fourth");
}

#[test]
fn an_early_wake_up_asks_for_the_point_again() {
    listening().at(10).wake().expect_wake_in(2_993..=3_003);
    subscribing().at(10).wake().expect_wake_at_ms(1 + REPLY_TIMEOUT_MS);
}

#[test]
fn a_message_that_overtakes_the_refusal_is_remembered() {
    subscribing()
        .at(2)
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .publish()
        .expect_nothing()
        .at(3)
        .reply("second", Reply::Int(3_000))
        .expect_try("third");
}

#[test]
fn the_longest_wait_ends_the_wait() {
    listening()
        .at(900)
        .publish()
        .expect_try("third")
        .reply("third", Reply::Nil)
        .expect_wake_at_ms(5_000)
        .sleep()
        .expect(Outcome::Refused(Refusal::TimedOut));
    subscribing()
        .at(5_000)
        .reply("sub", Reply::Ok)
        .expect(Outcome::Refused(Refusal::TimedOut));
}

#[test]
fn the_attempts_of_the_policy_are_counted() {
    let mut spec = every_10_ms();
    spec.retry.max_attempts = Some(2);
    script(spec)
        .acquire()
        .expect_try("first")
        .reply("first", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .reply("second", Reply::Int(4_000))
        .expect(Outcome::Refused(Refusal::Busy))
        .expect_attempts(2);
}

#[test]
fn a_lock_that_has_no_end_is_looked_at_again_after_one_lease() {
    let mut spec = every_10_ms();
    spec.retry.max_wait = Nanos::NEVER;
    script(spec)
        .acquire()
        .expect_try("first")
        .reply("first", Reply::Nil)
        .expect_subscribing("sub", SUBSCRIBE)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .reply("second", Reply::Int(-1))
        .expect_wake_in(10_000..=10_010);
}

#[test]
fn a_subscription_stands_for_the_next_requests_too() {
    listening()
        .cancel()
        .expect(Outcome::Released)
        .publish()
        .expect_nothing()
        .at(10)
        .acquire()
        .expect_try("again")
        .reply("again", Reply::Nil)
        .expect_look("look")
        .reply("look", Reply::Int(2_000))
        .expect_wake_in(2_000..=2_010);
}

#[test]
fn a_subscription_left_on_its_way_is_waited_for_and_the_attempt_before_it_not_trusted() {
    let left = || {
        subscribing()
            .cancel()
            .expect(Outcome::Released)
            .acquire()
            .expect_try("again")
    };
    left()
        .reply("sub", Reply::Ok)
        .expect_nothing()
        .reply("again", Reply::Nil)
        .expect_look("after")
        .reply("after", Reply::Int(2_000))
        .expect_wake_in(2_000..=2_010);
    left()
        .reply("again", Reply::Nil)
        .expect_guard()
        .reply("sub", Reply::Ok)
        .expect_look("after");
    left()
        .lose("sub")
        .reply("again", Reply::Nil)
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard();
}

#[test]
fn a_subscription_that_is_missing_is_made_again() {
    listening()
        .at(50)
        .disconnect()
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard()
        .reply("new", Reply::Ok)
        .expect_look("third");
    // While an attempt is under way: its refusal has not arrived.
    subscribing()
        .reply("sub", Reply::Ok)
        .expect_look("second")
        .disconnect()
        .reply("second", Reply::Int(3_000))
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard();
    // While the client does not wait.
    listening()
        .cancel()
        .expect(Outcome::Released)
        .disconnect()
        .expect_nothing()
        .acquire()
        .expect_try("again")
        .reply("again", Reply::Nil)
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard();
}

#[test]
fn where_no_subscription_can_be_had_it_polls_as_the_policy_says() {
    let lost = subscribing().lose("sub").expect_pause(0..=10);
    lost.disconnect().expect_nothing().sleep().expect_try("second");
    subscribing()
        .sleep()
        .expect_hang_up()
        .expect_pause(0..=10)
        .lose("sub")
        .expect_nothing()
        .sleep()
        .expect_try("second")
        .reply("second", Reply::Nil)
        .expect_subscribing("new", SUBSCRIBE)
        .expect_guard();
    subscribing()
        .reply("sub", Reply::Error(ErrorKind::NoAuth))
        .expect(Outcome::Failed(ErrorKind::NoAuth));
    subscribing()
        .reply("sub", Reply::Int(1))
        .expect(Outcome::Failed(ErrorKind::Unexpected));
}

#[test]
fn another_lock_takes_the_place_of_the_one_that_was_listened_to() {
    let other = Key(8);
    let (strategy, spec) = (Strategy::Notify { renews: false }, every_10_ms());
    let mut lock = locks::AnyLock::new(strategy, std::sync::Arc::new(spec), Chance::seeded(1));
    let mut wants = |event| {
        let mut out = locks::Actions::default();
        lock.on(Nanos::ZERO, event, &mut out);
        out.drain().filter_map(sent).collect::<Vec<_>>()
    };
    let acquire = |key: Key| Event::Acquire {
        keys: key.into(),
        mode: Mode::Exclusive,
    };
    let busy = |call| Event::Replied {
        call,
        reply: Reply::Int(4_000),
    };
    let refused = |call| Event::Replied {
        call,
        reply: Reply::Nil,
    };
    let first = wants(acquire(KEY))[0].0;
    let subscribe = wants(refused(first))[0].0;
    let reply = Reply::Ok;
    let second = wants(Event::Replied { call: subscribe, reply })[0].0;
    assert_eq!(wants(busy(second)), []);
    wants(Event::Cancel);
    let third = wants(acquire(other))[0].0;
    let commands: Vec<Command> = wants(refused(third)).into_iter().map(|(_, command)| command).collect();
    assert_eq!(
        commands,
        [Command::Unsubscribe { key: KEY }, Command::Subscribe { key: other }]
    );
}

fn sent(action: locks::Action) -> Option<(locks::CallId, Command)> {
    match action {
        locks::Action::Send { call, command, .. } => Some((call, command)),
        _ => None,
    }
}

#[test]
fn five_seconds_of_waiting_cost_four_commands() {
    // first, sub, second, third: the holder releases at last.
    listening()
        .at(3_000)
        .publish()
        .expect_try("third")
        .reply("third", Reply::Ok)
        .expect_held_until(3_000 + BELIEF_MS);
}
