//! How far a reply has been scanned whose end has not arrived, so that the next scan goes on from there.
//!
//! Scanned from its beginning at each read, a reply of a megabyte that comes in pieces of a hundred bytes would cost ten
//! thousand times its length.
//!
//! Promises: the results of [`parse`] and [`parse_frame`], at the same bytes; each byte of a reply is scanned at most
//! four times, however the reply arrives, except for the few that announce an element which is not complete. No
//! allocation.

use crate::scan::{ATTRIBUTE, Head, Scan, Stop};
use crate::{Excerpt, Frame, MAX_DEPTH, MAX_LINE, MAX_REPLY, Malformed, Parsed, parse, parse_frame};

#[cfg(test)]
mod tests;

/// The scan of the reply at the front of a buffer. It belongs to that buffer: until the reply has been returned, bytes
/// may only be appended. After that it is new again.
#[derive(Clone, Debug)]
pub struct IncompleteReply {
    /// Where the first frame begins that is not complete, without counting the aggregates around it.
    at: usize,
    /// Up to here the line of that frame goes on; 0 before it has been searched.
    searched: usize,
    /// How many frames are to begin: the reply itself, then those in each open aggregate, the outermost first.
    left: [usize; MAX_DEPTH + 1],
    /// How many aggregates are open.
    open: usize,
    /// For tests: how many bytes were scanned.
    #[cfg(test)]
    scanned: usize,
}

impl Default for IncompleteReply {
    fn default() -> Self {
        let mut left = [0; MAX_DEPTH + 1];
        left[0] = 1;
        Self {
            at: 0,
            searched: 0,
            left,
            open: 0,
            #[cfg(test)]
            scanned: 0,
        }
    }
}

impl IncompleteReply {
    /// As [`parse`].
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse<'a>(&mut self, buf: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
        if self.needs_more(buf)? {
            return Ok(Parsed::NeedMore);
        }
        parse(buf)
    }

    /// As [`parse_frame`].
    ///
    /// # Errors
    /// As [`parse_frame`].
    pub fn parse_frame<'a>(&mut self, buf: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, Malformed> {
        if self.needs_more(buf)? {
            return Ok(None);
        }
        parse_frame(buf)
    }

    /// Whether a part of a reply was scanned.
    #[inline]
    pub const fn is_pending(&self) -> bool {
        self.at > 0 || self.searched > 0
    }

    /// Whether a reply of which a part was scanned is still incomplete. For the usual case that there is none, so that
    /// whole replies are parsed without a scan before.
    ///
    /// # Errors
    /// As [`parse`].
    #[inline]
    pub fn still_needs_more(&mut self, buf: &[u8]) -> Result<bool, Malformed> {
        Ok(self.is_pending() && self.needs_more(buf)?)
    }

    /// Whether the reply is incomplete. Scans only bytes that are new.
    ///
    /// # Errors
    /// As [`parse`].
    #[inline(never)]
    pub fn needs_more(&mut self, buf: &[u8]) -> Result<bool, Malformed> {
        match self.skip(buf) {
            Ok(()) => {
                *self = Self {
                    #[cfg(test)]
                    scanned: self.scanned + self.at,
                    ..Self::default()
                };
                Ok(false)
            }
            Err(Stop::NeedMore) if buf.len() < MAX_REPLY => Ok(true),
            Err(Stop::NeedMore) => Err(Malformed::TooLong {
                found: Excerpt::of(buf),
            }),
            Err(Stop::Bad(malformed)) => Err(malformed),
        }
    }

    /// Skips the frames that are complete, up to the end of the reply.
    fn skip(&mut self, buf: &[u8]) -> Result<(), Stop> {
        while self.left[0] > 0 || self.open > 0 {
            if self.line_goes_on(buf) {
                return Err(Stop::NeedMore);
            }
            let mut scan = Scan::at(buf, self.at);
            let head = scan.head(MAX_DEPTH - self.open);
            #[cfg(test)]
            {
                self.scanned += scan.at - self.at;
            }
            let head = head?;
            (self.at, self.searched) = (scan.at, 0);
            self.has_begun(&head);
        }
        Ok(())
    }

    /// Whether all that has come of the current frame is a line without its end. A line may be long, so its bytes are
    /// searched once.
    fn line_goes_on(&mut self, buf: &[u8]) -> bool {
        let Some((&kind, line)) = buf.get(self.at..).and_then(<[u8]>::split_first) else {
            return false;
        };
        let fresh = self.searched.saturating_sub(self.at + 1);
        let goes_on = line.len() <= MAX_LINE && Scan::line_goes_on(kind, &line[fresh..]);
        if goes_on {
            #[cfg(test)]
            {
                self.scanned += line.len() - fresh;
            }
            self.searched = buf.len();
        }
        goes_on
    }

    /// Counts a frame that has begun, and the aggregates that ended with it.
    fn has_begun(&mut self, head: &Head<'_>) {
        match head {
            Head::Whole(_) => self.left[self.open] -= 1,
            Head::Opens { kind, count } => {
                self.left[self.open] -= usize::from(*kind != ATTRIBUTE);
                self.open += 1;
                self.left[self.open] = *count;
            }
        }
        while self.open > 0 && self.left[self.open] == 0 {
            self.open -= 1;
        }
    }
}
