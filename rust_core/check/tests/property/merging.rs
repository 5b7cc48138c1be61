//! Whatever the threads do, the merged stream contains all events in order.

use check::{Event, Merge};
use locks::{Key, Mode, Nanos};
use proptest::prelude::*;

/// Per source: the gaps between its stamps, and the kind of each event: a release (of an earlier holder), or an event
/// that ends no belief.
fn sources() -> impl Strategy<Value = Vec<Vec<(u64, u8)>>> {
    prop::collection::vec(prop::collection::vec((0_u64..3, 0_u8..6), 0..40), 1..5)
}

/// The events of each source, each with its own client, so that all differ.
fn streams(sources: Vec<Vec<(u64, u8)>>) -> Vec<Vec<(Nanos, Event)>> {
    let mut clients = 0..;
    let mut stream = |gaps: Vec<(u64, u8)>| {
        let mut now = 0;
        let mut event = |(gap, kind)| {
            now += gap;
            let client = clients.next().unwrap();
            let event = match kind {
                0 => Event::Waiting {
                    client,
                    key: Key(0),
                    mode: Mode::Exclusive,
                },
                1 => Event::Queued { client },
                2 => Event::Renewed {
                    client,
                    until: Nanos::NEVER,
                },
                _ => Event::Released { client },
            };
            (Nanos(now), event)
        };
        gaps.into_iter().map(&mut event).collect()
    };
    sources.into_iter().map(&mut stream).collect()
}

proptest! {
    #[test]
    fn the_merge_is_the_sorted_whole(
        sources in sources(),
        turns in prop::collection::vec((0_usize..5, 0_u8..4), 0..300),
    ) {
        let streams = streams(sources);
        let mut expected: Vec<_> = streams.concat();
        // A stable sort: releases first within a stamp, then by source, then in the source's order.
        expected.sort_by_key(|&(at, event)| (at, !matches!(event, Event::Released { .. })));

        let mut merge = Merge::new(streams.len(), 4);
        let mut sent = vec![0; streams.len()];
        let mut merged = Vec::new();
        for (source, action) in turns {
            let source = source % streams.len();
            let next = streams[source].get(sent[source]);
            match (action, next) {
                (0, Some(&(at, _))) => merge.watermark(source, at),
                (1, _) => merge.drain(|at, event| merged.push((at, event))),
                (_, Some(&(at, event))) => {
                    merge.push(source, at, event);
                    sent[source] += 1;
                }
                (_, None) => merge.finish(source),
            }
        }
        for (source, stream) in streams.iter().enumerate() {
            stream[sent[source]..].iter().for_each(|&(at, event)| merge.push(source, at, event));
            merge.finish(source);
        }
        merge.drain(|at, event| merged.push((at, event)));
        prop_assert_eq!(merged, expected);
    }
}
