"""A lower bound on the mean wait of a sequence under any policy: how much is left to gain at most.

Nodes are dissolved: in each domain (a pool's GPUs of one type) only their number counts. Prices λ_d(t) ≥ 0 per
GPU-second, constant between grid points and 0 after the last, turn that limit into a cost. For any prices,

    Σ_j excess_j  ≥  Σ_j min over types d and starts s ≥ r_j of [s − r_j + p_jd − p_j + g_j ∫_s^{s + p_jd} λ_d] − Σ_d G_d ∫ λ_d

(weak duality) for every schedule of rigid jobs without preemption, where p_jd is the run time on a type, p_j the least
of them and the excess of a job the completion time less p_j: the wait, where all types are equally fast. Subgradient
steps improve the prices. Each minimum is exact, as the bracket is piecewise linear in s, so the grid decides how good the bound is, not
whether it is one. docs/explanation/lower-bound.md has the proof and what is ignored.

Time-indexed formulation: Sousa and Wolsey 1992; van den Akker, Hurkens and Savelsbergh 2000. Its Lagrangian bounds
for resource-constrained scheduling: Möhring, Schulz, Stork and Uetz 2003. Steps: Held, Wolfe and Crowder 1974;
Polyak 1969, towards a level above the best bound so far (Goffin and Kiwiel 1999).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout

PATIENCE = 10
"""Steps without progress after which the level comes closer to the best bound."""
CLOSER = 0.7
"""How much closer."""
PROGRESS = 0.05
"""Part of the way to the level that counts as progress."""
CLOSE_ENOUGH = 1e-7
"""Distance of the level, relative to the best bound, at which more steps are not worth their time."""


@dataclass(frozen=True)
class Bound:
    """No schedule of these jobs has a lower mean wait or mean completion time than this.

    Both in seconds per job. They are lowered by what rounding can have added (about 1e-10 of the wait on traces), so
    they hold as they stand. ``iterations``: subgradient steps of the pool that took most.
    """

    wait_s: float
    jct_s: float
    iterations: int


class _Part(NamedTuple):
    """Jobs of one pool, in the order of submission: K jobs, D types."""

    release: np.ndarray  # [K] float64, s after the first submission
    run: np.ndarray  # [K, D] float64, on each type, s
    least: np.ndarray  # [K] float64, the least of these
    gpus: np.ndarray  # [K] float64
    allowed: np.ndarray  # [K, D] bool
    total: np.ndarray  # [D] float64, GPUs of each type in the pool


def lower_bound(
    jobs: Jobs,
    layout: Layout,
    first: int,
    n: int,
    reference_wait_s: float | None = None,
    iterations: int = 300,
    grid: int = 512,
) -> Bound:
    """Bound the mean wait of jobs ``first`` … ``first + n − 1`` from an idle cluster, under any policy.

    ``reference_wait_s``: the mean wait of some schedule, in s; it only guides the steps, a wrong one costs
    tightness and not validity. ``iterations``: most subgradient steps; more are never worse. ``grid``: most
    intervals in which a price is constant, per pool. Raises ValueError for an empty sequence, one that
    goes beyond ``jobs``, fewer than one step or interval, or a job that no GPU type of its pool may run.
    """
    if n < 1 or iterations < 1 or grid < 1:
        raise ValueError(f"n, iterations and grid must be 1 or more, found {n}, {iterations} and {grid}")
    if not 0 <= first <= len(jobs.gpus) - n:
        raise ValueError(f"jobs {first} to {first + n - 1} are not all among {len(jobs.gpus)}")
    rows = slice(first, first + n)
    cut, run = jobs.cut[rows], jobs.run_s[rows]
    lasts = run[:, None] * cut["slow"] * (1.0 + cut["off"]) * np.minimum(cut["spread"], 1.0)
    options = reference_wait_s, iterations, grid
    excess, steps = _bound(jobs, layout, first, lasts, *options)
    wait = excess
    if (lasts != run[:, None])[cut["full"] >= 0].any():
        # with each job as short as on its fastest type, every schedule is still one of the relaxation
        wait, _ = _bound(jobs, layout, first, np.broadcast_to(run[:, None], lasts.shape), *options)
    return Bound(wait, excess + float(np.mean(run)), steps)


def _bound(
    jobs: Jobs, layout: Layout, first: int, lasts: np.ndarray, reference_s: float | None, iterations: int, grid: int
) -> tuple[float, int]:
    """(The bound on the mean excess of the jobs from ``first`` that last so long on each type [n, T]; steps)."""
    n = len(lasts)
    pool = np.asarray(jobs.pool[first : first + n])
    parts = [_part(jobs, layout, first, np.flatnonzero(pool == p), int(p), lasts) for p in np.unique(pool)]
    starts = [_greedy(part) for part in parts]
    # the excess of the greedy schedules: of relaxed schedules, so at least the best bound there is
    above = np.array([(ends - part.release - part.least).sum() for (_, ends), part in zip(starts, parts, strict=True)])
    aim = above.copy()
    if reference_s is not None and 0 < reference_s * n < above.sum():
        aim *= reference_s * n / above.sum()
    total, steps = 0.0, 0
    for part, (start, _), most, target in zip(parts, starts, above.tolist(), aim.tolist(), strict=True):
        if most > 0:
            value, used = _maximise(part, _grid(part, start, grid), target, iterations)
            total, steps = total + value, max(steps, used)
    return total / n, steps


def _part(jobs: Jobs, layout: Layout, first: int, inside: np.ndarray, pool: int, lasts: np.ndarray) -> _Part:
    """The jobs ``first + inside`` [K], all of one pool, as the relaxation sees them."""
    rows = first + inside
    nodes = layout.nodes
    mine = slice(nodes.pool_start[pool], nodes.pool_start[pool + 1])
    total = np.bincount(nodes.row["type"][mine], weights=nodes.row["gpus"][mine], minlength=len(layout.types))
    gpus = jobs.gpus[rows].astype(np.float64)
    allowed = (jobs.cut["full"][rows] >= 0) & (gpus[:, None] <= total)
    if not allowed.any(axis=1).all():
        raise ValueError(f"job {rows[~allowed.any(axis=1)][0]} fits no GPU type of pool {layout.pools[pool]}")
    submit = jobs.submit_s[rows].astype(np.float64)
    run = np.ascontiguousarray(lasts[inside])
    least = np.where(allowed, run, np.inf).min(axis=1)
    return _Part(submit - submit.min(), run, least, gpus, allowed, total)


def _grid(part: _Part, start: np.ndarray, most: int) -> np.ndarray:
    """Times [M + 1] between which prices are constant, M ≤ ``most``.

    Where jobs come, start and end in a schedule, and end if they do not wait; where that is too many, half of them
    are taken evenly from these and half evenly from the whole time, which is better than either.
    """
    points = [part.release, start]
    for d in range(part.run.shape[1]):
        run = np.where(part.allowed[:, d], part.run[:, d], part.least)
        points += [part.release + run, start + run]
    times = np.unique(np.concatenate(points))
    if len(times) > most + 1:
        half = (most + 1) // 2
        some = times[np.linspace(0, len(times) - 1, most + 1 - half).round().astype(np.int64)]
        times = np.unique(np.concatenate([some, np.linspace(times[0], times[-1], half + 2)[1:-1]]))
    return times


@njit(cache=True, nogil=True)
def _greedy(part):
    """(Starts, ends), [K] each, of a schedule of the relaxation: smallest area first, whatever fits, on the fastest type,
    the emptiest of several."""
    count, types = part.allowed.shape
    order = np.argsort(part.gpus * part.least, kind="mergesort")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    free = part.total.copy()
    start, end, on = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    queue, running = np.empty(count, np.int64), np.empty(count, np.int64)
    queued, active, coming = 0, 0, 0
    while coming < count or queued > 0:
        now = part.release[coming] if coming < count else np.inf
        for i in range(active):
            now = min(now, end[running[i]])
        kept = 0
        for i in range(active):
            j = running[i]
            if end[j] <= now:
                free[on[j]] += part.gpus[j]
            else:
                running[kept] = j
                kept += 1
        active = kept
        while coming < count and part.release[coming] <= now:
            i = queued
            while i > 0 and rank[queue[i - 1]] > rank[coming]:
                queue[i] = queue[i - 1]
                i -= 1
            queue[i] = coming
            queued += 1
            coming += 1
        kept = 0
        for i in range(queued):
            j, best = queue[i], -1
            for d in range(types):
                if not part.allowed[j, d] or free[d] < part.gpus[j]:
                    continue
                run, so_far = part.run[j, d], part.run[j, best] if best >= 0 else np.inf
                if run < so_far or (run == so_far and free[d] > free[best]):
                    best = d
            if best < 0:
                queue[kept] = j
                kept += 1
            else:
                free[best] -= part.gpus[j]
                on[j], start[j], end[j] = best, now, now + part.run[j, best]
                running[active] = j
                active += 1
        queued = kept
    return start, end


@njit(cache=True, nogil=True)
def _spent(grid, price, paid, time, k):
    """∫ λ up to ``time``, of one type; ``k``: the first grid point that is not before it."""
    if k == 0:
        return 0.0
    return paid[-1] if k == len(grid) else paid[k] - price[k - 1] * (grid[k] - time)


@njit(cache=True, nogil=True)
def _cheapest(part, grid, price, paid, after_release, after_run, use):
    """Σ_j of the least cost of each job at these prices; fills ``use`` [D, M] with the GPU-seconds it takes there.

    ``price`` [D, M + 1], 0 last; ``paid`` [D, M + 1]: its integral up to each grid point; ``after_release``,
    ``after_run`` [K, D]: first grid point not before r_j and r_j + p_jd. Where the cost has a minimum in s > r_j it
    bends upwards: the price falls at the start of the job, or rises at its end. A start that waits longer than the
    best cost so far is no better, as prices only add.
    """
    count, types = part.allowed.shape
    last = len(grid) - 1
    use[:] = 0.0
    total = 0.0
    for j in range(count):
        release, gpus = part.release[j], part.gpus[j]
        best, start, on = np.inf, release, 0
        for d in range(types):
            if not part.allowed[j, d]:
                continue
            at, upto, run = price[d], paid[d], part.run[j, d]
            longer = run - part.least[j]
            ahead = _spent(grid, at, upto, release, after_release[j])
            cost = longer + gpus * (_spent(grid, at, upto, release + run, after_run[j, d]) - ahead)
            if cost < best:
                best, start, on = cost, release, d
            other = after_run[j, d]
            for k in range(max(after_release[j], 1), last + 1):
                if grid[k] - release + longer >= best:
                    break
                if at[k] < at[k - 1]:
                    end = grid[k] + run
                    while other <= last and grid[other] < end:
                        other += 1
                    cost = grid[k] - release + longer + gpus * (_spent(grid, at, upto, end, other) - upto[k])
                    if cost < best:
                        best, start, on = cost, grid[k], d
            other = after_release[j]
            for k in range(max(after_run[j, d], 1), last):
                begin = grid[k] - run
                if begin - release + longer >= best:
                    break
                if at[k] > at[k - 1] and begin >= release:  # rounding may put it before
                    while other <= last and grid[other] < begin:
                        other += 1
                    cost = begin - release + longer + gpus * (upto[k] - _spent(grid, at, upto, begin, other))
                    if cost < best:
                        best, start, on = cost, begin, d
        total += best
        end = start + part.run[j, on]
        k = np.searchsorted(grid, start, side="right") - 1
        while k < last and grid[k] < end:
            use[on, k] += gpus * (min(end, grid[k + 1]) - max(start, grid[k]))
            k += 1
    return total


@njit(cache=True, nogil=True)
def _maximise(part, grid, target, iterations):
    """(Best bound on Σ excess of one pool, not below 0; steps taken); ``target``: what it may be at most, a guess.

    Rounding: integrals of M terms, differences of times up to the last one, and a sum of K terms, each with its
    share of 2^-52, are taken off every value.
    """
    count, types = part.allowed.shape
    last = len(grid) - 1
    width = grid[1:] - grid[:-1]
    price, paid, use = np.zeros((types, last + 1)), np.zeros((types, last + 1)), np.zeros((types, last))
    after_release, after_run = np.searchsorted(grid, part.release), np.empty(part.run.shape, np.int64)
    for d in range(types):
        after_run[:, d] = np.searchsorted(grid, part.release + part.run[:, d])
    epsilon = 2.0**-52
    latest, gpus = grid[-1] + part.run.max(), part.gpus.sum()
    best, mark, stalled, ahead = 0.0, 0.0, 0, 0.5 * target
    for step in range(iterations):
        capacity, most, dearest = 0.0, 0.0, 0.0
        for d in range(types):
            for k in range(last):
                paid[d, k + 1] = paid[d, k] + price[d, k] * width[k]
                dearest = max(dearest, price[d, k])
            capacity += part.total[d] * paid[d, last]
            most = max(most, paid[d, last])
        costs = _cheapest(part, grid, price, paid, after_release, after_run, use)
        rounding = (count + 2 * last) * (costs + capacity) + gpus * (2 * (last + 8) * most + 16 * dearest * latest)
        value = costs - capacity - epsilon * rounding
        best = max(best, value)
        stalled += 1
        if best >= mark + PROGRESS * ahead:
            mark, stalled = best, 0
        if stalled >= PATIENCE:
            ahead *= CLOSER
            mark, stalled = best, 0
        # the slope at λ, as a density over time, so that short intervals do not count for less than they should
        norm = 0.0
        for d in range(types):
            for k in range(last):
                slope = use[d, k] / width[k] - part.total[d]
                if slope < 0.0 and price[d, k] == 0.0:
                    slope = 0.0
                use[d, k] = slope
                norm += width[k] * slope * slope
        if norm == 0.0 or ahead <= CLOSE_ENOUGH * best:
            return best, step + 1
        size = (best + ahead - value) / norm
        for d in range(types):
            for k in range(last):
                price[d, k] = max(0.0, price[d, k] + size * use[d, k])
    return best, iterations
