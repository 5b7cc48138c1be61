//! How late this machine wakes a thread that sleeps until a given time, as the driver does: the lower bound of any
//! timer's lag here.
//!
//! `sleep LENGTH_US COUNT` sleeps `COUNT` times for `LENGTH_US` microseconds and prints one line of JSON: `{"p50_us":
//! .., "p99_us": ..}`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, length_us, count] = &arguments[..] else {
        return Err("sleep LENGTH_US COUNT".into());
    };
    let length = Duration::from_micros(length_us.parse()?);
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let timeout = Timespec {
        tv_sec: length.as_secs().cast_signed(),
        tv_nsec: length.subsec_nanos().into(),
    };
    let mut late = Vec::new();
    for _ in 0..count.parse::<u32>()? {
        let due = Instant::now() + length;
        let mut events = [MaybeUninit::<epoll::Event>::uninit()];
        epoll::wait(&poller, &mut events[..], Some(&timeout))?;
        late.push(due.elapsed().as_secs_f64() * 1e6);
    }
    late.sort_by(f64::total_cmp);
    let quantile = |share: f64| late[(late.len() as f64 * share) as usize];
    println!(
        "{{\"p50_us\": {:.1}, \"p99_us\": {:.1}}}",
        quantile(0.5),
        quantile(0.99)
    );
    Ok(())
}
