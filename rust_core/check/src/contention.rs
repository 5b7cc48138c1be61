//! Which grants are contended, so that a broken lock could have shown itself on them.
//!
//! A rival is a client whose grant at the same time would break exclusion: any other client; for a client that shares,
//! only those that do not; with several permits, any other client while all permits are held. A grant is contended when
//!
//! - a rival waited at the grant, or at any time during its hold;
//! - or a rival held the key at the grant (for a semaphore: others held all permits);
//! - or a rival had the key's grant before or after it, and the gap was shorter than the nominal hold of the earlier
//!   of the two. Semaphores are exempt, because one more grant beside one other breaks nothing.
//!
//! A contended grant counts, once, if it was made in a window and believed in for at least `Rules::least_belief`: a
//! belief of a microsecond overlaps no other, however broken the lock is. Its length is known when the work ends, so
//! the grant is counted then, or when the next grant of its key comes close. Of grants that exclude each other only the
//! last one of a key can be both held and uncontended, because two that overlap are both contended; so one mark in the
//! key's record is enough. If several clients may hold, `crowd` knows the uncontended grants.

use crate::ClientId;
use crate::checker::Checker;
use crate::crowd::Crowd;
use crate::report::Figures;
use crate::table::{KeyRecord, Last, State};
use crate::turns::OUTSIDE;
use locks::{Mode, Nanos};

/// What the rivals of a new grant are doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rivals {
    pub(crate) wait: bool,
    pub(crate) hold: bool,
    /// Whether the key's last grant was a rival's, if it was another client's.
    pub(crate) had_last_grant: bool,
}

impl Rivals {
    /// The rivals of a grant of an unshared key with one permit.
    #[inline]
    pub(crate) const fn of_plain(record: &KeyRecord) -> Self {
        Self {
            wait: !record.waiters.is_empty(),
            hold: !record.holders.is_empty(),
            had_last_grant: true,
        }
    }

    /// The rivals of any grant. The client itself is no longer among the waiters.
    pub(crate) const fn among(record: &KeyRecord, crowd: &Crowd, mode: Mode, permits: u32) -> Self {
        match mode {
            Mode::Shared => Self {
                wait: crowd.waiting_exclusive > 0,
                hold: !record.holders.is_empty(),
                had_last_grant: matches!(record.last_mode, Mode::Exclusive),
            },
            Mode::Exclusive if permits == 1 => Self {
                wait: !record.waiters.is_empty(),
                hold: !record.holders.is_empty() || !crowd.sharers.is_empty(),
                had_last_grant: true,
            },
            Mode::Exclusive => Self {
                wait: !record.waiters.is_empty() && crowd.holding + 1 >= permits,
                hold: crowd.holding >= permits,
                had_last_grant: false,
            },
        }
    }
}

/// Makes this grant the key's last, and returns whether it is already contended.
#[inline]
pub(crate) fn enter(
    record: &mut KeyRecord,
    window: u32,
    figures: &mut Figures,
    id: ClientId,
    (at, hold): (Nanos, Nanos),
    rivals: Rivals,
) -> bool {
    let within_last_hold = rivals.had_last_grant && record.last_client != id && at < record.last_hold_end;
    if within_last_hold {
        contend(record, figures);
    }
    record.last_client = id;
    record.last_window = window;
    record.last_hold_end = at.after(hold);
    let contended = rivals.wait || rivals.hold || within_last_hold;
    record.last = if contended { Last::Contended } else { Last::Alone };
    contended
}

/// Marks the key's last grant as contended. If it has ended it counts now, otherwise when its belief proves long
/// enough.
#[inline]
pub(crate) fn contend(record: &mut KeyRecord, figures: &mut Figures) {
    match record.last {
        Last::Alone => record.last = Last::Contended,
        Last::Countable => {
            figures.contended_grants += 1;
            record.last = Last::Settled;
        }
        Last::Contended | Last::Settled => {}
    }
}

/// Marks all that hold the key at the same time as contended.
pub(crate) const fn contend_all(record: &mut KeyRecord, crowd: &mut Crowd) {
    crowd.change_number();
    // The last grant, if it still shares the key, is one of them, and its mark must say so too.
    if matches!(record.last_mode, Mode::Shared) && record.last_client == crowd.sharers.latest() {
        record.last = Last::Contended;
    }
}

/// Handles the end of a grant's work, and with it of its belief.
#[inline]
pub(crate) fn settle(record: &mut KeyRecord, figures: &mut Figures, id: ClientId, contended: bool, counts: bool) {
    figures.contended_grants += u64::from(contended && counts);
    if record.last_client == id {
        let countable = counts && !contended;
        record.last = if countable { Last::Countable } else { Last::Settled };
    }
}

impl Checker {
    /// Whether the current grant of `id`, whose work ends at `at`, was made in the latest window and believed in for
    /// long enough.
    #[inline]
    pub(crate) fn counts_if_contended(&self, at: Nanos, id: ClientId) -> bool {
        let client = &self.clients[id as usize];
        let believed = at.min(client.believes_until).since(client.since);
        client.tally_window != OUTSIDE && client.tally_window == self.windows_begun && believed >= self.least_belief
    }

    /// Settles all grants whose work goes on when the trial ends.
    #[cold]
    pub(crate) fn settle_all(&mut self, at: Nanos) {
        for id in 0..self.clients.len() as ClientId {
            let client = &self.clients[id as usize];
            if client.state != State::Holding {
                continue;
            }
            let (place, mode) = (client.place, client.mode);
            let counts = self.counts_if_contended(at, id);
            let record = &mut self.keys[place];
            let contended = match self.crowds.get(place as usize) {
                Some(crowd) if mode == Mode::Shared || self.permits > 1 => {
                    crowd.has_contended(&self.clients[id as usize])
                }
                Some(_) | None => record.last_client != id || record.last == Last::Contended,
            };
            settle(record, &mut self.figures, id, contended, counts);
        }
    }
}
