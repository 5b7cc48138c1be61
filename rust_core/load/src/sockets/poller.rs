//! epoll, level-triggered, with timeouts in nanoseconds (`epoll_pwait2`): with whole milliseconds every backoff and
//! hold would be late.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use locks::Nanos;
use rustix::event::epoll;

use crate::clock;
use crate::transport::Ready;

/// Events taken from the kernel at once; the rest is taken in the next round.
const BATCH: usize = 256;

/// Not a connection: what wakes the thread from outside can be read.
pub(crate) const WAKE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    ReadAndWrite,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
            Self::ReadAndWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP,
        }
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    pub(crate) fn add(&self, socket: impl AsFd, connection: u32, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(connection.into()),
            interest.flags(),
        )?)
    }

    pub(crate) fn change(&self, socket: impl AsFd, connection: u32, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(connection.into()),
            interest.flags(),
        )?)
    }

    /// Waits at most `timeout`, and appends the connections with events to `ready`.
    pub(crate) fn wait(&self, timeout: Nanos, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; BATCH];
        let happened = match epoll::wait(&self.epoll, &mut events[..], Some(&clock::timespec(timeout))) {
            Ok((happened, _)) => happened,
            // Python handles signals; the loop checks its flags and waits again.
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ready.extend(happened.iter().map(|event| {
            let flags = event.flags;
            // A read reports an error or a hang-up.
            let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            Ready {
                connection: event.data.u64() as u32,
                writable: broken || flags.contains(epoll::EventFlags::OUT),
                readable: broken || flags.contains(epoll::EventFlags::IN),
                closed: broken || flags.contains(epoll::EventFlags::RDHUP),
            }
        }));
        Ok(())
    }
}
