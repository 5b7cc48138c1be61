//! Random histories: what a trial records is read again as the same events, and no bytes make the reader panic.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use check::{Checker, Event, Order, Report, Rules};
use history::{Clock, Header, JudgedBy, Preamble, Promises, Reading, Record, RecordedTrial, TrialName, VERSION};
use locks::{Fence, Key, Mode, Nanos};
use proptest::prelude::*;

const CLIENTS: u32 = 6;
const KEYS: u32 = 12;

fn event() -> impl Strategy<Value = Event> {
    let fence = prop::option::of((1_u64..9).prop_map(|fence| Fence(NonZeroU64::new(fence).expect("it is above 0"))));
    let until = prop_oneof![Just(Nanos::NEVER), (0_u64..3_000).prop_map(Nanos)];
    let mode = prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::Shared)];
    let details = (0..KEYS, mode, until, 0_u64..50, fence, any::<bool>());
    (0..CLIENTS, 0_u8..30, details).prop_map(|(client, kind, (key, mode, until, hold, fence, placed))| match kind {
        0..=7 => Event::Waiting {
            client,
            key: Key(key % 3),
            mode,
        },
        8 => Event::Queued { client },
        9 => Event::GaveUp { client },
        10 => Event::CutOff { client, placed },
        11..=18 => Event::Granted {
            client,
            until,
            hold: Nanos(hold),
            fence,
        },
        19 | 20 => Event::Renewed { client, until },
        21 => Event::LeaseLost { client },
        22 => Event::HungUp { client },
        23 => Event::Stopped { client },
        24 => Event::DeniedRelease { client },
        25 => Event::DriverStalled { client },
        26 => Event::Died { client },
        _ => Event::Released { client },
    })
}

fn records(most: usize) -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec((0_u64..40, event()), 0..most).prop_map(|steps| {
        let mut at = 1_000;
        let stamped = steps.into_iter().map(|(step, event)| {
            at += step;
            Record { at: Nanos(at), event }
        });
        // Before its first acquire a client does nothing: that would break the format.
        let mut known = [false; CLIENTS as usize];
        let has_begun = |record: &Record| {
            let known = &mut known[record.event.client() as usize];
            *known |= matches!(record.event, Event::Waiting { .. });
            *known || matches!(record.event, Event::DriverStalled { .. })
        };
        stamped.filter(has_begun).collect()
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let order = prop_oneof![Just(Order::Ignored), Just(Order::Counted), Just(Order::Promised)];
    (any::<bool>(), order, any::<bool>(), 0_u64..90, 20_u64..900).prop_map(|(fences, order, sessions, seen, within)| {
        Rules {
            fences,
            order,
            sessions,
            session_end_seen_within: Nanos(seen),
            release_seen_within: Nanos(seen),
            granted_within: Nanos(within),
            least_belief: Nanos(seen / 9),
            ..Rules::default()
        }
    })
}

/// The verdict of a checker that is told the events directly.
fn directly(records: &[Record], rules: Rules, window: (u64, u64), ended: Nanos) -> Report {
    let mut checker = Checker::new(CLIENTS, KEYS, rules);
    let (mut begun, mut over) = (false, false);
    for record in records {
        if !begun && record.at.0 >= window.0 {
            checker.begin_window(Nanos(window.0));
            begun = true;
        }
        if begun && !over && record.at.0 >= window.1 {
            checker.end_window(Nanos(window.1));
            over = true;
        }
        checker.on(record.at, record.event);
    }
    checker.finish(ended)
}

fn preamble(rules: &Rules) -> Preamble {
    Preamble {
        header: Header {
            pybench_history: VERSION,
            clock: Clock::Monotonic,
            boot_id: "a boot".to_owned(),
            lock: Some("a \"lock\"".to_owned()),
            promises: Promises {
                judged_by: JudgedBy::Belief,
                ..Promises::default().with_rules(rules)
            },
            began: Some(900),
            trial: Some(TrialName {
                cell: "a cell".to_owned(),
                trial: 3,
                keys_per_grant: 2,
            }),
        },
        key_prefix: "keys of \"me\":".to_owned(),
        key_digits: 2,
    }
}

fn recording(records: &[Record], rules: &Rules) -> Vec<u8> {
    let mut bytes = preamble(rules).encode();
    for record in records {
        bytes.extend_from_slice(&record.encode());
    }
    bytes
}

fn lines(files: &[Vec<u8>], window: (u64, u64), ended: Nanos) -> Vec<u8> {
    let sources = files.iter().map(Vec::as_slice).collect();
    let mut trial = RecordedTrial::new(sources, (Some(window.0), Some(window.1))).expect("it is a recording");
    trial.ended(ended, BTreeMap::from([("unknown".to_owned(), 7)]));
    let mut lines = Vec::new();
    while trial.next(&mut lines).expect("bytes can be read") {}
    lines
}

/// Clients and keys get numbers in the order of their first event: this brings the names back.
fn renamed(judged: &history::Judged) -> Report {
    let mut report = judged.report.clone();
    let client = |id: &mut u32| {
        // The tests have one part for each of two neighbours, and the reader names only the client.
        *id = judged.clients[*id as usize]
            .parse()
            .expect("a client of a trial is a number");
    };
    for violation in &mut report.violations {
        let name = &judged.keys[violation.key.0 as usize];
        violation.key = Key(name
            .trim_end_matches('}')
            .rsplit('{')
            .next()
            .unwrap_or("")
            .parse()
            .expect("a number"));
        client(&mut violation.first.client);
        violation.second.iter_mut().for_each(|span| client(&mut span.client));
    }
    report.first_finding = None;
    report
}

fn halved(mut report: Report) -> Report {
    for violation in &mut report.violations {
        violation.first.client /= 2;
        violation.second.iter_mut().for_each(|span| span.client /= 2);
    }
    report.first_finding = None;
    report
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(at in any::<u64>(), event in event()) {
        let record = Record { at: Nanos(at), event };
        prop_assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn the_history_of_a_trial_has_the_verdict_of_the_trial(
        records in records(300),
        rules in rules(),
        start in 900_u64..3_000,
        length in 1_u64..3_000,
        pieces in 1_usize..700,
    ) {
        let window = (start, start + length);
        let ended = Nanos(records.last().map_or(2_000, |record| record.at.0) + 10);
        let text = lines(&[recording(&records, &rules)], window, ended);
        let mut reading = Reading::new();
        reading.begin("one");
        for piece in text.chunks(pieces) {
            prop_assert_eq!(reading.feed(piece), Ok(()));
        }
        prop_assert_eq!(reading.end(), Ok(()));
        let judged = reading.finish();
        prop_assert_eq!(judged.len(), 1);
        prop_assert_eq!(judged[0].events as usize, records.len());
        prop_assert_eq!(judged[0].counts.get("unknown"), Some(&7));
        prop_assert_eq!(&judged[0].header, &preamble(&rules).header);
        // A border after the end is not written: then the trial did not turn its window there.
        let expected = directly(&records, rules, window, ended);
        prop_assert_eq!(renamed(&judged[0]), halved(expected));
    }

    #[test]
    fn the_threads_of_a_trial_are_merged_as_its_checker_merged_them(
        first in records(120),
        second in records(120),
        rules in rules(),
    ) {
        // Each thread has clients of its own.
        let second: Vec<Record> = second.into_iter().map(|record| Record { at: record.at, event: moved(record.event) }).collect();
        let mut merge = check::Merge::new(2, 8);
        for (source, records) in [(0, &first), (1, &second)] {
            for record in records {
                merge.push(source, record.at, record.event);
            }
        }
        (0..2).for_each(|source| merge.finish(source));
        let mut merged = Vec::new();
        merge.drain(|at, event| merged.push(Record { at, event }));
        let files = [recording(&first, &rules), recording(&second, &rules)];
        let text = lines(&files, (0, 9_000_000), Nanos(9_000_000));
        let expected = lines(&[recording(&merged, &rules)], (0, 9_000_000), Nanos(9_000_000));
        prop_assert_eq!(String::from_utf8(text), String::from_utf8(expected));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        records in records(60),
        rules in rules(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        inserted in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut text = lines(&[recording(&records, &rules)], (1_100, 1_500), Nanos(90_000));
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        let place = cut.index(text.len());
        text.splice(place..place, inserted);
        let mut reading = Reading::new();
        reading.begin("one");
        if reading.feed(&text).is_ok() && reading.end().is_ok() {
            let _ = reading.finish();
        }
    }
}

fn moved(event: Event) -> Event {
    let bytes = Record { at: Nanos(0), event }.encode();
    let mut bytes = bytes;
    bytes[4..8].copy_from_slice(&(event.client() + CLIENTS).to_le_bytes());
    Record::decode(&bytes).expect("only the client was changed").event
}
