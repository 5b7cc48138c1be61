"""What a section hands to the page: its title, a sentence, its HTML, and the figures that its HTML leaves room for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart. `data` and `layout` are plotly's; colours are CSS variables, which the page resolves for its theme.

    `alt` is its text alternative, `height` in CSS pixels is reserved before it is drawn.
    """

    id: str
    title: str
    alt: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 250
    missing: list[str] = field(default_factory=list)
    """Lines that the chart has no place for, because they have no figure at all."""


@dataclass(frozen=True, slots=True)
class Datum:
    """A figure of a data table: as it is read, and as it is sorted by; None where it is n/a."""

    text: str
    value: float | None


@dataclass(frozen=True, slots=True)
class DataRow:
    """The figures of one cell. `where` are its conditions in words, empty in a run of one load."""

    label: str
    where: str
    figures: list[Datum]
    verdict: str
    is_struck: bool
    """Whether its name is struck out: the lock broke the exclusion that it promises."""
    index: int
    """`CellView.index` of the cell, by which the page's filter hides the row."""


@dataclass(frozen=True, slots=True)
class DataTable:
    """The figures behind charts, as text: what a reader without the charts reads. `columns` title the figures."""

    caption: str
    columns: list[str]
    rows: list[DataRow]


@dataclass(frozen=True, slots=True)
class Section:
    """`html` is safe markup; `nav` is the short title in the page's navigation."""

    id: str
    title: str
    html: Markup
    figures: list[Figure] = field(default_factory=list)
    nav: str = ""
    folded: dict[str, Markup] = field(default_factory=dict)
    """Markup by the id of the element that the page's script puts it into, when a reader opens that element."""
