//! A load that changes over time: clients of a closed loop, or arrivals a second of an open one.
//!
//! Each stage goes linearly from one load to another, so the sum of the load over time is quadratic in each. The n-th
//! arrival comes when that sum reaches n; for Poisson arrivals, when it reaches the n-th point of a Poisson process of
//! rate 1 (E. Çinlar: Introduction to Stochastic Processes, 1975, section 4.7).
//!
//! Times are ns since the start of the first stage, as floats: a gap of a third of a nanosecond does not drift.

use locks::Nanos;

use crate::spec::Stage;

const NS_PER_S: f64 = 1e9;

/// The stages of a trial, in order, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    pieces: Box<[Piece]>,
    /// The load after the last stage.
    last: f64,
    /// The sum of the load over all stages.
    total: f64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    begin: f64,
    length: f64,
    from: f64,
    /// Per ns.
    slope: f64,
    /// The sum of the load before this stage.
    before: f64,
}

impl Piece {
    fn at(&self, ns: f64) -> f64 {
        self.slope.mul_add(ns, self.from)
    }

    /// The sum of the load over the first `ns` of the stage.
    fn sum(&self, ns: f64) -> f64 {
        f64::midpoint(self.from, self.at(ns)) * ns / NS_PER_S
    }
}

impl Stages {
    /// `None` when there are no stages. Before them the load is for `lead` as at their begin.
    pub(crate) fn new(lead: Nanos, stages: &[Stage]) -> Option<Self> {
        let first = stages.first()?;
        let lead = Stage {
            from: first.from,
            to: first.from,
            length: lead,
        };
        let (mut begin, mut before, mut last) = (0.0, 0.0, first.from);
        let mut pieces = Vec::with_capacity(stages.len() + 1);
        for stage in std::iter::once(&lead).chain(stages) {
            if stage.length == Nanos::ZERO {
                continue;
            }
            let length = stage.length.0 as f64;
            let piece = Piece {
                begin,
                length,
                from: stage.from,
                slope: (stage.to - stage.from) / length,
                before,
            };
            begin += length;
            before += piece.sum(length);
            last = stage.to;
            pieces.push(piece);
        }
        Some(Self {
            pieces: pieces.into_boxed_slice(),
            last,
            total: before,
        })
    }

    /// The stage at this time; `None` after the last.
    fn piece(&self, ns: f64) -> Option<&Piece> {
        let next = self.pieces.partition_point(|piece| piece.begin <= ns);
        let piece = &self.pieces[next.saturating_sub(1)];
        (ns < piece.begin + piece.length).then_some(piece)
    }

    /// The load in whole clients.
    pub(crate) fn clients(&self, ns: f64) -> u32 {
        let load = self.piece(ns).map_or(self.last, |piece| piece.at(ns - piece.begin));
        load.round() as u32
    }

    /// When the number of clients next changes after `ns`, or earlier; infinite after the last stage.
    pub(crate) fn next_change(&self, ns: f64) -> f64 {
        let Some(piece) = self.piece(ns) else {
            return f64::INFINITY;
        };
        let end = piece.begin + piece.length;
        if piece.slope == 0.0 {
            return end;
        }
        // The number changes where the load passes a half.
        let now = piece.at(ns - piece.begin);
        let passed = if piece.slope > 0.0 {
            (now - 0.5).floor() + 1.5
        } else {
            (now + 0.5).ceil() - 1.5
        };
        let change = piece.begin + (passed - piece.from) / piece.slope;
        // One ns later: a falling load is beyond the half then, and a rounded time does not come again and again.
        (change.max(ns) + 1.0).min(end)
    }

    /// When the sum of the load reaches `sum`; infinite if it never does.
    pub(crate) fn when(&self, sum: f64) -> f64 {
        if sum > self.total {
            return f64::INFINITY;
        }
        let next = self.pieces.partition_point(|piece| piece.before < sum);
        let piece = &self.pieces[next.saturating_sub(1)];
        let left = (sum - piece.before) * NS_PER_S;
        // The root of slope / 2 t^2 + from t = left, in the form that does not lose digits when the slope is small.
        let root = piece.from.mul_add(piece.from, 2.0 * piece.slope * left).max(0.0).sqrt();
        let within = if left > 0.0 {
            2.0 * left / (piece.from + root)
        } else {
            0.0
        };
        piece.begin + within.min(piece.length)
    }

    /// The mean load between two times.
    pub(crate) fn mean(&self, from: f64, to: f64) -> f64 {
        (self.sum(to) - self.sum(from)) * NS_PER_S / (to - from)
    }

    fn sum(&self, ns: f64) -> f64 {
        if let Some(piece) = self.piece(ns) {
            return piece.before + piece.sum(ns - piece.begin);
        }
        let end = self.pieces.last().map_or(0.0, |piece| piece.begin + piece.length);
        self.total + self.last * (ns - end) / NS_PER_S
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stage(from: f64, to: f64, ms: u64) -> Stage {
        Stage {
            from,
            to,
            length: Nanos::from_millis(ms),
        }
    }

    fn stages(list: &[Stage]) -> Stages {
        Stages::new(Nanos::ZERO, list).expect("there is a stage")
    }

    #[test]
    fn clients_come_and_go_one_by_one() {
        let stages = stages(&[stage(0.0, 4.0, 4), stage(4.0, 4.0, 2), stage(4.0, 0.0, 4)]);
        let mut changes = vec![(0.0, stages.clients(0.0))];
        let mut ns = 0.0;
        while let next = stages.next_change(ns)
            && next.is_finite()
        {
            ns = next;
            let clients = stages.clients(ns);
            if clients != changes[changes.len() - 1].1 {
                changes.push((ns / 1e6, clients));
            }
        }
        let expected = [
            (0.5, 1),
            (1.5, 2),
            (2.5, 3),
            (3.5, 4),
            (6.5, 3),
            (7.5, 2),
            (8.5, 1),
            (9.5, 0),
        ];
        assert_eq!(changes[0], (0.0, 0));
        assert_eq!(changes.len(), expected.len() + 1);
        for ((at, clients), (due, number)) in changes[1..].iter().zip(expected) {
            assert_eq!(*clients, number);
            assert!((at - due).abs() < 1e-4, "{at} ms instead of {due} ms");
        }
    }

    #[test]
    fn the_warm_up_has_the_load_of_the_begin_and_the_end_that_of_the_last_stage() {
        let stages = Stages::new(Nanos::from_millis(10), &[stage(3.0, 9.0, 1)]).expect("there is a stage");
        assert_eq!(stages.clients(9_999_999.0), 3);
        assert_eq!(stages.clients(11_000_000.0), 9);
        assert!(stages.next_change(12_000_000.0).is_infinite());
        assert!((stages.mean(0.0, 10e6) - 3.0).abs() < 1e-9);
        assert!((stages.mean(10e6, 11e6) - 6.0).abs() < 1e-9);
    }

    fn any_stages() -> impl Strategy<Value = Vec<Stage>> {
        let load = prop_oneof![Just(0.0), 0.0..2_000.0];
        let next = (load.clone(), 1_u64..2_000, any::<bool>());
        (load, prop::collection::vec(next, 1..6)).prop_map(|(mut last, list)| {
            let staged = list.into_iter().map(|(to, ms, jumps)| {
                let from = if jumps { to } else { last };
                last = to;
                stage(from, to, ms)
            });
            staged.collect()
        })
    }

    proptest! {
        #[test]
        fn the_time_of_a_sum_is_when_the_load_has_summed_up_to_it(list in any_stages(), part in 0.001_f64..0.999) {
            let stages = stages(&list);
            if stages.total > 0.0 {
                let sum = stages.total * part;
                let when = stages.when(sum);
                prop_assert!((stages.sum(when) - sum).abs() <= 1e-6 * stages.total, "{when}");
            }
            prop_assert!(stages.when(stages.total * 1.001 + 1.0).is_infinite());
        }

        #[test]
        fn between_two_changes_the_number_of_clients_stays(list in any_stages(), part in 0.0_f64..1.0) {
            let stages = stages(&list);
            let end: f64 = list.iter().map(|stage| stage.length.0 as f64).sum();
            let ns = end * part;
            let next = stages.next_change(ns);
            prop_assert!(next > ns);
            // A time is rounded to whole ns, and so is the number there.
            if next.is_finite() && next - ns > 4.0 {
                prop_assert_eq!(stages.clients(ns + 1.0), stages.clients(next - 2.0));
            }
        }
    }
}
