//! The clocks of the driver: the monotonic clock, which all processes of a host share, and this thread's CPU time.

use std::num::NonZeroU64;

use locks::Nanos;
use rustix::thread::{ClockId, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

/// The clocks that a loop is given.
pub trait Clock {
    /// The current time; never earlier than what it returned before.
    fn now(&self) -> Nanos;
    /// User and system time of the calling thread.
    fn thread_cpu(&self) -> Nanos;
}

/// `CLOCK_MONOTONIC` of this host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        now()
    }

    fn thread_cpu(&self) -> Nanos {
        thread_cpu()
    }
}

/// The current time on `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// User and system time of the calling thread.
pub(crate) fn thread_cpu() -> Nanos {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// Makes this thread's timeouts exact: by default the kernel may delay them by 50 us to save wake-ups.
pub(crate) fn sharpen_timeouts() {
    // Fails only if the kernel does not support it; timers are then as exact as the kernel makes them.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

#[inline]
fn nanos(time: Timespec) -> Nanos {
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// `length` in the kernel's form of a timeout.
pub(crate) fn timespec(length: Nanos) -> Timespec {
    Timespec {
        tv_sec: (length.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (length.0 % 1_000_000_000).cast_signed(),
    }
}
