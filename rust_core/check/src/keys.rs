//! The records of the keys that clients wait for or hold, in one dense pool.
//!
//! Of a million keys only as many are active at a time as there are clients. A key without a record has a slot of four
//! bytes; its first waiter gives it a record from the pool, and when the last waiter and the last holder have gone, the
//! record is recycled. The recycled record that is used next is the one that was used last, so that the active records
//! stay in the processor's cache.
//!
//! Promises: findings and figures are those of a checker that never recycles. A record that still holds anything which
//! can change one of them is kept until its key is used again, see `KeyRecord::is_as_new`. A record keeps its place in
//! the pool as long as a client waits for its key or holds it, so a client may store that place. No allocation after
//! construction: memory for a record of each key is reserved, and used only when it is needed.

use crate::table::KeyRecord;
use crate::turns::OUTSIDE;
use locks::{Key, Nanos};
use std::ops::{Index, IndexMut};

/// In the slot of a key without a record.
const NO_RECORD: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Keys {
    /// For each key the place of its record in the pool.
    slots: Box<[u32]>,
    pool: Vec<KeyRecord>,
    /// The places of the recycled records, the latest last. Not linked through the records: one that is not in the cache
    /// would have to arrive before the place of the next is known.
    recycled: Vec<u32>,
    /// For tests: the records of all keys are kept.
    #[cfg(test)]
    pub(crate) never_recycles: bool,
}

impl Keys {
    pub(crate) fn new(keys: u32) -> Self {
        Self {
            slots: vec![NO_RECORD; keys as usize].into_boxed_slice(),
            pool: Vec::with_capacity(keys as usize),
            recycled: Vec::with_capacity(keys as usize),
            #[cfg(test)]
            never_recycles: false,
        }
    }

    /// How many keys there are, with and without records.
    pub(crate) const fn count(&self) -> usize {
        self.slots.len()
    }

    /// How many places the pool has so far.
    pub(crate) const fn places(&self) -> usize {
        self.pool.len()
    }

    /// The place of the key's record. A key without one gets a new record at `now`.
    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    #[inline(always)]
    pub(crate) fn place_of(&mut self, key: Key, now: Nanos) -> u32 {
        let slot = &mut self.slots[key.0 as usize];
        if *slot == NO_RECORD {
            *slot = match self.recycled.pop() {
                Some(place) => place,
                None => add(&mut self.pool),
            };
            self.pool[*slot as usize] = KeyRecord::new(now);
        }
        *slot
    }

    /// Recycles the record of `key`, if nothing in it can matter later. `place` is its place.
    #[expect(clippy::inline_always, reason = "a call costs as much as what it does")]
    #[inline(always)]
    pub(crate) fn recycle(&mut self, key: Key, place: u32, now: Nanos) {
        #[cfg(test)]
        if self.never_recycles {
            return;
        }
        debug_assert_eq!(self.slots[key.0 as usize], place, "a record is recycled once");
        if self.pool[place as usize].is_as_new(now) {
            self.slots[key.0 as usize] = NO_RECORD;
            self.recycled.push(place);
        }
    }

    /// Reads the slot of a key, to prefetch it. A key rarely has a record before it is waited for, and the next new
    /// record is in the cache.
    #[inline]
    pub(crate) fn touch_slot(&self, key: Key) {
        std::hint::black_box(self.slots[key.0 as usize]);
    }

    /// Reads the record at `place`, to prefetch it.
    #[inline]
    pub(crate) fn touch_record(&self, place: u32) {
        std::hint::black_box(self.pool[place as usize].last_client);
    }
}

/// The place of one more record.
#[cold]
fn add(pool: &mut Vec<KeyRecord>) -> u32 {
    pool.push(KeyRecord::new(Nanos::ZERO));
    pool.len() as u32 - 1
}

impl Index<u32> for Keys {
    type Output = KeyRecord;

    #[inline]
    fn index(&self, place: u32) -> &KeyRecord {
        &self.pool[place as usize]
    }
}

impl IndexMut<u32> for Keys {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut KeyRecord {
        &mut self.pool[place as usize]
    }
}

impl KeyRecord {
    /// Whether a new record in place of this one would lead to the same findings and figures from `now` on, if nobody
    /// shares the key.
    ///
    /// Without waiters and holders the record says only what its next grant is compared with:
    /// - the nominal end of the last hold: a grant before it makes both contended;
    /// - the run of wins, which a win of the same client in the same window prolongs; outside of windows no run counts;
    /// - the mark of a late release, which stays to the end of the trial.
    ///
    /// Nothing else outlasts the last waiter. `overtaken` is zero then, and `wanted` false; without `wanted` no
    /// hand-over is measured, so `lease_left` is not read. A stall is counted from the later of `freed` and the first
    /// waiter's begin, and a new record begins with that waiter. `last` is written by the next grant, and is not read
    /// before: only a waiter during a hold, or a grant before the nominal end of the last one, would read it.
    #[inline]
    const fn is_as_new(&self, now: Nanos) -> bool {
        self.waiters.is_empty()
            && self.holders.is_empty()
            && now.0 >= self.last_hold_end.0
            && (self.streak == 0 || self.last_window == OUTSIDE)
            && !self.released_late
    }
}

#[cfg(test)]
mod tests;
