//! Random numbers of the operating system, fetched a page at a time.

use locks::Chance;
use rustix::rand::{GetRandomFlags, getrandom};

const PAGE: usize = 4096;

#[derive(Debug)]
pub(super) struct Entropy {
    page: Box<[u8; PAGE]>,
    used: usize,
}

impl Default for Entropy {
    fn default() -> Self {
        Self {
            page: Box::new([0; PAGE]),
            used: PAGE,
        }
    }
}

impl Entropy {
    /// A stream for one lock: no part of it can be told from those of other locks.
    pub(super) fn chance(&mut self) -> Chance {
        if self.used == PAGE {
            self.refill();
        }
        let bytes = &mut self.page[self.used..self.used + 16];
        let seed = std::array::from_fn(|at| std::mem::take(&mut bytes[at]));
        self.used += 16;
        Chance::from_entropy(seed)
    }

    fn refill(&mut self) {
        let mut filled = 0;
        while filled < PAGE {
            match getrandom(&mut self.page[filled..], GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("the kernel has had random numbers since Linux 3.17: {error}"),
            }
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_locks_and_no_two_clients_get_the_same_token() {
        let (mut one, mut other) = (Entropy::default(), Entropy::default());
        let mut tokens = BTreeSet::new();
        for _ in 0..2 * PAGE / 16 {
            tokens.insert(one.chance().token());
            tokens.insert(other.chance().token());
        }
        assert_eq!(tokens.len(), 4 * PAGE / 16);
    }
}
