from __future__ import annotations

from plotly.offline import get_plotlyjs_version

from pybench.report.html import asset
from pybench.report.page import PLOTLY


def test_the_vendored_bundle_is_the_plotly_js_that_python_plotly_speaks_to():
    head = asset(PLOTLY)[:400]
    assert f"plotly.js (cartesian - minified) v{get_plotlyjs_version()}" in head
    assert "Licensed under the MIT license" in head


def test_the_vendored_bundle_says_where_it_is_from():
    readme = asset("vendor/README.md")
    assert get_plotlyjs_version() in readme
    assert "MIT" in asset("vendor/LICENSE-plotly.js")
