//! The key names of a cell: `<prefix>{<index>}`, the index padded with zeros, so that all names have one length and the
//! encoder needs to patch only the digits into a template.
//!
//! The braces make the index the hash tag: in a cluster all keys of one lock are on one node. In a prefix with `{` the
//! tag starts at that brace; that only distributes the keys differently.

use std::fmt;

use locks::Key;

use crate::request::write_padded;

/// Computes the name of a key. There is no table: a million names take no memory, and writing an index costs less than
/// fetching a name from beyond the processor's cache.
#[derive(Clone)]
pub struct KeyNames {
    /// The name of `Key(0)`.
    first: Box<[u8]>,
    index: Index,
}

impl KeyNames {
    /// The longest prefix, in bytes.
    pub const MAX_PREFIX: usize = 512;

    /// Names for `Key(0)` up to but not including `Key(count)`; `prefix` may contain any bytes.
    ///
    /// # Panics
    /// When `prefix` is longer than [`Self::MAX_PREFIX`].
    pub fn new(prefix: &[u8], count: u32) -> Self {
        assert!(prefix.len() <= Self::MAX_PREFIX, "a prefix of {} bytes", prefix.len());
        let digits = count.saturating_sub(1).to_string().len();
        let first = [prefix, b"{", &vec![b'0'; digits], b"}"].concat();
        Self {
            first: first.into_boxed_slice(),
            index: Index {
                at: prefix.len() + 1,
                digits,
                count,
            },
        }
    }

    /// The name of `key`.
    ///
    /// # Panics
    /// When `key` is not one of these keys.
    pub fn name(&self, key: Key) -> Vec<u8> {
        let mut name = self.first.to_vec();
        self.index.write(key, &mut name);
        name
    }

    /// The number of keys with a name.
    pub(crate) const fn count(&self) -> u32 {
        self.index.count
    }

    /// The longest name, in bytes: the prefix, the braces, and the digits of an index.
    pub(crate) const LONGEST: usize = Self::MAX_PREFIX + 2 + 10;

    /// The name of `key`, written to the front of `room`.
    pub(crate) fn write<'a>(&self, key: Key, room: &'a mut [u8; Self::LONGEST]) -> &'a [u8] {
        let name = &mut room[..self.first.len()];
        name.copy_from_slice(&self.first);
        self.index.write(key, name);
        name
    }

    /// The name from which the others are made: `index` writes the difference.
    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    pub(crate) fn index(&self) -> Index {
        self.index
    }
}

impl fmt::Debug for KeyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyNames({} from {})", self.index.count, self.first.escape_ascii())
    }
}

/// The part in which a name differs from the others: `digits` bytes from `at` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    at: usize,
    digits: usize,
    count: u32,
}

impl Index {
    /// The key whose name `name` starts with.
    pub(crate) fn read(self, name: &[u8]) -> Option<Key> {
        let digits = name.get(self.at..self.at + self.digits)?;
        let is_digits = digits.iter().all(u8::is_ascii_digit);
        let index = std::str::from_utf8(digits).ok().filter(|_| is_digits)?.parse().ok()?;
        (index < self.count).then_some(Key(index))
    }

    /// Turns the name at the front of `name` into that of `key`.
    #[inline]
    pub(crate) fn write(self, key: Key, name: &mut [u8]) {
        assert!(key.0 < self.count, "key {} of {}", key.0, self.count);
        write_padded(key.0, &mut name[self.at..self.at + self.digits]);
    }
}
