//! The clocks of the driver: the monotonic clock that all processes of a host share, and this thread's CPU time.

use locks::Nanos;
use rustix::thread::ClockId;
use rustix::time::{Timespec, clock_gettime};

/// Now, on `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// User and system time that the calling thread has used.
pub(crate) fn thread_cpu() -> Nanos {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

#[inline]
fn nanos(time: Timespec) -> Nanos {
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// `length` as the kernel takes a timeout.
pub(crate) fn timespec(length: Nanos) -> Timespec {
    Timespec {
        tv_sec: (length.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (length.0 % 1_000_000_000).cast_signed(),
    }
}
