"""A job: running a matrix on its servers into a run folder, for `pybench run` and, without output, `pybench.run`.

Promises: when an interrupt or a failing server ends a job early, the trials so far are gathered, and started servers
are stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from pybench import exits
from pybench.errors import CoreBuildError, PybenchError, RecordError
from pybench.exits import Exit
from pybench.running.interrupts import Interrupts
from pybench.running.watch import Silent

if TYPE_CHECKING:
    from pybench.analysis.thresholds import ThresholdResult
    from pybench.matrix import Matrix
    from pybench.matrix.options import Options
    from pybench.planning.placement import Placement
    from pybench.planning.plan import Plan
    from pybench.records import Run, RunFolder
    from pybench.running.watch import Watch
    from pybench.servers import AnyServer, ServerPool

RESULTS = Path("results")

Consent = Callable[["Plan", "Sequence[AnyServer]"], None]
"""Called with the plan and the servers before any load; raises InputError to refuse."""


@dataclass(frozen=True, slots=True)
class Job:
    """A matrix to run and its folder. `given` is the text of the matrix's file, None for a matrix from options."""

    matrix: Matrix
    """The matrix with its final times, which are already shortened for a quick run."""
    command: Sequence[str]
    """The command line that repeats the job in a new folder; empty for a matrix that is a Python object."""
    given: str | None = None
    out: Path | None = None
    resume: RunFolder | None = None
    history: bool = False
    """Whether the events of every trial are kept; a resumed run does as before."""


class LeftAtOnce(KeyboardInterrupt):
    """The user ended the run at once. The trials saved so far are in `folder`, not yet gathered."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job. `error` ended the job early; None also when the user ended it."""

    run: Run
    plan: Plan
    exit: Exit
    thresholds: list[ThresholdResult]
    error: PybenchError | None

    def resume_command(self) -> str:
        """The command that resumes a run that ended early."""
        from pybench.running.resume import command

        return command(self.run.manifest, str(self.run.path))


def run(
    matrix: str | Path | Matrix | None = None,
    *,
    out: str | Path | None = None,
    quick: bool = False,
    history: bool = False,
    **options: Unpack[Options],
) -> Run:
    """Measure a matrix and return its record, like `pybench run` without output.

    `matrix` is the path of a file, a parsed matrix, or None when `options` describe the matrix: `strategy`,
    `concurrency` and the other options of the command line, as texts, numbers or lists of them. The run folder `out`
    (by default `results/<name>-<time>`) and its report are written. `quick` shortens every trial. `history` also
    writes each event of every trial to `history.jsonl.zst`. Given servers are used without asking.

    Raises InputError for invalid input, ServerError, RecordError or CoreBuildError. Raises KeyboardInterrupt after the
    trials so far are saved.
    """
    from pybench.matrix import Matrix, read_text
    from pybench.planning.plan import quickened
    from pybench.report import write_report

    if isinstance(matrix, Matrix):
        if options:
            raise TypeError("options can change a matrix in a file, but not a parsed matrix")
        path, given, parsed = None, None, matrix
    else:
        path = None if matrix is None else Path(matrix)
        given = None if path is None else read_text(path)
        parsed = read_matrix(path, given, **options)
    outcome = carry_out(
        Job(
            quickened(parsed) if quick else parsed,
            # A matrix that is a Python object has no command line.
            command=[] if isinstance(matrix, Matrix) else _command(path, options, quick=quick, history=history),
            given=given,
            out=None if out is None else Path(out),
            history=history,
        )
    )
    write_report(outcome.run)
    if outcome.error is not None:
        outcome.error.add_note(f"the trials so far are saved; resume with: {outcome.resume_command()}")
        raise outcome.error
    if outcome.exit is Exit.INTERRUPTED:
        raise KeyboardInterrupt
    return outcome.run


def _command(path: Path | None, options: Mapping[str, object], *, quick: bool, history: bool) -> list[str]:
    """The command line that is equivalent to a call of `run`."""
    words = ["pybench", "run", *([str(path)] if path is not None else [])]
    for name, given in options.items():
        if isinstance(given, bool):
            words += [f"--{name.replace('_', '-')}"] if given else []
        elif given is not None:
            texts = given if isinstance(given, list | tuple) else [given]
            words += [word for text in texts for word in (f"--{name.replace('_', '-')}", str(text))]
    return [*words, *(["--quick"] if quick else []), *(["--history"] if history else [])]


def read_matrix(path: Path | None, text: str | None = None, /, **options: object) -> Matrix:
    """The matrix of a file, of options, or of a file changed by options. `text` is the content of the file, if known.

    Addresses in the environment are used for kinds of servers that neither file nor options name. Raises InputError.
    """
    import os

    from pybench.matrix import load_matrix, matrix_from_options

    if path is None:
        return matrix_from_options(os.environ, **options)
    return load_matrix(path, text, os.environ, **options)


def carry_out(job: Job, *, watch: Watch | None = None, consent: Consent | None = None) -> Outcome:
    """Run `job` to its end, or until an error or the user ends it.

    Raises PybenchError when the job cannot begin, KeyboardInterrupt when the user interrupts before it began, and
    LeftAtOnce when the user insists later.
    """
    require_core()
    begun: list[RunFolder] = []
    try:
        with open_files(), Interrupts() as interrupts:
            return _carried_out(job, watch or Silent(), consent, interrupts, begun)
    except KeyboardInterrupt as insisted:
        if begun:
            raise LeftAtOnce(begun[0].path) from insisted
        raise
    finally:
        for folder in begun:
            folder.release()


def _carried_out(
    job: Job, watch: Watch, consent: Consent | None, interrupts: Interrupts, begun: list[RunFolder]
) -> Outcome:
    """The body of `carry_out`; adds the run's folder to `begun` as soon as the folder exists."""
    from pybench.planning.ending import gathering_s
    from pybench.running.runner import Ending, Runner
    from pybench.servers import ServerPool, clear_leftovers

    error: PybenchError | None = None
    status: Literal["complete", "interrupted"] = "interrupted"
    pool = ServerPool()
    try:
        with interrupts.stoppable():
            for leftover in clear_leftovers():
                watch.note(f"left by a killed run: {leftover}")
            plan, placement, servers = plan_with_servers(job.matrix, pool)
            for note in [*plan.warnings, *plan.notes, *placement.notes()]:
                watch.note(note)
            if consent is not None:
                consent(plan, servers)
        folder = _folder(job, plan, placement, servers, begun)
        try:
            ending = Runner(plan, placement, pool, folder, watch, interrupts).run()
            status = "complete" if ending is Ending.COMPLETE else "interrupted"
        except PybenchError as caught:
            error = caught
    finally:
        # Stopping servers in good order takes some milliseconds, which a user who insists must wait, too.
        with watch.working("stopping the servers"), interrupts.shielded():
            pool.close()
    with watch.working("gathering the trials", gathering_s(len(plan.cells), len(plan.cells) * job.matrix.trials)):
        return _outcome(plan, folder, status, error)


def require_core() -> None:
    """Raise CoreBuildError unless the core can be loaded and is a release build."""
    try:
        from pybench import _core
    except ImportError as error:
        raise CoreBuildError(f"the core cannot be loaded: {error}", hint="make build") from error
    if _core.build_profile != "release":
        raise CoreBuildError("the core was built without optimisation, and must not measure", hint="make build")


def plan_with_servers(
    matrix: Matrix, pool: ServerPool, *, binds: bool = True
) -> tuple[Plan, Placement, list[AnyServer]]:
    """The plan, the placement and the servers. The plan is made again with the connection limits of the servers.

    The placement is decided before the servers start, since they are bound to their cores from the start. It binds
    nothing unless `binds`.
    """
    import os

    from pybench.planning.limits import Limits, limits_of
    from pybench.planning.needs import largest, servers_in
    from pybench.planning.placement import Placement, placement_of
    from pybench.planning.plan import make_plan
    from pybench.servers.local_processes import local_servers

    first = make_plan(matrix, Limits.of_this_machine())
    first.require_cells()
    placement = placement_of(matrix, first.cells) if binds else Placement()
    pool.cores = placement.servers
    servers = {group: servers_in(pool, matrix, group, demand) for group, demand in largest(first.cells).items()}
    by_backend = [(group.backend, server) for group, members in servers.items() for server in members]
    threads = max(cell.all_threads for cell in first.cells)
    given = local_servers(server for _, server in by_backend)
    if binds:
        placement = placement.beside(given, os.sched_getaffinity(0), threads)
    plan = make_plan(matrix, limits_of(matrix, by_backend))
    plan.require_cells()
    return plan, placement, [server for _, server in by_backend]


@contextmanager
def open_files() -> Iterator[None]:
    """Raise the limit of open files to the hard limit in this block; the plan refuses cells that need more."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = soft != hard and hard != resource.RLIM_INFINITY
    if raised:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        if raised:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _folder(
    job: Job, plan: Plan, placement: Placement, servers: Sequence[AnyServer], begun: list[RunFolder]
) -> RunFolder:
    """The folder of the run, claimed by this process."""
    from pybench.records import RunFolder, build_manifest

    described = [server.manifest() for server in servers]
    if job.resume is not None:
        from pybench.running.resume import require_same, require_unfinished

        job.resume.claim()
        begun.append(job.resume)
        require_unfinished(job.resume)
        require_same(job.resume.manifest, plan, placement, described)
        job.resume.update_manifest(status="running")
        return job.resume
    manifest = build_manifest(
        name=job.matrix.name,
        seed=job.matrix.seed,
        matrix_given=job.given,
        matrix_expanded=job.matrix.to_dict(),
        cells=plan.cells,
        order=plan.order,
        servers=described,
        placement=placement.manifest(),
        local_servers=[server.manifest() for server in placement.given],
        command=job.command,
        secrets=job.matrix.secrets,
    )
    if job.history:
        manifest["history"] = True
    folder = RunFolder.create(job.out or new_folder(job.matrix.name), manifest)
    begun.append(folder)
    folder.claim()
    return folder


def new_folder(name: str) -> Path:
    """A path below `results/` that does not exist yet, with the time in its name."""
    first = RESULTS / f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    tries = (first, *(first.with_name(f"{first.name}-{n}") for n in range(2, 1000)))
    return next(path for path in tries if not path.exists())


def _outcome(
    plan: Plan, folder: RunFolder, status: Literal["complete", "interrupted"], error: PybenchError | None
) -> Outcome:
    """Gather the folder, and compute the exit code of the run."""
    try:
        run = folder.finish(status)
    except RecordError as unfinished:
        error = error or unfinished
        run = _as_saved(folder, error)
    code = run.exit_code if error is None else exits.first({run.measured_exit, error.exit})
    return Outcome(run, plan, code, run.thresholds, error)


def _as_saved(folder: RunFolder, error: PybenchError) -> Run:
    """The saved trials of a run whose folder cannot be written. Raises `error` where they cannot be read either."""
    from pybench.records import load

    try:
        run = load(folder.path)
    except RecordError:
        raise error from None
    run.manifest["status"] = "interrupted"
    return run
