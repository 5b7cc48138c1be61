"""Four retry policies side by side: a burst, in which all users want a lock at once, and then a ramp.

Run it with `locust -f locustfiles/retry_comparison.py --headless`.
Each policy is a user class with a resource of its own, so that its users meet only each other. `none` makes one attempt
and gives up; the others pause between attempts: `fixed` for the base, `exponential` for the base times 1, 2, 4, 8, ...
up to the cap, `full-jitter` for a random part of that. `Retry-After` is ignored here: the policy decides.
"""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from _scenario import Plan, Scenario, Stage, Verdict
from _service import Service
from _summary import Metrics, Threshold, shown
from locust import FastHttpUser, between, events, task
from locust.argument_parser import positive_integer
from locust.env import Environment

scenario = Scenario(
    "retry_comparison",
    users={"full": 80, "short": 40},
    settings=["base_ms", "cap_ms", "max_attempts"],
)


@events.init_command_line_parser.add_listener
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Options of this scenario, and fields of the web UI."""
    parser.add_argument(
        "--base-ms", type=float, default=10, env_var="PYBENCH_BASE_MS", help="The first pause of a user in ms."
    )
    parser.add_argument(
        "--cap-ms", type=float, default=500, env_var="PYBENCH_CAP_MS", help="The longest pause of a user in ms."
    )
    parser.add_argument(
        "--max-attempts",
        type=positive_integer,
        default=20,
        env_var="PYBENCH_MAX_ATTEMPTS",
        help="The attempts after which a user gives up.",
    )


class Client(FastHttpUser):
    """Wants the lock of its policy's resource, once in the burst, and again and again in the ramp."""

    abstract = True
    wait_time = between(0.1, 0.3)
    policy: str

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.is_of_burst = not scenario.gate.is_set()

    def pause_ms(self, refused: int, options: Namespace) -> float | None:
        """The pause in ms after so many refused attempts; None gives up."""
        return None

    def on_start(self) -> None:
        """The burst: all users want their locks at the same moment."""
        if self.is_of_burst:
            scenario.wait_for_all()
            scenario.count("burst_ms", self.policy, self.acquire())

    @task
    def acquire(self) -> float:
        """From the first attempt until the lock is granted, or the user gives up: the time in ms."""
        options = self.environment.parsed_options
        start = time.perf_counter()
        for attempt in range(1, options.max_attempts + 1):
            status = self.attempt()
            pause = self.pause_ms(attempt, options)
            if status != 409 or pause is None or attempt == options.max_attempts:
                break
            time.sleep(pause / 1_000)
        took_ms = round((time.perf_counter() - start) * 1_000, 1)
        if status in (200, 409):
            scenario.count("granted" if status == 200 else "refused", self.policy, took_ms)
        return took_ms

    def attempt(self) -> int:
        """One attempt; its status."""
        scenario.count("attempts", self.policy)
        with self.rest("POST", f"/api/locks/simple/retry-{self.policy}") as answer:
            if answer.status_code == 409:
                answer.success()
        return int(answer.status_code)


class NoRetry(Client):
    """Gives up at once."""

    policy = "none"


class Fixed(Client):
    """Pauses for the base; the first time for a random part of it, so that users do not stay in step."""

    policy = "fixed"

    def pause_ms(self, refused: int, options: Namespace) -> float:
        """The base."""
        return options.base_ms * (random.random() if refused == 1 else 1)


class Exponential(Client):
    """Pauses twice as long each time; the first time for a random part of the base."""

    policy = "exponential"

    def pause_ms(self, refused: int, options: Namespace) -> float:
        """The base, doubled for each refusal before."""
        return min(options.cap_ms, options.base_ms * 2 ** (refused - 1)) * (random.random() if refused == 1 else 1)


class FullJitter(Client):
    """Pauses for a random part of what `exponential` would pause."""

    policy = "full-jitter"

    def pause_ms(self, refused: int, options: Namespace) -> float:
        """Any part of the exponential pause."""
        return random.uniform(0, min(options.cap_ms, options.base_ms * 2 ** (refused - 1)))


POLICIES = [one.policy for one in (NoRetry, Fixed, Exponential, FullJitter)]


class BurstThenRamp(Plan):
    """All users at once; then from a tenth of them to all again."""

    scenario = scenario

    def stages(self, users: int) -> Sequence[Stage]:
        """Burst, drop, ramp."""
        burst, ramp = (3, 4) if scenario.is_short else (15, 40)
        few = max(users // 10, len(POLICIES))
        return [Stage(0, users), Stage(burst, users), Stage(2, few), Stage(ramp, users)]


@scenario.prepare
def look(service: Service, _options: Namespace) -> None:
    """Nothing to prepare, but the service has to be there."""
    service.check()


@scenario.verdict
def verdict(_service: Service, _options: Namespace, _metrics: Metrics) -> Verdict:
    """What each policy cost."""
    groups = {policy: figures_of(policy) for policy in POLICIES}
    granted: Metrics = {f"granted_{policy.replace('-', '_')}": groups[policy]["granted"] for policy in POLICIES}
    return Verdict(
        conclusion=sentence(groups),
        metrics=granted,
        groups=groups,
        thresholds=[Threshold("error_rate", "<", 0.1), *(Threshold(metric, ">", 0) for metric in granted)],
    )


def figures_of(policy: str) -> Metrics:
    """The row of a policy. `p50_ms` and `p99_ms` are the times to a grant, `burst_ms` ends with the last user of it."""
    attempts, granted, refused = (scenario.total(name, policy) for name in ("attempts", "granted", "refused"))
    return {
        "requests": attempts,
        "granted": granted,
        "refused": refused,
        "granted_share": round(granted / (granted + refused), 4) if granted + refused else None,
        "attempts_per_grant": round(attempts / granted, 2) if granted else None,
        "p50_ms": scenario.quantile("granted", 0.5, policy),
        "p99_ms": scenario.quantile("granted", 0.99, policy),
        "burst_ms": scenario.quantile("burst_ms", 1, policy),
    }


def sentence(groups: dict[str, Metrics]) -> str:
    """Which policy cost least, of those that granted most."""
    granting = {policy: group for policy, group in groups.items() if group["granted"]}
    if not granting:
        return "No policy was granted a lock."
    most = max(group["granted_share"] for group in granting.values())
    best = {policy: group for policy, group in granting.items() if group["granted_share"] == most}
    cheapest = min(best, key=lambda policy: best[policy]["attempts_per_grant"])
    quickest = min(best, key=lambda policy: best[policy]["p99_ms"])
    return (
        f"{', '.join(best)} granted most ({100 * most:.1f} % of the acquires). Of these, {cheapest} took the fewest"
        f" attempts per grant ({shown(best[cheapest]['attempts_per_grant'])}), and {quickest} had the lowest p99"
        f" ({shown(best[quickest]['p99_ms'])} ms). Small differences in one run may be chance."
    )
