//! How much of the recordings of a trial is in memory at a time.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use check::Event;
use history::{Clock, Header, Preamble, Promises, RECORD_SIZE, Record, Recordings, VERSION};
use locks::Nanos;

const EVENTS: u64 = 60_000;

/// Counts what is read.
struct Counted<'a> {
    bytes: &'a [u8],
    read: Rc<Cell<usize>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.read.set(self.read.get() + count);
        Ok(count)
    }
}

fn recording(client: u32, stamps: impl Iterator<Item = u64>) -> Vec<u8> {
    let preamble = Preamble {
        header: Header {
            pybench_history: VERSION,
            clock: Clock::Monotonic,
            boot_id: "a boot".to_owned(),
            lock: None,
            promises: Promises::default(),
            began: None,
            trial: None,
        },
        key_prefix: String::new(),
        key_digits: 1,
    };
    let mut bytes = preamble.encode();
    for at in stamps {
        let event = Event::DriverStalled { client };
        bytes.extend_from_slice(&Record { at: Nanos(at), event }.encode());
    }
    bytes
}

/// The most events that were in memory, of threads with these stamps; all are delivered, in order.
fn most_in_memory(files: &[Vec<u8>], count: usize) -> usize {
    let read = Rc::new(Cell::new(0));
    let sources = files.iter().map(|bytes| Counted {
        bytes,
        read: Rc::clone(&read),
    });
    let (_, mut recordings) = Recordings::open(sources.collect()).expect("they are recordings");
    read.set(0);
    let (mut delivered, mut last, mut most) = (0, Nanos::ZERO, 0);
    loop {
        let goes_on = recordings
            .next(|record| {
                assert!(record.at >= last);
                last = record.at;
                delivered += 1;
            })
            .expect("bytes can be read");
        most = most.max((read.get() / RECORD_SIZE).saturating_sub(delivered));
        if !goes_on {
            break;
        }
    }
    assert_eq!(delivered, count);
    most
}

#[test]
fn a_thread_with_few_events_is_not_read_far_ahead_of_one_with_many() {
    let busy = recording(0, 0..EVENTS);
    let idle = recording(1, (0..EVENTS).map(|at| at * 1_000));
    let most = most_in_memory(&[busy, idle], 2 * EVENTS as usize);
    assert!(most < 20_000, "{most} events in memory");
}

#[test]
fn more_events_of_one_stamp_than_a_batch_hold_nobody_back() {
    let together = recording(0, std::iter::repeat_n(5, 30_000));
    let others = recording(1, 0..EVENTS);
    most_in_memory(&[together.clone(), others, together], 60_000 + EVENTS as usize);
}
