"""Ctrl-C after Ctrl-C, while the command is on its way out."""

from __future__ import annotations

import pytest

from pybench import cli
from pybench.cli import process


def test_a_signal_before_the_end_ignores_signals_does_not_end_the_process_by_itself(monkeypatch: pytest.MonkeyPatch):
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        if len(codes) < 3:
            raise KeyboardInterrupt
        raise SystemExit(code)

    monkeypatch.setattr(process, "end", end)
    monkeypatch.setattr(cli, "_carried_out", lambda: 0)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (codes, ended.value.code) == ([0, 130, 130], 130)
