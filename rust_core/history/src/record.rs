//! The binary form in which a load thread records what it reports to the judge: one record of a fixed size per event.
//!
//! A thread writes a record into mapped memory. The first byte, which is never zero, is written last: a record without
//! it was not finished, and nothing follows it.

use check::Event;
use locks::{Fence, Key, Mode, Nanos};
use std::num::NonZeroU64;

/// Bytes of a record.
pub const SIZE: usize = 40;

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub at: Nanos,
    pub event: Event,
}

// Byte 0: the kind. Byte 1: a flag. Bytes 4 to 8: the client. Then four numbers of eight bytes.
const FLAG: usize = 1;
const CLIENT: usize = 4;
const AT: usize = 8;
const FIRST: usize = 16;
const SECOND: usize = 24;
const THIRD: usize = 32;

impl Record {
    /// The bytes of the record.
    #[must_use]
    pub fn encode(&self) -> [u8; SIZE] {
        let (kind, flag, first, second, third) = match self.event {
            Event::Waiting { key, mode, .. } => (1, u8::from(mode == Mode::Shared), u64::from(key.0), 0, 0),
            Event::Queued { .. } => (2, 0, 0, 0, 0),
            Event::GaveUp { .. } => (3, 0, 0, 0, 0),
            Event::CutOff { placed, .. } => (4, u8::from(placed), 0, 0, 0),
            Event::Granted { until, hold, fence, .. } => {
                (5, 0, until.0, hold.0, fence.map_or(0, |fence| fence.0.get()))
            }
            Event::Renewed { until, .. } => (6, 0, until.0, 0, 0),
            Event::LeaseLost { .. } => (7, 0, 0, 0, 0),
            Event::HungUp { .. } => (8, 0, 0, 0, 0),
            Event::Stopped { .. } => (9, 0, 0, 0, 0),
            Event::Released { .. } => (10, 0, 0, 0, 0),
            Event::DeniedRelease { .. } => (11, 0, 0, 0, 0),
            Event::DriverStalled { .. } => (12, 0, 0, 0, 0),
            Event::Died { .. } => (13, 0, 0, 0, 0),
        };
        let mut bytes = [0; SIZE];
        bytes[0] = kind;
        bytes[FLAG] = flag;
        bytes[CLIENT..AT].copy_from_slice(&self.event.client().to_le_bytes());
        for (place, number) in [(AT, self.at.0), (FIRST, first), (SECOND, second), (THIRD, third)] {
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The record in `bytes`; `None` if it was not finished.
    #[must_use]
    pub fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let number = |place: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[place + index]));
        let client = u32::from_le_bytes(std::array::from_fn(|index| bytes[CLIENT + index]));
        let event = match bytes[0] {
            1 => Event::Waiting {
                client,
                key: Key(u32::try_from(number(FIRST)).ok()?),
                mode: if bytes[FLAG] == 1 {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                },
            },
            2 => Event::Queued { client },
            3 => Event::GaveUp { client },
            4 => Event::CutOff {
                client,
                placed: bytes[FLAG] == 1,
            },
            5 => Event::Granted {
                client,
                until: Nanos(number(FIRST)),
                hold: Nanos(number(SECOND)),
                fence: NonZeroU64::new(number(THIRD)).map(Fence),
            },
            6 => Event::Renewed {
                client,
                until: Nanos(number(FIRST)),
            },
            7 => Event::LeaseLost { client },
            8 => Event::HungUp { client },
            9 => Event::Stopped { client },
            10 => Event::Released { client },
            11 => Event::DeniedRelease { client },
            12 => Event::DriverStalled { client },
            13 => Event::Died { client },
            _ => return None,
        };
        Some(Self {
            at: Nanos(number(AT)),
            event,
        })
    }
}
