//! One reply, borrowed from the buffer it was read into: every type of RESP2 and RESP3.

use std::iter::FusedIterator;

use crate::scan::{Scan, Stop};

/// A reply, or an element of one. Attributes (`|`) describe the frame that follows them and are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frame<'a> {
    /// `+`, without its line end.
    Simple(&'a [u8]),
    /// `-`
    Error(&'a [u8]),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(&'a [u8]),
    /// `_`, and RESP2's `$-1` and `*-1`.
    Null,
    /// `,`
    Double(f64),
    /// `#`
    Boolean(bool),
    /// `(`: the digits with their sign, unchanged.
    BigNumber(&'a [u8]),
    /// `!`
    BulkError(&'a [u8]),
    /// `=`
    Verbatim {
        /// Three characters, such as `txt` or `mkd`.
        format: [u8; 3],
        text: &'a [u8],
    },
    /// `*`
    Array(Elements<'a>),
    /// `%`: its elements are keys and values in turn.
    Map(Elements<'a>),
    /// `~`
    Set(Elements<'a>),
    /// `>`: not a reply to a command.
    Push(Elements<'a>),
}

/// The elements of an aggregate, parsed again from the buffer as they are iterated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements<'a> {
    count: usize,
    body: &'a [u8],
}

impl<'a> Elements<'a> {
    /// `body` must have been found to hold `count` frames and nothing else.
    pub(crate) fn new(count: usize, body: &'a [u8]) -> Self {
        Self { count, body }
    }

    /// The number of frames; a map has two per entry.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> ElementIter<'a> {
        ElementIter {
            left: self.count,
            scan: Scan::at(self.body, 0),
        }
    }
}

impl<'a> IntoIterator for Elements<'a> {
    type Item = Frame<'a>;
    type IntoIter = ElementIter<'a>;

    fn into_iter(self) -> ElementIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Elements<'a> {
    type Item = Frame<'a>;
    type IntoIter = ElementIter<'a>;

    fn into_iter(self) -> ElementIter<'a> {
        self.iter()
    }
}

/// Iterates over the elements of an aggregate in order.
#[derive(Clone, Debug)]
pub struct ElementIter<'a> {
    left: usize,
    scan: Scan<'a>,
}

impl<'a> Iterator for ElementIter<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        self.left = self.left.checked_sub(1)?;
        match self.scan.frame() {
            Ok(frame) => Some(frame),
            Err(Stop::NeedMore | Stop::Bad(_)) => unreachable!("the elements were parsed once with the aggregate"),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ElementIter<'_> {}
impl FusedIterator for ElementIter<'_> {}
