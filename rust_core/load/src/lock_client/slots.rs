//! The locks of a client that are under way: a slot for each, with its machine.
//!
//! A slot is used again when its lock is over and no call of it is unanswered: the next machine counts its calls anew,
//! and must not take a late reply for its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use locks::{AnyLock, Key, Nanos, ServerId};

use super::ticket::Ticket;
use crate::clients::Doing;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Over, or never used.
    Over,
    /// Waits for an open connection, until this time.
    Opening(Nanos),
    Acquiring,
    Held,
    /// Was refused, and asks how long the holder has left: until this time.
    Refused(Nanos),
    /// Releases, or cancels.
    Releasing,
}

impl Phase {
    /// The same as the transport names it.
    pub(super) const fn doing(self) -> Doing {
        match self {
            Self::Over | Self::Opening(_) | Self::Refused(_) => Doing::Idle,
            Self::Acquiring => Doing::Acquiring,
            Self::Held => Doing::Holding,
            Self::Releasing => Doing::Releasing,
        }
    }
}

/// The servers that replied to one attempt, other than with an error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    attempt: u32,
    /// A bit for each server. Those beyond the 64th share the last one.
    servers: u64,
}

impl Heard {
    pub(super) fn add(&mut self, attempt: u32, server: ServerId) {
        if self.attempt != attempt {
            *self = Self { attempt, servers: 0 };
        }
        self.servers |= 1 << server.0.min(63);
    }

    pub(super) const fn is_majority(self, of: u16) -> bool {
        self.servers.count_ones() > of as u32 / 2
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) lock: AnyLock,
    pub(super) ticket: Arc<Ticket>,
    pub(super) key: Key,
    pub(super) phase: Phase,
    /// Calls without a reply.
    pub(super) unanswered: u32,
    /// Of several servers, those that replied to the present attempt.
    pub(super) heard: Heard,
    /// The end of belief, while the lock is held.
    pub(super) until: Nanos,
    /// When its machine asked to be woken.
    pub(super) lock_wake: Nanos,
    /// When an extension that was asked for is given up; `NEVER` if none was.
    pub(super) extension_until: Nanos,
    /// Its key is in use, and it is not in the list of free slots.
    pub(super) is_used: bool,
}

impl Slot {
    fn new(lock: AnyLock, ticket: Arc<Ticket>, key: Key) -> Self {
        Self {
            lock,
            ticket,
            key,
            phase: Phase::Over,
            unanswered: 0,
            heard: Heard::default(),
            until: Nanos::NEVER,
            lock_wake: Nanos::NEVER,
            extension_until: Nanos::NEVER,
            is_used: true,
        }
    }

    /// When something is to be done for it that its machine has not asked for.
    pub(super) fn own_wake(&self) -> Nanos {
        match self.phase {
            Phase::Opening(until) | Phase::Refused(until) => until,
            Phase::Held if self.ticket.is_lost() => self.extension_until,
            Phase::Held => self.until.min(self.extension_until),
            Phase::Over | Phase::Acquiring | Phase::Releasing => Nanos::NEVER,
        }
    }

    pub(super) fn next_wake(&self) -> Nanos {
        self.own_wake().min(self.lock_wake)
    }
}

#[derive(Debug)]
pub(super) struct Slots {
    list: Vec<Slot>,
    free: Vec<u32>,
    most: u32,
}

impl Slots {
    pub(super) const fn new(most: u32) -> Self {
        Self {
            list: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// A slot for a new lock; `None` when all are in use. `make` makes what it needs.
    pub(super) fn take(&mut self, ticket: Arc<Ticket>, make: impl FnOnce() -> (AnyLock, Key)) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.list.len() < self.most as usize => self.list.len() as u32,
            None => return None,
        };
        ticket.slot.store(index, Ordering::Relaxed);
        let (lock, key) = make();
        let slot = Slot::new(lock, ticket, key);
        match self.list.get_mut(index as usize) {
            Some(over) => *over = slot,
            None => self.list.push(slot),
        }
        Some(index)
    }

    /// The key of a slot that nothing is left to do for; it may be used again.
    pub(super) fn give_up(&mut self, index: u32) -> Option<Key> {
        let slot = &mut self.list[index as usize];
        if slot.phase != Phase::Over || slot.unanswered > 0 || !slot.is_used {
            return None;
        }
        slot.is_used = false;
        self.free.push(index);
        Some(slot.key)
    }

    /// The slot of a ticket that is not over.
    pub(super) fn of(&self, ticket: &Arc<Ticket>) -> Option<u32> {
        let index = ticket.slot.load(Ordering::Relaxed);
        let slot = self.list.get(index as usize)?;
        (Arc::ptr_eq(&slot.ticket, ticket) && slot.phase != Phase::Over).then_some(index)
    }

    pub(super) fn is_used(&self, index: u32) -> bool {
        self.list.get(index as usize).is_some_and(|slot| slot.is_used)
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Slot {
        &mut self.list[index as usize]
    }

    /// The slots of all locks that are not over.
    pub(super) fn active(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.list)
            .filter(|(_, slot)| slot.phase != Phase::Over)
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use locks::{Chance, Lease, Mode, Retry, Spec, Strategy};

    use super::*;
    use crate::lock_client::ticket::Wanted;

    fn ticket() -> Arc<Ticket> {
        let wanted = Wanted {
            name: b"orders:17"[..].into(),
            lease: Lease::new(10_000).expect("it is allowed"),
            wait: Nanos::ZERO,
            retry: None,
            mode: Mode::Exclusive,
        };
        Arc::new(Ticket::new(wanted, None))
    }

    fn made(key: u32) -> (AnyLock, Key) {
        let spec = Spec {
            servers: 1,
            lease: Lease::new(10_000).expect("it is allowed"),
            reply_timeout: Nanos::from_secs(1),
            retry: Retry::NONE,
        };
        let lock = AnyLock::new(Strategy::Mutex, Arc::new(spec), Chance::seeded(1));
        (lock, Key(key))
    }

    #[test]
    fn a_slot_is_used_again_once_its_lock_is_over_and_all_calls_are_answered() {
        let mut slots = Slots::new(1);
        let first = ticket();
        let index = slots.take(Arc::clone(&first), || made(7)).expect("there is room");
        slots.get(index).phase = Phase::Acquiring;
        slots.get(index).unanswered = 1;
        assert_eq!(slots.of(&first), Some(index));
        assert_eq!(slots.give_up(index), None, "it is under way");
        slots.get(index).phase = Phase::Over;
        assert_eq!(slots.give_up(index), None, "a late reply would count for the next lock");
        assert!(slots.take(ticket(), || made(8)).is_none());
        slots.get(index).unanswered = 0;
        assert_eq!(slots.give_up(index), Some(Key(7)));
        assert_eq!(slots.give_up(index), None, "once");
        let second = ticket();
        assert_eq!(slots.take(Arc::clone(&second), || made(8)), Some(index));
        slots.get(index).phase = Phase::Held;
        assert_eq!((slots.of(&first), slots.of(&second)), (None, Some(index)));
    }
}
