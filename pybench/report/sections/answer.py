"""The answer: which strategy wins, which are unsafe, and the figures that say so; all of it on the first screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybench.analysis.answer import answer_of
from pybench.analysis.comparison import Figure as By
from pybench.analysis.comparison.pairs import ENOUGH_BLOCKS
from pybench.analysis.quantile_text import quantile_text
from pybench.analysis.verdicts import Verdict, controls_caught
from pybench.matrix.conditions import condition_texts, say_conditions
from pybench.numbers import NOT_AVAILABLE, format_count, format_exact, format_us, plural
from pybench.report import run_facts
from pybench.report.cautions.of_run import cautions
from pybench.report.charts.curves import Measure, drawn_values, load_panel, y_axis
from pybench.report.charts.dots import dot_panel
from pybench.report.charts.grid import leading
from pybench.report.contests import by_wins, contests, hardest_contest
from pybench.report.html import fill
from pybench.report.section import Figure, Section
from pybench.report.sections.fairness import LONGEST_WAIT
from pybench.report.sections.latency import P99 as RESPONSE
from pybench.report.sections.throughput import MEASURE as THROUGHPUT
from pybench.report.verdict_reasons import remarks
from pybench.report.view import BASE_LINE, CellView, View

# Rows of the overview; with more the ranking is the better table.
OVERVIEW_ROWS = 12
# Strategies that stand side by side in the overview, however few loads there are.
FEW_SERIES = 4
# Letters of the overview's columns up to which a chart has room beside it: of a strategy as many as its figures take at
# least, and of an axis.
WIDE_OVERVIEW = 60
LETTERS_OF_FIGURES = 8
LETTERS_OF_AN_AXIS = 6
# Locks up to here are named as tied for the first place; with more, how many there are.
NAMED_TIES = 2
# Violations up to here are written in full.
EXACT_BELOW = 100_000


@dataclass(frozen=True, slots=True)
class Tile:
    """One key figure: what it is, the figure, and where or why."""

    name: str
    figure: str
    remark: str
    tone: str = ""


def render(view: View) -> Section:
    """The first screen."""
    headline, others = clauses(view)
    known_first = cautions(view)
    held = contests(view)
    shown = held[:OVERVIEW_ROWS]
    is_open = all(cell.is_open for cell in view.cells)
    longest = is_open and any(view.standing(cell).figure is By.LONGEST_WAIT for cell in view.cells)
    # Trials may have too few grants for a p99.
    measures = (THROUGHPUT,) if not is_open else (LONGEST_WAIT,) if longest else (RESPONSE, LONGEST_WAIT)
    chart = next(filter(None, (_chart(view, measure) for measure in measures)), None)
    upright = len(view.series) > max(len(held), FEW_SERIES)
    html = fill(
        "answer.html",
        headline=headline,
        others=others,
        grave=[one for one in known_first if one.grave],
        mild=[one for one in known_first if not one.grave],
        unsafe=[remark for remark in remarks(view) if remark.verdict == Verdict.UNSAFE],
        tiles=_tiles(view) if view.measured else [],
        axes=view.axes,
        # What leads comes first, where a narrow screen shows it.
        series=by_wins(view),
        open_loop=is_open,
        # What places the locks of an open loop.
        wait="Longest wait" if longest else "p99 response",
        wait_text=_longest_wait if longest else _p99,
        wide=not upright and _letters(view) > WIDE_OVERVIEW,
        strategies_as_rows=upright,
        contests=shown if view.measured else [],
        has_best=any(contest.best for contest in shown),
        left_out=len(held) - OVERVIEW_ROWS,
        by_series={contest: {cell.series.label: cell for cell in contest.cells} for contest in shown},
        unsafe_series=view.unsafe_series,
        not_ranked=view.not_ranked,
        chart=chart,
        view=view,
        base_line=BASE_LINE,
        leading=leading(view),
        # Lines without their names at their ends, which stand there only where they are few and short.
        needs_legend=chart is not None and view.load_axis is not None and not chart.layout["annotations"],
    )
    return Section("answer", "Answer", html, [chart] if chart else [])


def _letters(view: View) -> int:
    """How wide the overview is, in letters, with a column for each axis and each strategy."""
    columns = sum(max(len(one.label), LETTERS_OF_FIGURES) + 2 for one in view.series)
    return columns + LETTERS_OF_AN_AXIS * len(view.axes)


def clauses(view: View) -> tuple[str, list[str]]:
    """The answer: its headline and what qualifies it, as sentences; the unsafe are listed by reason."""
    if not view.measured:
        return "No trial was completed, so there is no answer yet.", []
    found = answer_of(view.run.summary, view.run.trials)
    locks = view.comparison.locks
    return f"{found.headline}.", [f"{_begun(clause, locks)}." for clause in found.further]


def _begun(clause: str, locks: Sequence[str]) -> str:
    """`clause` as a sentence begins: with a capital, but for the name of a lock, which is written as it is given."""
    return clause if clause.startswith(tuple(locks)) else f"{clause[0].upper()}{clause[1:]}"


def _tiles(view: View) -> list[Tile]:
    return [*_of_hardest_load(view), _violations(view), _control(view)]


def _of_hardest_load(view: View) -> list[Tile]:
    """The figures of the lock to take at one load, which each tile names: nothing here compares two loads."""
    contest = hardest_contest(view)
    if contest is None:
        return []
    chosen = view.comparison.choice.locks
    ranked = [cell for cell in contest.cells if view.standing(cell).rank is not None]
    # The lock to take, though another may be first at this load; then those that share its rank here.
    first = min(ranked, key=lambda cell: (view.standing(cell).lock not in chosen, view.standing(cell).rank or 0))
    others = [cell for cell in ranked if cell is not first and view.standing(cell).rank == view.standing(first).rank]
    at = say_conditions(first.conditions)
    who = f"{first.series.label}{', ' + at if at else ''}"
    if others and view.comparison.trials >= ENOUGH_BLOCKS:
        names = list(dict.fromkeys(view.standing(other).lock for other in others))
        tied = " and ".join(names) if len(names) <= NAMED_TIES else f"{len(names)} others"
        who += f"; statistically tied with {tied}"
    rate = Tile("Safe grants", f"{format_count(first.number('safe_grants_per_s'))}/s", who)
    waits = f"median {quantile_text(first.row, 'acquire_p50_us')}"
    p99 = _p99(first)
    if p99 == NOT_AVAILABLE:
        return [
            rate,
            Tile(f"Longest wait of {first.series.label}", _longest_wait(first), f"{waits}; too few for a p99"),
        ]
    if first.number("longest_wait_us") is not None:
        waits += f", longest {_longest_wait(first)}"
    return [rate, Tile(f"p99 response of {first.series.label}", p99, waits)]


def _violations(view: View) -> Tile:
    """Of the locks: what clients without a lock did is the control's matter."""
    cells = [cell for cell in view.cells if cell.series.strategy != BASE_LINE]
    unsafe = [cell for cell in cells if cell.unsafe]
    found = sum(int(cell.number("violations") or 0) for cell in cells)
    shown = format_exact(found) if found < EXACT_BELOW else format_count(found)
    where = f"in {len(unsafe)} of {plural(len(cells), 'cell')}" if found else f"in {plural(len(cells), 'cell')}"
    return Tile("Violations by locks", shown, where, "bad" if found else "")


def _control(view: View) -> Tile:
    controls = run_facts.control_rows(view.run.manifest)
    told = "; ".join(f"{backend}: {found}" if len(controls) > 1 else found for backend, _, found in controls)
    if controls and all(caught for _, caught, _ in controls):
        plants_caught = controls_caught(view.run.manifest["control"])
        return Tile(
            "Control",
            "caught",
            told if plants_caught else "but a planted fault was not",
            "" if plants_caught else "bad",
        )
    return Tile("Control", "not caught", "so nothing is proved", "bad")


def _p99(cell: CellView) -> str:
    return quantile_text(cell.row, "acquire_p99_us")


def _longest_wait(cell: CellView) -> str:
    return format_us(cell.number("longest_wait_us"))


_TITLES = {THROUGHPUT: "Throughput", LONGEST_WAIT: "Longest wait"}


def _chart(view: View, measure: Measure) -> Figure | None:
    """What decides, where most locks are safe beside each other, and of those where clients met most often."""
    facets = view.panels(view.load_axis) if view.load_axis else view.panels()
    drawable = [(conditions, cells) for conditions, cells in facets if drawn_values(cells, measure)]
    if not drawable:
        return None
    conditions, cells = max(drawable, key=lambda facet: _tells(facet[1]))
    name = _TITLES.get(measure, measure.title)
    title = " · ".join([name, *condition_texts(conditions)])
    axis = y_axis(view, cells, measure)
    if view.load_axis:
        return load_panel(view, cells, measure, axis, id_="answer-chart", title=title)
    return dot_panel(cells, measure, axis, id_="answer-chart", title=title)


def _tells(cells: Sequence[CellView]) -> tuple[int, float]:
    safe = {cell.line.label for cell in cells if cell.verdict == "SAFE"}
    return len(safe), max(cell.number("contention_rate") or 0.0 for cell in cells)
