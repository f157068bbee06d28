"""What is expected to be free in a pool over time, and the earliest time from which a job fits.

A profile holds what is free on every node of a pool from certain times on: now, the expected ends of running jobs, the ends of
reservations. Each of its times is a *slot*, which lasts until the next.
"""

from typing import NamedTuple

import numpy as np

from rltune.cluster.free import Free, change, needs
from rltune.cluster.search import EXCLUSIVE, find_on
from rltune.kernels import MINUS_ONE, ONE, ZERO, inlined, inner_allocating, inner_kernel, record
from rltune.simulator.releases import next_release, update_late_jobs
from rltune.simulator.state import RESERVE, sequence_of

SOUGHT = record(int64="shape gpus cpu mem plan")
"""What earlier searches for reservations asked for, and in which profile."""
SIZES, LENGTHS = 16, 32
"""Searches are kept by GPUs (modulo SIZES) and the duration's power of two; later ones overwrite earlier ones."""
LONGEST_S = 2.0 ** (LENGTHS - 1)
UNBOUND = np.int32(1 << 30)
"""More CPU thousandths or MB than there are."""
NOT, YES, UNKNOWN = range(3)
"""Whether an allocation fits, or only trying tells."""
ROUNDING = 1e-9
"""What a sum of times may be off by, relative to it: a type is passed over only where it is worse by more."""


class Availability(NamedTuple):
    """The availability profile of a pool, with room for X slots, pools of up to M nodes, T GPU types and N nodes in all.

    Nodes stand in the order of their GPU types, so that those of one are next to each other. Of the resources GPUs, CPUs (thousandths)
    and memory (MB) it holds those that can keep a job from a node (``Options.resources``).
    """

    slots: np.ndarray  # [1] int64, how many there are
    begin_s: np.ndarray  # [X] float64, ascending
    row_of: np.ndarray  # [X] int64, the row of ``free`` of each slot
    free: np.ndarray  # [X, resources, M] int32
    falls: np.ndarray  # [X] int64, GPU types (a bit each) on which less may be free on a node than in the slot before …
    rises: np.ndarray  # [X] int64, … and those on which more may be
    total: np.ndarray  # [T + 1, X] int64, free GPUs by type and, last, of all, in each slot
    low: np.ndarray  # [3, M] int32, work space: the least that is free on each node during a job
    spare: Free  # work space: the same, to search on
    node: np.ndarray  # [N] int64, nodes by pool and type
    index: np.ndarray  # [N] int64, of each node, its index among those of its pool in this order
    begin: np.ndarray  # [pools, T + 1] int64, the first node of each type in it; last, the pool's number of nodes
    sought: np.ndarray  # [2 · T + 1, SIZES] SOUGHT; of each type strict, of each with more nodes, of any
    tried: np.ndarray  # [2 · T + 1, SIZES, 2, LENGTHS] float64, the duration and a time before which none is possible
    plan: np.ndarray  # [1] int64, counts the profiles made here


@inner_allocating
def work_space(nodes, jobs, st):
    """An Availability with room for all sequences with RESERVE, to be filled by :func:`fill`."""
    most = width = 0
    for s in range(st.status.shape[0]):
        status = st.status[s]
        if status.phase == RESERVE:
            most = max(most, status.running + status.arrived - status.started + 3)
    pools, types = nodes.pool.shape[0], jobs.cut.shape[1]
    node, index = np.empty(nodes.row.shape[0], np.int64), np.empty(nodes.row.shape[0], np.int64)
    begin = np.zeros((pools, types + 1), np.int64)
    for p in range(pools):
        first, k = nodes.pool[p].start, 0
        for kind in range(types):
            begin[p, kind] = k
            for m in range(first, nodes.pool[p].stop):
                if nodes.row[m].type == kind:
                    node[first + k], index[m] = m, k
                    k += 1
        begin[p, types] = k
        width = max(width, k)
    free = sequence_of(st, 0).free
    return Availability(
        np.zeros(1, np.int64),
        np.empty(most, np.float64),
        np.empty(most, np.int64),
        np.empty((most, st.options.resources, width), np.int32),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty((types + 1, most), np.int64),
        np.full((3, width), UNBOUND, np.int32),
        Free(free.row.copy(), free.total.copy(), free.count.copy(), free.words.copy()),
        node,
        index,
        begin,
        np.zeros((2 * types + 1, SIZES), SOUGHT),
        np.empty((2 * types + 1, SIZES, 2, LENGTHS)),
        np.zeros(1, np.int64),
    )


@inner_kernel
def fill(nodes, jobs, seq, options, p, profile):
    """Write the profile of pool ``p`` with all running jobs and without reservations."""
    update_late_jobs(seq, p)
    profile.plan[0] += 1
    first, types, total = nodes.pool[p].start, jobs.cut.shape[1], profile.total
    for kind in range(types + 1):
        total[kind, 0] = 0
    profile.begin_s[0], profile.row_of[0] = seq.status.now, 0
    profile.falls[0] = profile.rises[0] = 0
    for k in range(profile.begin[p, types]):
        m = profile.node[first + k]
        row = seq.free.row[m]
        profile.free[0, 0, k] = row.gpus
        total[nodes.row[m].type, 0] += row.gpus
        total[types, 0] += row.gpus
        if options.resources > 1:
            profile.free[0, 1, k], profile.free[0, 2, k] = row.cpu, row.mem
        profile.spare.row[m].multi_gpu_jobs = row.multi_gpu_jobs
    whole = options.rule == EXCLUSIVE
    x = due = late = ZERO
    while True:
        job, time, due, late = next_release(seq, p, options.overrun, due, late)
        if job < 0:
            break
        run = seq.run[job]
        if x == 0 or time > profile.begin_s[x]:  # what is expected to end now is not free yet
            x += 1
            profile.begin_s[x], profile.row_of[x] = time, x
            profile.falls[x] = profile.rises[x] = 0
            _copy(profile, x - 1, x)
        for c in range(run.at, run.at + run.len):
            chunk = seq.chunk[c]
            _add(nodes, jobs, profile, seq.status.first + job, whole, chunk.node, chunk.gpus, x, x + 1, ONE)
            profile.rises[x] |= ONE << nodes.row[chunk.node].type
    profile.slots[0] = x + 1


@inner_kernel
def _add(nodes, jobs, profile, j, whole, m, gpus, i, x, sign):
    """Add a chunk to what is free from slot ``i`` to before slot ``x``, or take it."""
    cpu, mem = needs(nodes, jobs, j, gpus, m)
    if whole:
        gpus, cpu, mem = nodes.row[m].gpus, nodes.row[m].cpu_milli, nodes.row[m].mem_mb
    k, kind, last = profile.index[m], nodes.row[m].type, profile.total.shape[0] - 1
    for y in range(i, x):
        row = profile.row_of[y]
        profile.free[row, 0, k] += sign * gpus
        profile.total[kind, y] += sign * gpus
        profile.total[last, y] += sign * gpus
        if profile.free.shape[1] > 1:
            profile.free[row, 1, k] += sign * cpu
            profile.free[row, 2, k] += sign * mem


@inner_kernel
def _copy(profile, y, x):
    """Make what is free in slot ``x`` like that in slot ``y``."""
    for resource in range(profile.free.shape[1]):
        _set(profile.free[profile.row_of[x], resource], profile.free[profile.row_of[y], resource])
    for kind in range(profile.total.shape[0]):
        profile.total[kind, x] = profile.total[kind, y]


@inner_kernel
def take_slots(nodes, jobs, seq, options, j, i, x, lasts, n, profile):
    """Take the ``n`` chunks in ``place`` of job ``j`` from slot ``i`` on, for ``lasts`` seconds, to before slot ``x``; where
    none begins at its end, one does now."""
    begin_s, row_of, falls, rises, total = profile.begin_s, profile.row_of, profile.falls, profile.rises, profile.total
    slots, end_s = profile.slots[0], begin_s[i] + lasts
    if x == slots or begin_s[x] > end_s:
        for y in range(slots, x, -1):
            begin_s[y], row_of[y], falls[y], rises[y] = begin_s[y - 1], row_of[y - 1], falls[y - 1], rises[y - 1]
        for kind in range(total.shape[0]):
            for y in range(slots, x, -1):
                total[kind, y] = total[kind, y - 1]
        begin_s[x], row_of[x], falls[x], rises[x] = end_s, slots, 0, 0
        _copy(profile, x - 1, x)
        profile.slots[0] += 1
    whole = options.rule == EXCLUSIVE
    for c in range(n):
        _add(nodes, jobs, profile, j, whole, seq.place[c].node, seq.place[c].gpus, i, x, MINUS_ONE)
        kind = ONE << nodes.row[seq.place[c].node].type
        falls[i] |= kind
        rises[x] |= kind


@inlined
def earliest(nodes, jobs, seq, options, j, kind, extra, lasts, most, profile):
    """(Slot, the first slot after it, whether there is one) of the earliest allocation that lasts so long; on one GPU type, or
    with a ``kind`` of −1 as the rule has it, on up to ``extra`` nodes more than strict. None where it would end well after
    ``most``.

    What does not fit in a slot fits in a later one only from where more is free on the type.
    """
    begin_s, row, slots = profile.begin_s, jobs.row[j], profile.slots[0]
    length = np.int64(np.log2(min(max(lasts, 1.0), LONGEST_S)))
    asked = kind + jobs.cut.shape[1] if kind >= 0 and extra > 0 else kind
    sought, tried = profile.sought[asked, row.gpus % SIZES], profile.tried[asked, row.gpus % SIZES]
    mine = ONE << kind if kind >= 0 else MINUS_ONE
    i = _not_before(begin_s[:slots], sought, tried, row, kind, lasts, length, profile.plan[0])
    while True:
        i, x = _enough(begin_s, profile.total[kind], slots, i, lasts, row.gpus)
        if i == slots:
            raise RuntimeError("a job in the queue can never fit its pool")
        tried[0, length], tried[1, length] = lasts, begin_s[i]
        if begin_s[i] + lasts > most + ROUNDING * abs(most):
            return i, i, False
        free_during(jobs, options, j, kind, i, x, profile)
        fits = UNKNOWN if extra > 0 else _fits(nodes, jobs, j, kind, options.rule, profile)
        if fits == YES or (fits == UNKNOWN and allocate(nodes, jobs, seq, options, j, kind, extra, profile) > 0):
            return i, x, True
        i += 1
        while i < slots and profile.rises[i] & mine == 0:
            i += 1


@inner_kernel
def free_during(jobs, options, j, kind, i, x, profile):
    """Write to ``low`` what is free on a type's nodes from slot ``i`` to before slot ``x``."""
    here, stop = _nodes_of(jobs, j, kind, profile)
    free, low = profile.free[:, :, here:stop], profile.low[:, here:stop]
    mine = ONE << kind if kind >= 0 else MINUS_ONE
    for resource in range(options.resources):
        _set(low[resource], free[profile.row_of[i], resource])
    for y in range(i + 1, x):
        if profile.falls[y] & mine:  # elsewhere at least as much is free as before
            for resource in range(options.resources):
                _lower(low[resource], free[profile.row_of[y], resource])


@inlined
def _nodes_of(jobs, j, kind, profile):
    """The first node of a type, or with −1 of all, in the order of the job's pool, and the first after them."""
    begin = profile.begin[jobs.row[j].pool]
    return (begin[kind], begin[kind + 1]) if kind >= 0 else (ZERO, begin[-1])


@inner_kernel
def allocate(nodes, jobs, seq, options, j, kind, extra, profile):
    """Write the chunks of an allocation on what is free in ``low`` to ``place``; their number."""
    spare, first = profile.spare, nodes.pool[jobs.row[j].pool].start
    here, stop = _nodes_of(jobs, j, kind, profile)
    for k in range(here, stop):
        m = profile.node[first + k]
        have, low = spare.row[m], profile.low[:, k]
        change(nodes, spare, m, low[0] - have.gpus, low[1] - have.cpu, low[2] - have.mem)
    return find_on(nodes, jobs, spare, j, kind, options.rule, extra, seq.place)


@inlined
def _set(row, other):
    for k in range(row.shape[0]):
        row[k] = other[k]


@inlined
def _lower(low, other):
    for k in range(low.shape[0]):
        low[k] = min(low[k], other[k])


@inner_kernel
def _not_before(begin_s, sought, tried, row, kind, lasts, length, plan):
    """The first slot in which a reservation may begin, by earlier searches for equal requests that last no longer: reservations
    only take resources, so what did not fit then does not fit now. Where others were searched for, they are forgotten."""
    alike = sought.gpus == row.gpus and sought.cpu == row.cpu_milli and sought.mem == row.mem_mb
    if sought.plan != plan or not alike or (kind < 0 and sought.shape != row.shape):
        sought.shape, sought.gpus, sought.cpu, sought.mem = row.shape, row.gpus, row.cpu_milli, row.mem_mb
        sought.plan = plan
        for k in range(tried.shape[1]):
            tried[1, k] = -np.inf
        return ZERO
    earliest_s = tried[1, length] if tried[0, length] <= lasts else -np.inf
    for k in range(length):
        earliest_s = max(earliest_s, tried[1, k])
    return np.searchsorted(begin_s, earliest_s)


@inlined
def _fits(nodes, jobs, j, only, rule, profile):
    """Whether (YES, NOT, UNKNOWN) a strict allocation fits ``low``, by counting nodes; on the type ``only`` unless that is −1."""
    low, first = profile.low, nodes.pool[jobs.row[j].pool].start
    for kind in range(jobs.cut.shape[1]):
        cut = jobs.cut[j, kind]
        if cut.full < 0 or (only >= 0 and kind != only):
            continue
        if cut.size == 0:
            return UNKNOWN
        full = rest = 0
        for i in range(profile.begin[jobs.row[j].pool, kind], profile.begin[jobs.row[j].pool, kind + 1]):
            m = profile.node[first + i]
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
                return YES
    return NOT


@inner_kernel
def _enough(begin_s, total, slots, i, lasts, gpus):
    """The first slot from ``i`` on from whose beginning so many GPUs stay free for so long, ``slots`` for none, and the first
    slot after that."""
    while i < slots:
        x, end_s = i, begin_s[i] + lasts
        while x < slots and (x == i or begin_s[x] < end_s) and total[x] >= gpus:
            x += 1
        if x == slots or (x > i and begin_s[x] >= end_s):
            return i, x
        i = x + 1  # whatever starts before this time lasts into it
    return slots, slots
