//! The settings of machines: one `Spec` for all locks that were asked for in the same way.

use std::collections::BTreeMap;
use std::sync::Arc;

use locks::{Nanos, Retry, RetryKind, Spec};

use super::ticket::Wanted;

/// The pauses between attempts, where a program names no others.
const PATIENT: Retry = Retry {
    kind: RetryKind::FullJitter,
    base: Nanos::from_millis(1),
    factor: 2.0,
    cap: Nanos::from_millis(50),
    max_attempts: None,
    max_wait: Nanos::ZERO,
};

/// Settings that are kept for the next lock.
const KEPT: usize = 256;

/// A ttl, a wait, and a retry policy without its `max_wait`, in a form that has an order.
type Asked = (u64, u64, Option<[u64; 5]>);

#[derive(Debug)]
pub(super) struct Specs {
    servers: u16,
    reply_timeout: Nanos,
    made: BTreeMap<Asked, Arc<Spec>>,
}

impl Specs {
    pub(super) const fn new(servers: u16, reply_timeout: Nanos) -> Self {
        Self {
            servers,
            reply_timeout,
            made: BTreeMap::new(),
        }
    }

    /// The settings of a lock with this ttl, wait and retry.
    pub(super) fn of(&mut self, wanted: &Wanted) -> Arc<Spec> {
        if self.made.len() >= KEPT {
            self.made.clear();
        }
        let (servers, reply_timeout) = (self.servers, self.reply_timeout);
        let asked = (wanted.lease.ttl().0, wanted.wait.0, wanted.retry.map(bits));
        let made = self.made.entry(asked).or_insert_with(|| {
            Arc::new(Spec {
                servers,
                lease: wanted.lease,
                reply_timeout,
                retry: if wanted.wait == Nanos::ZERO {
                    Retry::NONE
                } else {
                    Retry {
                        max_wait: wanted.wait,
                        ..wanted.retry.unwrap_or(PATIENT)
                    }
                },
            })
        });
        Arc::clone(made)
    }
}

fn bits(retry: Retry) -> [u64; 5] {
    let most = retry.max_attempts.map_or(u64::MAX, u64::from);
    [
        retry.kind as u64,
        retry.base.0,
        retry.factor.to_bits(),
        retry.cap.0,
        most,
    ]
}

#[cfg(test)]
mod tests {
    use locks::{Lease, Mode};

    use super::*;

    fn wanted(wait: Nanos, retry: Option<Retry>) -> Wanted {
        Wanted {
            name: b"orders:17"[..].into(),
            lease: Lease::new(10_000).expect("it is allowed"),
            wait,
            retry,
            mode: Mode::Exclusive,
        }
    }

    #[test]
    fn a_wait_takes_the_place_of_the_longest_wait_and_no_wait_is_one_attempt() {
        let mut specs = Specs::new(1, Nanos::from_secs(1));
        let wait = Nanos::from_secs(2);
        let fixed = Retry {
            kind: RetryKind::Fixed,
            base: Nanos::from_millis(5),
            ..PATIENT
        };
        assert_eq!(
            specs.of(&wanted(wait, None)).retry,
            Retry {
                max_wait: wait,
                ..PATIENT
            }
        );
        assert_eq!(
            specs.of(&wanted(wait, Some(fixed))).retry,
            Retry {
                max_wait: wait,
                ..fixed
            }
        );
        assert_eq!(specs.of(&wanted(Nanos::ZERO, Some(fixed))).retry, Retry::NONE);
    }

    #[test]
    fn locks_that_are_asked_for_alike_share_settings_and_others_do_not() {
        let mut specs = Specs::new(1, Nanos::from_secs(1));
        let wait = Nanos::from_secs(2);
        let first = specs.of(&wanted(wait, None));
        assert!(Arc::ptr_eq(&first, &specs.of(&wanted(wait, None))));
        assert!(!Arc::ptr_eq(&first, &specs.of(&wanted(wait, Some(PATIENT)))));
    }
}
