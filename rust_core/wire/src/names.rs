//! The names of a cell's locks: `<prefix>{<index>}`, the index padded with zeros, so that all names have one length
//! and the encoder can patch them into a template.
//!
//! The braces make the index the hash tag: in a cluster every key of one lock lands on one node. A prefix that holds
//! `{` moves the tag, which starts at the first one; that only spreads the keys in another way.

use std::fmt;

use locks::Key;

/// All names in one flat buffer: exactly `prefix + 2 + digits` bytes a key, and no allocation to look one up.
pub struct KeyNames {
    bytes: Box<[u8]>,
    prefix_len: usize,
    name_len: usize,
}

impl KeyNames {
    /// The longest prefix, in bytes.
    pub const MAX_PREFIX: usize = 512;

    /// Names for `Key(0)` up to and without `Key(count)`; `prefix` may hold any bytes.
    ///
    /// # Panics
    /// When `prefix` is longer than [`Self::MAX_PREFIX`].
    pub fn new(prefix: &[u8], count: u32) -> Self {
        assert!(prefix.len() <= Self::MAX_PREFIX, "a prefix of {} bytes", prefix.len());
        let digits = count.saturating_sub(1).to_string().len();
        let name_len = prefix.len() + digits + 2;
        let mut bytes = Vec::with_capacity(name_len * count as usize);
        let mut name = [prefix, b"{", &vec![b'0'; digits], b"}"].concat();
        let number = prefix.len() + 1..prefix.len() + 1 + digits;
        for _ in 0..count {
            bytes.extend_from_slice(&name);
            count_up(&mut name[number.clone()]);
        }
        Self {
            bytes: bytes.into_boxed_slice(),
            prefix_len: prefix.len(),
            name_len,
        }
    }

    /// The name of `key`.
    ///
    /// # Panics
    /// When `key` is not one of the table's.
    #[inline]
    pub fn name(&self, key: Key) -> &[u8] {
        let start = key.0 as usize * self.name_len;
        &self.bytes[start..start + self.name_len]
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.name_len
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The length that every name has, in bytes.
    pub fn name_len(&self) -> usize {
        self.name_len
    }
}

impl fmt::Debug for KeyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = self.bytes.get(..self.prefix_len).unwrap_or_default().escape_ascii();
        write!(f, "KeyNames({} of {prefix}{{..}})", self.len())
    }
}

/// Adds one to a decimal number; past the last one it starts again at zero.
fn count_up(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}
