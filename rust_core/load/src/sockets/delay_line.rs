//! The bytes of one direction of one connection that are under way in pybench's own network.
//!
//! Promises: each byte comes out at its time or later, never earlier; bytes come out in the order in which they went in,
//! so a byte with a later time holds back those behind it, as in TCP; memory is reused, so a line that has grown once
//! allocates nothing.

use std::collections::VecDeque;

use locks::Nanos;

#[derive(Debug, Default)]
pub(crate) struct DelayLine {
    bytes: VecDeque<u8>,
    chunks: VecDeque<Chunk>,
    /// When the newest chunk comes out, or came out.
    last_due: Nanos,
}

/// Bytes that come out at the same time.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    due: Nanos,
    length: usize,
}

impl DelayLine {
    /// Puts `bytes` behind all others. They come out at `due`, or with the byte before them if that is later.
    pub(crate) fn push(&mut self, due: Nanos, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.last_due = due.max(self.last_due);
        let due = self.last_due;
        match self.chunks.back_mut() {
            Some(newest) if newest.due == due => newest.length += bytes.len(),
            _ => self.chunks.push_back(Chunk {
                due,
                length: bytes.len(),
            }),
        }
        self.bytes.extend(bytes);
    }

    /// When the next bytes come out; `NEVER` if there are none.
    pub(crate) fn next_due(&self) -> Nanos {
        self.chunks.front().map_or(Nanos::NEVER, |oldest| oldest.due)
    }

    /// When the newest bytes come out, or came out; zero if there were none since the last `clear`.
    pub(crate) const fn last_due(&self) -> Nanos {
        self.last_due
    }

    /// Takes out the bytes whose time has come, at most as many as `into` has room for. Returns how many.
    pub(crate) fn pop_into(&mut self, now: Nanos, into: &mut [u8]) -> usize {
        let count = self.take_due(now, into.len());
        let (front, back) = self.oldest(count);
        into[..front.len()].copy_from_slice(front);
        into[front.len()..count].copy_from_slice(back);
        self.bytes.drain(..count);
        count
    }

    /// Appends all bytes whose time has come to `onto`.
    pub(crate) fn pop_onto(&mut self, now: Nanos, onto: &mut Vec<u8>) {
        let count = self.take_due(now, usize::MAX);
        let (front, back) = self.oldest(count);
        onto.extend_from_slice(front);
        onto.extend_from_slice(back);
        self.bytes.drain(..count);
    }

    /// Everything that is under way comes out at `now`, or when it would have anyway.
    pub(crate) fn hasten(&mut self, now: Nanos) {
        for chunk in &mut self.chunks {
            chunk.due = chunk.due.min(now);
        }
        self.last_due = self.last_due.min(now);
    }

    /// Loses everything that is under way.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
        self.last_due = Nanos::ZERO;
    }

    /// The oldest `count` bytes, in two parts.
    fn oldest(&self, count: usize) -> (&[u8], &[u8]) {
        let (front, back) = self.bytes.as_slices();
        let of_front = count.min(front.len());
        (&front[..of_front], &back[..count - of_front])
    }

    /// Strikes up to `most` due bytes off the list of chunks, and returns how many.
    fn take_due(&mut self, now: Nanos, most: usize) -> usize {
        let mut count = 0;
        while let Some(oldest) = self.chunks.front_mut()
            && oldest.due <= now
            && count < most
        {
            let taken = oldest.length.min(most - count);
            count += taken;
            oldest.length -= taken;
            if oldest.length == 0 {
                self.chunks.pop_front();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests;
