//! Which grants a broken lock could have shown itself on.
//!
//! A rival is a client whose grant beside this one would break the exclusion: everybody, but for one who shares only
//! those who do not; for one of several permits, everybody while all permits are held. A grant is contended when
//!
//! - a rival waited at the grant, or at any time while it was held;
//! - or a rival held the key at the grant (of a semaphore: others held all permits);
//! - or a rival had the key's grant next before or after it, less than one nominal hold of the earlier of the two
//!   apart. Not asked of semaphores: one grant more beside one other breaks nothing.
//!
//! A grant that was made in a window counts as soon as it is contended, and once. Of grants that exclude each other
//! only the last of a key can be uncontended yet held, for two that stood beside each other both are contended; so a
//! mark in the key's record serves all. Where several may hold, `crowd` counts the uncontended ones.

use crate::ClientId;
use crate::crowd::Crowd;
use crate::report::Figures;
use crate::table::KeyRecord;
use crate::turns::OUTSIDE;
use locks::{Mode, Nanos};

/// Where the rivals of a grant are that is just being made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rivals {
    pub(crate) wait: bool,
    pub(crate) hold: bool,
    /// The key's last grant would be one, were it another client's.
    pub(crate) had_last_grant: bool,
}

impl Rivals {
    /// Of a grant of a key that nobody shares and that has one permit.
    #[inline]
    pub(crate) const fn of_plain(record: &KeyRecord) -> Self {
        Self {
            wait: !record.waiters.is_empty(),
            hold: !record.holders.is_empty(),
            had_last_grant: true,
        }
    }

    /// Of any grant. The client itself has left the waiters.
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

/// Makes this grant the key's last, and says whether it is contended already.
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
        contend(record, window, figures);
    }
    record.last_client = id;
    record.last_window = window;
    record.last_hold_end = at.after(hold);
    record.last_contended = false;
    let contended = rivals.wait || rivals.hold || within_last_hold;
    if contended {
        contend(record, window, figures);
    }
    contended
}

/// The key's last grant is contended; it counts once, and only in the window that it fell in.
#[inline]
pub(crate) fn contend(record: &mut KeyRecord, window: u32, figures: &mut Figures) {
    if !record.last_contended && window != OUTSIDE && record.last_window == window {
        figures.contended_grants += 1;
    }
    record.last_contended = true;
}

/// All that hold the key beside each other are contended from now on.
pub(crate) fn contend_all(record: &mut KeyRecord, crowd: &mut Crowd, window: u32, figures: &mut Figures) {
    figures.contended_grants += crowd.contend_all(window);
    // The last grant, if it still shares the key, is one of them, and its mark must say so too.
    if record.last_mode == Mode::Shared && record.last_client == crowd.sharers.latest() {
        record.last_contended = true;
    }
}
