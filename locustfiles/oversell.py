"""50 users race for a stock of one. The run fails unless exactly one of them gets the item.

Run it with `locust -f locustfiles/oversell.py --headless`; with `--lock-strategy none` it fails.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from _scenario import Plan, Scenario, Stage, Verdict
from _service import Service, add_lock_strategy
from _summary import Metrics, Threshold
from locust import FastHttpUser, events, task
from locust.exception import StopUser

PRODUCT = "oversell"

scenario = Scenario("oversell", users={"full": 50, "short": 50}, settings=["lock_strategy"])


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Options of this scenario, and fields of the web UI."""
    add_lock_strategy(parser)


class Buyer(FastHttpUser):
    """Wants the item once, at the same time as all others."""

    @task
    def buy(self) -> None:
        """One purchase."""
        scenario.wait_for_all()
        order = {"product_id": PRODUCT, "quantity": 1, "lock_strategy": self.environment.parsed_options.lock_strategy}
        with self.rest("POST", "/purchase", json=order) as answer:
            if answer.status_code == 200:
                scenario.count("sold" if answer.js["success"] else "refused")
            else:
                scenario.count("failed")
        raise StopUser


class Race(Plan):
    """All users at once; the race ends with the last answer."""

    scenario = scenario

    def stages(self, users: int) -> Sequence[Stage]:
        """All users are there from the start."""
        return [Stage(0, users), Stage(20 if scenario.is_short else 60, users)]

    def is_over(self) -> bool:
        """Whether the request of each user has ended."""
        ended = sum(map(scenario.total, ("sold", "refused", "failed")))
        return ended >= self.runner.environment.parsed_options.num_users


@scenario.prepare
def fill_shelf(service: Service, _options: Namespace) -> None:
    """One item is for sale."""
    service.reset(PRODUCT, stock=1)


@scenario.verdict
def verdict(service: Service, options: Namespace, _metrics: Metrics) -> Verdict:
    """The answers and the stock must both say that one item was sold."""
    sold, refused = scenario.total("sold"), scenario.total("refused")
    left = service.stock(PRODUCT)
    return Verdict(
        conclusion=sentence(options.num_users, sold, sold + refused, left),
        metrics={"sold": sold, "refused": refused, "answers": sold + refused, "stock_left": left},
        thresholds=[
            Threshold("sold", "==", 1),
            Threshold("stock_left", "==", 0),
            Threshold("answers", ">=", options.num_users),
        ],
    )


def sentence(buyers: int, sold: int, answers: int, left: int) -> str:
    """What happened, in one sentence."""
    if answers < buyers:
        return f"{sold} of {buyers} buyers got the only item; the requests of {buyers - answers} failed."
    if sold == 1 and left != 0:
        return f"1 of {buyers} buyers got the only item, but the stock is {left} and not 0."
    return f"{sold} of {buyers} buyers got the only item."
