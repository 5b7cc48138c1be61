//! How a command looks on the wire, in both protocol versions: an array of bulk strings.

/// A `u64` in decimal, without an allocation.
pub(crate) struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    #[inline]
    pub(crate) fn new(mut number: u64) -> Self {
        let mut digits = [0; 20]; // u64::MAX has twenty
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self { digits, start };
            }
        }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// The head of a command of `arguments` arguments, its name counted in.
pub(crate) fn push_head(out: &mut Vec<u8>, arguments: usize) {
    push_count(out, b'*', arguments);
}

pub(crate) fn push_bulk(out: &mut Vec<u8>, argument: &[u8]) {
    push_bulk_head(out, argument.len());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

/// What stands before an argument of `len` bytes.
pub(crate) fn push_bulk_head(out: &mut Vec<u8>, len: usize) {
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
    out.push(kind);
    out.extend_from_slice(Decimal::new(count as u64).as_bytes());
    out.extend_from_slice(b"\r\n");
}
