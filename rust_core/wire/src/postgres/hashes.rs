//! Advisory locks have numbers for names: the first 8 bytes of SHA-256 over the name of the key.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use locks::{Key, Parameter, Statement};
use sha2::{Digest, Sha256};

use crate::KeyNames;

/// The number of the advisory lock that `name` stands for.
pub fn hash(name: &[u8]) -> i64 {
    let digest = Sha256::digest(name);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    i64::from_be_bytes(*first)
}

/// The numbers of a trial's keys, for all its threads.
///
/// Each is kept when it is first asked for: to hash a name takes most of a microsecond where the processor does not help,
/// and a million of them beforehand would hold up every trial.
pub struct Hashes {
    names: KeyNames,
    /// Of the first keys, up to `KEPT`; 0 as long as one is not known. Whoever comes first writes what all others would.
    known: Box<[AtomicI64]>,
}

/// 8 MB.
const KEPT: u32 = 1 << 20;

impl Hashes {
    /// For these statements: without one that asks for a number none is kept.
    pub fn new(names: &KeyNames, statements: &[Statement]) -> Self {
        let asks = |statement: &Statement| statement.parameters().contains(&Parameter::Hash);
        let count = if statements.iter().any(asks) {
            names.count().min(KEPT)
        } else {
            0
        };
        Self {
            names: names.clone(),
            known: (0..count).map(|_| AtomicI64::new(0)).collect(),
        }
    }

    /// # Panics
    /// When `key` is not one of these keys.
    #[inline]
    pub fn of(&self, key: Key) -> i64 {
        let known = self.known.get(key.0 as usize);
        match known.map_or(0, |known| known.load(Ordering::Relaxed)) {
            0 => self.make(key),
            number => number,
        }
    }

    #[inline(never)]
    fn make(&self, key: Key) -> i64 {
        let mut room = [0; KeyNames::LONGEST];
        let number = hash(self.names.write(key, &mut room));
        if let Some(known) = self.known.get(key.0 as usize) {
            known.store(number, Ordering::Relaxed);
        }
        number
    }
}

impl fmt::Debug for Hashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashes").field(&self.names).finish()
    }
}
