"""The lock routes: users take the locks of a few resources with `simple` and with `redlock`.

Run it with `locust -f locustfiles/lock_api.py --headless`; with `--resources 5` more attempts meet a held lock.
A lock that another user holds is an expected answer (409), and counted as `locked`: the user waits for as long as
`Retry-After` says, and tries again. 503 `Quorum not reached`, where too few servers replied, is counted as `no_quorum`
and has a threshold of its own. Each other status than 200 is an error.
"""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from _scenario import Plan, Scenario, Stage, Verdict
from _service import Service
from _summary import Metrics, Threshold
from locust import FastHttpUser, between, events, task
from locust.argument_parser import positive_integer

ROUTES = ("simple", "redlock")
NO_QUORUM = "Quorum not reached"
LONGEST_PAUSE_S = 5.0
"""A server may ask for any pause; a load test waits no longer than this."""

scenario = Scenario("lock_api", users={"full": 40, "short": 20}, settings=["resources", "p95_ms"])


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Options of this scenario, and fields of the web UI."""
    parser.add_argument(
        "--resources",
        type=positive_integer,
        default=20,
        env_var="PYBENCH_RESOURCES",
        help="How many resources the users of a route share.",
    )
    parser.add_argument(
        "--p95-ms", type=float, metavar="LIMIT", default=500, env_var="PYBENCH_P95_MS", help="Limit of the p95 in ms."
    )


class Client(FastHttpUser):
    """Takes a lock, and tries again while another user holds it."""

    abstract = True
    wait_time = between(0.05, 0.2)
    route: str

    @task
    def take(self) -> None:
        """One lock, from the first attempt to the grant, or to an error."""
        resource = f"{self.route}-{random.randrange(self.environment.parsed_options.resources)}"
        start = time.perf_counter()
        while (pause := self.attempt(resource, start)) is not None:
            time.sleep(pause)

    def attempt(self, resource: str, start: float) -> float | None:
        """One attempt: the pause in seconds until the next; None after a grant or an error."""
        path, name = f"/api/locks/{self.route}/{resource}?ttl=1s", f"/api/locks/{self.route}/[resource]"
        with self.rest("POST", path, name=name) as answer:
            if answer.status_code == 200:
                scenario.count("granted", self.route, round((time.perf_counter() - start) * 1_000, 1))
            elif answer.status_code == 409 or (answer.status_code == 503 and answer.js["error"] == NO_QUORUM):
                answer.success()
                scenario.count("locked" if answer.status_code == 409 else "no_quorum", self.route)
                return min(float(answer.headers["Retry-After"]), LONGEST_PAUSE_S)
        return None


class SimpleClient(Client):
    """One server grants the lock."""

    route = "simple"


class RedlockClient(Client):
    """A majority of servers grants the lock."""

    route = "redlock"


class Level(Plan):
    """A short ramp, then a constant load."""

    scenario = scenario

    def stages(self, users: int) -> Sequence[Stage]:
        """Half of the users on each route."""
        up, level = (1, 4) if scenario.is_short else (10, 50)
        return [Stage(up, users), Stage(level, users)]


@scenario.prepare
def look(service: Service, _options: Namespace) -> None:
    """Nothing to prepare, but the service has to be there."""
    service.check()


@scenario.verdict
def verdict(_service: Service, options: Namespace, metrics: Metrics) -> Verdict:
    """Errors, and what each route granted."""
    names = ("granted", "locked", "no_quorum")
    groups: dict[str, Metrics] = {}
    for route in ROUTES:
        groups[route] = {name: scenario.total(name, route) for name in names}
        groups[route] |= {f"acquire_p{q}_ms": scenario.quantile("granted", q / 100, route) for q in (50, 99)}
    sums = {name: sum(group[name] or 0 for group in groups.values()) for name in names}
    attempts = sum(groups["redlock"][name] or 0 for name in names)
    return Verdict(
        conclusion=f"{sums['granted']} locks were granted; {sums['locked']} attempts met a held lock.",
        metrics=sums
        | {f"granted_{route}": groups[route]["granted"] for route in ROUTES}
        | {"no_quorum_rate": sums["no_quorum"] / attempts if attempts else None},
        groups=groups,
        thresholds=[
            Threshold("p95_ms", "<", options.p95_ms),
            Threshold("error_rate", "<", 0.01),
            Threshold("no_quorum_rate", "<", 0.1),
            *(Threshold(f"granted_{route}", ">", 0) for route in ROUTES),
        ],
    )
