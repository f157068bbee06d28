"""Confidence intervals of comparisons: moving-block bootstrap over windows in time and over training seeds, p-values, Holm.

Every interval and every p-value of the project comes from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit  # scipy.stats takes a second to import, and every run waits for it

FEWEST = 8
"""Fewer windows than this have an interval but no verdict: in simulation it misses the truth too often."""
CONFIDENCE, SEED = 0.95, 1
"""Level of every interval, and seed of its resamples."""
NAN = float("nan")


class Improvement(NamedTuple):
    """1 − Σ ours / Σ theirs, a fraction, with both ends of its interval and its p-value; NaN where unknown."""

    gain: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    """Two-sided: the least level α at which the interval of confidence 1 − α leaves zero out; NaN without interval."""

    def columns(self, name: str, p: bool = False) -> dict[str, float]:
        """As columns of a table: name, name_low, name_high and, if asked, name_p."""
        columns = {name: self.gain, f"{name}_low": self.low, f"{name}_high": self.high}
        return columns | {f"{name}_p": self.p} if p else columns


def block_length(windows: int) -> int:
    """Windows in a block: the cube root of their number, the usual order for a mean (Künsch 1989), rounded down."""
    return max(1, int(windows ** (1 / 3) + 1e-9))


def improved(
    ours: np.ndarray,
    theirs: np.ndarray,
    resamples: int,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    most: float = 1.0,
    parts: Sequence[int] = (),
) -> Improvement:
    """1 − Σ ours / Σ theirs over paired, consecutive windows; NaN where theirs is nothing.

    ``ours`` and ``theirs``: [n] of one training seed, or [s, n] of several on the same windows. Blocks of consecutive
    windows are drawn with replacement (wrapping round at the end), both sides together, so what neighbours have in
    common is kept; seeds are drawn with replacement too, independently of the blocks, since every seed met the
    same windows (Owen 2007).

    The percentile interval of few blocks or seeds is too narrow (it knows neither that the spread is estimated nor
    that a resample never leaves the sample). So its distances from the estimate are scaled to the variance over
    windows × b / (b − 1), b the number of blocks, plus that between s seeds, unbiased, over s; and widened by Student's
    t over the normal quantile, with Satterthwaite's degrees of freedom of the two. With one seed nothing is known of
    what another would change, and the interval does not cover it. With fewer than two windows all is NaN.

    Windows with nothing on either side say nothing about a ratio, but narrow its interval. Where FEWEST windows are
    there and fewer than FEWEST of them have anything, there is no interval. In simulation, equal sides then differ, at
    5 %, in 8 to 10 % of the cases where some windows are empty, and in 6 to 7 % where none is.

    In simulation, intervals of 90 % over 60 windows cover 88, 86 and 79 % of the time when neighbours' logarithms
    correlate by 0, 0.3 and 0.5: blocks are short, so strongly correlated windows have too narrow an interval.

    ``parts``: numbers of windows of runs that follow one another here and not in time; empty: it is one run. Blocks are
    drawn within each, as many as it has, so none reaches from one into the next; what another run would change is not
    covered then, and the factor above is b / (b − r) of r runs.

    The interval ends at ``most`` where the estimate is no more: what is never negative improves by 1 at most. Raises
    ValueError when the shapes differ, or ``parts`` are not all windows.
    """
    ours, theirs = np.atleast_2d(ours), np.atleast_2d(theirs)
    if ours.shape != theirs.shape:
        raise ValueError(f"found {ours.shape} values of ours and {theirs.shape} of theirs, expected pairs")
    seeds, n = ours.shape
    parts = tuple(parts) or (n,)
    if sum(parts) != n:
        raise ValueError(f"found parts of {sum(parts)} windows, expected the {n} there are")
    total = float(theirs.sum())
    if not total > 0:
        return Improvement()
    estimate = 1 - float(ours.sum()) / total
    blocks = sum(-(-part // block_length(part)) for part in parts)
    free, filled = blocks - len(parts), int((ours.any(axis=0) | theirs.any(axis=0)).sum())
    if free < 1 or filled < FEWEST <= n or not np.isfinite(total + float(ours.sum())):
        return Improvement(estimate)
    rng = np.random.default_rng(seed)
    picked = picked_windows(rng, parts, resamples)
    our_sums, their_sums = (np.stack([side[picked].sum(axis=1) for side in sides], axis=1) for sides in (ours, theirs))
    drawn = _improvement(our_sums.sum(axis=1), their_sums.sum(axis=1))  # windows alone
    over_windows, between = float(np.nanvar(drawn)) * blocks / free, 0.0
    degrees, scale = float(free), np.sqrt(blocks / free)
    if seeds > 1:
        between = float(np.var(_improvement(ours.sum(axis=1), theirs.sum(axis=1)), ddof=1)) / seeds
        who = rng.integers(0, seeds, size=(resamples, seeds))
        drawn = _improvement(*(np.take_along_axis(side, who, axis=1).sum(axis=1) for side in (our_sums, their_sums)))
        both = over_windows + between
        if both > 0:
            degrees = both**2 / (over_windows**2 / free + between**2 / (seeds - 1))
            scale = np.sqrt(both / np.nanvar(drawn))
    away = np.sort(drawn[~np.isnan(drawn)]) - estimate
    low, high = _ends(estimate, away, scale, degrees, 1 - confidence)
    return Improvement(estimate, low, min(high, most) if estimate <= most else high, _p(estimate, away, scale, degrees))


@dataclass(frozen=True)
class Intervals:
    """How intervals are made: from so many resamples."""

    bootstrap: int = 5000

    def less(self, ours: np.ndarray, theirs: np.ndarray, parts: Sequence[int] = ()) -> Improvement:
        """How much less ours are, with interval and p-value. Both [windows], in order of time; ``parts``: as bootstrap's."""
        return improved(ours, theirs, self.bootstrap, parts=parts)

    def longer(self, ours: np.ndarray, theirs: np.ndarray, jobs: np.ndarray) -> Improvement:
        """How much longer ours wait a job in the mean, in the unit of the sums, with interval and p-value.

        ``ours`` and ``theirs``: sums over the jobs of each window, ``jobs``: their numbers, all [windows] or
        [seeds, windows]. Unlike a fraction it is there where theirs did not wait at all.
        """
        return improved(jobs - (ours - theirs), jobs, self.bootstrap, most=float("inf"))

    def share(self, start: np.ndarray, part: np.ndarray, whole: np.ndarray) -> Improvement:
        """Which share of what ``whole`` gains over ``start`` is gained by ``part``, with its interval.

        (Σ start − Σ part) / (Σ start − Σ whole) of waits [windows]; over 1 where the part waits less than the whole;
        below 0 where it waits longer than the start; NaN where the whole gains nothing.
        """
        rest = improved(start - part, start - whole, self.bootstrap, most=float("inf"))
        return Improvement(1 - rest.gain, 1 - rest.high, 1 - rest.low)


def holm(p: Sequence[float]) -> np.ndarray:
    """Holm's (1979) adjusted p-values of a family: at most α of them are false below α, however they depend on one another.

    NaN stays NaN and belongs to no family.
    """
    values = np.asarray(p, float)
    adjusted = np.full(len(values), np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def picked_windows(rng: np.random.Generator, parts: Sequence[int], resamples: int) -> np.ndarray:
    """[resamples, n] windows of each resample: blocks of consecutive ones of each part, wrapping round at its end."""
    picked, at = [], 0
    for part in parts:
        length = block_length(part)
        starts = rng.integers(0, part, size=(resamples, -(-part // length)))
        picked.append(at + ((starts[:, :, None] + np.arange(length)) % part).reshape(resamples, -1)[:, :part])
        at += part
    return np.concatenate(picked, axis=1)


def around(value: float, drawn: np.ndarray, windows: int) -> tuple[float, float]:
    """Interval of ``value`` by the spread of its resamples, of so many windows; NaN with fewer than two blocks of them."""
    blocks = -(-windows // block_length(windows))
    if blocks < 2 or np.isnan(value):
        return NAN, NAN
    return _ends(value, drawn - drawn.mean(), np.sqrt(blocks / (blocks - 1)), blocks - 1, 1 - CONFIDENCE)


def _improvement(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return 1 - np.divide(ours, theirs, out=np.full(len(ours), np.nan), where=theirs > 0)


def _ends(estimate: float, away: np.ndarray, scale: float, degrees: float, level: float) -> tuple[float, float]:
    """The interval of confidence 1 − ``level``, from distances of resamples from the estimate."""
    widen = scale * stdtrit(degrees, 1 - level / 2) / ndtri(1 - level / 2)
    low, high = estimate + widen * np.quantile(away, [level / 2, 1 - level / 2])
    return float(low), float(high)


def _p(estimate: float, away: np.ndarray, scale: float, degrees: float) -> float:
    """The level at which an end of the interval meets zero, by bisection; never below 1 / (resamples + 1)."""
    least, most = 1 / (len(away) + 1), 1.0 - 1e-9

    def leaves_zero_out(level: float) -> bool:
        low, high = _ends(estimate, away, scale, degrees, level)
        return low > 0 or high < 0

    if leaves_zero_out(least):
        return least
    if not leaves_zero_out(most):
        return 1.0
    for _ in range(40):
        middle = (least + most) / 2
        least, most = (least, middle) if leaves_zero_out(middle) else (middle, most)
    return most
