//! The order of service: grants that overtake a client that waited longer, and runs of wins by one client.
//!
//! How often each waiter was overtaken is stored in differences: a waiter's count is the sum of `Client::tally` over
//! itself and all that wait behind it. An overtake adds one to all ahead of the winner, which is one addition at the
//! winner's neighbour; a leaving client passes its tally to the neighbour ahead. Nobody was overtaken more often than
//! the head of the queue, because it saw all overtakes of those behind it; its count, the sum of all, is
//! `KeyRecord::overtaken`.
//!
//! Counts are those of one window: a client's count of another window (`Client::tally_window`), and a key's count
//! without a grant in this window, are zero.

use crate::ClientId;
use crate::report::Figures;
use crate::table::{Client, KeyRecord, List, NOBODY};

/// The window number of the time before, between and after windows.
pub(crate) const OUTSIDE: u32 = 0;

/// The key is granted to `winner`, which no longer waits.
#[inline]
pub(crate) fn serve(
    record: &mut KeyRecord,
    clients: &mut [Client],
    window: u32,
    figures: &mut Figures,
    winner: ClientId,
) {
    if record.waiters.is_single() {
        // No other client waits, so nobody is overtaken, and no run of wins counts.
        record.waiters = List::EMPTY;
        record.overtaken = 0;
        record.streak = 0;
        return;
    }
    let head = record.waiters.head;
    if head != winner {
        let overtakes = clients[head as usize].since < clients[winner as usize].since;
        if window != OUTSIDE {
            figures.overtakes += u64::from(overtakes);
            hand_on(record, clients, window, figures, winner, overtakes);
        }
    } else if record.overtaken != 0 && window != OUTSIDE {
        hand_on(record, clients, window, figures, winner, false);
    }
    record.waiters.unlink(clients, winner);
    count_win(record, window, figures, winner);
}

/// `id` no longer waits.
pub(crate) fn give_up(
    record: &mut KeyRecord,
    clients: &mut [Client],
    window: u32,
    figures: &mut Figures,
    id: ClientId,
) {
    if record.waiters.is_single() {
        record.overtaken = 0;
    } else if window != OUTSIDE {
        hand_on(record, clients, window, figures, id, false);
    }
    record.waiters.unlink(clients, id);
}

/// Before `id` leaves: passes its tally to its neighbour ahead. `overtakes` when `id` is granted before a client that
/// waited longer.
#[inline(never)]
fn hand_on(
    record: &mut KeyRecord,
    clients: &mut [Client],
    window: u32,
    figures: &mut Figures,
    id: ClientId,
    overtakes: bool,
) {
    if record.last_window != window {
        record.overtaken = 0;
    }
    let Client { prev, .. } = clients[id as usize];
    let own = clients[id as usize].overtaken_within(window);
    if prev == NOBODY {
        record.overtaken -= own;
        return;
    }
    let ahead = &mut clients[prev as usize];
    ahead.tally = ahead.overtaken_within(window) + own + u32::from(overtakes);
    ahead.tally_window = window;
    record.overtaken += u32::from(overtakes);
    figures.longest_overtake = figures.longest_overtake.max(u64::from(record.overtaken));
}

impl Client {
    pub(crate) fn overtaken_within(&self, window: u32) -> u32 {
        if self.tally_window == window { self.tally } else { 0 }
    }
}

/// Counts the run of wins while others waited. To be called before the winner becomes the key's last client.
#[inline]
fn count_win(record: &mut KeyRecord, window: u32, figures: &mut Figures, winner: ClientId) {
    record.streak = if record.last_client == winner && record.last_window == window {
        record.streak + 1
    } else {
        1
    };
    if window != OUTSIDE {
        figures.longest_streak = figures.longest_streak.max(u64::from(record.streak));
    }
}
