//! Merges the events of several threads, each in order, into one stream in the order of stamps.
//!
//! A source reports its progress with its watermark; nothing is delivered before all sources have passed it.
//!
//! Promises: the order does not depend on when a source's events arrive. At equal stamps an event that ends a belief
//! comes first (intervals are half-open), except that a client's own events keep their order; then sources in turn.
//! Does not promise bounded memory: a slow source holds back the others' events, and they accumulate.

use crate::Event;
use locks::Nanos;
use std::collections::VecDeque;

#[derive(Debug)]
pub struct Merge {
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    queue: VecDeque<(Nanos, Event)>,
    watermark: Watermark,
}

/// What may still come from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Watermark {
    /// Events of this stamp and later ones.
    From(Nanos),
    Finished,
}

impl Merge {
    /// For `sources` sources, each with room for `capacity` events before it allocates.
    pub fn new(sources: usize, capacity: usize) -> Self {
        let source = || Source {
            queue: VecDeque::with_capacity(capacity),
            watermark: Watermark::From(Nanos::ZERO),
        };
        Self {
            sources: std::iter::repeat_with(source).take(sources).collect(),
        }
    }

    /// Takes an event of `source`, and raises its watermark to `at`. An event that is stamped before the watermark may
    /// be delivered too late, which the checker then reports as a finding.
    pub fn push(&mut self, source: usize, at: Nanos, event: Event) {
        let Source { queue, watermark } = &mut self.sources[source];
        *watermark = Watermark::From(at).max(*watermark);
        queue.push_back((at, event));
        if event.ends_belief() {
            advance_last(queue);
        }
    }

    /// Nothing before `at` will come from `source`; an event stamped `at` still may. The latest of several watermarks
    /// holds, so a watermark that was read before later pushes does no harm.
    pub fn watermark(&mut self, source: usize, at: Nanos) {
        let watermark = &mut self.sources[source].watermark;
        *watermark = Watermark::From(at).max(*watermark);
    }

    /// Nothing more will come from `source`: it no longer holds the others back.
    pub fn finish(&mut self, source: usize) {
        self.sources[source].watermark = Watermark::Finished;
    }

    /// How many events of `source` wait to be delivered.
    pub fn waiting(&self, source: usize) -> usize {
        self.sources[source].queue.len()
    }

    /// Delivers, in order, everything that no future event can precede.
    pub fn drain(&mut self, mut deliver: impl FnMut(Nanos, Event)) {
        let Some(lowest) = self.sources.iter().map(|source| source.watermark).min() else {
            return;
        };
        while let Some(source) = self.next_source(lowest) {
            let (at, event) = self.sources[source]
                .queue
                .pop_front()
                .expect("`next_source` found an event at its front");
            deliver(at, event);
        }
    }

    /// The source whose front event is next, unless a future event may belong before it.
    fn next_source(&self, lowest: Watermark) -> Option<usize> {
        let fronts = self.sources.iter().enumerate().filter_map(|(index, source)| {
            let (at, event) = *source.queue.front()?;
            Some((at, !event.ends_belief(), index))
        });
        let (at, _, index) = fronts.min()?;
        (Watermark::From(at) < lowest).then_some(index)
    }
}

/// Moves the last event, which ends a belief, ahead of the other events of its stamp that end none, but not ahead of
/// events of its own client.
fn advance_last(queue: &mut VecDeque<(Nanos, Event)>) {
    let mut index = queue.len() - 1;
    let (at, event) = queue[index];
    while index > 0 {
        let (at_before, before) = queue[index - 1];
        if at_before != at || before.ends_belief() || before.client() == event.client() {
            break;
        }
        queue.swap(index - 1, index);
        index -= 1;
    }
}
