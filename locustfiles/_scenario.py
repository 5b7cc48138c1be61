"""What the locustfiles share: the service, a gate, stages of load, counts from all workers, and the verdict.

A locustfile makes one `Scenario` and one `Plan`. The leader (the master, or the only process) prepares the service,
ends the run, judges the thresholds and sets the exit code. Workers only report what they counted.
"""

from __future__ import annotations

import os
import signal
import sys
from abc import abstractmethod
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import gevent
import locust.log
import locust.stats
from _service import DEFAULT_HOST, Service, ServiceError, address_of
from _summary import Metrics, Summary, Threshold, request_metrics, tenth_of_ms
from gevent.event import Event
from locust import LoadTestShape, events
from locust.env import Environment
from locust.runners import STATE_INIT, STATE_STOPPED, MasterRunner, Runner, WorkerRunner

FORM = os.environ.get("PYBENCH_LOAD", "full")
"""How long a scenario runs: `full`, or `short` for CI. The k6 scripts read the same variable."""

GATE_S = 60
"""How long a user waits at the gate at most."""

STOP_S = 2
"""How long a stopped user may finish its request: an answer that nobody reads could not be counted."""

REPORTS_S = STOP_S + 5
"""How long the master waits for the last reports of its workers."""


@dataclass(frozen=True)
class Verdict:
    """What a scenario concludes from its counts: a sentence, its own metrics and groups, and its thresholds."""

    conclusion: str
    thresholds: Sequence[Threshold]
    metrics: Metrics = field(default_factory=dict)
    groups: dict[str, Metrics] = field(default_factory=dict)


class Scenario:
    """One scenario of load. `users` is the number of users at the peak of each form.

    The names in `settings` are options that the summary shows. Raises SystemExit where a second scenario is loaded.
    """

    _loaded: ClassVar[str | None] = None

    def __init__(self, name: str, *, users: dict[str, int], settings: Sequence[str] = ()) -> None:
        if Scenario._loaded is not None:
            sys.exit(f"{Scenario._loaded}.py and {name}.py cannot run together: pass one of them with -f")
        if FORM not in users:
            sys.exit(f"PYBENCH_LOAD is {FORM!r}: use {' or '.join(users)}")
        Scenario._loaded = self.name = name
        self.is_short = FORM == "short"
        self.gate = Event()
        """Opens when all users are there, on every worker at once."""
        self._users = users[FORM]
        self._settings = settings
        self._prepare: Callable[[Service, Namespace], None] = lambda _service, _options: None
        self._conclude: Callable[[Service, Namespace, Metrics], Verdict] = lambda *_: Verdict("", ())
        self._counts: Counter[tuple[str, str, float]] = Counter()
        self._has_begun = False
        self.has_ended = False
        """Whether the plan reached its end."""
        self._is_shown = False
        self._problem: str | None = None
        self._summary: Summary | None = None
        self._judging: gevent.Greenlet | None = None
        locust.stats.bucket_response_time = tenth_of_ms
        self._listen()

    # What a locustfile uses.

    def prepare(self, function: Callable[[Service, Namespace], None]) -> Callable[[Service, Namespace], None]:
        """Decorates the function that prepares the service before the first user starts."""
        self._prepare = function
        return function

    def verdict(
        self, function: Callable[[Service, Namespace, Metrics], Verdict]
    ) -> Callable[[Service, Namespace, Metrics], Verdict]:
        """Decorates the function that judges the run: service, options and request metrics in, verdict out."""
        self._conclude = function
        return function

    def wait_for_all(self) -> None:
        """Wait until all users have started, so that all of them act at once."""
        self.gate.wait(GATE_S)

    def count(self, name: str, group: str = "", value: float = 0) -> None:
        """Count one event. `value` is a figure of the event, such as its time in ms."""
        self._counts[name, group, value] += 1

    def total(self, name: str, group: str = "") -> int:
        """How often the event was counted, by all workers."""
        return sum(self._values(name, group).values())

    def quantile(self, name: str, q: float, group: str = "") -> float | None:
        """The quantile of the event's values; None without an event."""
        values = self._values(name, group)
        rank = q * values.total()
        for value in sorted(values):
            rank -= values[value]
            if rank <= 0:
                return value
        return None

    # What the run calls.

    def begin(self, environment: Environment) -> bool:
        """Prepare the service; whether the run can start."""
        options = environment.parsed_options
        if self._judging is not None:
            self._judging.kill()  # The run before was not judged yet, and its counts end here.
        self._counts.clear()
        self._has_begun, self.has_ended, self._is_shown = True, False, False
        self._problem = self._summary = None
        environment.process_exit_code = None
        try:
            self._prepare(Service(environment.host), options)
        except ServiceError as error:
            self._problem = str(error)
        return self._problem is None

    def _listen(self) -> None:
        events.init_command_line_parser.add_listener(self._add_options)
        events.init.add_listener(self._on_init)
        events.test_start.add_listener(self._on_test_start)
        events.spawning_complete.add_listener(lambda **_: self.gate.set())
        events.report_to_master.add_listener(self._on_report)
        events.worker_report.add_listener(self._on_worker_report)
        events.test_stop.add_listener(self._on_test_stop)
        # Of `quitting`, Locust calls the listeners backwards: its own, which awaits the last reports, before this one.
        events.quitting.add_listener(self._on_quitting)
        events.quit.add_listener(self._on_quit)

    def _add_options(self, parser: ArgumentParser) -> None:
        parser.set_defaults(host=DEFAULT_HOST, num_users=self._users, stop_timeout=STOP_S)
        parser.add_argument(
            "--summary",
            metavar="FILE",
            env_var="PYBENCH_SUMMARY",
            include_in_web_ui=False,
            help="Write metrics and thresholds as JSON to FILE.",
        )

    def _on_init(self, environment: Environment, **_: object) -> None:
        self._environment = environment
        path = environment.parsed_options.summary
        if path and not Path(path).parent.is_dir():
            sys.exit(f"--summary {path}: there is no folder {Path(path).parent}")
        if self._is_headless and not isinstance(environment.runner, WorkerRunner):
            # Locust itself handles SIGTERM only after the last stage of a run without its web page.
            gevent.signal_handler(signal.SIGTERM, environment.runner.quit)

    def _on_test_start(self, environment: Environment, **_: object) -> None:
        self.gate.clear()
        if isinstance(environment.runner, WorkerRunner):
            self._counts.clear()

    def _on_report(self, data: dict[str, Any], **_: object) -> None:
        data["counts"] = [(*event, times) for event, times in self._counts.items()]
        self._counts.clear()

    def _on_worker_report(self, data: dict[str, Any], **_: object) -> None:
        for name, group, value, times in data.get("counts", ()):
            self._counts[name, group, value] += times

    def _on_test_stop(self, environment: Environment, **_: object) -> None:
        runner = environment.runner
        if isinstance(runner, WorkerRunner):
            # Sent before the worker says that it stopped: the master judges when all have.
            data: dict[str, Any] = {}
            environment.events.report_to_master.fire(client_id=runner.client_id, data=data)
            runner.send_message("stats", data)
        elif environment.web_ui:
            self._judging = gevent.spawn(self._judge_when_stopped, environment)

    def _judge_when_stopped(self, environment: Environment) -> None:
        wait_for_reports(environment.runner)
        self._judge(environment)
        self._print()

    def _on_quitting(self, environment: Environment, **_: object) -> None:
        if isinstance(environment.runner, WorkerRunner) or self._summary or not (self._has_begun or self._is_headless):
            return
        if not self.has_ended:
            self._problem = self._problem or "The run was interrupted before its end."
        self._judge(environment)

    def _on_quit(self, **_: object) -> None:
        # After Locust's own tables, unless it was shown when a run of the web page ended.
        if self._summary and not self._is_shown:
            self._print()

    @property
    def _is_headless(self) -> bool:
        return bool(self._environment.parsed_options.headless)

    def _judge(self, environment: Environment) -> None:
        options, runner = environment.parsed_options, environment.runner
        metrics = request_metrics(environment.stats)
        settings = {"users": options.num_users} | {name: getattr(options, name) for name in self._settings}
        self._summary = summary = Summary(self.name, FORM, address_of(environment.host), settings, metrics)
        try:
            verdict = self._conclude(Service(environment.host), options, metrics)
        except ServiceError as error:
            summary.problem = str(error)
        else:
            summary.conclusion, summary.thresholds = verdict.conclusion, verdict.thresholds
            summary.groups = verdict.groups
            metrics |= verdict.metrics
        if runner.exceptions:
            summary.problem = f"{len(runner.exceptions)} exceptions in the locustfile: its counts cannot be trusted"
        summary.problem = self._problem or summary.problem
        if not summary.passed:
            environment.process_exit_code = 1
        elif not locust.log.unhandled_greenlet_exception:
            environment.process_exit_code = 0  # Without this, any expected share of errors would be exit code 1.
        if options.summary:
            summary.write(Path(options.summary))

    def _print(self) -> None:
        # With --json, only Locust's own JSON may stand in the output.
        self._is_shown = True
        stream = sys.stderr if self._environment.parsed_options.json else sys.stdout
        print(f"\n{self._summary.as_text()}\n", file=stream, flush=True)

    def _values(self, name: str, group: str) -> Counter[float]:
        return Counter({value: times for (one, of, value), times in self._counts.items() if (one, of) == (name, group)})


def wait_for_reports(runner: Runner, workers: int = 0) -> None:
    """Wait until each worker of a run that ends has sent its last report, and `workers` of them are ready again.

    A worker that died does neither: after `REPORTS_S` the run is judged without it.
    """
    with gevent.Timeout(REPORTS_S, exception=False):
        while runner.state != STATE_STOPPED or (workers and runner.worker_count < workers):
            gevent.sleep(0.05)


@dataclass(frozen=True)
class Stage:
    """A part of the load: in `seconds`, the number of users goes linearly to `users`."""

    seconds: float
    users: int


class Plan(LoadTestShape):
    """The stages of a scenario, one after another, as in k6. The run ends after the last one."""

    abstract = True
    use_common_options = True
    scenario: ClassVar[Scenario]

    @abstractmethod
    def stages(self, users: int) -> Sequence[Stage]:
        """The stages, with `users` at the peak."""

    def is_over(self) -> bool:
        """Whether the run can end before its stages do."""
        return False

    def tick(self) -> tuple[int, float] | None:
        """The number of users to reach and the rate to get there, once a second; None ends the run."""
        runner = self.runner
        if runner.state == STATE_INIT:
            if not self.scenario.begin(runner.environment):
                return None
            self.reset_time()
        options = runner.environment.parsed_options
        is_over = self.is_over() or (options.run_time and self.get_run_time() >= options.run_time)
        stage = None if is_over else self._stage_now(options.num_users)
        self.scenario.has_ended = stage is None
        if stage is None and isinstance(runner, MasterRunner):
            # The master may quit only then: it would miss the last reports, and busy workers would miss that it quits.
            workers = runner.worker_count
            runner.stop()
            wait_for_reports(runner, workers)
        return stage

    def _stage_now(self, peak: int) -> tuple[int, float] | None:
        before, left = 0, self.get_run_time()
        for stage in self.stages(peak):
            if left < stage.seconds:
                change = abs(stage.users - before)
                return stage.users, change / stage.seconds if change else max(stage.users, 1)
            before, left = stage.users, left - stage.seconds
        # After a ramp down to nobody, the last users may still await their answers.
        return (0, peak) if before == 0 and self.get_current_user_count() and left < STOP_S else None
