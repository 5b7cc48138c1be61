"""The share of a trial that one worker process runs: the worker's side of `processes`."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, cast

from pybench import _core
from pybench.records.parts import Histogram, TrialPart, with_tuples

if TYPE_CHECKING:
    from pybench.core_specs import TrialSpec

TELL_S = 0.1
"""How often it says how far it is."""
READY_LOOK_S = 0.002


class WorkerTrial:
    """One trial, asked for over `lines` and told of over `out`."""

    def __init__(self, lines: IO[str], out: IO[str]) -> None:
        self._lines, self._out = lines, out
        self._speaking = threading.Lock()

    def run(self) -> None:
        """Run it to its end."""
        try:
            trial = _core.Trial(cast("TrialSpec", with_tuples(json.loads(self._lines.readline()))))
            threading.Thread(target=self._listen, args=(trial,), daemon=True).start()
            trial.start()
            while trial.progress().phase == "connecting" and not trial.wait(READY_LOOK_S):
                pass
            if trial.progress().phase == "ready":
                self._say("ready", trial.progress().elapsed_ns)
            while not trial.wait(TELL_S):
                self._say("progress", _progress(trial))
            result = trial.result
            assert result is not None, "a trial that has ended without an error has a result"
            self._say("progress", _progress(trial))
            self._say("part", _text(TrialPart.of(result)), recorded=result.recorded)
        except _core.ConnectError as error:
            self._say("error", str(error), kind="connect", refusal=error.refusal)
        except OSError as error:
            self._say("error", str(error), kind="os", errno=error.errno)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            self._say("error", str(error), kind="trial")

    def _listen(self, trial: _core.Trial) -> None:
        """Do what the parent asks; the end of the input stops the trial."""
        for line in self._lines:
            match line.split():
                case ["begin", at_ns]:
                    trial.begin_at(int(at_ns))
                case ["drain"]:
                    self._say("drained", _text(_drained(trial)))
        trial.stop()

    def _say(self, what: str, value: object, **more: object) -> None:
        with self._speaking:
            print(json.dumps({what: value, **more}), file=self._out, flush=True)


def _progress(trial: _core.Trial) -> Mapping[str, Any]:
    now = trial.progress()
    return {
        "grants": now.grants,
        "grants_per_s": now.grants_per_s,
        "p99_ns": now.p99_ns,
        "errors": now.errors,
        "reconnects": now.reconnects,
        "cpu_ns": time.process_time_ns(),
    }


def _drained(trial: _core.Trial) -> TrialPart:
    drained = trial.drain()
    histograms = [Histogram(row.phase, row.outcome, row.count, row.hdr) for row in drained.histograms]
    return TrialPart(dict(drained.counters), histograms)


def _text(part: TrialPart) -> str:
    return base64.b64encode(part.encode()).decode()
