//! Whose turn it was: grants past somebody who waited longer, and runs of wins by one client.
//!
//! How often each waiter was overtaken is kept in differences: a waiter's count is the sum of `Client::overtaken` over
//! itself and all that wait behind it. An overtake adds one to all ahead of the winner, which is one addition at the
//! winner's neighbour; who leaves hands what it has to the neighbour ahead. Nobody was overtaken more often than the
//! head of the queue, for it saw all that those behind it did; its count, the sum of all, is `KeyRecord::overtaken`.
//!
//! Counts are those of one window: a client's of another window (`Client::overtaken_in`), or a key's that had no grant
//! in this one, are nothing.

use crate::ClientId;
use crate::report::Figures;
use crate::table::{Client, KeyRecord, NOBODY};

/// The window number of the time before, between and after windows.
pub(crate) const OUTSIDE: u32 = 0;

/// Whether granting the key to `winner`, who still waits, overtakes somebody.
#[inline]
pub(crate) fn overtakes(record: &KeyRecord, clients: &[Client], winner: ClientId) -> bool {
    let head = record.waiters.head;
    head != winner && clients[head as usize].since < clients[winner as usize].since
}

/// Takes `id` out of the waiters. `overtakes` when it is granted past somebody.
#[inline]
pub(crate) fn leave(
    record: &mut KeyRecord,
    clients: &mut [Client],
    window: u32,
    figures: &mut Figures,
    id: ClientId,
    overtakes: bool,
) {
    if record.is_only_waiter(id) {
        record.overtaken = 0;
    } else if window != OUTSIDE {
        hand_on(record, clients, window, figures, id, overtakes);
    }
    record.waiters.unlink(clients, id);
}

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
    ahead.overtaken = ahead.overtaken_within(window) + own + u32::from(overtakes);
    ahead.overtaken_in = window;
    record.overtaken += u32::from(overtakes);
    figures.longest_overtake = figures.longest_overtake.max(u64::from(record.overtaken));
}

impl Client {
    fn overtaken_within(&self, window: u32) -> u32 {
        if self.overtaken_in == window { self.overtaken } else { 0 }
    }
}

impl KeyRecord {
    fn is_only_waiter(&self, id: ClientId) -> bool {
        self.waiters.head == id && self.waiters.tail == id
    }
}

/// Counts the run of wins. To be called after the winner left the waiters and before it becomes the key's last client.
#[inline]
pub(crate) fn count_streak(record: &mut KeyRecord, window: u32, figures: &mut Figures, winner: ClientId) {
    record.streak = if record.waiters.is_empty() {
        0
    } else if record.last_client == winner && record.last_window == window {
        record.streak + 1
    } else {
        1
    };
    if window != OUTSIDE {
        figures.longest_streak = figures.longest_streak.max(u64::from(record.streak));
    }
}
