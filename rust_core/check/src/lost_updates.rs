//! Lost updates: does the guarded counter stand where the acknowledged writes have brought it?
//!
//! Each guarded write adds one. The property: acknowledged <= final <= acknowledged + unknown. *Not* a violation: a
//! write whose answer was lost, carried out or not. Where such answers leave room, an update may hide in it that was
//! lost, or made twice; that is said, and not taken for proof of either.

/// The writes of one guarded counter that started from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostUpdates {
    /// Were answered with success.
    pub acknowledged: u64,
    /// Were sent, and their answers did not come.
    pub unknown: u64,
}

/// What the counter's final value proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateVerdict {
    /// Each acknowledged write is there, once, and nothing else is.
    Kept,
    /// No violation, but the answers to `unknown` writes were lost, which could hide one.
    Undecided { unknown: u64 },
    /// At least so many acknowledged writes are gone.
    Lost { at_least: u64 },
    /// At least so many writes are there that nobody sent, or that were made twice.
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

/// What the final values of several counters prove, each judged by itself: a surplus of one hides no loss of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsVerdict {
    /// At least so many acknowledged writes are gone, over all rows.
    pub lost: u64,
    /// At least so many writes are there that nobody sent, or that were made twice, over all rows.
    pub surplus: u64,
    /// The answers to so many writes were lost, in rows that show no violation: each could hide one.
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
