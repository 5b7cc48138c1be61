//! A model of Redis for the waiting locks: the scripts of `fair-queue` and `notify`, wake-up lists and channels.

use locks::{ErrorKind, Key, Nanos, Reply, Script, Token};

use crate::conditions::Mistake;
use crate::network::Asker;
use crate::redis::{Entry, Redis, RedisEffect};

/// A place in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    token: Token,
    deadline_ms: u64,
}

impl Place {
    fn is_alive(&self, now: Nanos) -> bool {
        self.deadline_ms > now.0 / 1_000_000
    }
}

impl Redis {
    pub(crate) fn run_script(&mut self, now: Nanos, script: Script, key: Key, token: Token, numbers: [u64; 2]) -> i64 {
        let [lease, second] = numbers;
        match script {
            Script::QueueTake => self.queue_take(now, key, token, lease, second),
            Script::QueueLeave => self.queue_leave(now, key, token, lease, second == 1),
            Script::NotifyAcquire => match self.keys.get(&key) {
                None => {
                    self.set(now, key, token, lease);
                    0
                }
                Some(entry) => (entry.expires.since(now).0 / 1_000_000).max(1).cast_signed(),
            },
            Script::NotifyRelease => {
                if !self.holds(key, token) && self.mistake != Mistake::DeleteWithoutCompare {
                    return 0;
                }
                self.delete(key);
                let listeners = self.listeners.iter().filter(|(known, _)| *known == key);
                self.effects
                    .extend(listeners.map(|&(_, at)| RedisEffect::Publishes(key, at)));
                1
            }
            Script::CompareAndExpire => {
                let mine = self.holds(key, token);
                if mine {
                    self.set(now, key, token, lease);
                }
                i64::from(mine)
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn queue_take(&mut self, now: Nanos, key: Key, me: Token, lease: u64, alive: u64) -> i64 {
        if self.holds(key, me) {
            self.set_end(now, key, lease);
            return 0;
        }
        let placed = self.has_place(now, key, me);
        if let Some((holder, Some(successor), expires)) = self.holder_and_successor(key)
            && successor == me
        {
            let waits = self.prepared.contains_key(&holder);
            if waits {
                let place_ends = now.after(Nanos::from_millis(alive));
                self.prepared.insert(holder, expires.min(place_ends));
            } else if placed {
                self.drop_place(key, me);
                self.set(now, key, me, lease);
                return 0;
            } else if self.mistake != Mistake::SuccessorForEver {
                self.keys.get_mut(&key).expect("it is held").successor = None;
            }
        }
        let is_held = self.keys.contains_key(&key);
        let queue = self.queues.entry(key).or_default();
        let mut answer = -1;
        if alive > 0 {
            let deadline_ms = now.0 / 1_000_000 + alive;
            if let Some(place) = queue.iter_mut().find(|place| placed && place.token == me) {
                place.deadline_ms = deadline_ms;
                answer = 1;
            } else {
                queue.retain(|place| place.token != me);
                queue.push(Place { token: me, deadline_ms });
                answer = 2;
            }
        }
        if is_held {
            return answer;
        }
        match self.first_alive(now, key, Some(me)) {
            Some(first) if first.token != me => {
                let left = first.deadline_ms - now.0 / 1_000_000;
                self.hand_over(now, key, &first, lease.min(left));
                answer
            }
            Some(_) | None => {
                self.set(now, key, me, lease);
                0
            }
        }
    }

    pub(crate) fn queue_confirm(
        &mut self,
        now: Nanos,
        key: Key,
        me: Token,
        lease: u64,
        wants_successor: bool,
    ) -> Reply {
        if self.holds(key, me) {
            self.set_end(now, key, lease);
        } else {
            let held = self.holder_and_successor(key);
            let given = held
                .is_some_and(|(holder, successor, _)| successor == Some(me) && !self.prepared.contains_key(&holder));
            let queue = self.queues.entry(key).or_default();
            let first = queue.first().is_some_and(|first| first.token == me);
            let free = held.is_none() && first && self.has_place(now, key, me);
            if !given && !free {
                return Reply::Int(-1);
            }
            self.drop_place(key, me);
            self.set(now, key, me, lease);
        }
        let first = self.queues.entry(key).or_default().first();
        let Some(first) = first.filter(|first| wants_successor && first.is_alive(now)) else {
            return Reply::Int(0);
        };
        let (successor, place_ends) = (first.token, Nanos::from_millis(first.deadline_ms));
        let entry = self.keys.get_mut(&key).expect("it is held");
        entry.successor = Some(successor);
        self.prepared.insert(me, entry.expires.min(place_ends));
        Reply::Token(successor)
    }

    fn set_end(&mut self, now: Nanos, key: Key, lease: u64) {
        let entry = self.keys.get_mut(&key).expect("it is held");
        entry.expires = now.after(Nanos::from_millis(lease));
    }

    fn has_place(&self, now: Nanos, key: Key, token: Token) -> bool {
        let mut queue = self.queues.get(&key).into_iter().flatten();
        queue.any(|place| place.token == token && place.is_alive(now))
    }

    fn drop_place(&mut self, key: Key, token: Token) {
        self.queues.entry(key).or_default().retain(|place| place.token != token);
    }

    fn holder_and_successor(&self, key: Key) -> Option<(Token, Option<Token>, Nanos)> {
        let entry = self.keys.get(&key)?;
        Some((entry.token?, entry.successor, entry.expires))
    }

    /// `RENAME`
    pub(crate) fn hand_over_by_name(&mut self, me: Token, successor: Token) -> Reply {
        match self.prepared.remove(&me) {
            Some(expires) => {
                self.wakeups.remove(&successor);
                self.ring(successor, 1, expires);
                Reply::Ok
            }
            None => Reply::Error(ErrorKind::NoSuchKey),
        }
    }

    fn queue_leave(&mut self, now: Nanos, key: Key, me: Token, lasts: u64, listens: bool) -> i64 {
        if listens {
            self.ring(me, 0, now.after(Nanos::from_millis(1_000)));
        }
        let placed = self.has_place(now, key, me);
        self.drop_place(key, me);
        if self.holds(key, me) {
            self.prepared.remove(&me);
        } else {
            let successor_of = self
                .holder_and_successor(key)
                .filter(|&(_, successor, _)| successor == Some(me));
            let given = successor_of.is_some_and(|(holder, ..)| self.prepared.remove(&holder).is_none());
            if !(given && placed) && self.mistake != Mistake::DeleteWithoutCompare {
                return 0;
            }
        }
        self.delete(key);
        if let Some(first) = self.first_alive(now, key, None) {
            self.hand_over(now, key, &first, lasts);
        }
        1
    }

    /// The first in the queue that is alive, or is `me`; it is removed from the queue.
    fn first_alive(&mut self, now: Nanos, key: Key, me: Option<Token>) -> Option<Place> {
        let last_comes_first = self.mistake == Mistake::LastComesFirst;
        let queue = self.queues.entry(key).or_default();
        while !queue.is_empty() {
            let first = queue.remove(if last_comes_first { queue.len() - 1 } else { 0 });
            if Some(first.token) == me || first.is_alive(now) {
                return Some(first);
            }
        }
        None
    }

    fn hand_over(&mut self, now: Nanos, key: Key, to: &Place, lasts: u64) {
        self.set(now, key, to.token, lasts);
        self.ring(to.token, 1, Nanos::from_millis(to.deadline_ms));
    }

    fn ring(&mut self, token: Token, says: u64, expires: Nanos) {
        match self.blocked.iter().position(|&(waits_for, _)| waits_for == token) {
            Some(at) => {
                let (_, waiter) = self.blocked.remove(at);
                self.effects
                    .push(RedisEffect::Replies(waiter, Reply::Int(says.cast_signed())));
            }
            None => {
                self.wakeups.insert(token, (says, expires));
            }
        }
    }

    pub(crate) fn await_wakeup(&mut self, token: Token, from: Asker) -> Option<Reply> {
        if let Some((says, _)) = self.wakeups.remove(&token) {
            return Some(Reply::Int(says.cast_signed()));
        }
        self.blocked.push((token, from));
        None
    }

    /// Whether the client was still blocked.
    pub(crate) fn unblock(&mut self, from: Asker, token: Token) -> bool {
        let before = self.blocked.len();
        self.blocked.retain(|&blocked| blocked != (token, from));
        self.blocked.len() < before || self.stop_reading(from)
    }

    pub(crate) fn holds(&self, key: Key, token: Token) -> bool {
        self.keys.get(&key).is_some_and(|entry| entry.token == Some(token))
    }

    pub(crate) fn set(&mut self, now: Nanos, key: Key, token: Token, lease_ms: u64) {
        let expires = now.after(Nanos::from_millis(lease_ms));
        let token = Some(token);
        let successor = None;
        self.keys.insert(
            key,
            Entry {
                token,
                successor,
                expires,
            },
        );
    }
}
