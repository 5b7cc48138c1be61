//! The keys of one acquire: one for most locks, several for a multi-lock.

use crate::Key;

/// From one to `KeyList::MOST` keys, in the order in which the client named them. `Copy`, so that events and commands
/// can carry it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyList {
    count: u8,
    keys: [Key; Self::MOST],
}

impl KeyList {
    pub const MOST: usize = 8;

    pub const fn one(key: Key) -> Self {
        Self {
            count: 1,
            keys: [key; Self::MOST],
        }
    }

    /// `None` when `keys` is empty or longer than `MOST`.
    pub fn new(keys: &[Key]) -> Option<Self> {
        let first = *keys.first()?;
        let mut all = [first; Self::MOST];
        all.get_mut(..keys.len())?.copy_from_slice(keys);
        Some(Self {
            count: keys.len() as u8,
            keys: all,
        })
    }

    /// The key of a lock that takes only one. Panics when there are several, because the driver asked for something
    /// this lock does not do.
    pub fn only(self) -> Key {
        assert!(self.count == 1, "{self:?} for a lock that takes one key");
        self.keys[0]
    }

    pub fn as_slice(&self) -> &[Key] {
        &self.keys[..usize::from(self.count)]
    }

    /// The same keys in ascending order, each once.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let given = usize::from(self.count);
        self.keys[..given].sort_unstable();
        let mut distinct = 1;
        for at in 1..given {
            if self.keys[at] != self.keys[distinct - 1] {
                self.keys[distinct] = self.keys[at];
                distinct += 1;
            }
        }
        // Filled as in `new`, so that equal lists compare equal.
        let first = self.keys[0];
        self.keys[distinct..].fill(first);
        self.count = distinct as u8;
        self
    }
}

impl From<Key> for KeyList {
    fn from(key: Key) -> Self {
        Self::one(key)
    }
}

impl std::fmt::Debug for KeyList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_the_order_given_until_they_are_sorted() {
        let given = [Key(5), Key(2), Key(5), Key(3)];
        let keys = KeyList::new(&given).expect("four are few");
        assert_eq!(keys.as_slice(), given);
        assert_eq!(keys.sorted().as_slice(), [Key(2), Key(3), Key(5)]);
        assert_eq!(Some(keys.sorted()), KeyList::new(&[Key(2), Key(3), Key(5)]));
        assert_eq!(KeyList::one(Key(4)).sorted(), KeyList::one(Key(4)));
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(KeyList::new(&[]), None);
        assert_eq!(KeyList::new(&[Key(1); KeyList::MOST + 1]), None);
        assert!(KeyList::new(&[Key(1); KeyList::MOST]).is_some());
    }

    #[test]
    #[should_panic(expected = "for a lock that takes one key")]
    fn a_lock_of_one_key_is_given_one() {
        KeyList::new(&[Key(1), Key(2)]).expect("two are few").only();
    }
}
