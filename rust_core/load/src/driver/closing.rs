//! Two sessions whose other ends belong to the test.

use std::io::Write;

use check::ViolationCounts;
use locks::{Nanos, Scope, SessionOwner, Strategy, Wait};

use crate::by_hand::{A, B, MS, Rig, rig_in_sessions};
use crate::clients::Doing;
use crate::sockets::Sockets;
use crate::transport::Transport;

/// A row with the value true, the end of its statement, and `ReadyForQuery`.
const GRANTED: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x01\x01C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
/// `FATAL`, of a session that an administrator ends.
const ENDED: &[u8] = b"E\0\0\0\x18SFATAL\0VFATAL\0C57P01\0\0";

impl Rig<Sockets> {
    fn round(&mut self) {
        self.round_at(self.now.0 / MS + 1);
    }

    fn starts(&mut self, client: u32) {
        self.driver.clients.starts_next(client);
        self.round();
    }
}

#[test]
fn a_session_whose_end_was_there_to_be_read_is_lost_before_what_was_granted_after_it() {
    let lock = Strategy::PgAdvisory {
        scope: Scope::Session,
        wait: Wait::Try,
        session: SessionOwner::ThisClient,
    };
    for last_words in [&[][..], ENDED] {
        let (mut rig, mut servers) = rig_in_sessions(lock, 2);
        rig.starts(A);
        servers[0].write_all(GRANTED).expect("the client is there");
        rig.round();
        assert_eq!(rig.doing(A), Doing::Holding);
        rig.starts(B);
        // Both have arrived when the next round reads, the grant first.
        servers[1].write_all(GRANTED).expect("the client is there");
        servers[0].write_all(last_words).expect("the client is there");
        drop(servers.remove(0));
        rig.round();
        assert_eq!(rig.doing(B), Doing::Holding);
        assert_eq!(rig.driver.recorder.counters().lapsed, 1);
        // A goes on with its work, and knows that it lost the lock.
        let expected = ViolationCounts {
            lease_overruns: 1,
            ..ViolationCounts::default()
        };
        assert_eq!(rig.judged().counts, expected);
    }
}

#[test]
fn a_server_that_answers_nobody_is_left_when_too_many_calls_wait_for_it() {
    let lock = Strategy::PgLease;
    let (mut rig, servers) = rig_in_sessions(lock, 1);
    rig.starts(A);
    let mut most = 0;
    // Each reply timeout is a call more, and no byte ever comes back.
    while rig.driver.recorder.counters().reconnects == 0 {
        assert!(rig.now < Nanos::from_secs(10_000), "{most} calls wait");
        rig.now = rig.now.after(Nanos::from_secs(1));
        rig.round();
        most = most.max(rig.driver.transport.outstanding());
    }
    assert!((4_090..=4_100).contains(&most), "{most} calls waited");
    assert!(rig.driver.recorder.counters().lost_calls >= 4_090);
    assert_eq!(rig.driver.transport.outstanding(), 0);
    drop(servers);
}
