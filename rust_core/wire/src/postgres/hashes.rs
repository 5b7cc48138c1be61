//! Advisory locks have numbers for names: the first 8 bytes of SHA-256 over the name of the key.

use std::fmt;

use locks::{Key, Parameter, Statement};
use sha2::{Digest, Sha256};

use crate::KeyNames;

/// The number of the advisory lock that `name` stands for.
pub fn hash(name: &[u8]) -> i64 {
    let digest = Sha256::digest(name);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    i64::from_be_bytes(*first)
}

/// The numbers of a trial's keys: from a table where it is small, so that it stays in a processor's cache.
pub struct Hashes {
    names: KeyNames,
    /// Of the first keys, up to `TABLE`.
    known: Box<[i64]>,
}

/// 512 kB. To hash a name takes a tenth of a microsecond or two, no more than to fetch a number from memory.
const TABLE: u32 = 1 << 16;

impl Hashes {
    /// For these statements: without one that asks for a number the table stays empty.
    pub fn new(names: &KeyNames, statements: &[Statement]) -> Self {
        let asks = |statement: &Statement| statement.parameters().contains(&Parameter::Hash);
        let count = if statements.iter().any(asks) {
            names.count().min(TABLE)
        } else {
            0
        };
        Self {
            names: names.clone(),
            known: (0..count).map(|key| hash(&names.name(Key(key)))).collect(),
        }
    }

    /// # Panics
    /// When `key` is not one of these keys.
    #[inline]
    pub fn of(&self, key: Key) -> i64 {
        match self.known.get(key.0 as usize) {
            Some(known) => *known,
            None => self.make(key),
        }
    }

    #[inline(never)]
    fn make(&self, key: Key) -> i64 {
        let mut room = [0; KeyNames::LONGEST];
        hash(self.names.write(key, &mut room))
    }
}

impl fmt::Debug for Hashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashes").field(&self.names).finish()
    }
}
