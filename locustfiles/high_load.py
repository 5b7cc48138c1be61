"""Purchases and stock queries: a ramp to 100 users in 30 s, 60 s at the peak, down in 10 s.

Run it with `locust -f locustfiles/high_load.py --headless`; `--users 200 --p95-ms 250` asks for more.
The run fails if a percentile of the response time is too high, if too many requests fail, or if more purchases were
confirmed than items left the shelves. A purchase that is refused (sold out, or the lock was not granted in time) is an
answer, not an error. An error is a request without an answer, or with another status than 200.
"""

from __future__ import annotations

import random
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from _scenario import Plan, Scenario, Stage, Verdict
from _service import Service, add_lock_strategy
from _summary import Metrics, Threshold
from locust import FastHttpUser, between, events, task

STOCK = 1_000_000
PRODUCTS = [f"high-load-{number}" for number in range(20)]

scenario = Scenario(
    "high_load",
    users={"full": 100, "short": 20},
    settings=["lock_strategy", "p95_ms", "p99_ms", "max_error_rate"],
)


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Options of this scenario, and fields of the web UI."""
    add_lock_strategy(parser)
    limit = {"type": float, "metavar": "LIMIT"}
    parser.add_argument("--p95-ms", default=500, env_var="PYBENCH_P95_MS", help="Limit of the p95 in ms.", **limit)
    parser.add_argument("--p99-ms", default=1000, env_var="PYBENCH_P99_MS", help="Limit of the p99 in ms.", **limit)
    parser.add_argument(
        "--max-error-rate", default=0.1, env_var="PYBENCH_MAX_ERROR_RATE", help="Limit of the share of errors.", **limit
    )


class Customer(FastHttpUser):
    """Buys one item of a random product, and now and then asks for its stock."""

    wait_time = between(0.1, 0.5)

    @task(4)
    def buy(self) -> None:
        """One purchase; a refusal is an answer."""
        order = {
            "product_id": random.choice(PRODUCTS),
            "quantity": 1,
            "lock_strategy": self.environment.parsed_options.lock_strategy,
        }
        with self.rest("POST", "/purchase", json=order) as answer:
            if answer.status_code == 200:
                scenario.count("sold" if answer.js["success"] else "refused")

    @task(1)
    def ask(self) -> None:
        """One query."""
        with self.rest("GET", f"/stock/{random.choice(PRODUCTS)}", name="/stock/[product]") as answer:
            if answer.status_code == 200 and not isinstance(answer.js["stock"], int):
                answer.failure("the answer has no stock")


class Ramp(Plan):
    """Up, level, down."""

    scenario = scenario

    def stages(self, users: int) -> Sequence[Stage]:
        """The three stages, shorter for CI."""
        up, level, down = (2, 3, 1) if scenario.is_short else (30, 60, 10)
        return [Stage(up, users), Stage(level, users), Stage(down, 0)]


@scenario.prepare
def fill_shelves(service: Service, _options: Namespace) -> None:
    """More items than the users can buy."""
    for product in PRODUCTS:
        service.reset(product, STOCK)


@scenario.verdict
def verdict(service: Service, options: Namespace, metrics: Metrics) -> Verdict:
    """Percentiles, errors, and whether each purchase took one item off the shelf."""
    sold = scenario.total("sold")
    taken = sum(STOCK - service.stock(product) for product in PRODUCTS)
    return Verdict(
        conclusion=f"{sold} purchases were confirmed, and {taken} items left the shelves.",
        metrics={
            "sold": sold,
            "refused": scenario.total("refused"),
            "taken": taken,
            # More items than confirmations are no fault: a purchase whose answer was lost is carried out, too.
            "lost_updates": max(sold - taken, 0),
        },
        thresholds=[
            Threshold("p95_ms", "<", options.p95_ms),
            Threshold("p99_ms", "<", options.p99_ms),
            Threshold("error_rate", "<", options.max_error_rate),
            Threshold("lost_updates", "<=", 0),
        ],
    )
