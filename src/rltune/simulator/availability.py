"""What is expected to be free in a pool over time, and the earliest time from which a job fits.

A profile holds what is free on every node of a pool from certain times on: now, the expected ends of running jobs, the ends of
reservations. Each of its times is a *slot*, which lasts until the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rltune.cluster.free import Free, change, needs
from rltune.cluster.search import EXCLUSIVE, find_on
from rltune.kernels import MINUS_ONE, ONE, ZERO, inner_allocating, inner_kernel, record
from rltune.simulator.releases import next_release, settle_late

SOUGHT = record(int64="shape gpus cpu mem", float64="lasts begin_s")
"""A reservation that was sought: what of, for how long, and that there is none before ``begin_s``."""
SIZES, LENGTHS = 16, 32
"""Such searches are kept by GPUs (modulo SIZES) and the duration's power of two; those of other jobs overwrite them."""
LONGEST_S = 2.0 ** (LENGTHS - 1)
UNBOUND = np.int64(1 << 50)
"""More CPU thousandths or MB than there are."""
ROUNDING = 1e-9
"""What a sum of times may be off by, relative to it: a type is passed over only where it is worse by more."""


class Availability(NamedTuple):
    """The availability profile of a pool of M nodes, with room for X slots, on T GPU types.

    Nodes are counted from the pool's first. Of the resources GPUs, CPUs (thousandths) and memory (MB) it holds those that can
    keep a job from a node (``Options.resources``).
    """

    slots: np.ndarray  # [1] int64, how many there are
    begin_s: np.ndarray  # [X] float64, ascending
    free: np.ndarray  # [X, resources, M] int64
    total: np.ndarray  # [X, T + 1] int64, free GPUs by type and, last, of all
    low: np.ndarray  # [3, M] int64, work space: the least that is free on each node during a job
    spare: Free  # work space: the same, to search on
    node: np.ndarray  # [T + 1, M] int64, nodes of each type and, last, all
    nodes: np.ndarray  # [T + 1] int64, how many
    sought: np.ndarray  # [T + 1, SIZES, LENGTHS] SOUGHT


@inner_allocating
def availability_of(nodes, jobs, seq, options, p, more):
    """The profile of pool ``p`` with all running jobs and without reservations; there is room for ``more`` of these."""
    settle_late(seq, p)
    first = nodes.pool[p].start
    width, types = nodes.pool[p].stop - first, jobs.cut.shape[1]
    most = seq.ends[p].due_len + seq.ends[p].late_len + more + 2
    node, number = np.empty((types + 1, width), np.int64), np.zeros(types + 1, np.int64)
    for m in range(width):
        for kind in (nodes.row[first + m].type, types):
            node[kind, number[kind]] = m
            number[kind] += 1
    profile = Availability(
        np.ones(1, np.int64),
        np.empty(most, np.float64),
        np.empty((most, options.resources, width), np.int64),
        np.zeros((most, types + 1), np.int64),
        np.full((3, width), UNBOUND),
        Free(seq.free.row.copy(), seq.free.total.copy(), seq.free.count.copy(), seq.free.words.copy()),
        node,
        number,
        np.zeros((types + 1, SIZES, LENGTHS), SOUGHT),
    )
    _add_releases(nodes, jobs, seq, options, p, profile)
    return profile


@inner_kernel
def _add_releases(nodes, jobs, seq, options, p, profile):
    """Write what is free now, and from each expected end of a running job on."""
    first, free, total = nodes.pool[p].start, profile.free, profile.total
    profile.begin_s[0] = seq.status.now
    for i in range(free.shape[2]):
        row = seq.free.row[first + i]
        free[0, 0, i] = row.gpus
        total[0, nodes.row[first + i].type] += row.gpus
        total[0, -1] += row.gpus
        if options.resources > 1:
            free[0, 1, i], free[0, 2, i] = row.cpu, row.mem
    whole = options.rule == EXCLUSIVE
    x = due = late = ZERO
    while True:
        job, time = next_release(seq, p, options.overrun, due, late)
        if job < 0:
            break
        run = seq.run[job]
        if run.late:
            late += 1
        else:
            due += 1
        if x == 0 or time > profile.begin_s[x]:  # what is expected to end now is not free yet
            x += 1
            profile.begin_s[x] = time
            _copy_slot(profile, x - 1, x)
        for c in range(run.at, run.at + run.len):
            chunk = seq.chunk[c]
            _add(nodes, jobs, profile, seq.status.first + job, whole, chunk.node, chunk.gpus, first, x, x + 1, ONE)
    profile.slots[0] = x + 1


@inner_kernel
def _add(nodes, jobs, profile, j, whole, m, gpus, first, i, x, sign):
    """Add a chunk to what is free from slot ``i`` to before slot ``x``, or take it."""
    cpu, mem = needs(nodes, jobs, j, gpus, m)
    if whole:
        gpus, cpu, mem = nodes.row[m].gpus, nodes.row[m].cpu_milli, nodes.row[m].mem_mb
    for y in range(i, x):
        profile.free[y, 0, m - first] += sign * gpus
        profile.total[y, nodes.row[m].type] += sign * gpus
        profile.total[y, -1] += sign * gpus
        if profile.free.shape[1] > 1:
            profile.free[y, 1, m - first] += sign * cpu
            profile.free[y, 2, m - first] += sign * mem


@inner_kernel
def _copy_slot(profile, y, x):
    """Make slot ``x`` like slot ``y``, but for its beginning."""
    for resource in range(profile.free.shape[1]):
        for m in range(profile.free.shape[2]):
            profile.free[x, resource, m] = profile.free[y, resource, m]
    for kind in range(profile.total.shape[1]):
        profile.total[x, kind] = profile.total[y, kind]


@inner_kernel
def take_slots(nodes, jobs, seq, options, j, i, x, lasts, n, profile):
    """Take the ``n`` chunks in ``place`` of job ``j`` from slot ``i`` on, for ``lasts`` seconds, to before slot ``x``; where
    none begins at its end, one does now."""
    begin_s, slots, end_s = profile.begin_s, profile.slots[0], profile.begin_s[i] + lasts
    if x == slots or begin_s[x] > end_s:
        for y in range(slots, x, -1):
            begin_s[y] = begin_s[y - 1]
            _copy_slot(profile, y - 1, y)
        begin_s[x] = end_s
        _copy_slot(profile, x - 1, x)
        profile.slots[0] += 1
    first, whole = nodes.pool[jobs.row[j].pool].start, options.rule == EXCLUSIVE
    for c in range(n):
        _add(nodes, jobs, profile, j, whole, seq.place[c].node, seq.place[c].gpus, first, i, x, MINUS_ONE)


@inner_kernel
def earliest(nodes, jobs, seq, options, j, kind, lasts, most, profile):
    """(Slot, the first slot behind, chunks in ``place``) of the earliest allocation that lasts so long; on one GPU type, or
    with a ``kind`` of −1 as the rule has it. No chunks where it would end well after ``most``."""
    begin_s, free, low, spare = profile.begin_s, profile.free, profile.low, profile.spare
    node = profile.node[kind, : profile.nodes[kind]]
    row, slots, first = jobs.row[j], profile.slots[0], nodes.pool[jobs.row[j].pool].start
    length = np.int64(np.log2(min(max(lasts, 1.0), LONGEST_S)))
    sought = profile.sought[kind, row.gpus % SIZES]
    i = _not_before(begin_s[:slots], sought[: length + 1], row, kind, lasts) - 1
    while True:
        i = _enough(begin_s, profile.total[:, kind], slots, i + 1, lasts, row.gpus)
        if i == slots:
            raise RuntimeError("a job in the queue can never fit its pool")
        if begin_s[i] + lasts > most + ROUNDING * abs(most):
            _keep(sought[length], row, lasts, begin_s[i])
            return i, i, ZERO
        for resource in range(options.resources):
            for m in node:
                low[resource, m] = free[i, resource, m]
        x = i + 1
        while x < slots and begin_s[x] < begin_s[i] + lasts:
            for resource in range(options.resources):
                for m in node:
                    low[resource, m] = min(low[resource, m], free[x, resource, m])
            x += 1
        if options.extra == 0 and not _could(nodes, jobs, j, kind, options.rule, first, profile):
            continue
        for m in node:
            have = spare.row[first + m]
            change(nodes, spare, first + m, low[0, m] - have.gpus, low[1, m] - have.cpu, low[2, m] - have.mem)
        n = find_on(nodes, jobs, spare, j, kind, options.rule, options.extra, seq.place)
        if n > 0:
            _keep(sought[length], row, lasts, begin_s[i])
            return i, x, n


@inner_kernel
def _not_before(begin_s, sought, row, kind, lasts):
    """The first slot that a reservation may begin with, by those sought before for a job that is alike and lasts no longer:
    reservations only take away, so what did not fit then does not fit now."""
    earliest_s = -np.inf
    for k in range(sought.shape[0]):
        one = sought[k]
        alike = one.gpus == row.gpus and one.cpu == row.cpu_milli and one.mem == row.mem_mb
        if alike and (kind >= 0 or one.shape == row.shape) and one.lasts <= lasts:
            earliest_s = max(earliest_s, one.begin_s)
    return np.searchsorted(begin_s, earliest_s)


@inner_kernel
def _keep(one, row, lasts, begin_s):
    one.shape, one.gpus, one.cpu, one.mem = row.shape, row.gpus, row.cpu_milli, row.mem_mb
    one.lasts, one.begin_s = lasts, begin_s


@inner_kernel
def _could(nodes, jobs, j, only, rule, first, profile):
    """Whether a strict allocation fits ``low``, by counting nodes; on the type ``only`` unless that is −1."""
    low = profile.low
    for kind in range(jobs.cut.shape[1]):
        cut = jobs.cut[j, kind]
        if cut.full < 0 or (only >= 0 and kind != only):
            continue
        if cut.size == 0:
            return True
        full = rest = 0
        for k in range(profile.nodes[kind]):
            i = profile.node[kind, k]
            m = first + i
            if low[0, i] == 0:
                continue
            if rule == EXCLUSIVE and low[0, i] < nodes.row[m].gpus:
                continue
            cpu, mem = needs(nodes, jobs, j, 1, m)
            most = low[0, i]
            if cut.rem > 0 and most >= cut.rem and low[1, i] >= cut.rem * cpu and low[2, i] >= cut.rem * mem:
                rest += 1
            if cut.full > 0 and most >= cut.size and low[1, i] >= cut.size * cpu and low[2, i] >= cut.size * mem:
                full += 1
            if full >= cut.full and (cut.rem == 0 or rest > cut.full):
                return True
    return False


@inner_kernel
def _enough(begin_s, total, slots, i, lasts, gpus):
    """The first time from ``i`` on from which so many GPUs of the pool stay free for so long; ``slots`` for none."""
    x = i
    while i < slots:
        x = max(x, i)
        while x < slots and (x == i or begin_s[x] < begin_s[i] + lasts):
            if total[x] < gpus:
                break
            x += 1
        if x == slots or total[x] >= gpus or x > i and begin_s[x] >= begin_s[i] + lasts:
            return i
        i = x + 1  # whatever starts before this time lasts into it
    return slots
