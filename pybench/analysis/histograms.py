"""HDR histograms as records keep them: decoded by the core, added up, as buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Buckets(NamedTuple):
    """The buckets in which something was recorded, ascending: the highest value of each in ns, and its count."""

    values_ns: NDArray[np.uint64]
    counts: NDArray[np.uint64]


_EXACT_BITS = 11
"""Values of so many bits have a bucket each; three significant digits need them."""


def lowest_of(highest_ns: int) -> int:
    """The lowest value of the bucket whose highest is `highest_ns`."""
    width = 1 << max(int(highest_ns).bit_length() - _EXACT_BITS, 0)
    return int(highest_ns) - width + 1


def merged(parts: Sequence[bytes]) -> Buckets:
    """All of `parts` added up; no buckets for none. Raises ValueError for what is no HdrHistogram V2."""
    if not parts:
        return Buckets(np.array([], dtype=np.uint64), np.array([], dtype=np.uint64))
    # Imported here: all but histograms can be read where the core is not built.
    from pybench import _core

    whole = parts[0] if len(parts) == 1 else _core.merge_histograms(list(parts))
    return Buckets(*_core.histogram_buckets(whole))
