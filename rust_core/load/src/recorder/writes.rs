//! What guarded works, and locks whose release writes, have written, for the judgement of lost updates.

use super::Recorder;

/// The writes to each key in the whole trial, counted per row because a surplus in one row must not hide a loss in
/// another. Empty without a guard and without writes of the lock.
#[derive(Debug, Default)]
pub struct Writes {
    pub acknowledged: Vec<u64>,
    /// Writes that were sent and whose replies were lost or were errors.
    pub unknown: Vec<u64>,
    /// By how much the acknowledged writes changed the row. Empty for a lock whose release writes: each of its writes
    /// adds one.
    pub changed: Vec<i64>,
}

impl Writes {
    pub(crate) fn to(keys: usize, is_guarded: bool) -> Self {
        Self {
            changed: vec![0; if is_guarded { keys } else { 0 }],
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
        self.changed.resize(other.changed.len(), 0);
        let changes = self.changed.iter_mut().zip(&other.changed);
        changes.for_each(|(ours, theirs)| *ours += theirs);
    }
}

/// Writes are counted in the whole trial, because the rows contain the writes of the whole trial.
impl Recorder {
    pub(crate) fn write_acknowledged(&mut self, row: usize) {
        self.counters.acknowledged_writes += 1;
        self.writes.acknowledged[row] += 1;
    }

    pub(crate) fn guarded_write_acknowledged(&mut self, row: usize, delta: i64) {
        self.write_acknowledged(row);
        self.writes.changed[row] += delta;
    }

    /// A work found nothing left to take.
    pub(crate) fn was_sold_out(&mut self) {
        self.counters.sold_out += 1;
    }

    /// A constraint of the resource refused a write.
    pub(crate) fn write_was_refused(&mut self) {
        self.counters.refused_writes += 1;
    }

    /// A work ended without a write: its read or write failed, or its lease had ended.
    pub(crate) fn work_was_abandoned(&mut self) {
        self.counters.abandoned_works += 1;
    }

    /// The resource accepted a write although one with a higher fence had been acknowledged before it was sent.
    pub(crate) fn stale_write_was_accepted(&mut self) {
        self.counters.stale_writes_accepted += 1;
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
