use proptest::prelude::*;

use super::*;

fn popped(line: &mut DelayLine, now: u64) -> Vec<u8> {
    let mut out = Vec::new();
    line.pop_onto(Nanos(now), &mut out);
    out
}

#[test]
fn bytes_come_out_at_their_time_and_not_before() {
    let mut line = DelayLine::default();
    assert_eq!(line.next_due(), Nanos::NEVER);
    line.push(Nanos(10), b"ab");
    line.push(Nanos(20), b"c");
    assert_eq!(line.next_due(), Nanos(10));
    assert_eq!(popped(&mut line, 9), b"");
    assert_eq!(popped(&mut line, 10), b"ab");
    assert_eq!(line.next_due(), Nanos(20));
    assert_eq!(popped(&mut line, 99), b"c");
    assert_eq!((line.next_due(), line.last_due()), (Nanos::NEVER, Nanos(20)));
}

#[test]
fn a_late_byte_holds_back_those_behind_it() {
    let mut line = DelayLine::default();
    line.push(Nanos(50), b"late");
    line.push(Nanos(10), b" early");
    assert_eq!(popped(&mut line, 49), b"");
    assert_eq!(popped(&mut line, 50), b"late early");
    line.push(Nanos(20), b"!");
    assert_eq!(line.next_due(), Nanos(50), "also behind one that has come out");
}

#[test]
fn a_full_buffer_takes_a_part_and_the_rest_stays_due() {
    let mut line = DelayLine::default();
    line.push(Nanos(1), b"abc");
    line.push(Nanos(2), b"def");
    let mut buffer = [0; 4];
    assert_eq!(line.pop_into(Nanos(5), &mut buffer), 4);
    assert_eq!(&buffer, b"abcd");
    assert_eq!(line.next_due(), Nanos(2));
    assert_eq!(line.pop_into(Nanos(5), &mut buffer), 2);
    assert_eq!(&buffer[..2], b"ef");
    assert_eq!(line.pop_into(Nanos(5), &mut buffer), 0);
}

#[test]
fn what_is_cleared_never_comes_out_and_holds_nothing_back() {
    let mut line = DelayLine::default();
    line.push(Nanos(90), b"lost");
    line.clear();
    assert_eq!((line.next_due(), line.last_due()), (Nanos::NEVER, Nanos::ZERO));
    line.push(Nanos(10), b"new");
    assert_eq!(popped(&mut line, 10), b"new");
}

#[test]
fn a_line_that_has_grown_once_allocates_nothing() {
    let mut line = DelayLine::default();
    let mut out = Vec::new();
    let mut turn = |line: &mut DelayLine, at: u64| {
        for chunk in 0..8 {
            line.push(Nanos(at + chunk), &[7; 100]);
        }
        out.clear();
        line.pop_onto(Nanos(at + 3), &mut out);
    };
    for at in 0..10 {
        turn(&mut line, at * 4);
        line.pop_into(Nanos(at * 4 + 8), &mut [0; 800]);
    }
    let grown = (line.bytes.capacity(), line.chunks.capacity());
    for at in 10..10_000 {
        turn(&mut line, at * 4);
        line.pop_into(Nanos(at * 4 + 8), &mut [0; 800]);
    }
    assert_eq!((line.bytes.capacity(), line.chunks.capacity()), grown);
}

#[derive(Clone, Debug)]
enum Step {
    Push { due: u64, length: usize },
    Pop { later: u64, room: Option<usize> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (0_u64..200, 0_usize..40).prop_map(|(due, length)| Step::Push { due, length });
    let pop = (0_u64..30, proptest::option::of(0_usize..50)).prop_map(|(later, room)| Step::Pop { later, room });
    proptest::collection::vec(prop_oneof![push, pop], 0..80)
}

proptest! {
    /// Against the simplest model: a list of bytes, each with its own time.
    #[test]
    fn every_byte_comes_out_once_in_order_and_as_soon_as_its_time_has_come(steps in steps()) {
        let mut line = DelayLine::default();
        let mut model: VecDeque<(u64, u8)> = VecDeque::new();
        let (mut now, mut number, mut latest) = (0, 0_u8, 0);
        for step in steps {
            match step {
                Step::Push { due, length } => {
                    let bytes: Vec<u8> = (0..length).map(|place| number.wrapping_add(place as u8)).collect();
                    number = number.wrapping_add(length as u8);
                    line.push(Nanos(due), &bytes);
                    latest = if length > 0 { due.max(latest) } else { latest };
                    model.extend(bytes.into_iter().map(|byte| (latest, byte)));
                }
                Step::Pop { later, room } => {
                    now += later;
                    let mut out = vec![0; room.unwrap_or(0)];
                    match room {
                        Some(_) => {
                            let count = line.pop_into(Nanos(now), &mut out);
                            out.truncate(count);
                        }
                        None => line.pop_onto(Nanos(now), &mut out),
                    }
                    let due = model.iter().take_while(|(due, _)| *due <= now).count();
                    let wanted = due.min(room.unwrap_or(usize::MAX));
                    let expected: Vec<u8> = model.drain(..wanted).map(|(_, byte)| byte).collect();
                    prop_assert_eq!(out, expected);
                }
            }
            let next = model.front().map_or(Nanos::NEVER, |(due, _)| Nanos(*due));
            prop_assert_eq!(line.next_due(), next);
        }
    }
}
