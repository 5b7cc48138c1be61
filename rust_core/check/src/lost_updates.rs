//! Lost updates: does the guarded counter have the value that the acknowledged writes give it?
//!
//! Each guarded write adds one. The property: acknowledged <= final <= acknowledged + unknown. A write whose reply was
//! lost is *not* a violation, whether it was carried out or not. Such writes may hide a lost or a repeated update; the
//! verdict says so, and proves neither.

/// The writes of one guarded counter that started from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostUpdates {
    /// Writes whose reply was a success.
    pub acknowledged: u64,
    /// Writes that were sent and whose replies did not come.
    pub unknown: u64,
}

/// What the counter's final value proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateVerdict {
    /// The counter contains each acknowledged write once, and nothing else.
    Kept,
    /// No violation, but the replies to `unknown` writes were lost, which could hide one.
    Undecided { unknown: u64 },
    /// At least this many acknowledged writes are lost.
    Lost { at_least: u64 },
    /// The counter contains at least this many writes that nobody sent, or that were carried out twice.
    Surplus { at_least: u64 },
}

impl LostUpdates {
    pub const fn judge(self, final_value: u64) -> UpdateVerdict {
        let most = self.acknowledged + self.unknown;
        if final_value < self.acknowledged {
            UpdateVerdict::Lost {
                at_least: self.acknowledged - final_value,
            }
        } else if final_value > most {
            UpdateVerdict::Surplus {
                at_least: final_value - most,
            }
        } else if self.unknown > 0 {
            UpdateVerdict::Undecided { unknown: self.unknown }
        } else {
            UpdateVerdict::Kept
        }
    }
}

/// What the final values of several counters prove. Each is judged by itself: a surplus in one does not hide a loss in
/// another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsVerdict {
    /// At least this many acknowledged writes are lost, over all rows.
    pub lost: u64,
    /// The rows contain at least this many writes that nobody sent, or that were carried out twice.
    pub surplus: u64,
    /// This many writes got no reply, in rows that show no violation: each could hide one.
    pub undecided: u64,
}

/// Judges each row by its writes and its final value.
pub fn judge_rows(rows: impl IntoIterator<Item = (LostUpdates, u64)>) -> RowsVerdict {
    rows.into_iter()
        .fold(RowsVerdict::default(), |mut sum, (writes, final_value)| {
            match writes.judge(final_value) {
                UpdateVerdict::Kept => {}
                UpdateVerdict::Undecided { unknown } => sum.undecided += unknown,
                UpdateVerdict::Lost { at_least } => sum.lost += at_least,
                UpdateVerdict::Surplus { at_least } => sum.surplus += at_least,
            }
            sum
        })
}
