"""The rows of a trial in `clients.parquet`, `nodes.parquet` and `commands.parquet`, from the counts of the core.

Promises: a quantile with fewer than ten samples beyond it is None. The rows of a trial are bounded, and lose no count.
Does not do: `telemetry.parquet`; see `telemetry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pybench.analysis import histograms, stats
from pybench.records.parts import COMMAND_STEP_NS, KILLED, step_ns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pybench.core_results import NodeVotes

MOST_CLIENTS = 1_000
"""So many clients of a trial have a row each; all others have one together."""

SUMMED = ("grants", "attempts", "refused", "errors")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
LEFT = {"p50": 0.5, "p10": 0.1, "p01": 0.01}
"""The quantiles of what is left of a lease: the short ones matter."""


def client_rows(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """A row for each of the first clients, and one without a number for all others."""
    plain = {name: column.tolist() for name, column in columns.items()}
    count = len(plain["grants"])
    rows = [_client(plain, client) for client in range(min(count, MOST_CLIENTS))]
    if count > MOST_CLIENTS:
        rest = {name: int(columns[name][MOST_CLIENTS:].sum()) for name in (*SUMMED, "wait_sum_ns")}
        known = SUMMED[:1] if KILLED in columns and columns[KILLED][MOST_CLIENTS:].any() else SUMMED
        rows.append(
            {
                "client": None,
                "clients": count - MOST_CLIENTS,
                **{name: rest[name] if name in known else None for name in SUMMED},
                "wait_mean_us": _us_each(rest["wait_sum_ns"], rest["grants"]),
                **dict.fromkeys([f"wait_{name}_us" for name in QUANTILES]),
                "longest_wait_us": int(columns["wait_max_ns"][MOST_CLIENTS:].max()) / 1e3,
            }
        )
    return rows


def _client(plain: Mapping[str, Sequence[int]], client: int) -> dict[str, Any]:
    waits = plain["waits"][client]
    killed = KILLED in plain and bool(plain[KILLED][client])
    # Of a client whose process was killed only the grants are known, and the waits for them.
    known = SUMMED[:1] if killed else SUMMED
    unknown = killed and not plain["grants"][client]
    return {
        "client": client,
        "clients": 1,
        **{name: plain[name][client] if name in known else None for name in SUMMED},
        "wait_mean_us": _us_each(plain["wait_sum_ns"][client], plain["grants"][client]),
        **{
            f"wait_{name}_us": plain[f"wait_{name}_ns"][client] / 1e3 if stats.enough(waits, q) else None
            for name, q in QUANTILES.items()
        },
        "longest_wait_us": None if unknown else plain["wait_max_ns"][client] / 1e3,
    }


def _us_each(sum_ns: int, count: int) -> float | None:
    return sum_ns / count / 1e3 if count else None


def node_rows(nodes: Sequence[NodeVotes]) -> list[dict[str, Any]]:
    """A row for each server of a lock whose servers vote."""
    return [_node(node) for node in nodes]


def _node(node: NodeVotes) -> dict[str, Any]:
    reply, left = (histograms.merged([node[name]]) for name in ("reply_hdr", "validity_hdr"))
    voted = node["granted"] + node["refused"] + node["errors"]
    return {
        "server": node["server"] + 1,
        **{name: node[name] for name in ("asked", "granted", "refused", "errors")},
        "unanswered": node["asked"] - voted,
        "late": node["late"],
        "decided": node["decided"],
        **{f"reply_{name}_us": _scaled(stats.quantile(*reply, q), 1e3) for name, q in QUANTILES.items()},
        "longest_reply_us": float(reply[0][-1]) / 1e3 if len(reply[0]) else None,
        **{f"validity_{name}_ms": _scaled(_low(left, q), 1e6) for name, q in LEFT.items()},
        "least_validity_ms": float(left[0][0]) / 1e6 if len(left[0]) else None,
    }


def _low(buckets: histograms.Buckets, q: float) -> float | None:
    """The quantile `q` with ten samples below it, where `stats.quantile` wants them above."""
    values, counts = buckets
    return stats.quantile(values[::-1], counts[::-1], 1 - q)


def _scaled(ns: float | None, unit_ns: float) -> float | None:
    return None if ns is None else ns / unit_ns


def command_rows(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """One row with all steps of a trial; none for a trial without a step."""
    if not len(columns.get("start_ns", ())):
        return []
    counts = [int(count) for count in columns["commands"]]
    return [{"step_ns": step_ns(columns["start_ns"], COMMAND_STEP_NS), "commands": counts}]
