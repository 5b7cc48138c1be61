//! The lines of one connection on invented times; and sessions whose other ends belong to the test. There only a round
//! of the thread moves bytes, so that a test may look at a socket whenever it likes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use locks::{Scope, SessionOwner, Strategy, Wait};

use super::*;
use crate::by_hand::{A, B, Rig, rig_at_distance, server, spec_for_plants};
use crate::clients::Doing;
use crate::clock;
use crate::rules::rules;
use crate::spec::{Distribution, ServerSpec, TrialSpec};
use crate::transport::Transport;

/// A row with the value true, the end of its statement, and `ReadyForQuery`.
const GRANTED: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x01\x01C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
const RTT: Nanos = Nanos::from_millis(30);
const HALF: Nanos = Nanos::from_millis(15);

fn delay(rtt: &Distribution) -> AddedDelay {
    let rtt = Length::new(rtt).expect("it is a distribution");
    AddedDelay::new(rtt, streams(1, 0, 1).remove(0))
}

fn fixed(rtt: u64) -> AddedDelay {
    delay(&Distribution::Fixed(Nanos(rtt)))
}

fn sent(delay: &mut AddedDelay, now: u64) -> Vec<u8> {
    std::mem::take(delay.send(Nanos(now), &mut Vec::new()))
}

fn received(delay: &mut AddedDelay, now: u64) -> Option<Vec<u8>> {
    let mut buffer = [0; 64];
    let count = delay.receive(Nanos(now), &mut buffer).expect("it has not ended")?;
    Some(buffer[..count].to_vec())
}

#[test]
fn each_direction_takes_half_of_the_round_trip() {
    let mut delay = fixed(11);
    let mut out = b"SET".to_vec();
    assert!(delay.send(Nanos(100), &mut out).is_empty());
    assert!(out.is_empty(), "it is under way");
    assert_eq!(delay.next_due(), Nanos(105));
    assert_eq!(sent(&mut delay, 104), b"");
    assert_eq!(sent(&mut delay, 105), b"SET");
    delay.arrived(Nanos(200), b"OK");
    assert_eq!(delay.next_due(), Nanos(206), "the two halves make up the whole");
    assert_eq!(received(&mut delay, 205), None);
    assert_eq!(received(&mut delay, 206), Some(b"OK".to_vec()));
    assert_eq!(delay.next_due(), Nanos::NEVER);
}

#[test]
fn the_bytes_that_come_back_take_the_other_half_of_the_same_draw() {
    let range = Distribution::Uniform {
        low: Nanos(0),
        high: Nanos(1_000_000),
    };
    let mut delay = delay(&range);
    let mut total = 0;
    for turn in 0..1_000 {
        let at = Nanos(turn * 10_000_000);
        delay.send(at, &mut vec![1]);
        let there = delay.next_due().since(at);
        delay.send(at.after(there), &mut Vec::new());
        delay.arrived(at.after(there), b"2");
        let back = delay.next_due().since(at.after(there));
        delay.receive(Nanos::NEVER, &mut [0; 8]).expect("it has not ended");
        assert!(back == there || back.0 == there.0 + 1, "{there:?} and {back:?}");
        total += there.0 + back.0;
    }
    let mean = total / 1_000;
    assert!((450_000..550_000).contains(&mean), "{mean} ns on average");
}

#[test]
fn what_comes_unasked_has_a_round_trip_of_its_own() {
    let mut delay = fixed(10);
    delay.arrived(Nanos(50), b"message");
    assert_eq!(delay.next_due(), Nanos(55));
}

#[test]
fn nothing_is_sent_before_the_handshake_has_taken_a_round_trip() {
    let mut delay = fixed(10);
    assert!(
        delay.connected(Nanos(100)) > Nanos(50),
        "a log-in needs several round trips"
    );
    delay.send(Nanos(100), &mut b"HELLO".to_vec());
    assert_eq!(delay.next_due(), Nanos(115));
    delay.send(Nanos(120), &mut b"SET".to_vec());
    assert_eq!(sent(&mut delay, 125), b"HELLOSET");
}

#[test]
fn the_end_comes_behind_the_bytes_before_it_and_only_once() {
    let mut delay = fixed(10);
    delay.arrived(Nanos(100), b"last words");
    delay.ended(Nanos(101), Broken::Closed);
    delay.ended(Nanos(102), Broken::Unasked);
    assert_eq!(received(&mut delay, 105), Some(b"last words".to_vec()));
    assert_eq!(received(&mut delay, 105), None);
    assert_eq!(delay.next_due(), Nanos(106));
    assert!(delay.ready(7, Nanos(106)).closed);
    let end = delay.receive(Nanos(106), &mut [0; 8]);
    assert!(matches!(end, Err(Broken::Closed)), "{end:?}");
    assert_eq!(delay.next_due(), Nanos::NEVER);
}

#[test]
fn a_connection_that_is_closed_here_loses_what_is_under_way() {
    let mut delay = fixed(10);
    delay.send(Nanos(0), &mut b"lost".to_vec());
    delay.arrived(Nanos(0), b"lost too");
    delay.ended(Nanos(0), Broken::Closed);
    delay.clear();
    assert_eq!(delay.next_due(), Nanos::NEVER);
    assert_eq!(sent(&mut delay, 99), b"");
    assert_eq!(received(&mut delay, 99), None);
}

/// Two clients with a session each, whose bytes are delayed.
fn delayed_sessions() -> (Rig<Sockets>, Vec<UnixStream>) {
    let lock = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    let (rig, servers) = rig_at_distance(lock, 2, Distribution::Fixed(RTT));
    rig.driver.clock.unset();
    (rig, servers)
}

fn round(rig: &mut Rig<Sockets>) {
    rig.driver
        .round(clock::now(), Nanos::NEVER)
        .expect("no connection has to stand");
}

fn starts(rig: &mut Rig<Sockets>, client: u32) {
    rig.driver.clients.starts_next(client);
    round(rig);
}

/// Rounds until `holds`. The time that has passed since `began`.
fn rounds_until(rig: &mut Rig<Sockets>, began: Nanos, mut holds: impl FnMut(&Rig<Sockets>) -> bool) -> Nanos {
    while !holds(rig) {
        assert!(clock::now().since(began) < Nanos::from_secs(20), "it never comes");
        round(rig);
    }
    clock::now().since(began)
}

fn has_bytes(mut server: &UnixStream) -> bool {
    matches!(server.read(&mut [0; 512]), Ok(count) if count > 0)
}

#[test]
fn a_command_reaches_the_server_half_a_round_trip_after_its_write_and_the_reply_its_client_after_the_other_half() {
    let (mut rig, servers) = delayed_sessions();
    let began = clock::now();
    starts(&mut rig, A);
    assert!(!has_bytes(&servers[0]), "it is under way");
    assert!(rounds_until(&mut rig, began, |_| has_bytes(&servers[0])) >= HALF);
    let replied = clock::now();
    (&servers[0]).write_all(GRANTED).expect("the client is there");
    assert!(rounds_until(&mut rig, replied, |rig| rig.doing(A) == Doing::Holding) >= HALF);
    let granted = rig.driver.clients.granted_at(A);
    assert!(
        granted.since(replied) >= HALF,
        "the grant is stamped when its bytes have come out"
    );
}

#[test]
fn a_grant_that_arrived_before_the_end_of_its_connection_is_held_and_then_lost() {
    let (mut rig, mut servers) = delayed_sessions();
    starts(&mut rig, A);
    let began = clock::now();
    servers[0].write_all(GRANTED).expect("the client is there");
    drop(servers.remove(0));
    rounds_until(&mut rig, began, |rig| rig.doing(A) == Doing::Holding);
    let lost = rounds_until(&mut rig, began, |rig| rig.driver.recorder.counters().lapsed == 1);
    assert!(lost >= HALF);
    assert_eq!(rig.driver.recorder.counters().reconnects, 1);
}

#[test]
fn an_end_that_comes_out_with_a_later_grant_is_handled_first() {
    let (mut rig, mut servers) = delayed_sessions();
    for client in [A, B] {
        starts(&mut rig, client);
    }
    servers[0].write_all(GRANTED).expect("the client is there");
    rounds_until(&mut rig, clock::now(), |rig| rig.doing(A) == Doing::Holding);
    drop(servers.remove(0));
    servers[0].write_all(GRANTED).expect("the client is there");
    // Both are read in one round, and both come out in one.
    round(&mut rig);
    std::thread::sleep(std::time::Duration::from_nanos(RTT.0));
    round(&mut rig);
    assert_eq!(
        (rig.doing(B), rig.driver.recorder.counters().lapsed),
        (Doing::Holding, 1)
    );
    rig.now = clock::now();
    assert_eq!(
        rig.judged().counts.sessions_lost,
        0,
        "A had learned of its loss before B was granted"
    );
}

#[test]
fn the_drain_is_not_quiet_while_bytes_are_under_way() {
    let (mut rig, servers) = delayed_sessions();
    let began = clock::now();
    assert_eq!(rig.driver.transport.quiet_since(), Nanos::ZERO);
    starts(&mut rig, A);
    // The command is under way until then, or longer.
    assert!(rig.driver.transport.quiet_since() >= began.after(HALF));
    drop(servers);
}

#[test]
fn a_key_may_go_without_a_grant_for_longer_over_a_longer_distance() {
    let at_distance = |rtt| ServerSpec {
        rtt,
        ..server(Strategy::Mutex)
    };
    let rules = |rtts: &[Distribution]| {
        rules(&TrialSpec {
            servers: rtts.iter().cloned().map(at_distance).collect(),
            ..spec_for_plants(Strategy::Mutex, 1, 1)
        })
    };
    let near = rules(&[Distribution::Fixed(Nanos::ZERO)]);
    let far = rules(&[Distribution::Fixed(Nanos::ZERO), Distribution::Fixed(RTT)]);
    assert_eq!(far.granted_within.since(near.granted_within), Nanos(RTT.0 * 6));
    assert_eq!(
        far.release_seen_within.since(near.release_seen_within),
        Nanos(RTT.0 * 2)
    );
    let unlimited = rules(&[Distribution::Exp { mean: RTT }]);
    let timeout = Nanos::from_secs(1);
    assert_eq!(
        unlimited.granted_within.since(near.granted_within),
        Nanos(timeout.0 * 5)
    );
}
