//! The frame parser. It keeps no state between calls: it reports an incomplete frame, and is called again with more
//! bytes; see `incomplete` for what remembers how far it came. Each byte is checked as soon as it arrives, so that a
//! wrong byte is reported before the frame is complete.
//!
//! The parser allocates nothing: a frame borrows from the buffer, and an announced length is only compared.

use memchr::memchr2;

use crate::{Elements, Excerpt, Frame, Malformed};

/// The longest reply, in bytes on the wire.
pub const MAX_REPLY: usize = 1 << 20;

/// The longest simple string, error or number, in bytes.
pub const MAX_LINE: usize = 64 << 10;

/// How many levels of aggregates may be nested.
pub const MAX_DEPTH: usize = 8;

/// The shortest frame is `_` and CR LF.
const MIN_FRAME: usize = 3;

/// Reads one frame from the front of `buf`: the frame and the bytes it took, or `None` while it is incomplete.
///
/// # Errors
/// When no further bytes can make a frame of at most [`MAX_REPLY`] bytes out of `buf`.
pub fn parse_frame(buf: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let mut scan = Scan::at(buf, 0);
    match scan.frame() {
        Ok(frame) if scan.at <= MAX_REPLY => Ok(Some((frame, scan.at))),
        Err(Stop::NeedMore) if buf.len() < MAX_REPLY => Ok(None),
        Ok(_) | Err(Stop::NeedMore) => Err(Malformed::TooLong {
            found: Excerpt::of(buf),
        }),
        Err(Stop::Bad(malformed)) => Err(malformed),
    }
}

/// Why no frame was read.
#[derive(Debug)]
pub(crate) enum Stop {
    NeedMore,
    Bad(Malformed),
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Self {
        Self::Bad(malformed)
    }
}

/// A frame without elements, or what stands before the elements of an aggregate.
#[derive(Debug)]
pub(crate) enum Head<'a> {
    Whole(Frame<'a>),
    Opens {
        kind: u8,
        /// How many frames it contains.
        count: usize,
    },
}

/// An attribute describes the frame after it, and is none itself.
pub(crate) const ATTRIBUTE: u8 = b'|';

/// A position in a buffer, and the parser of the frames from there on.
#[derive(Clone, Debug)]
pub(crate) struct Scan<'a> {
    buf: &'a [u8],
    pub(crate) at: usize,
    /// Where the current frame starts, for error messages.
    start: usize,
}

impl<'a> Scan<'a> {
    /// Scans from `at` on, where a frame starts.
    pub(crate) fn at(buf: &'a [u8], at: usize) -> Self {
        Self { buf, at, start: at }
    }

    pub(crate) fn frame(&mut self) -> Result<Frame<'a>, Stop> {
        self.frame_within(MAX_DEPTH)
    }

    /// The next frame, with at most `depth` nested levels of aggregates.
    fn frame_within(&mut self, depth: usize) -> Result<Frame<'a>, Stop> {
        loop {
            let (kind, count) = match self.head(depth)? {
                Head::Whole(frame) => return Ok(frame),
                Head::Opens { kind, count } => (kind, count),
            };
            let first = self.at;
            for _ in 0..count {
                self.frame_within(depth - 1)?;
            }
            let elements = Elements::new(count, &self.buf[first..self.at]);
            return Ok(match kind {
                b'*' => Frame::Array(elements),
                b'%' => Frame::Map(elements),
                b'~' => Frame::Set(elements),
                b'>' => Frame::Push(elements),
                _ => continue, // to the frame that the attribute describes
            });
        }
    }

    /// The next frame, up to its first element, with at most `depth` nested levels of aggregates.
    #[inline]
    pub(crate) fn head(&mut self, depth: usize) -> Result<Head<'a>, Stop> {
        self.start = self.at;
        let kind = *self.buf.get(self.at).ok_or(Stop::NeedMore)?;
        self.at += 1;
        Ok(Head::Whole(match kind {
            b'+' => Frame::Simple(self.line("a simple string")?),
            b'-' => Frame::Error(self.line("an error")?),
            b':' => Frame::Integer(self.integer()?),
            b'$' | b'*' if self.null()? => Frame::Null,
            b'$' => Frame::Bulk(self.blob("a bulk string")?),
            b'_' => self.end("a null").map(|()| Frame::Null)?,
            b'#' => Frame::Boolean(self.boolean()?),
            b',' => Frame::Double(self.double()?),
            b'(' => Frame::BigNumber(self.big_number()?),
            b'!' => Frame::BulkError(self.blob("a bulk error")?),
            b'=' => self.verbatim()?,
            b'*' => return self.opens(kind, "an array", 1, depth),
            b'%' => return self.opens(kind, "a map", 2, depth),
            b'~' => return self.opens(kind, "a set", 1, depth),
            b'>' => return self.opens(kind, "a push", 1, depth),
            ATTRIBUTE => return self.opens(kind, "an attribute", 2, depth),
            _ => return Err(Malformed::UnknownType { found: self.found() }.into()),
        }))
    }

    /// Whether a line of this kind of frame goes on after `bytes` of its content. False for all frames whose lines are
    /// short.
    pub(crate) fn line_goes_on(kind: u8, bytes: &[u8]) -> bool {
        match kind {
            b'+' | b'-' => memchr2(b'\r', b'\n', bytes).is_none(),
            b',' => bytes.iter().all(|&byte| is_of_double(byte)),
            b'(' => bytes.iter().all(u8::is_ascii_digit),
            _ => false,
        }
    }

    fn line(&mut self, what: &'static str) -> Result<&'a [u8], Stop> {
        let rest = &self.buf[self.at..];
        let window = &rest[..rest.len().min(MAX_LINE + 1)];
        match memchr2(b'\r', b'\n', window) {
            Some(len) => {
                self.at += len;
                self.end(what)?;
                Ok(&window[..len])
            }
            None if window.len() > MAX_LINE => Err(Malformed::LineTooLong {
                what,
                found: self.found(),
            }
            .into()),
            None => Err(Stop::NeedMore),
        }
    }

    /// A line in which each byte must be `allowed` at its index.
    fn line_of(&mut self, what: &'static str, allowed: fn(usize, u8) -> bool) -> Result<&'a [u8], Stop> {
        let rest = &self.buf[self.at..];
        let len = rest
            .iter()
            .enumerate()
            .position(|(place, &byte)| !allowed(place, byte))
            .unwrap_or(rest.len());
        if len > MAX_LINE {
            return Err(Malformed::LineTooLong {
                what,
                found: self.found(),
            }
            .into());
        }
        match rest.get(len) {
            None => Err(Stop::NeedMore),
            Some(b'\r') => {
                self.at += len;
                self.end(what)?;
                Ok(&rest[..len])
            }
            Some(_) => Err(self.bad_value(what)),
        }
    }

    fn integer(&mut self) -> Result<i64, Stop> {
        let what = "an integer";
        let sign = self.buf.get(self.at).copied();
        self.at += usize::from(matches!(sign, Some(b'+' | b'-')));
        let negative = sign == Some(b'-');
        let largest = i64::MAX.unsigned_abs() + u64::from(negative);
        let size = match self.digits(largest)? {
            Digits::Number(size) => size,
            Digits::TooLarge | Digits::Other => return Err(self.bad_value(what)),
        };
        self.end(what)?;
        let number = if negative {
            0i64.checked_sub_unsigned(size)
        } else {
            0i64.checked_add_unsigned(size)
        };
        Ok(number.expect("at most `largest`"))
    }

    fn double(&mut self) -> Result<f64, Stop> {
        let what = "a double";
        let text = self.line_of(what, |_, byte| is_of_double(byte))?;
        let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| self.bad_value(what))
    }

    fn big_number(&mut self) -> Result<&'a [u8], Stop> {
        let what = "a big number";
        let sign_or_digit = |place, byte: u8| byte.is_ascii_digit() || place == 0 && matches!(byte, b'+' | b'-');
        let text = self.line_of(what, sign_or_digit)?;
        if text.last().is_some_and(u8::is_ascii_digit) {
            Ok(text)
        } else {
            Err(self.bad_value(what))
        }
    }

    fn boolean(&mut self) -> Result<bool, Stop> {
        let what = "a boolean";
        let value = match self.buf.get(self.at) {
            Some(b't') => true,
            Some(b'f') => false,
            Some(_) => return Err(self.bad_value(what)),
            None => return Err(Stop::NeedMore),
        };
        self.at += 1;
        self.end(what)?;
        Ok(value)
    }

    fn verbatim(&mut self) -> Result<Frame<'a>, Stop> {
        let what = "a verbatim string";
        let len = self.length(what)?;
        if len < 4 || self.buf.get(self.at + 3).is_some_and(|&byte| byte != b':') {
            return Err(self.bad_value(what));
        }
        let body = self.blob_body(what, len)?;
        let (format, text) = body.split_first_chunk().expect("a body of four bytes and more");
        Ok(Frame::Verbatim {
            format: *format,
            text: &text[1..],
        })
    }

    fn blob(&mut self, what: &'static str) -> Result<&'a [u8], Stop> {
        let len = self.length(what)?;
        self.blob_body(what, len)
    }

    fn blob_body(&mut self, what: &'static str, len: usize) -> Result<&'a [u8], Stop> {
        self.check_room(len + 2)?;
        let body = self.buf.get(self.at..self.at + len).ok_or(Stop::NeedMore)?;
        self.at += len;
        self.start = self.at; // the bytes in place of the line end are more useful than the start of a long body
        self.end(what)?;
        Ok(body)
    }

    fn opens(&mut self, kind: u8, what: &'static str, per_entry: usize, depth: usize) -> Result<Head<'a>, Stop> {
        if depth == 0 {
            return Err(Malformed::TooDeep { found: self.found() }.into());
        }
        let count = self.length(what)? * per_entry;
        self.check_room(count * MIN_FRAME)?;
        Ok(Head::Opens { kind, count })
    }

    /// Whether RESP2's null comes next: `-1` in place of a length.
    fn null(&mut self) -> Result<bool, Stop> {
        if self.buf.get(self.at) != Some(&b'-') {
            return Ok(false);
        }
        match self.buf.get(self.at + 1) {
            Some(b'1') => self.at += 2,
            Some(_) => {
                return Err(Malformed::BadLength {
                    what: "a null",
                    found: self.found(),
                }
                .into());
            }
            None => return Err(Stop::NeedMore),
        }
        self.end("a null")?;
        Ok(true)
    }

    fn length(&mut self, what: &'static str) -> Result<usize, Stop> {
        match self.digits(MAX_REPLY as u64)? {
            Digits::Number(length) => {
                self.end(what)?;
                Ok(length as usize)
            }
            Digits::TooLarge => Err(Malformed::TooLong { found: self.found() }.into()),
            Digits::Other => Err(Malformed::BadLength {
                what,
                found: self.found(),
            }
            .into()),
        }
    }

    /// Digits up to the CR that ends them.
    fn digits(&mut self, largest: u64) -> Result<Digits, Stop> {
        let mut number = 0u64;
        for place in 0..=MAX_DIGITS {
            match *self.buf.get(self.at).ok_or(Stop::NeedMore)? {
                digit @ b'0'..=b'9' if place < MAX_DIGITS => {
                    number = number * 10 + u64::from(digit - b'0');
                    if number > largest {
                        return Ok(Digits::TooLarge);
                    }
                }
                b'\r' if place > 0 => return Ok(Digits::Number(number)),
                _ => return Ok(Digits::Other),
            }
            self.at += 1;
        }
        unreachable!("the last place takes no digit")
    }

    fn end(&mut self, what: &'static str) -> Result<(), Stop> {
        match self.buf[self.at..] {
            [b'\r', b'\n', ..] => {
                self.at += 2;
                Ok(())
            }
            [] | [b'\r'] => Err(Stop::NeedMore),
            _ => Err(Malformed::MissingEnd {
                what,
                found: self.found(),
            }
            .into()),
        }
    }

    /// Checks that `more` bytes may still come, before waiting for them.
    fn check_room(&self, more: usize) -> Result<(), Stop> {
        if self.at + more > MAX_REPLY {
            return Err(Malformed::TooLong { found: self.found() }.into());
        }
        Ok(())
    }

    fn bad_value(&self, what: &'static str) -> Stop {
        Malformed::BadValue {
            what,
            found: self.found(),
        }
        .into()
    }

    fn found(&self) -> Excerpt {
        Excerpt::of(&self.buf[self.start..])
    }
}

/// Whether a double may contain this byte.
fn is_of_double(byte: u8) -> bool {
    b"0123456789+-.eEinfa".contains(&byte)
}

enum Digits {
    Number(u64),
    TooLarge,
    /// No digit at all, another byte, or more digits than any number has.
    Other,
}

/// As many digits as the longest number has, `i64::MAX`: ten times a value below `largest` then never overflows.
const MAX_DIGITS: usize = 19;
