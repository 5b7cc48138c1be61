//! Nested entries, with replies by hand: every way in which one can end, at every depth.

use check::ViolationCounts;
use locks::{Count, ErrorKind, Event, Reply, Strategy};

use crate::by_hand::{A, B, MS, Rig, nested_rig};
use crate::clients::Doing;

/// A lease of these clients has ended by then, and so has the reply timeout of a call.
const PAST_THE_LEASE_MS: u64 = 11_000;

/// How one call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered(Reply),
    Lost,
    /// No reply comes within the reply timeout.
    Unanswered,
    /// The reply comes after the lease has ended.
    TooLate(Reply),
}

const FATES: [Fate; 9] = [
    Fate::Answered(Reply::Nil),
    Fate::Answered(Reply::Int(0)),
    Fate::Answered(Reply::Other),
    Fate::Answered(Reply::Error(ErrorKind::ReadOnly)),
    Fate::Answered(Reply::Error(ErrorKind::Other)),
    Fate::Lost,
    Fate::Unanswered,
    Fate::TooLate(Reply::Nil),
    Fate::TooLate(Reply::Int(1)),
];

impl Rig {
    fn meets(mut self, client: u32, fate: Fate) -> Self {
        let then = self.now.0 / MS;
        match fate {
            Fate::Answered(reply) => self.answered(reply),
            Fate::Lost => self.loses_its_reply(),
            Fate::Unanswered => {
                // `at_ms` fires its timers.
                self.driver.transport.sent.clear();
                self = self.at_ms(then + 2_000);
                self
            }
            Fate::TooLate(reply) => {
                self.now = locks::Nanos((then + PAST_THE_LEASE_MS) * MS);
                let called = self.last_sent();
                assert_eq!(called.client, client);
                let call = called.call;
                self.dispatch(client, Event::Replied { call, reply });
                self
            }
        }
    }

    /// Goes on until A is at rest: every call under way gets its successful reply.
    fn comes_to_rest(mut self, count: Count) -> Self {
        for _ in 0..16 {
            if !matches!(self.doing(A), Doing::Releasing | Doing::Entering | Doing::Holding) {
                break;
            }
            let left = u32::from(self.driver.clients.list[A as usize].entries) - 1;
            self = if self.doing(A) == Doing::Holding || self.driver.transport.sent.is_empty() {
                let later = self.now.0 / MS + 2_000;
                self.at_ms(later)
            } else {
                let reply = match count {
                    Count::Server => Reply::Int(left.into()),
                    Count::Local => Reply::Int(1),
                };
                self.answered(reply)
            };
        }
        self
    }
}

/// A has entered `nesting` times, and its hold has ended: the first release is under way.
fn releasing(count: Count, nesting: u8) -> Rig {
    let strategy = Strategy::Reentrant { count };
    let mut rig = nested_rig(strategy, 2, nesting).begins(A).at_ms(1);
    rig = match count {
        Count::Server => (1..=i64::from(nesting)).fold(rig, |rig, entries| rig.answered(Reply::Int(entries))),
        Count::Local => rig.answered(Reply::Ok),
    };
    assert_eq!(rig.doing(A), Doing::Holding, "{nesting} entries");
    rig
}

/// To the checker A holds no lock any more: another client may take it, and A may ask for it again.
fn is_over(mut rig: Rig, count: Count, what: &str) {
    let doing = rig.doing(A);
    assert!(
        matches!(doing, Doing::Idle | Doing::Pausing),
        "{what}: A is still {doing:?}"
    );
    let granted = match count {
        Count::Server => Reply::Int(1),
        Count::Local => Reply::Ok,
    };
    rig.driver.transport.sent.clear();
    let next = rig.now.0 / MS + 1;
    let counts = rig.at_ms(next).begins(B).answered(granted).begins(A).judged().counts;
    // Late releases and "not held" replies are counted; nobody is blamed for another client's grant.
    let expected = ViolationCounts {
        outlived: counts.outlived,
        denied_releases: counts.denied_releases,
        ..ViolationCounts::default()
    };
    assert_eq!(counts, expected, "{what}");
}

#[test]
fn the_checker_learns_of_the_end_of_a_grant_however_an_entry_of_it_is_left() {
    for nesting in 1..=4 {
        for left_before in 0..nesting {
            for fate in FATES {
                let what = format!("{fate:?} after {left_before} of {nesting} entries were left");
                let mut rig = releasing(Count::Server, nesting).at_ms(3);
                for entries in (nesting - left_before..nesting).rev() {
                    rig = rig.answered(Reply::Int(entries.into()));
                }
                let over = rig.meets(A, fate).comes_to_rest(Count::Server);
                is_over(over, Count::Server, &what);
            }
        }
    }
}

#[test]
fn the_checker_learns_of_the_end_of_a_grant_that_is_released_after_its_lease() {
    for count in [Count::Server, Count::Local] {
        for nesting in 1..=4 {
            for fate in FATES {
                let mut late = releasing(count, nesting);
                // Its hold ended earlier, but the loop did not check.
                late = late.at_ms(PAST_THE_LEASE_MS);
                assert_eq!(
                    late.driver.clients.list[A as usize].entries, 1,
                    "one release is sent for all entries"
                );
                let over = late.meets(A, fate).comes_to_rest(count);
                is_over(over, count, &format!("{fate:?} of {nesting} entries after the lease"));
            }
        }
    }
}
