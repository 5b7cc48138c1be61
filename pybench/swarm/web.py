"""The web page of Locust with what a native swarm adds, by Locust's own extension points.

Two tabs with tables, fed by the answers to the page's own requests for statistics; a download of the report; and the
start form, which refuses values that a test cannot have before anything starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, jsonify, make_response, request, send_file
from locust.runners import STATE_RUNNING, STATE_SPAWNING

from pybench.swarm import view

if TYPE_CHECKING:
    from locust.web import WebUI

    from pybench.swarm.starting import Starting

LOCKS, WORKERS = "locks", "lock-workers"
COLUMNS = {
    LOCKS: {"figure": "Figure", "value": "Value"},
    WORKERS: {
        "worker": "Worker",
        "host": "Host",
        "state": "State",
        "clients": "Clients",
        "grants": "Grants",
        "rate": "Grants/s",
        "p99": "p99",
        "verdict": "Verdict",
        "clock": "Clock offset",
        "note": "Note",
    },
}
TITLES = {LOCKS: "Locks", WORKERS: "Lock workers"}
REPORT_PATH = "/pybench/report"


def extend(web_ui: WebUI, role: Starting) -> None:
    """Add the tabs, the download and the checks of the form to `web_ui`."""
    base = str(role.options.get("web_base_path") or "")
    web_ui.template_args |= {
        "extended_tabs": [{"title": title, "key": key} for key, title in TITLES.items()],
        "extended_tables": [
            {"key": key, "structure": [{"key": name, "title": title} for name, title in columns.items()]}
            for key, columns in COLUMNS.items()
        ],
        "extended_csv_files": [{"href": f"{base}{REPORT_PATH}", "title": "Download the report of pybench"}],
    }
    pages = Blueprint("pybench", __name__, url_prefix=base or None)

    def report() -> Response:
        test = role.conductor.test
        if test is None or test.outcome is None:
            return make_response("There is no report yet: it is written when a test has stopped.", 404)
        name = f"{test.outcome.folder.name}.html"
        return send_file(test.outcome.folder / "report.html", as_attachment=True, download_name=name)

    pages.add_url_rule(REPORT_PATH, view_func=web_ui.auth_required_if_enabled(report))
    app = web_ui.app
    assert app is not None, "a web page has an application"
    app.register_blueprint(pages)

    @app.before_request
    def check_form() -> Response | None:
        if request.method != "POST" or request.path != f"{base}/swarm":
            return None
        if role.is_checking:
            return _refusal(role, "the test is about to begin: its lock is being checked; try again in some seconds")
        runner = role.environment.runner
        if runner is not None and runner.state in (STATE_RUNNING, STATE_SPAWNING):
            return None  # Only the number of users changes.
        error = role.refusal(request.form.to_dict())
        if error is None:
            return None
        return _refusal(role, error.message + (f" ({error.hint})" if error.hint else ""))

    @app.after_request
    def add_tables(response: Response) -> Response:
        if request.path == f"{base}/stats/requests" and response.is_json:
            role.await_outcome()
            answer: dict[str, Any] = {**response.get_json()}
            answer["extended_stats"] = [
                {"key": LOCKS, "data": view.rows(role.conductor)},
                {"key": WORKERS, "data": view.worker_rows(role.conductor)},
            ]
            return jsonify(answer)
        return response


def _refusal(role: Starting, message: str) -> Response:
    """The answer to a form that starts nothing, as Locust's own page shows it."""
    return jsonify({"success": False, "message": message, "host": role.environment.host})
