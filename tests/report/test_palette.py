"""The colours of strategies: apart from each other for every kind of eye, and from the paper, in both themes.

Colour blindness is simulated as by Machado, Oliveira and Fernandes (2009) at full severity; how different two colours
look is CIEDE2000.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from pybench.report.html import asset
from pybench.report.view import BASE_LINE_DASH, SERIES_COLOURS, make_view
from tests.report.support import Point, make_run

EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = TO_XYZ.sum(axis=1)
# Ten is what a glance tells apart; about two is what a long look does.
APART = 11.0
CONTRAST = 3.0


def themed(name):
    """Both values of a colour of the page: light, dark."""
    return re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", asset("assets/page.css")).groups()


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    t = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one, other):
    """CIEDE2000 of two colours in CIELAB."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean_chroma**7 / (mean_chroma**7 + 25.0**7))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue = (h1 + turn / 2) % 360
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2

    def wave(times, shift):
        return np.cos(np.radians(times * hue + shift))

    t = 1 - 0.17 * wave(1, -30) + 0.24 * wave(2, 0) + 0.32 * wave(3, 6) - 0.2 * wave(4, -63)
    by_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    by_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    by_hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    rotation *= np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return np.sqrt(by_light**2 + by_chroma**2 + by_hue**2 + rotation * by_chroma * by_hue)


def test_the_difference_is_the_published_one():
    # Two pairs of the test data that Sharma, Wu and Dalal published with the formula.
    assert difference((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert difference((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619)) == pytest.approx(2.0373, abs=1e-4)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_any_two_strategies_differ_for_every_eye_and_stand_out_from_the_paper(theme):
    paper = themed("paper")[theme]
    colours = {name: themed(f"series-{name}")[theme] for name in ("none", *range(SERIES_COLOURS))}
    assert {
        name: contrast(colour, paper) for name, colour in colours.items() if contrast(colour, paper) < CONTRAST
    } == {}
    for eye, matrix in EYES.items():
        seen = {name: lab(np.array(matrix) @ linear(colour)) for name, colour in colours.items()}
        close = {
            (one, other): round(float(difference(seen[one], seen[other])), 1)
            for one, other in itertools.combinations(seen, 2)
            if difference(seen[one], seen[other]) < APART
        }
        assert close == {}, eye


def test_without_colour_marker_and_dash_distinguish_all_locks():
    names = ["none", *(f"lock{n}" for n in range(63))]
    series = make_view(make_run([Point(name, 1, 1) for name in names], trials=1, steps=1)).series
    assert len({(one.shape, one.dash) for one in series[:10]}) == 10
    assert len({(one.colour, one.shape, one.dash) for one in series}) == len(names)
    assert [one.label for one in series if one.dash == BASE_LINE_DASH] == ["none"]
