"""From a ranking to priorities: as few writes as the order allows, inside a band that is never left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from rltune.config.slurm import BandConfig


def assign(order: Sequence[int], current: Mapping[int, int], band: BandConfig) -> dict[int, int]:
    """Job → new priority, of those that have to change so that ``order`` (first goes first) holds.

    The most jobs that stand right among one another already, with a priority inside the band, keep theirs (a longest
    decreasing subsequence); the others are spread over the gaps. Where a gap is too narrow all are spread anew.
    Raises ValueError for a queue longer than the band.
    """
    if len(order) > band.high - band.low + 1:
        raise ValueError(
            f"{len(order):,} jobs to rank, and {band.high - band.low + 1:,} priorities in the band: widen it"
        )
    stay = _longest_decreasing([current.get(job, 0) for job in order], band)
    new = _fill(len(order), {i: current[order[i]] for i in stay}, band)
    if new is None:
        new = _fill(len(order), {}, band)
        assert new is not None
    return {job: value for job, value in zip(order, new, strict=True) if current.get(job) != value}


def _longest_decreasing(values: Sequence[int], band: BandConfig) -> list[int]:
    """Places of a longest strictly decreasing subsequence of the values inside the band."""
    tails: list[int] = []  # negative values that end the best subsequence of each length
    ends: list[int] = []
    before: dict[int, int] = {}
    for i, value in enumerate(values):
        if not band.low <= value <= band.high:
            continue
        at = bisect_left(tails, -value)
        before[i] = ends[at - 1] if at else -1
        if at == len(tails):
            tails.append(-value)
            ends.append(i)
        else:
            tails[at], ends[at] = -value, i
    chosen, i = [], ends[-1] if ends else -1
    while i >= 0:
        chosen.append(i)
        i = before[i]
    return chosen[::-1]


def _fill(n: int, kept: Mapping[int, int], band: BandConfig) -> list[int] | None:
    """Strictly decreasing priorities with the kept ones in their places; None where some gap is too narrow."""
    values = [0] * n
    marks = [(-1, band.high + 1), *sorted(kept.items()), (n, band.low - 1)]
    for (left, above), (right, below) in zip(marks, marks[1:]):
        missing = right - left - 1
        if above - below - 1 < missing:
            return None
        for k in range(missing):
            values[left + 1 + k] = above - (above - below) * (k + 1) // (missing + 1)
        if right < n:
            values[right] = below
    return values
