//! What locks whose release writes have written, for the judgement of lost updates.

use super::Recorder;

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

/// Writes are counted in the whole trial, because the rows contain the writes of the whole trial.
impl Recorder {
    pub(crate) fn write_acknowledged(&mut self, row: usize) {
        self.counters.acknowledged_writes += 1;
        self.writes.acknowledged[row] += 1;
    }

    pub(crate) fn write_was_stale(&mut self) {
        self.counters.stale_writes += 1;
    }

    pub(crate) fn written(&self) -> &Writes {
        &self.writes
    }

    pub(crate) fn write_unknown(&mut self, row: usize) {
        self.counters.unknown_writes += 1;
        self.writes.unknown[row] += 1;
    }
}
