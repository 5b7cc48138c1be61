//! Connections whose other ends belong to the test; only a round of the thread moves bytes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use locks::Strategy;

use super::*;
use crate::by_hand::{A, B, Rig, rig_over_sockets, server, spec};
use crate::clients::Doing;
use crate::faults::{ClientFault, Fault, FaultAction};
use crate::spec::{Connections, TrialSpec};

const ALL: Links = Links {
    server: None,
    client: None,
};
const OK: &[u8] = b"+OK\r\n";

/// Two clients of `mutex`, each with a connection of its own, and this fault from 10 to 60 ms.
fn rig(links: Links, how: LinkFault) -> (Rig<Sockets>, Vec<UnixStream>) {
    let lasts = if how == LinkFault::Reset { 0 } else { 50 };
    let strategy = Strategy::Mutex;
    rig_over_sockets(&TrialSpec {
        servers: vec![server(strategy)],
        connections: Connections::PerClient,
        faults: vec![Fault {
            at: Nanos::from_millis(10),
            lasts: Nanos::from_millis(lasts),
            action: FaultAction::OfLinks(links, how),
        }],
        ..spec(strategy, 2)
    })
}

impl Rig<Sockets> {
    fn starts_at(&mut self, client: u32, ms: u64) {
        self.driver.clients.starts_next(client);
        self.round_at(ms);
    }

    fn counted(&self) -> (u64, u64, u64) {
        let counters = self.driver.recorder.counters();
        (counters.all_grants, counters.reconnects, counters.lost_calls)
    }

    fn is_open(&self, connection: u32) -> bool {
        use crate::transport::Transport;
        self.driver.transport.is_open(connection)
    }
}

fn received(mut server: &UnixStream) -> usize {
    server.read(&mut [0; 4096]).unwrap_or(0)
}

fn answers(mut server: &UnixStream) {
    server.write_all(OK).expect("the client is there");
}

#[test]
fn a_reset_closes_the_connections_that_it_names_once() {
    let of_b = Links { client: Some(B), ..ALL };
    let (mut rig, servers) = rig(of_b, LinkFault::Reset);
    rig.starts_at(A, 1);
    rig.starts_at(B, 2);
    assert!(received(&servers[0]) > 0 && received(&servers[1]) > 0);
    rig.round_at(10);
    assert_eq!((rig.is_open(0), rig.is_open(1)), (true, false));
    assert_eq!(rig.counted(), (0, 1, 1), "the call of B is lost");
    answers(&servers[0]);
    rig.round_at(11);
    assert_eq!(rig.doing(A), Doing::Holding);
}

#[test]
fn a_cut_refuses_new_connections_while_it_lasts() {
    let (mut rig, _servers) = rig(ALL, LinkFault::Cut);
    rig.round_at(10);
    assert_eq!(rig.counted(), (0, 2, 0));
    let refused = |rig: &Rig<Sockets>| {
        rig.driver
            .transport
            .connections
            .iter()
            .filter(|one| one.is_refused)
            .count()
    };
    assert_eq!(refused(&rig), 2);
    rig.round_at(40);
    assert_eq!(rig.counted(), (0, 2, 0), "a connection that is refused was never open");
    rig.round_at(60);
    assert_eq!(refused(&rig), 0);
}

#[test]
fn a_black_hole_swallows_both_ways_and_what_lost_bytes_is_closed_at_its_end() {
    let (mut rig, servers) = rig(ALL, LinkFault::BlackHole);
    rig.starts_at(A, 1);
    assert!(received(&servers[0]) > 0);
    rig.round_at(10);
    answers(&servers[0]);
    rig.starts_at(B, 11);
    rig.round_at(12);
    assert_eq!(received(&servers[1]), 0, "the command of B never arrives");
    assert_eq!((rig.doing(A), rig.doing(B)), (Doing::Acquiring, Doing::Acquiring));
    assert!(rig.is_open(0) && rig.is_open(1), "the connections stay");
    rig.round_at(60);
    assert_eq!(rig.counted(), (0, 2, 2));
    assert!(!rig.is_open(0) && !rig.is_open(1));
}

#[test]
fn a_connection_that_lost_nothing_goes_on_after_the_fault_and_pays_nothing() {
    let (mut rig, servers) = rig(ALL, LinkFault::BlackHole);
    rig.round_at(10);
    assert!(rig.driver.transport.connections.iter().all(|one| one.delay.is_some()));
    rig.round_at(60);
    assert!(rig.driver.transport.connections.iter().all(|one| one.delay.is_none()));
    rig.starts_at(A, 61);
    assert!(received(&servers[0]) > 0);
    answers(&servers[0]);
    rig.round_at(62);
    assert_eq!(rig.counted(), (1, 0, 0));
}

#[test]
fn half_open_lets_commands_out_and_nothing_in() {
    let (mut rig, servers) = rig(ALL, LinkFault::HalfOpen);
    rig.round_at(10);
    rig.starts_at(A, 11);
    assert!(received(&servers[0]) > 0);
    answers(&servers[0]);
    rig.round_at(12);
    assert_eq!(rig.doing(A), Doing::Acquiring);
    rig.round_at(60);
    assert_eq!(rig.counted(), (0, 1, 1), "the other connection has lost nothing");
}

#[test]
fn a_server_that_closes_behind_a_half_open_link_is_noticed_when_the_fault_ends() {
    let (mut rig, mut servers) = rig(ALL, LinkFault::HalfOpen);
    rig.round_at(10);
    drop(servers.remove(0));
    rig.round_at(11);
    assert!(rig.is_open(0));
    rig.round_at(60);
    assert!(!rig.is_open(0));
}

#[test]
fn lost_replies_take_their_connection_with_them() {
    for (nth, expected) in [(None, 1), (Some(1), 1), (Some(2), 0)] {
        let (mut rig, servers) = rig(ALL, LinkFault::LoseReplies { nth });
        rig.starts_at(A, 1);
        rig.round_at(10);
        answers(&servers[0]);
        rig.round_at(11);
        assert_eq!(rig.counted(), (1 - expected, expected, expected), "{nth:?}");
    }
}

/// Over a connection that the clients share, which stays.
#[test]
fn a_reply_to_what_a_crashed_client_sent_is_none_to_what_it_sends_anew() {
    let strategy = Strategy::Mutex;
    let (mut rig, servers) = rig_over_sockets(&TrialSpec {
        servers: vec![server(strategy)],
        faults: vec![Fault {
            at: Nanos::from_millis(10),
            lasts: Nanos::ZERO,
            action: FaultAction::OfClient(A, ClientFault::Crash),
        }],
        ..spec(strategy, 2)
    });
    rig.starts_at(A, 1);
    let first = received(&servers[0]);
    rig.round_at(10);
    assert!(received(&servers[0]) >= first, "it asks anew");
    answers(&servers[0]);
    rig.round_at(11);
    assert_eq!((rig.doing(A), rig.counted()), (Doing::Acquiring, (0, 0, 0)));
    answers(&servers[0]);
    rig.round_at(12);
    assert_eq!((rig.doing(A), rig.counted()), (Doing::Holding, (1, 0, 0)));
}

#[test]
fn a_slow_link_carries_the_bytes_of_a_write_in_their_time_and_the_rest_at_once_when_it_is_over() {
    let mut link = AddedDelay::new(Length::Fixed(Nanos::ZERO), streams(1, 0, 1).remove(0));
    let slow = Disturbance {
        bytes_per_s: Some(1_000),
        ..Disturbance::default()
    };
    assert!(!link.disturb(slow, Nanos::ZERO));
    let ms = Nanos::from_millis;
    assert!(link.send(ms(5), &mut vec![1; 10]).is_empty());
    assert!(link.send(ms(6), &mut vec![1; 10]).is_empty());
    assert_eq!(link.next_due(), ms(15));
    assert_eq!(link.send(ms(15), &mut Vec::new()).len(), 10);
    link.at_socket.clear();
    assert_eq!(link.next_due(), ms(25), "behind the bytes before it");
    assert!(!link.disturb(Disturbance::default(), ms(20)));
    assert_eq!(link.send(ms(20), &mut Vec::new()).len(), 10);
    link.at_socket.clear();
    assert!(link.is_idle());
}

#[test]
fn of_several_faults_of_one_link_each_counts() {
    let fixed = |ms| LinkFault::Delay(crate::spec::Distribution::Fixed(Nanos::from_millis(ms)));
    let (mut rig, _servers) = rig(ALL, LinkFault::Cut);
    let active = [
        (ALL, fixed(4)),
        (ALL, fixed(6)),
        (ALL, LinkFault::Throttle { bytes_per_s: 1_000 }),
        (ALL, LinkFault::Throttle { bytes_per_s: 2_000 }),
    ];
    rig.driver.transport.disturb_links(&active, Nanos::ZERO);
    let link = rig.driver.transport.connections[0]
        .delay
        .as_mut()
        .expect("it is disturbed");
    let ms = Nanos::from_millis;
    assert!(link.send(ms(0), &mut vec![1; 10]).is_empty());
    assert_eq!(
        link.next_due(),
        ms(15),
        "half of both delays, and the slower of the rates"
    );
}
