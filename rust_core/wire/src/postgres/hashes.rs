//! Advisory locks are named by numbers: the first 8 bytes of SHA-256 over the name of the key.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use locks::{Key, Parameter, Statement};
use sha2::{Digest, Sha256};

use crate::{GivenNames, KeyNames};

/// The number of the advisory lock for `name`.
pub fn hash(name: &[u8]) -> i64 {
    let digest = Sha256::digest(name);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    i64::from_be_bytes(*first)
}

/// The numbers of a trial's keys, for all its threads.
///
/// Each is stored when it is first needed: hashing a name takes most of a microsecond without support by the processor,
/// and hashing a million in advance would delay every trial.
pub struct Hashes {
    names: Names,
    /// The numbers of the first keys, up to `KEPT`; 0 while one is not known. All threads would store the same number,
    /// so the order does not matter.
    known: Box<[AtomicI64]>,
}

/// How many rows the table of locks with given names has: 0 and on. Two of a hundred names have one row in 7 of 100
/// cases.
pub const GIVEN_ROWS: u32 = 1 << 16;

#[derive(Debug)]
enum Names {
    Numbered(KeyNames),
    Given(GivenNames),
}

/// 8 MB.
const KEPT: u32 = 1 << 20;

impl Hashes {
    /// For these statements; if none of them needs a number, none is stored.
    pub fn new(names: &KeyNames, statements: &[Statement]) -> Self {
        let asks = |statement: &Statement| statement.parameters().contains(&Parameter::Hash);
        let count = if statements.iter().any(asks) {
            names.count().min(KEPT)
        } else {
            0
        };
        Self {
            names: Names::Numbered(names.clone()),
            known: (0..count).map(|_| AtomicI64::new(0)).collect(),
        }
    }

    /// For names that a program gives. None of their numbers is stored, because a key may get another name.
    pub fn given(names: &GivenNames) -> Self {
        Self {
            names: Names::Given(names.clone()),
            known: Box::default(),
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

    /// The number of the row of a key. Of given names the rows are few: two names may have one row, and then their
    /// locks keep each other out.
    ///
    /// # Panics
    /// When `key` is not one of these keys.
    #[inline]
    pub fn row(&self, key: Key) -> u32 {
        match &self.names {
            Names::Numbered(_) => key.0,
            Names::Given(names) => (hash(&names.name(key)) as u64 % u64::from(GIVEN_ROWS)) as u32,
        }
    }

    #[inline(never)]
    fn make(&self, key: Key) -> i64 {
        let number = match &self.names {
            Names::Numbered(names) => hash(names.write(key, &mut [0; KeyNames::LONGEST])),
            Names::Given(names) => hash(&names.name(key)),
        };
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
