//! What is kept of a key besides, where several may hold it: who shares it, who wants it alone, how many hold it.
//!
//! Those that may hold beside each other become contended together, when a rival of all of them comes. So that this
//! takes one step, the key counts how many of them are uncontended, under a number that changes whenever the count
//! starts anew; who leaves is taken off the count only if it entered under the present number.

use crate::ClientId;
use crate::checker::Checker;
use crate::contention::{self, Rivals};
use crate::table::{Client, Holders, KeyRecord, State};
use crate::turns::OUTSIDE;
use locks::{Key, Mode, Nanos};

/// No count stands under this number: of a grant that was contended from the start, or has been counted out.
const NO_COUNT: u32 = 0;

#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) sharers: Holders,
    pub(crate) waiting_exclusive: u32,
    /// How many hold the key and do not share it.
    pub(crate) holding: u32,
    uncontended: u32,
    /// The number of the present count, and the window that its grants fell in.
    count: u32,
    window: u32,
}

impl Crowd {
    const NONE: Self = Self {
        sharers: Holders::NONE,
        waiting_exclusive: 0,
        holding: 0,
        uncontended: 0,
        count: NO_COUNT + 1,
        window: OUTSIDE,
    };

    /// For each key its crowd, where nobody holds a share yet.
    pub(crate) fn of_all(keys: usize, clients: &[Client]) -> Box<[Self]> {
        let mut crowds = vec![Self::NONE; keys].into_boxed_slice();
        for client in clients {
            let crowd = &mut crowds[client.key as usize];
            match (client.state, client.mode) {
                (State::Waiting, Mode::Exclusive) => crowd.waiting_exclusive += 1,
                (State::Holding, Mode::Exclusive) => crowd.holding += 1,
                (State::Idle | State::Stopped | State::Unconfirmed, _) | (_, Mode::Shared) => {}
            }
        }
        crowds
    }

    /// A grant joins those that may hold beside each other.
    pub(crate) fn enter(&mut self, client: &mut Client, contended: bool, window: u32) {
        if self.window != window {
            self.window = window;
            self.count_anew();
        }
        if contended {
            client.tally = NO_COUNT;
        } else {
            client.tally = self.count;
            self.uncontended += 1;
        }
    }

    /// A grant ends, of whichever kind.
    #[inline(never)]
    pub(crate) fn leave(&mut self, record: &mut KeyRecord, clients: &mut [Client], permits: u32, id: ClientId) {
        let client = &mut clients[id as usize];
        let (mode, counted) = (client.mode, client.tally == self.count);
        // Who excludes everybody never entered a count.
        if counted && (mode == Mode::Shared || permits > 1) {
            self.uncontended -= 1;
        }
        match mode {
            Mode::Exclusive => {
                self.holding -= 1;
                record.holders.remove(clients, id);
            }
            Mode::Shared => self.sharers.remove(clients, id),
        }
    }

    /// All in the count are contended; returns how many of them count in `window`.
    pub(crate) fn contend_all(&mut self, window: u32) -> u64 {
        let counts = window != OUTSIDE && self.window == window;
        let uncontended = u64::from(self.uncontended);
        self.count_anew();
        if counts { uncontended } else { 0 }
    }

    fn count_anew(&mut self) {
        self.uncontended = 0;
        self.count = self.count.wrapping_add(1).max(NO_COUNT + 1);
    }

    pub(crate) const fn left_waiting(&mut self, mode: Mode) {
        match mode {
            Mode::Exclusive => self.waiting_exclusive -= 1,
            Mode::Shared => {} // Who wants to share is nobody's rival but of those that hold alone.
        }
    }
}

impl Checker {
    /// Somebody began to wait for a key that several may hold.
    #[inline(never)]
    pub(crate) fn rival_came(&mut self, id: ClientId, key: Key, mode: Mode) {
        self.clients[id as usize].mode = mode;
        if self.crowds.is_empty() {
            self.expect_crowds();
        }
        let (window, figures) = (self.window, &mut self.figures);
        let record = &mut self.keys[key.0 as usize];
        let crowd = &mut self.crowds[key.0 as usize];
        match mode {
            Mode::Shared => assert!(self.permits == 1, "a lock of {} permits cannot be shared", self.permits),
            Mode::Exclusive => crowd.waiting_exclusive += 1,
        }
        if self.permits > 1 {
            if crowd.holding >= self.permits {
                contention::contend_all(record, crowd, window, figures);
            }
            return;
        }
        if !record.holders.is_empty() {
            contention::contend(record, window, figures);
        }
        if mode == Mode::Exclusive && !crowd.sharers.is_empty() {
            contention::contend_all(record, crowd, window, figures);
        }
    }

    /// `id` was granted a key that several may hold.
    #[inline(never)]
    pub(crate) fn join_crowd(&mut self, at: Nanos, id: ClientId, hold: Nanos) {
        let (window, figures) = (self.window, &mut self.figures);
        let client = &mut self.clients[id as usize];
        let (key, mode, until) = (client.key as usize, client.mode, client.until);
        let (record, crowd) = (&mut self.keys[key], &mut self.crowds[key]);
        crowd.left_waiting(mode);
        let rivals = Rivals::among(record, crowd, mode, self.permits);
        let contended = contention::enter(record, window, figures, id, (at, hold), rivals);
        record.last_mode = mode;
        if mode == Mode::Shared || self.permits > 1 {
            crowd.enter(client, contended, window);
        }
        if self.permits > 1 && rivals.wait {
            // With this grant all permits are held, and somebody waits for one.
            contention::contend_all(record, crowd, window, figures);
        }
        if rivals.hold {
            self.judge_exclusion(at, id);
        }
        match mode {
            Mode::Exclusive => {
                self.crowds[key].holding += 1;
                self.keys[key].holders.add(&mut self.clients, id, until);
            }
            Mode::Shared => self.crowds[key].sharers.add(&mut self.clients, id, until),
        }
    }
}
