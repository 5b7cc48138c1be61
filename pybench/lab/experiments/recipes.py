"""`recipes`: locks that people publish and that are wrong, each beside a lock of pybench that is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.lab.clients import client_row
from pybench.lab.experiment import Experiment
from pybench.lab.findings import Case, Expected, Figure

if TYPE_CHECKING:
    from pybench.lab.stage import Stage


def _run(stage: Stage) -> Iterator[Case]:
    import time

    from redis import Redis

    from pybench.lab.recipes import (
        decr_semaphore,
        delete_without_owner,
        reader_count,
        renew_without_compare,
        renewal_after_release,
        shared_ttl,
        timestamp_token,
    )
    from pybench.lab.recipes.scene import Scene

    (server,) = stage.redis()
    redis = Redis.from_url(stage.url(server))
    stage.at_end(redis.close)
    for module in (
        delete_without_owner,
        timestamp_token,
        renew_without_compare,
        renewal_after_release,
        reader_count,
        shared_ttl,
        decr_semaphore,
    ):
        recipe = module.RECIPE
        for is_right in (False, True):
            label = f"{recipe.lock} instead of {recipe.label}" if is_right else recipe.label
            stage.note(label)
            began = time.monotonic()
            scene = Scene(stage, redis, f"{stage.prefix}{recipe.key}:{'right' if is_right else 'wrong'}")
            shown = (recipe.right if is_right else recipe.wrong)(scene)
            yield Case(
                label=label,
                strategy=recipe.lock if is_right else None,
                expected=Expected.RIGHT if is_right else Expected.WRONG,
                went_wrong=shown.went_wrong,
                sentence=shown.sentence,
                figures=(Figure("inside", "has the lock", shown.inside),),
                clients=(client_row(began, locked=True, error=shown.sentence if shown.went_wrong else None),),
            )


RECIPES = Experiment(
    name="recipes",
    summary="Published locks that are wrong, and right ones",
    steps=(
        "Seven locks as people publish them, each a small redis-py program, and the interleaving that breaks it.",
        "Then a lock of pybench in the same interleaving.",
    ),
    learn="Compare the owner in every command that changes a lock, and give each holder an end of its own.",
    run=_run,
)
