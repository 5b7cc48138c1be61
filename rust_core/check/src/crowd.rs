//! The additional record of a key that several clients may hold: which share it, which want it alone, how many hold it.
//!
//! Clients that may hold at the same time become contended together, when a rival of all of them comes. To do that in
//! one step, each uncontended holder stores the key's current number, and the key then changes its number.

use crate::ClientId;
use crate::checker::Checker;
use crate::contention::{self, Rivals};
use crate::keys::Keys;
use crate::table::{Client, Holders, KeyRecord, Last, State};
use locks::{Mode, Nanos};

/// The number of a grant that was contended from the start; no uncontended grant has it.
const NO_COUNT: u32 = 0;

#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) sharers: Holders,
    pub(crate) waiting_exclusive: u32,
    /// How many clients hold the key without sharing it.
    pub(crate) holding: u32,
    /// The number that uncontended holders store.
    count: u32,
}

impl Crowd {
    const NONE: Self = Self {
        sharers: Holders::NONE,
        waiting_exclusive: 0,
        holding: 0,
        count: NO_COUNT + 1,
    };

    /// One crowd for each record, while no client shares yet; with room for one of each key.
    pub(crate) fn of_all(keys: &Keys, clients: &[Client]) -> Vec<Self> {
        let mut crowds = Vec::with_capacity(keys.count());
        crowds.resize(keys.places(), Self::NONE);
        for client in clients {
            let place = client.place as usize;
            match (client.state, client.mode) {
                (State::Waiting, Mode::Exclusive) => crowds[place].waiting_exclusive += 1,
                (State::Holding, Mode::Exclusive) => crowds[place].holding += 1,
                (State::Idle | State::Stopped | State::Unconfirmed, _) | (_, Mode::Shared) => {}
            }
        }
        crowds
    }

    /// A grant joins the holders that may hold at the same time.
    pub(crate) const fn enter(&self, client: &mut Client, contended: bool) {
        client.tally = if contended { NO_COUNT } else { self.count };
    }

    /// Whether a holder that may hold at the same time as others is contended.
    pub(crate) const fn has_contended(&self, client: &Client) -> bool {
        client.tally != self.count
    }

    /// Handles the end of a grant of either mode, and returns whether the grant is contended.
    #[inline(never)]
    pub(crate) fn leave(&mut self, record: &mut KeyRecord, clients: &mut [Client], permits: u32, id: ClientId) -> bool {
        let client = &clients[id as usize];
        let mode = client.mode;
        let is_marked = record.last_client == id && record.last == Last::Contended;
        // An exclusive holder stores no number; two that overlapped are both contended.
        let contended = if mode == Mode::Shared || permits > 1 {
            self.has_contended(client) || is_marked
        } else {
            record.last_client != id || is_marked
        };
        match mode {
            Mode::Exclusive => {
                self.holding -= 1;
                record.holders.remove(clients, id);
            }
            Mode::Shared => self.sharers.remove(clients, id),
        }
        contended
    }

    pub(crate) const fn change_number(&mut self) {
        self.count = self.count.wrapping_add(1);
        if self.count == NO_COUNT {
            self.count += 1;
        }
    }

    pub(crate) const fn left_waiting(&mut self, mode: Mode) {
        match mode {
            Mode::Exclusive => self.waiting_exclusive -= 1,
            Mode::Shared => {} // A waiting sharer is a rival only of exclusive holders.
        }
    }
}

impl Checker {
    /// A client began to wait for a key that several may hold.
    #[inline(never)]
    pub(crate) fn rival_came(&mut self, id: ClientId, mode: Mode) {
        let mode = if mode == Mode::Shared && self.permits > 1 {
            self.cannot(self.now, id, "share a lock of several permits");
            Mode::Exclusive
        } else {
            mode
        };
        let client = &mut self.clients[id as usize];
        client.mode = mode;
        let place = client.place;
        if !self.has_crowds {
            self.expect_crowds();
        }
        if self.crowds.len() < self.keys.places() {
            self.crowds.resize(self.keys.places(), Crowd::NONE);
        }
        let (record, crowd) = (&mut self.keys[place], &mut self.crowds[place as usize]);
        crowd.waiting_exclusive += u32::from(mode == Mode::Exclusive);
        if self.permits > 1 {
            if crowd.holding >= self.permits {
                contention::contend_all(record, crowd);
            }
            return;
        }
        if !record.holders.is_empty() {
            contention::contend(record, &mut self.figures);
        }
        if mode == Mode::Exclusive && !crowd.sharers.is_empty() {
            contention::contend_all(record, crowd);
        }
    }

    /// `id` was granted a key that several may hold.
    #[inline(never)]
    pub(crate) fn join_crowd(&mut self, at: Nanos, id: ClientId, hold: Nanos) {
        let (window, figures) = (self.window, &mut self.figures);
        let client = &mut self.clients[id as usize];
        let (place, mode, until) = (client.place, client.mode, client.until);
        let (record, crowd) = (&mut self.keys[place], &mut self.crowds[place as usize]);
        crowd.left_waiting(mode);
        let rivals = Rivals::among(record, crowd, mode, self.permits);
        let contended = contention::enter(record, window, figures, id, (at, hold), rivals);
        record.last_mode = mode;
        if mode == Mode::Shared || self.permits > 1 {
            crowd.enter(client, contended);
        }
        if self.permits > 1 && rivals.wait {
            // With this grant all permits are held, and another client waits for one.
            contention::contend_all(record, crowd);
        }
        if rivals.hold {
            self.judge_exclusion(at, id);
        }
        match mode {
            Mode::Exclusive => {
                self.crowds[place as usize].holding += 1;
                self.keys[place].holders.add(&mut self.clients, id, until);
            }
            Mode::Shared => self.crowds[place as usize].sharers.add(&mut self.clients, id, until),
        }
    }
}
