//! The format of a command on the wire, in both protocol versions: an array of bulk strings.

use locks::EntryId;

/// The head of a command of `arguments` arguments, including its name.
pub(crate) fn push_head(out: &mut Vec<u8>, arguments: usize) {
    push_count(out, b'*', arguments);
}

pub(crate) fn push_bulk(out: &mut Vec<u8>, argument: &[u8]) {
    push_bulk_head(out, argument.len());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

/// Appends one argument that consists of `pieces`, and returns where it starts.
pub(crate) fn push_pieces(out: &mut Vec<u8>, pieces: &[&[u8]]) -> usize {
    push_bulk_head(out, pieces.iter().map(|piece| piece.len()).sum());
    let start = out.len();
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\r\n");
    start
}

/// The head of an argument of `len` bytes.
fn push_bulk_head(out: &mut Vec<u8>, len: usize) {
    push_count(out, b'$', len);
}

/// A whole command.
pub(crate) fn push_command(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    push_head(out, arguments.len());
    for argument in arguments {
        push_bulk(out, argument);
    }
}

fn push_count(out: &mut Vec<u8>, kind: u8, count: usize) {
    let mut room = [0; LONGEST_NUMBER];
    out.push(kind);
    out.extend_from_slice(decimal(count as u64, &mut room));
    out.extend_from_slice(b"\r\n");
}

/// An argument that is a number.
#[inline]
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    // From right to left, and one copy: `$`, at most two digits of length, CR LF, the number, CR LF.
    let mut bulk = [0; 7 + LONGEST_NUMBER];
    let (head, end) = bulk.split_last_chunk_mut::<2>().expect("the buffer has room");
    *end = *b"\r\n";
    let len = decimal(number, head).len();
    let at = head.len() - len;
    let head = &mut head[..at];
    let (head, end) = head.split_last_chunk_mut::<2>().expect("the buffer has room");
    *end = *b"\r\n";
    let at = head.len() - decimal(len as u64, head).len() - 1;
    head[at] = b'$';
    out.extend_from_slice(&bulk[at..]);
}

/// An argument that is a time in seconds, from milliseconds.
pub(crate) fn push_seconds(out: &mut Vec<u8>, ms: u64) {
    let mut thousandths = [b'.', 0, 0, 0];
    write_padded((ms % 1_000) as u32, &mut thousandths[1..]);
    push_pieces(out, &[decimal(ms / 1_000, &mut [0; LONGEST_NUMBER]), &thousandths]);
}

/// An argument that is the id of a stream's entry.
pub(crate) fn push_entry(out: &mut Vec<u8>, EntryId { ms, seq }: EntryId) {
    let mut room = [[0; LONGEST_NUMBER]; 2];
    let [before, behind] = &mut room;
    push_pieces(out, &[decimal(ms, before), b"-", decimal(seq, behind)]);
}

/// The digits of `u64::MAX`.
const LONGEST_NUMBER: usize = 20;

/// Writes `number` at the end of `room`, which must be large enough, and returns its digits.
#[inline]
fn decimal(mut number: u64, room: &mut [u8]) -> &[u8] {
    let mut at = room.len();
    while number >= 10 {
        at -= 2;
        room[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    // One digit is left, or none after an even number of digits; zero itself has one digit.
    if number > 0 || at == room.len() {
        at -= 1;
        room[at] = b'0' + number as u8;
    }
    &room[at..]
}

/// Fills `room` with `number`, which must fit, and leading zeros.
#[inline]
pub(crate) fn write_padded(mut number: u32, room: &mut [u8]) {
    let (odd, pairs) = room.as_rchunks_mut();
    for pair in pairs.iter_mut().rev() {
        *pair = PAIRS[(number % 100) as usize];
        number /= 100;
    }
    if let [digit] = odd {
        *digit = b'0' + number as u8;
    }
}

/// The numbers below a hundred in two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};
