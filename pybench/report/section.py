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


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a data table; `numeric` columns are set to the right and sort by value."""

    title: str
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class DataTable:
    """The figures behind charts, as text: what a reader without the charts reads."""

    caption: str
    columns: list[Column]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """`html` is safe markup; `nav` is the short title in the page's navigation."""

    id: str
    title: str
    html: Markup
    figures: list[Figure] = field(default_factory=list)
    nav: str = ""
