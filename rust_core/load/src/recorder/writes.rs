//! What locks whose release writes have written, for the judgement of lost updates.

/// The writes to each key in the whole trial, counted per row because a surplus in one row must not hide a loss in
/// another. Empty for a lock that writes nothing.
#[derive(Debug, Default)]
pub struct Writes {
    pub acknowledged: Vec<u64>,
    /// Writes that were sent and whose replies were lost or were errors.
    pub unknown: Vec<u64>,
}

impl Writes {
    pub(crate) fn to(keys: usize) -> Self {
        Self {
            acknowledged: vec![0; keys],
            unknown: vec![0; keys],
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.acknowledged, &other.acknowledged),
            (&mut self.unknown, &other.unknown),
        ] {
            ours.resize(theirs.len(), 0);
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        }
    }
}
