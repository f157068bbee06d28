"""Order, GPU type and spread decided together: a plan for the first jobs of a ranking (types ``joint`` of rltune.cluster.types).

A plan gives each job an alternative, a GPU type on as few nodes as possible or on more, and a position in the order of the jobs on
that type. In this order each is reserved the earliest time from which its chunks fit, on what is expected to be free: nodes chosen by
best fit; where a job may have any chunks, those with the most free to the full and the last by best fit. A plan costs the sum, over
its jobs, of start, run time and price of GPU time, in s from now. rltune.placement.joint is an
integer program for the same, which may choose nodes otherwise.

The search starts from the plan of ``least``, in the order of the ranking. Then each job in turn is taken out and put where
it costs least, in any alternative and at any position in the order of its type, until no job moves or SWEEPS times. GPUs of nodes count here; CPUs,
memory and other placement rules count in the reservations that are made for the plan (rltune.simulator.conservative).

Next to others no job completes earlier in an alternative than it would alone, on what is free. So a position is given up as soon
as its cost, with the jobs that are not reserved yet as if alone, is above the least so far; and a plan in which
every job costs as little as alone is optimal.
"""

from typing import NamedTuple

import numpy as np

from rltune.kernels import allocating, inlined, inner_allocating, inner_kernel

SWEEPS = 3
"""Times that every job is taken out and put back, at most (our choice)."""
GAIN = 1e-9
"""Least gain for which a job is moved, relative to what it is compared with: more than rounding."""


class Question(NamedTuple):
    """What is to be planned: K jobs on T types of up to M nodes; what is free changes up to X times.

    Each job has A alternatives, T or twice as many; alternative a is of type a mod T (rltune.simulator.conservative).
    """

    at_s: np.ndarray  # [T, X] float64, from when on, s from now, ascending; the first is 0
    points: np.ndarray  # [T] int64, how many of these there are
    free: np.ndarray  # [T, X, M + 1] int64, GPUs free then on each node of the type and, last, on all
    gpus: np.ndarray  # [K] int64, GPUs of each job
    cut: np.ndarray  # [K, A] CUT
    lasts_s: np.ndarray  # [K, A] float64, expected run time; ∞: the job may not be there
    price_s: np.ndarray  # [K, A] float64, what its GPU time counts as and, by split_worth, its spread


@allocating
def search(q):
    """(Start, s from now [K] float64; alternative [K] int64) of the jobs of a Question in the best plan found; a bound: no plan
    costs less.
    """
    jobs, types = q.lasts_s.shape[0], q.points.shape[0]
    order, length = np.empty((types, jobs), np.int64), np.zeros(types, np.int64)
    cost, chosen = np.zeros(types), np.zeros(jobs, np.int64)
    start, tried = np.zeros(jobs), np.empty(jobs)
    work = _opened(q)
    alone_s = _alone_s(q, work, chosen)
    for k in range(jobs):
        best, more, least = -1, np.inf, 0.0
        for a in range(q.lasts_s.shape[1]):
            if q.lasts_s[k, a] < np.inf:
                kind, chosen[k] = a % types, a
                order[kind, length[kind]] = k
                c = _cost(q, work, order[kind], length[kind] + 1, kind, chosen, start)
                if c - cost[kind] < more:
                    best, more, least = a, c - cost[kind], c
        kind, chosen[k] = best % types, best
        order[kind, length[kind]] = k
        length[kind] += 1
        cost[kind] = least
    unmoved = 0  # jobs in a row that are where they cost least
    for turn in range(SWEEPS * jobs):
        moved = _replace(q, work, alone_s, order, length, cost, chosen, start, tried, turn % jobs)
        unmoved = 1 if moved else unmoved + 1
        if unmoved == jobs:
            break
    for kind in range(types):
        _cost(q, work, order[kind], length[kind], kind, chosen, start)
    bound = 0.0
    for k in range(jobs):
        bound += (alone_s[k] + q.price_s[k]).min()
    return start, chosen, bound


@inner_allocating
def _opened(q):
    """What is free of each type while jobs are reserved, and work space.

    Of the y-th time of a type ``row_of[kind, y]`` is the row of ``free`` and ``falls[kind, y]`` whether less may be free on a node
    than just before. ``taken[i]`` are the GPUs of the i-th job reserved, by node; ``span[i]`` the times that it holds them, as
    numbers of the first and of the first behind, whether the latter was added for it, and ``falls`` of the former before.
    """
    jobs, types = q.lasts_s.shape[0], q.points.shape[0]
    room, width = q.at_s.shape[1] + jobs, q.free.shape[2]
    at_s, row_of = np.zeros((types, room)), np.zeros((types, room), np.int64)
    falls, free = np.zeros((types, room), np.bool_), np.zeros((types, room, width), np.int64)
    for kind in range(types):
        for y in range(q.points[kind]):
            at_s[kind, y], row_of[kind, y], free[kind, y] = q.at_s[kind, y], y, q.free[kind, y]
            falls[kind, y] = y > 0 and _falls(q.free[kind, y], q.free[kind, y - 1])
    low, taken, span = (
        np.empty(width - 1, np.int64),
        np.empty((jobs, width - 1), np.int64),
        np.empty((jobs, 4), np.int64),
    )
    return at_s, row_of, falls, free, low, taken, span


@inner_allocating
def _alone_s(q, work, chosen):
    """When each job would complete in each alternative, s from now, if no other were planned [K, A]; ∞: it may not be there."""
    alone_s = np.full(q.lasts_s.shape, np.inf)
    for k in range(q.lasts_s.shape[0]):
        for a in range(q.lasts_s.shape[1]):
            if q.lasts_s[k, a] < np.inf:
                kind, chosen[k] = a % q.points.shape[0], a
                start_s, points = _reserve(q, work, q.points[kind], 0, k, kind, chosen)
                points = _undo(work, points, 0, kind)
                alone_s[k, a] = start_s + q.lasts_s[k, a]
    return alone_s


@inlined
def _falls(free, before):
    for m in range(free.shape[0]):
        if free[m] < before[m]:
            return True
    return False


@inner_kernel
def _replace(q, work, alone_s, order, length, cost, chosen, start, tried, k):
    """Take out a job and put it where it costs least; whether it has moved."""
    types, before, was = q.points.shape[0], chosen[k], 0
    own = before % types
    while order[own, was] != k:
        was += 1
    length[own] -= 1
    for i in range(was, length[own]):
        order[own, i] = order[own, i + 1]
    without = _cost(q, work, order[own], length[own], own, chosen, start)
    best, position, more, least = before, was, cost[own] - without, cost[own]
    cost[own] = without
    for a in range(q.lasts_s.shape[1]):
        if q.lasts_s[k, a] == np.inf:
            continue
        kind, chosen[k] = a % types, a
        _insert(q, work, alone_s, order[kind], length[kind], k, kind, chosen, more + cost[kind], tried)
        for i in range(length[kind], -1, -1):
            if (a != before or i != was) and tried[i] - cost[kind] < more - GAIN * (abs(more) + 1.0):
                best, position, more, least = a, i, tried[i] - cost[kind], tried[i]
    kind, chosen[k] = best % types, best
    for i in range(length[kind], position, -1):
        order[kind, i] = order[kind, i - 1]
    order[kind, position] = k
    length[kind] += 1
    cost[kind] = least
    return best != before or position != was


@inner_kernel
def _insert(q, work, alone_s, order, length, k, kind, chosen, limit, costs):
    """Write the cost of the jobs of one type with ``k`` at each position in their order, ∞ for one that is above ``limit``."""
    rest = alone_s[k, chosen[k]] + q.price_s[k, chosen[k]]  # that cost at least this
    for i in range(length):
        rest += alone_s[order[i], chosen[order[i]]] + q.price_s[order[i], chosen[order[i]]]
    points, before, limit = q.points[kind], 0.0, limit + GAIN * abs(limit)
    costs[: length + 1] = np.inf
    i = 0  # the jobs before this position are reserved
    while before + rest <= limit:
        total, least, n = before, rest, i
        while n <= length and total + least <= limit:
            job = k if n == i else order[n - 1]
            start_s, points = _reserve(q, work, points, n, job, kind, chosen)
            total += start_s + q.lasts_s[job, chosen[job]]
            least -= alone_s[job, chosen[job]]
            n += 1
        if n > length:
            for m in range(length + 1):
                other = k if m == i else order[m - (m > i)]
                total += q.price_s[other, chosen[other]]
            costs[i] = total
        while n > i:
            n -= 1
            points = _undo(work, points, n, kind)
        if i == length:
            break
        start_s, points = _reserve(q, work, points, i, order[i], kind, chosen)
        before += start_s + q.lasts_s[order[i], chosen[order[i]]]
        rest -= alone_s[order[i], chosen[order[i]]]
        i += 1
    while i > 0:
        i -= 1
        points = _undo(work, points, i, kind)


@inner_kernel
def _cost(q, work, order, length, kind, chosen, start):
    """Cost of the jobs of one type in this order; writes their starts."""
    points, total = q.points[kind], 0.0
    for i in range(length):
        k = order[i]
        start[k], points = _reserve(q, work, points, i, k, kind, chosen)
        total += start[k] + q.lasts_s[k, chosen[k]]
    for i in range(length):
        total += q.price_s[order[i], chosen[order[i]]]
    for i in range(length - 1, -1, -1):
        points = _undo(work, points, i, kind)
    return total


@inner_kernel
def _reserve(q, work, points, number, k, kind, chosen):
    """Take a job's GPUs at the earliest time from which it fits; (that time, how often what is free changes now)."""
    at_s, row_of, falls, free, low = work[0][kind], work[1][kind], work[2][kind], work[3][kind], work[4]
    taken, span = work[5][number], work[6][number]
    last, lasts, gpus = free.shape[1] - 1, q.lasts_s[k, chosen[k]], q.gpus[k]
    i = x = 0
    while True:
        if i == points:
            raise RuntimeError("a job in the queue can never fit its pool")
        x = max(x, i)
        while x < points and (x == i or at_s[x] < at_s[i] + lasts) and free[row_of[x], last] >= gpus:
            x += 1
        if x < points and (x == i or at_s[x] < at_s[i] + lasts):
            i = x + 1  # whatever starts before this time lasts into it
            continue
        for m in range(last):
            low[m] = free[row_of[i], m]
        for y in range(i + 1, x):
            if falls[y]:  # elsewhere at least as much is free as before
                for m in range(last):
                    low[m] = min(low[m], free[row_of[y], m])
        if _choose(q.cut[k, chosen[k]], gpus, low, taken):
            break
        i += 1
    end = at_s[i] + lasts
    span[0], span[1], span[2], span[3] = i, x, x == points or at_s[x] > end, falls[i]
    if span[2]:
        for y in range(points, x, -1):
            at_s[y], row_of[y], falls[y] = at_s[y - 1], row_of[y - 1], falls[y - 1]
        at_s[x], row_of[x], falls[x] = end, points, False
        for m in range(last + 1):
            free[points, m] = free[row_of[x - 1], m]
        points += 1
    falls[i] = True
    _take(free, row_of, taken, i, x, -1)
    return at_s[i], points


@inner_kernel
def _undo(work, points, number, kind):
    """Release what the job reserved last has; how often what is free changes then."""
    at_s, row_of, falls, free = work[0][kind], work[1][kind], work[2][kind], work[3][kind]
    i, x, added, fell = work[6][number]
    _take(free, row_of, work[5][number], i, x, 1)
    falls[i] = fell
    if added:
        points -= 1
        for y in range(x, points):
            at_s[y], row_of[y], falls[y] = at_s[y + 1], row_of[y + 1], falls[y + 1]
    return points


@inlined
def _take(free, row_of, taken, i, x, sign):
    """Add a job's GPUs to what is free from the i-th time to before the x-th, or take them."""
    for m in range(taken.shape[0]):
        if taken[m] > 0:
            for y in range(i, x):
                free[row_of[y], m] += sign * taken[m]
                free[row_of[y], -1] += sign * taken[m]


@inlined
def _choose(cut, gpus, low, taken):
    """Write to ``taken`` the GPUs that a job gets of each node; whether it fits ``low``, what is free."""
    taken[:] = 0
    chunks = cut.full + (cut.rem > 0)
    for c in range(chunks):
        if cut.size > 0:
            chunk = cut.size if c < cut.full else cut.rem
            best = _tightest(low, taken, chunk)
        else:  # any chunks: the nodes with the most free to the full, the rest where it fits best
            chunk, best = gpus, _tightest(low, taken, gpus)
            if best < 0:
                best = _emptiest(low, taken)
        if best < 0 or low[best] == 0:
            return False
        taken[best] = min(chunk, low[best])
        gpus -= taken[best]
        if gpus == 0:
            return True
    return gpus == 0


@inlined
def _tightest(low, taken, chunk):
    """Of the nodes not taken that with the least free which holds the chunk; −1: none."""
    best = -1
    for m in range(low.shape[0]):
        if taken[m] == 0 and low[m] >= chunk and (best < 0 or low[m] < low[best]):
            best = m
    return best


@inlined
def _emptiest(low, taken):
    """Of the nodes not taken that with the most free; −1: none."""
    best = -1
    for m in range(low.shape[0]):
        if taken[m] == 0 and (best < 0 or low[m] > low[best]):
            best = m
    return best
