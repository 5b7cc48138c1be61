"""`pybench lab run-all`: every experiment on one set of servers, and one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybench import exits
from pybench.cli.lab import Asked, Html, Log, Postgres, Redis, TimeLimit, staged
from pybench.cli.options import AsJson, Servers, Yes
from pybench.cli.output import data, data_json, require_files, say_meaning, write_file
from pybench.exits import Exit

if TYPE_CHECKING:
    from pybench.lab.experiment import Experiment
    from pybench.lab.findings import Findings, NotRun
    from pybench.lab.stage import Stage


def run_all(
    *,
    redis: Redis = None,
    postgres: Postgres = None,
    servers: Servers = "auto",
    time_limit: TimeLimit = "60s",
    html: Html = None,
    log: Log = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> int:
    """Run every experiment with its defaults.

    Prints a line for each, and exits with the code of the worst. An experiment whose tool is missing is named and
    skipped: the exit code is 41 if everything else was as expected. One whose server fails is named too: 41.
    """
    from pybench.lab import telling
    from pybench.lab.catalogue import EXPERIMENTS
    from pybench.lab.page import page

    require_files(html=html, log=log)
    asked = Asked(
        redis=redis,
        postgres=postgres,
        yes=yes,
        servers=servers,
        time_limit=time_limit,
        html=html,
        log=log,
        as_json=as_json,
    )
    found: list[Findings] = []
    not_run: list[NotRun] = []
    codes: set[Exit] = set()
    with staged(asked, "run-all") as stage:
        for experiment in EXPERIMENTS.values():
            line = _carried_out(experiment, stage, found, not_run, codes)
            if not as_json:
                data(line)
    code = exits.first({*codes, *(one.exit for one in found)})
    if code is Exit.OK and not_run:
        code = Exit.SERVER_UNREACHABLE
    if html is not None:
        write_file(html, page(found, not_run))
    if log is not None:
        write_file(log, telling.log_text(found))
    if as_json:
        data_json(_json(found, not_run, code))
    say_meaning(code)
    return code


def _carried_out(
    experiment: Experiment, stage: Stage, found: list[Findings], not_run: list[NotRun], codes: set[Exit]
) -> str:
    """The line of an experiment, which goes into `found`, or with the reason into `not_run`; a failure into `codes`."""
    from pybench.cli.consent import NotConfirmed
    from pybench.errors import InputError, OutOfTime, ServerError
    from pybench.lab import telling
    from pybench.lab.carrying_out import ToolMissing, carry_out
    from pybench.lab.findings import NotRun

    try:
        findings = carry_out(experiment, stage)
    except NotConfirmed:
        # Each of the others would ask again.
        raise
    except (InputError, ServerError, OutOfTime) as error:
        is_missing = isinstance(error, ToolMissing)
        if not is_missing:
            codes.add(error.exit)
        one = NotRun(experiment.name, "skipped" if is_missing else "failed", error.message)
        not_run.append(one)
        return f"{one.name:<{telling.LONGEST_NAME}}  {one.how}: {one.reason}"
    found.append(findings)
    return telling.line(findings)


def _json(found: list[Findings], not_run: list[NotRun], code: Exit) -> dict[str, Any]:
    from pybench.lab import telling

    return {
        "exit_code": code.value,
        "experiments": [telling.to_json(one) for one in found],
        "skipped": [{"experiment": one.name, "reason": f"{one.how}: {one.reason}"} for one in not_run],
    }
