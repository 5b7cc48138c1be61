//! A whole trial: its threads, its checker, and its result.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use check::Report;
use locks::{Chance, LockMachine, MachineVisitor, Nanos, Spec};
use rustix::thread::{CpuSet, sched_setaffinity};
use wire::KeyNames;

use crate::clients::stages::Stages;
use crate::clock::{self, Monotonic};
use crate::control::{Control, Progress, TrialPhase};
use crate::driver::Driver;
use crate::live::Found;
use crate::plant::{self, Planted};
use crate::recorder::commands::{CommandColumns, CommandSteps};
use crate::recorder::judge::{Judge, Judged, RING, WindowedChecker, merge, ring};
use crate::recorder::nodes::{self, NodeFigures};
use crate::recorder::per_client::ClientColumns;
use crate::recorder::periods::FaultFigures;
use crate::recorder::recording::{self, Recorded, Recording};
use crate::recorder::stats::{Counters, Histograms};
use crate::recorder::timeline::{Columns, Timeline};
use crate::recorder::warming::Warmed;
use crate::recorder::window::Longest;
use crate::recorder::{Ended, ErrorReplies, ErrorReply, Phase, Share, Writes};
use crate::rules::rules;
use crate::spec::{Pace, TrialSpec};
use crate::{LoadError, TrialError, setup};

/// What a trial measured.
#[derive(Debug)]
pub struct Measured {
    pub stopped: bool,
    /// The length of the window; zero when the trial was stopped before it.
    pub window: Nanos,
    /// When the window was to open; `NEVER` when the trial was stopped before its threads had connected.
    pub window_start: Nanos,
    /// How a warm-up until steady ended; `None` for one of fixed length, and when the trial was stopped before.
    pub warmed: Option<Warmed>,
    /// When the trial began; the times of violations count from here.
    pub began: Nanos,
    /// How long after that an open connection was first found closed; `None` if none was. A restarted server answers
    /// nobody before that.
    pub first_cut: Option<Nanos>,
    /// The longest wait of any client or queued arrival, ended or not.
    pub longest_wait: Nanos,
    /// The longest time in the window during which the loop of any thread did not run although it should have.
    pub longest_stall: Nanos,
    pub counters: Counters,
    pub histograms: Histograms,
    pub timeline: Columns,
    pub errors: Vec<ErrorReply>,
    pub writes: Writes,
    pub clients: ClientColumns,
    pub commands: CommandColumns,
    /// One for each server of a lock whose servers vote; empty for all others.
    pub nodes: Vec<NodeFigures>,
    pub faults: FaultFigures,
    pub report: Report,
    pub jain: Option<f64>,
    pub names: KeyNames,
    /// How many of the checker's clients belong to each client of the trial: see `report`.
    pub keys_per_grant: u32,
    pub recorded: Option<Recorded>,
}

/// A trial whose description was checked, before and while it runs.
#[derive(Debug)]
pub struct Trial {
    pub(crate) spec: TrialSpec,
    pub(crate) control: Arc<Control>,
    recording: Option<Recording>,
}

/// A trial that runs.
#[derive(Debug)]
pub struct Running {
    done: mpsc::Receiver<()>,
    thread: JoinHandle<Result<Measured, TrialError>>,
}

impl Trial {
    pub fn new(spec: TrialSpec) -> Result<Self, TrialError> {
        setup::check(&spec)?;
        let mut control = Control::new(spec.threads);
        if spec.process.is_some() {
            control = control.begun_from_outside();
        }
        if spec.until_steady {
            control = control.until_steady(spec.warmup);
        }
        let control = Arc::new(control);
        Ok(Self {
            spec,
            control,
            recording: None,
        })
    }

    /// The same trial, which also records its events.
    #[must_use]
    pub fn recorded(self, recording: Option<Recording>) -> Self {
        Self { recording, ..self }
    }

    /// Starts the trial on its own threads.
    pub fn start(&self) -> Running {
        let (tell, done) = mpsc::channel();
        let (spec, control, recording) = (self.spec.clone(), Arc::clone(&self.control), self.recording.clone());
        let thread = std::thread::spawn(move || {
            // Dropped at the end, also by a panic, so that a waiting caller wakes up.
            let _tell: mpsc::Sender<()> = tell;
            run(&spec, &control, recording.as_ref())
        });
        Running { done, thread }
    }

    /// Whether only `stop` ends it.
    pub fn is_endless(&self) -> bool {
        self.spec.duration == Nanos::NEVER
    }

    /// For a trial of several processes: it begins at this time, once its threads are connected. The first call counts.
    pub fn begin_at(&self, at: Nanos) {
        self.control.begin_at(at);
    }

    /// Ends the trial early; harmless before and after.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Plants faults in a checker like this trial's: see `plant`.
    pub fn planted(&self) -> Result<Vec<Planted>, TrialError> {
        plant::all(&self.spec)
    }

    pub fn progress(&self) -> Progress {
        self.control.progress()
    }
}

impl Running {
    /// Waits at most `length`; true when the trial has ended.
    pub fn wait(&mut self, length: Duration) -> bool {
        !matches!(self.done.recv_timeout(length), Err(mpsc::RecvTimeoutError::Timeout))
    }

    /// The result, once the trial has ended. A panic of the trial continues here.
    pub fn finish(self) -> Result<Measured, TrialError> {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(spec: &TrialSpec, control: &Arc<Control>, recording: Option<&Recording>) -> Result<Measured, TrialError> {
    if spec.process.is_some() && recording.is_none() {
        return Err(TrialError::Field("recording")); // Nothing else judges its events.
    }
    let began = clock::now();
    control.live.begin(began);
    let (shares, judged) = judged(spec, control, |mut judges| {
        if let Some(recording) = recording {
            judges = recording.before(judges, spec, &rules(spec), began)?;
        }
        let (shares, judges) = spec.strategy.visit(RunThreads { spec, control, judges })?;
        Ok((shares, recording::finish(judges)?))
    })?;
    control.enter(TrialPhase::Done, clock::now());
    let recorded = recording.map(|recording| recorded(recording, control, judged.ended));
    Ok(Measured {
        recorded,
        ..gather(spec, control, began, shares, judged)
    })
}

fn recorded(recording: &Recording, control: &Control, ended: Nanos) -> Recorded {
    let (start, end) = control.window();
    let reached = |at: Nanos| (at <= ended).then_some(at);
    Recorded {
        files: recording.files.clone(),
        window: (reached(start), reached(end)),
        ended,
    }
}

/// Runs `work` with a judge for each thread of a trial, connected to a checker in the way that their number and the lock
/// need.
pub(crate) fn judged<T>(
    spec: &TrialSpec,
    control: &Arc<Control>,
    work: impl FnOnce(Vec<Judge>) -> Result<(T, Vec<Judge>), TrialError>,
) -> Result<(T, Judged), TrialError> {
    // Each key of a set is a client of the checker: see `Clients::tell`.
    let judged_clients = spec.concurrency * spec.keys_per_grant;
    let checker = WindowedChecker::new(judged_clients, spec.keys, rules(spec), Arc::clone(control));
    if !spec.strategy.has_belief() {
        let (done, _) = work((0..spec.threads).map(|_| Judge::NotJudged).collect())?;
        Ok((done, checker.finish(clock::now())))
    } else if spec.process.is_some() {
        let (done, _) = work((0..spec.threads).map(|_| Judge::Later).collect())?;
        Ok((done, checker.finish(clock::now())))
    } else if spec.threads == 1 {
        let (done, judges_after) = work(vec![Judge::Inline(Box::new(checker))])?;
        let judged = judges_after.into_iter().find_map(|judge| judge.finish(clock::now()));
        Ok((done, judged.expect("a single thread calls the checker directly")))
    } else {
        let (ends, sources): (Vec<_>, Vec<_>) = (0..spec.threads).map(|_| ring(RING)).unzip();
        let merging = std::thread::spawn(move || merge(checker, sources));
        let ended = work(ends.into_iter().map(Judge::Ring).collect());
        let judged = merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((ended?.0, judged))
    }
}

/// Runs each thread of the trial on a native thread of its own; returns the first error of any.
struct RunThreads<'a> {
    spec: &'a TrialSpec,
    control: &'a Arc<Control>,
    judges: Vec<Judge>,
}

impl MachineVisitor for RunThreads<'_> {
    type Out = Result<(Vec<Share>, Vec<Judge>), TrialError>;

    /// The type of the machine is chosen here, once for the whole trial.
    fn visit<L: LockMachine + std::fmt::Debug + Send + 'static>(
        self,
        make: impl Fn(Arc<Spec>, Chance) -> L + Clone + Send + 'static,
    ) -> Self::Out {
        let Self { spec, control, judges } = self;
        let parts = setup::parts(spec, control, judges, make)?;
        let drivers = parts.into_iter().zip(setup::sockets(spec)?);
        let handles: Vec<_> = drivers
            .enumerate()
            .map(|(index, (part, sockets))| {
                let driver = Driver::new(part.params, part.clients, sockets, part.recorder, Monotonic);
                let control = StopsByPanic(Arc::clone(control));
                let core = spec.cores.get(index).copied();
                std::thread::spawn(move || {
                    clock::sharpen_timeouts();
                    if let Some(core) = core {
                        bind_to(core);
                    }
                    driver.run(&control.0)
                })
            })
            .collect();
        let ended: Vec<Result<(Share, Judge), LoadError>> = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        Ok(ended.into_iter().collect::<Result<_, _>>()?)
    }
}

/// Stops the trial when its thread panics: the others must not wait for it at the gate.
struct StopsByPanic(Arc<Control>);

impl Drop for StopsByPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Binds the calling thread to `core`.
fn bind_to(core: u32) {
    let mut cores = CpuSet::new();
    cores.set(core as usize);
    // Fails only if the core was taken away since it was looked up; then any other core will do.
    let _ = sched_setaffinity(None, &cores);
}

fn gather(spec: &TrialSpec, control: &Control, began: Nanos, shares: Vec<Share>, mut judged: Judged) -> Measured {
    let mut counters = Counters {
        client_cpu_ns: judged.cpu.0,
        ..Counters::default()
    };
    let mut histograms = Histograms::new();
    let mut timeline = Timeline::new(Nanos::ZERO);
    let mut commands = CommandSteps::new(Nanos::ZERO);
    let mut nodes = Vec::new();
    let mut faults = FaultFigures::default();
    let mut errors = ErrorReplies::default();
    let mut writes = Writes::default();
    let mut clients = ClientColumns::default();
    let mut window = Nanos::ZERO;
    let mut longest = Longest::default();
    let mut first_cut = Nanos::NEVER;
    for share in shares {
        counters.add(&share.counters);
        histograms.add(&share.histograms);
        timeline.add(share.timeline);
        errors.add(&share.error_replies);
        window = window.max(share.window_length);
        longest = longest.of_both(share.longest);
        first_cut = first_cut.min(share.first_cut);
        writes.add(&share.writes);
        share.clients.append_to(&mut clients);
        commands.add(share.commands);
        nodes::add(&mut nodes, share.nodes);
        faults.add(share.faults);
    }
    control.live.finish(&counters, &mut histograms, found(&judged.report));
    if !spec.strategy.has_belief() {
        // Nobody told the checker of a grant. An optimistic lock is tested whenever another client wrote in between: then
        // its write must be refused. An atomic step is tested whenever another client works on the same key.
        judged.report.figures.grants = counters.grants;
        judged.report.figures.contended_grants = counters.conflicted_grants;
    }
    histograms.set(Phase::Handoff, Ended::Granted, &judged.handoff);
    if spec.pace == Pace::Closed {
        histograms.copy_response_to_service();
    }
    Measured {
        stopped: control.stopped(),
        window,
        window_start: control.window().0,
        warmed: control.warming.ended(),
        began,
        first_cut: (first_cut < Nanos::NEVER).then(|| first_cut.since(began)),
        errors: errors.into_rows(),
        timeline: with_offered(spec, timeline.step(), timeline.columns(window)),
        longest_wait: clients
            .wait_max_ns
            .iter()
            .fold(longest.queued, |most, &wait| most.max(Nanos(wait))),
        longest_stall: longest.stall,
        writes,
        jain: check::jain(&clients.grants),
        counters,
        histograms,
        clients,
        commands: commands.columns(),
        nodes,
        faults,
        report: judged.report,
        names: KeyNames::new(&spec.key_prefix, spec.keys),
        keys_per_grant: spec.keys_per_grant,
        recorded: None,
    }
}

fn found(report: &Report) -> Found {
    Found {
        counts: report.counts,
        violations: report.violations.clone(),
    }
}

/// The columns, with the load that was offered in each step.
fn with_offered(spec: &TrialSpec, step: Nanos, mut columns: Columns) -> Columns {
    if let Some(stages) = Stages::new(Nanos::ZERO, &spec.stages) {
        let starts = columns.start_ns.iter().map(|&start| start as f64);
        columns.offered = starts.map(|start| stages.mean(start, start + step.0 as f64)).collect();
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_leaves_nobody_at_the_gate() {
        let control = Arc::new(Control::new(2));
        let waits = {
            let control = Arc::clone(&control);
            std::thread::spawn(move || control.pass_gate())
        };
        let panics = std::thread::spawn(move || {
            let _stops = StopsByPanic(control);
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        assert!(panics.join().is_err());
        let since = clock::now();
        while !waits.is_finished() {
            assert!(clock::now().since(since) < Nanos::from_secs(20), "it waits for ever");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waits.join().expect("it does not panic"), None);
    }
}
