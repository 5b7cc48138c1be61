"""The HDR histograms of records: decoded and merged by the core, and returned as buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Buckets(NamedTuple):
    """The buckets with samples, ascending: the highest value of each bucket in nanoseconds, and its count."""

    values_ns: NDArray[np.uint64]
    counts: NDArray[np.uint64]


_EXACT_BITS = 11
"""Each value of at most so many bits has its own bucket, which gives three significant digits."""


def lowest_of(highest_ns: int) -> int:
    """The lowest value of the bucket whose highest is `highest_ns`."""
    width = 1 << max(int(highest_ns).bit_length() - _EXACT_BITS, 0)
    return int(highest_ns) - width + 1


def merged(parts: Sequence[bytes]) -> Buckets:
    """The sum of `parts`; no buckets without parts. Raises ValueError where a part is no HdrHistogram V2."""
    if not parts:
        return Buckets(np.array([], dtype=np.uint64), np.array([], dtype=np.uint64))
    # Imported here: a record without histograms can be read where the core is not built.
    from pybench import _core

    whole = parts[0] if len(parts) == 1 else _core.merge_histograms(list(parts))
    return Buckets(*_core.histogram_buckets(whole))


def mean_ns(parts: Sequence[bytes]) -> float | None:
    """The mean of all samples in `parts`; None without a sample."""
    values_ns, counts = merged(parts)
    return float(np.average(values_ns, weights=counts)) if len(counts) else None
