//! Builds the threads of a trial from its description.

use std::sync::Arc;

use locks::{Chance, GuardKind, KeyList, LockMachine, Nanos, Spec, Strategy};
use rustix::thread::CpuSet;
use wire::KeyNames;
use wire::postgres::Hashes;

use crate::TrialError;
use crate::clients::arrivals::Arrivals;
use crate::clients::guarded::Accepted;
use crate::clients::stages::Stages;
use crate::clients::trial_params::{Thread, TrialParams};
use crate::clients::workload::streams;
use crate::clients::{Client, Clients, Starts};
use crate::clock::Clock;
use crate::control::Control;
use crate::driver::Driver;
use crate::faults::{self, Schedule};
use crate::recorder::Recorder;
use crate::recorder::judge::{Heard, Judge};
use crate::sockets::{self, Layout, Naming, Sockets};
use crate::spec::{Connections, KeyChoice, Pace, Process, TrialSpec};
use crate::transport::Transport;

/// An error if no trial can be made of the description.
pub(crate) fn check(spec: &TrialSpec) -> Result<(), TrialError> {
    spec.strategy.check(&spec.lock)?;
    let sound = [
        ("keys", spec.keys > 0),
        ("concurrency", spec.concurrency > 0),
        ("threads", spec.threads > 0 && spec.threads <= spec.concurrency),
        ("process", process_is_sound(spec)),
        ("duration_ns", spec.duration > Nanos::ZERO),
        ("stages", stages_are_sound(spec)),
        ("until_steady", !spec.until_steady || spec.stages.is_empty()),
        (
            "servers",
            !spec.servers.is_empty()
                && u16::try_from(spec.servers.len()).is_ok()
                && sockets::fits(spec.strategy, &spec.servers),
        ),
        (
            "connections",
            !matches!(spec.connections, Connections::SharedByClients(0)),
        ),
        ("keys_per_grant", keys_per_grant_is_sound(spec)),
        (
            "read_share",
            spec.read_share == 0.0 || ((0.0..=1.0).contains(&spec.read_share) && spec.strategy.shares()),
        ),
        (
            "nesting",
            spec.nesting == 1 || (spec.nesting > 1 && spec.strategy.nests()),
        ),
        (
            "cores",
            spec.cores.iter().all(|core| (*core as usize) < CpuSet::MAX_CPU)
                && (spec.cores.is_empty() || spec.cores.len() == spec.threads as usize),
        ),
        ("key_prefix", spec.key_prefix.len() <= 512),
        ("faults", faults::are_sound(spec)),
        ("guard", guard_is_sound(spec)),
    ];
    match sound.into_iter().find(|(_, sound)| !sound) {
        Some((field, _)) => Err(TrialError::Field(field)),
        // Builds the distributions once for this check, so that a bad one is refused before anything starts.
        None => TrialParams::new(spec).and(arrivals(spec, thread(spec, 0))).map(|_| ()),
    }
}

/// Each thread of each process has a client. A window that opens when the figures are steady needs those of all threads.
fn process_is_sound(spec: &TrialSpec) -> bool {
    let Some(Process { index, of }) = spec.process else {
        return true;
    };
    let threads = spec.threads.checked_mul(of);
    index < of && threads.is_some_and(|threads| threads <= spec.concurrency) && !spec.until_steady
}

/// They fill the window, and the trial can have their load.
fn stages_are_sound(spec: &TrialSpec) -> bool {
    let most = match spec.pace {
        Pace::Closed => f64::from(spec.concurrency),
        Pace::Open { .. } => f64::MAX,
    };
    let loads = spec.stages.iter().flat_map(|stage| [stage.from, stage.to]);
    let length = spec
        .stages
        .iter()
        .try_fold(0_u64, |sum, stage| sum.checked_add(stage.length.0));
    spec.stages.is_empty()
        || (loads.into_iter().all(|load| (0.0..=most).contains(&load))
            && spec.stages.iter().all(|stage| stage.length > Nanos::ZERO)
            && length == Some(spec.duration.0))
}

/// Too few distinct keys would make the drawing of a set endless.
fn keys_per_grant_is_sound(spec: &TrialSpec) -> bool {
    match spec.keys_per_grant {
        0 => false,
        1 => true,
        several => {
            several as usize <= KeyList::MOST
                && several <= spec.keys
                && spec.key_choice != KeyChoice::Single
                && spec.strategy.takes_many_keys()
                && spec.concurrency.checked_mul(several).is_some()
        }
    }
}

/// The lock has what the guarded work needs. A lock whose release writes has effects of its own.
fn guard_is_sound(spec: &TrialSpec) -> bool {
    let Some(guard) = &spec.guard else { return true };
    let fits = match guard.kind {
        GuardKind::Counter | GuardKind::Stock => spec.keys_per_grant == 1,
        GuardKind::Transfer => spec.keys_per_grant == 2 && spec.strategy != Strategy::Atomic,
        GuardKind::FencedWrite => spec.keys_per_grant == 1 && spec.strategy.fences(),
    };
    fits && !spec.strategy.writes()
}

/// One thread before it has a transport.
#[derive(Debug)]
pub(crate) struct Part<L> {
    pub(crate) params: Arc<TrialParams>,
    pub(crate) clients: Clients<L>,
    pub(crate) recorder: Recorder,
}

/// The threads of a trial, one for each of the `judges`; `lock` makes the machine of each client.
pub(crate) fn parts<L: LockMachine>(
    spec: &TrialSpec,
    control: &Arc<Control>,
    judges: Vec<Judge>,
    mut lock: impl FnMut(Arc<Spec>, Chance) -> L,
) -> Result<Vec<Part<L>>, TrialError> {
    let params = Arc::new(TrialParams::new(spec)?);
    let (first_of_all, _) = thread(spec, 0).share(spec.concurrency);
    let mut chances = Chance::streams(spec.seed).skip(first_of_all as usize);
    let lock_spec = Arc::new(spec.lock);
    let accepted = Arc::new(Accepted::new(&params, spec.keys));
    let mut parts: Vec<Part<L>> = Vec::new();
    for (index, judge) in (0..spec.threads).zip(judges) {
        let thread = thread(spec, index);
        let (first, count) = thread.share(spec.concurrency);
        let list = streams(spec.seed, first, count)
            .into_iter()
            .zip(&mut chances)
            .map(|(stream, chance)| Client::new(lock(Arc::clone(&lock_spec), chance), stream))
            .collect();
        let starts = Starts::new(arrivals(spec, thread)?, params.max_in_flight);
        let mut clients = Clients::new(Arc::clone(&params), thread, list, starts);
        clients.follow(Stages::new(spec.warmup, &spec.stages));
        clients.guard_by(&accepted);
        parts.push(Part {
            recorder: Recorder::new(&params, Arc::clone(control), index as usize, (first, count), judge),
            clients,
            params: Arc::clone(&params),
        });
    }
    // After all others, so that the clients draw the same as in a trial without crashes; in other processes, too.
    let last = parts
        .last()
        .map_or(first_of_all, |part| part.clients.first() + part.clients.count() as u32);
    let before = Schedule::new(&spec.faults, 0, first_of_all).crashes();
    let mut chances = chances.skip((spec.concurrency - last) as usize + before);
    for part in &mut parts {
        let crashes = Schedule::new(&spec.faults, part.clients.first(), part.clients.count() as u32).crashes();
        let fresh = (&mut chances).take(crashes);
        let fresh = fresh.map(|chance| lock(Arc::clone(&lock_spec), chance)).collect();
        part.clients.begin_anew_with(fresh);
    }
    Ok(parts)
}

/// One thread of a trial that somebody else runs and judges.
#[derive(Debug)]
pub struct Member<L, T, C> {
    pub driver: Driver<L, T, C>,
    pub heard: Heard,
}

/// The threads of a trial over transports and clocks that are handed in, one of each for each thread; and what each
/// tells its judge. `lock` makes the machine of each client.
///
/// # Errors
/// When no trial can be made of the spec.
pub fn drivers<L: LockMachine, T: Transport, C: Clock>(
    spec: &TrialSpec,
    lock: impl FnMut(Arc<Spec>, Chance) -> L,
    ends: Vec<(T, C)>,
) -> Result<Vec<Member<L, T, C>>, TrialError> {
    let control = Arc::new(Control::new(spec.threads));
    let (mut judges, heard): (Vec<_>, Vec<_>) = ends.iter().map(|_| Heard::new()).unzip();
    if !spec.strategy.has_belief() {
        judges.fill_with(|| Judge::NotJudged);
    }
    let parts = parts(spec, &control, judges, lock)?;
    let members = parts.into_iter().zip(ends).zip(heard);
    Ok(members
        .map(|((part, (transport, clock)), heard)| Member {
            driver: Driver::new(part.params, part.clients, transport, part.recorder, clock),
            heard,
        })
        .collect())
}

/// The sockets of each thread, none connected yet.
pub(crate) fn sockets(spec: &TrialSpec) -> Result<Vec<Sockets>, TrialError> {
    let names = KeyNames::new(&spec.key_prefix, spec.keys);
    let hashes = Arc::new(Hashes::new(&names, spec.strategy.statements()));
    let naming = Naming::Numbered(names, hashes);
    let of_thread = |index| {
        let thread = thread(spec, index);
        let (_, count) = thread.share(spec.concurrency);
        let per_server = match spec.connections {
            _ if !spec.strategy.shares_connections() => 0,
            Connections::SharedByClients(whole) => thread.share(whole).1.clamp(1, count),
            Connections::PerClient => count,
        };
        let per_client = spec.connections == Connections::PerClient;
        let servers = spec.servers.len() as u16;
        let layout = Layout::new(spec.strategy, servers, count, per_server, per_client);
        Sockets::new(spec, index, layout.guarded(spec.guard.is_some()), &naming)
    };
    (0..spec.threads).map(of_thread).collect()
}

fn thread(spec: &TrialSpec, index: u32) -> Thread {
    Thread {
        index: spec.process.map_or(0, |process| process.index) * spec.threads + index,
        of: spec.all_threads(),
    }
}

fn arrivals(spec: &TrialSpec, thread: Thread) -> Result<Option<Arrivals>, TrialError> {
    let Pace::Open {
        arrivals, rate_per_s, ..
    } = spec.pace
    else {
        return Ok(None);
    };
    // A separate random stream, apart from those of the clients.
    let stream = streams(spec.seed ^ 0x9216_d5d9_8979_fb1b, thread.index, 1).remove(0);
    let arrivals = Arrivals::new(arrivals, rate_per_s / f64::from(thread.of), stream);
    let mut arrivals = arrivals.ok_or(TrialError::Field("rate_per_s"))?;
    arrivals.follow(Stages::new(spec.warmup, &spec.stages), f64::from(thread.of));
    Ok(Some(arrivals))
}

#[cfg(test)]
mod tests {
    use super::Thread;

    #[test]
    fn shares_cover_the_whole_without_overlap() {
        for (whole, threads) in [(7, 3), (64, 2), (3, 3), (100_000, 7)] {
            let shares: Vec<_> = (0..threads)
                .map(|index| Thread { index, of: threads }.share(whole))
                .collect();
            assert_eq!(shares.iter().map(|(_, count)| count).sum::<u32>(), whole);
            assert!(shares.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0));
            assert!(shares.iter().all(|(_, count)| *count > 0));
        }
    }
}
