"""Conservative backfilling: every queued job has a reservation, and a job starts where its reservation is now.

With types ``joint`` and ``allox`` the order and the GPU types of the first jobs, but for those under an agreement or past their
maximum wait, are planned first (rltune.simulator.joint, rltune.simulator.allox).
"""

from __future__ import annotations

import numpy as np

from rltune.cluster.free import Free, change, needs
from rltune.cluster.search import EXCLUSIVE, find_on
from rltune.cluster.types import PLANNED
from rltune.kernels import MINUS_ONE, ONE, ZERO, allocating, inner_allocating, inner_kernel
from rltune.simulator.allox import matched
from rltune.simulator.joint import Question, search
from rltune.simulator.queue import drop_started, urgency
from rltune.simulator.releases import next_release, settle_late
from rltune.simulator.start import start_job
from rltune.simulator.state import POOL, RESERVE, sequence_of

KNOWN = np.dtype(
    [(name, np.int64) for name in ("shape", "gpus", "cpu", "mem")] + [("lasts", np.float64), ("begin_s", np.float64)]
)
"""A reservation that was sought: what of, for how long, and that there is none before ``begin_s``."""
SIZES, LENGTHS = 16, 32
"""Such searches are kept by GPUs (modulo SIZES) and the duration's power of two; those of other jobs overwrite them."""
LONGEST_S = 2.0 ** (LENGTHS - 1)
UNBOUND = np.int64(1 << 50)
"""More CPU thousandths or MB than there are."""
ROUNDING = 1e-9
"""What a sum of times may be off by, relative to it: a type is passed over only where it is worse by more."""


@allocating
def reserve_all(nodes, jobs, st):
    """In every sequence with RESERVE give the chosen job, the head, then the others of its queue the earliest reservation; start
    those of now.

    A profile holds what is expected to be free on every node of a pool from certain times on: now, the expected ends
    of running jobs, the ends of reservations. A job is reserved the first of these times from
    which an allocation, chosen by the rule on what is free throughout, lasts for its estimate. Where a job may be split, the estimate is that
    of a split one.
    """
    for s in range(st.status.shape[0]):
        if st.status[s].phase == RESERVE:
            seq = sequence_of(st, s)
            ranked = _ranked(seq)
            for p in range(nodes.pool.shape[0]):
                if st.options.sticky_head or p == seq.status.queue:
                    _plan_pool(nodes, jobs, seq, st.options, p, ranked)
            drop_started(jobs, seq, seq.status.queue, ZERO, seq.queue[seq.status.queue].len)
            seq.status.phase = POOL


@inner_allocating
def _ranked(seq):
    """The chosen job, the head, then the others of its queue in their order."""
    queue = seq.queue[seq.status.queue]
    ranked = np.empty(queue.len + 1, np.int64)
    ranked[0] = seq.status.chosen
    k = 1
    for i in range(queue.len):
        job = seq.waiting[queue.at + (seq.order[i] if seq.status.scored else i)]
        if job != seq.status.chosen:
            ranked[k] = job
            k += 1
    return ranked[:k]


@inner_allocating
def _plan_pool(nodes, jobs, seq, options, p, ranked):
    begin = nodes.pool[p].start
    plan, slots = _open(nodes, jobs, seq, options, p, ranked.shape[0])
    times, total, profile, spare = plan[0], plan[1], plan[2], plan[4]
    whole = options.rule == EXCLUSIVE
    # reservations are made again at every event: once nothing behind could start now, the rest need none
    fewest = np.empty((ranked.shape[0] + 1, total.shape[1] - 1), np.int64)
    _fewest(jobs, seq, p, ranked, fewest)
    kind_of = np.full(ranked.shape[0], -1, np.int64)  # GPU types that were planned
    planned = options.together == 0
    for r in range(ranked.shape[0]):
        if np.all(total[0, : total.shape[1] - 1] < fewest[r]):
            break
        if not planned and urgency(jobs, seq, ranked[r]) == 0:
            planned = True
            some = ranked[r : r + options.together]
            if some.shape[0] > 1:
                q = question(jobs, seq, options, some, plan, slots)
                start, kinds = matched(q) if options.allox else search(q)
                turn = np.argsort(start, kind="mergesort")
                some[:], kind_of[r : r + some.shape[0]] = some[turn], kinds[turn]
                _fewest(jobs, seq, p, ranked, fewest)
        job = ranked[r]
        j = seq.status.first + job
        row = jobs.row[j]
        if row.pool != p:
            continue
        if options.least and kind_of[r] < 0:
            kind, i, x, n, lasts = _least(nodes, jobs, seq, options, j, begin, plan, slots)
        else:
            lasts = 0.0
            for kind in range(jobs.cut.shape[1]):
                if jobs.cut[j, kind].full >= 0 and kind_of[r] in (MINUS_ONE, kind):
                    lasts = max(lasts, row.estimate_s * _slowest(jobs, options, j, kind))
            i, x, n = _earliest(nodes, jobs, seq, options, j, kind_of[r], begin, lasts, np.inf, plan, slots)
        if x == slots or times[x] > times[i] + lasts:
            for y in range(slots, x, -1):
                times[y], total[y] = times[y - 1], total[y - 1]
                profile[y] = profile[y - 1]
            times[x], total[x] = times[i] + lasts, total[x - 1]
            profile[x] = profile[x - 1]
            slots += 1
        for c in range(n):
            m = seq.place[c].node
            _add(nodes, jobs, j, whole, m, seq.place[c].gpus, begin, profile[i:x], MINUS_ONE)
            gpus = nodes.row[m].gpus if whole else seq.place[c].gpus
            for y in range(i, x):
                total[y, nodes.row[m].type] -= gpus
                total[y, -1] -= gpus
        if i == 0:
            start_job(nodes, jobs, seq, options, job, n)
            for c in range(n):  # the next isolating_best_fit sees what runs there now
                m = seq.place[c].node
                spare.row[m].multi_gpu_jobs = seq.free.row[m].multi_gpu_jobs


@inner_allocating
def _open(nodes, jobs, seq, options, p, more):
    """A pool's plan, with room for ``more`` reservations, and the number of its times."""
    settle_late(seq, p)
    begin = nodes.pool[p].start
    width, types = nodes.pool[p].stop - begin, jobs.cut.shape[1]
    most = seq.ends[p].due_len + seq.ends[p].late_len + more + 2
    times = np.empty(most, np.float64)
    profile = np.empty((most, options.resources, width), np.int64)
    slots = _profile(nodes, jobs, seq, options, p, times, profile)
    total = np.empty((most, types + 1), np.int64)  # free GPUs of the pool at each time, by type and, last, of all
    for x in range(slots):
        _count(nodes, begin, profile[x, 0], total[x])
    low = np.full((3, width), UNBOUND)
    # nodes of each type, counted from the pool's first, and, last, all
    index, count = np.empty((types + 1, width), np.int64), np.zeros(types + 1, np.int64)
    for m in range(width):
        for kind in (nodes.row[begin + m].type, types):
            index[kind, count[kind]] = m
            count[kind] += 1
    # a copy of what is free, to search on
    spare = Free(seq.free.row.copy(), seq.free.total.copy(), seq.free.count.copy(), seq.free.words.copy())
    known = np.zeros((types + 1, SIZES, LENGTHS), KNOWN)
    return (times, total, profile, low, spare, index, count, known), slots


@inner_allocating
def _fewest(jobs, seq, p, ranked, fewest):
    """Write, for each place of the ranking, the fewest GPUs that a job from there on asks for, by type."""
    fewest[-1] = 1 << 40
    for r in range(ranked.shape[0] - 1, -1, -1):
        j = seq.status.first + ranked[r]
        fewest[r] = fewest[r + 1]
        for kind in range(fewest.shape[1]):
            if jobs.row[j].pool == p and jobs.cut[j, kind].full >= 0:
                fewest[r, kind] = min(fewest[r, kind], jobs.row[j].gpus)


@allocating
def asked(nodes, jobs, st, s):
    """The Question that sequence ``s``, which is to RESERVE, asks of PLANNED jobs; of no jobs where it asks none."""
    seq = sequence_of(st, s)
    ranked, p = _ranked(seq), seq.status.queue
    plan, slots = _open(nodes, jobs, seq, st.options, p, ranked.shape[0])
    fewest = np.empty((ranked.shape[0] + 1, plan[1].shape[1] - 1), np.int64)
    _fewest(jobs, seq, p, ranked, fewest)
    r = ZERO
    while r < ranked.shape[0] and urgency(jobs, seq, ranked[r]) > 0:
        r += 1
    if np.all(plan[1][0, :-1] < fewest[r]):
        r = ranked.shape[0]
    return question(jobs, seq, st.options, ranked[r : r + PLANNED], plan, slots)


@inner_allocating
def question(jobs, seq, options, some, plan, slots):
    """What is to be planned together of some jobs of a sequence, all of one pool."""
    times, profile, index, count = plan[0], plan[2], plan[5], plan[6]
    types, jobs_n = jobs.cut.shape[1], some.shape[0]
    most = count[:types].max()
    at_s, points = np.zeros((types, slots)), np.zeros(types, np.int64)
    free = np.zeros((types, slots, most + 1), np.int64)
    for kind in range(types):
        for x in range(slots):
            changed = x == 0
            for k in range(count[kind]):
                changed = changed or profile[x, 0, index[kind, k]] != profile[x - 1, 0, index[kind, k]]
            if changed:
                at_s[kind, points[kind]] = times[x] - times[0]
                for k in range(count[kind]):
                    free[kind, points[kind], k] = profile[x, 0, index[kind, k]]
                free[kind, points[kind], most] = free[kind, points[kind], :most].sum()
                points[kind] += 1
    rows = seq.status.first + some
    lasts_s, price_s = np.full((jobs_n, types), np.inf), np.zeros((jobs_n, types))
    for k in range(jobs_n):
        for kind in range(types):
            cut, estimate_s = jobs.cut[rows[k], kind], jobs.row[rows[k]].estimate_s
            if cut.full >= 0:
                lasts_s[k, kind] = estimate_s * _slowest(jobs, options, rows[k], kind)
                price_s[k, kind] = cut.price * estimate_s
    return Question(at_s, points, free, jobs.row[rows].gpus, jobs.cut[rows], lasts_s, price_s)


@inner_allocating
def _least(nodes, jobs, seq, options, j, begin, plan, slots):
    """(Type, slot, the first slot behind, chunks in ``place``, seconds) of the allocation of the least expected completion, with
    its price.

    The fastest type is looked at first; another only as far as it could still be better.
    """
    times, estimate = plan[0], jobs.row[j].estimate_s
    best, first, last = MINUS_ONE, np.inf, MINUS_ONE
    found, behind, chunks, seconds = ZERO, ZERO, ZERO, 0.0
    for rank in range(jobs.cut.shape[1]):
        for kind in range(jobs.cut.shape[1]):
            cut = jobs.cut[j, kind]
            if cut.rank != rank or cut.full < 0:
                continue
            lasts, price = estimate * _slowest(jobs, options, j, kind), cut.price * estimate
            i, x, n = _earliest(nodes, jobs, seq, options, j, kind, begin, lasts, first - price, plan, slots)
            last = kind  # also without chunks: part of an allocation may be in ``place``
            if n == 0:
                continue
            ends = times[i] + lasts + price
            if ends < first or (ends == first and kind < best):
                best, first = kind, ends
                found, behind, chunks, seconds = i, x, n, lasts
    if last != best:  # another allocation is in ``place``
        found, behind, chunks = _earliest(nodes, jobs, seq, options, j, best, begin, seconds, np.inf, plan, slots)
    return best, found, behind, chunks, seconds


@inner_allocating
def _earliest(nodes, jobs, seq, options, j, kind, begin, lasts, most, plan, slots):
    """(Slot, the first slot behind, chunks in ``place``) of the earliest allocation that lasts so long; on one GPU type, or
    with a ``kind`` of −1 as the rule has it. No chunks where it would end well after ``most``."""
    times, total, profile, low, spare, index, count, known = plan
    row = jobs.row[j]
    length = np.int64(np.log2(min(max(lasts, 1.0), LONGEST_S)))
    same = known[kind, row.gpus % SIZES]
    i = _not_before(times, slots, same[: length + 1], row, kind, lasts) - 1
    while True:
        i = _enough(times, total[:, kind], slots, i + 1, lasts, jobs.row[j].gpus)
        if i == slots:
            raise RuntimeError("a job in the queue can never fit its pool")
        if times[i] + lasts > most + ROUNDING * abs(most):
            _keep(same[length], row, lasts, times[i])
            return i, i, ZERO
        for resource in range(options.resources):
            for k in range(count[kind]):
                m = index[kind, k]
                low[resource, m] = profile[i, resource, m]
        x = i + 1
        while x < slots and times[x] < times[i] + lasts:
            for resource in range(options.resources):
                for k in range(count[kind]):
                    m = index[kind, k]
                    low[resource, m] = min(low[resource, m], profile[x, resource, m])
            x += 1
        if options.extra == 0 and not _could(nodes, jobs, j, kind, options.rule, begin, low, index, count):
            continue
        for k in range(count[kind]):
            m = index[kind, k]
            have = spare.row[begin + m]
            change(nodes, spare, begin + m, low[0, m] - have.gpus, low[1, m] - have.cpu, low[2, m] - have.mem)
        n = find_on(nodes, jobs, spare, j, kind, options.rule, options.extra, seq.place)
        if n > 0:
            _keep(same[length], row, lasts, times[i])
            return i, x, n


@inner_kernel
def _not_before(times, slots, same, row, kind, lasts):
    """The first slot that a reservation may begin at, by those sought before for a job that is alike and lasts no longer:
    reservations only take away, so what did not fit then does not fit now."""
    begin_s = -np.inf
    for k in range(same.shape[0]):
        one = same[k]
        alike = one.gpus == row.gpus and one.cpu == row.cpu_milli and one.mem == row.mem_mb
        if alike and (kind >= 0 or one.shape == row.shape) and one.lasts <= lasts:
            begin_s = max(begin_s, one.begin_s)
    return np.searchsorted(times[:slots], begin_s)


@inner_kernel
def _keep(one, row, lasts, begin_s):
    one.shape, one.gpus, one.cpu, one.mem = row.shape, row.gpus, row.cpu_milli, row.mem_mb
    one.lasts, one.begin_s = lasts, begin_s


@inner_kernel
def _count(nodes, begin, free, total):
    """Sum the free GPUs of a pool's nodes by type and, last, of all."""
    total[:] = 0
    for i in range(free.shape[0]):
        total[nodes.row[begin + i].type] += free[i]
        total[-1] += free[i]


@inner_kernel
def _slowest(jobs, options, j, kind):
    """The most that a job's run time on a type may be over ``run_s``, for being on more nodes than strict."""
    cut = jobs.cut[j, kind]
    return cut.slow * max(1.0, cut.spread * options.multi_node_slowdown if options.splits else 1.0)


@inner_kernel
def _could(nodes, jobs, j, only, rule, begin, low, index, count):
    """Whether a strict allocation fits what is free (``low`` [3, nodes of the pool]), by counting nodes; on the type ``only``
    unless that is −1."""
    for kind in range(jobs.cut.shape[1]):
        cut = jobs.cut[j, kind]
        if cut.full < 0 or (only >= 0 and kind != only):
            continue
        if cut.size == 0:
            return True
        full = rest = 0
        for k in range(count[kind]):
            i = index[kind, k]
            m = begin + i
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
def _enough(times, total, slots, i, lasts, gpus):
    """The first time from ``i`` on from which so many GPUs of the pool stay free for so long; ``slots`` for none."""
    x = i
    while i < slots:
        x = max(x, i)
        while x < slots and (x == i or times[x] < times[i] + lasts):
            if total[x] < gpus:
                break
            x += 1
        if x == slots or total[x] >= gpus or x > i and times[x] >= times[i] + lasts:
            return i
        i = x + 1  # whatever starts before this time lasts into it
    return slots


@inner_allocating
def _profile(nodes, jobs, seq, options, p, times, profile):
    """What is free in a pool now, and from each expected end of a running job on; number of times."""
    begin, end = nodes.pool[p].start, nodes.pool[p].stop
    times[0] = seq.status.now
    for m in range(begin, end):
        profile[0, 0, m - begin] = seq.free.row[m].gpus
        if options.resources > 1:
            profile[0, 1, m - begin], profile[0, 2, m - begin] = seq.free.row[m].cpu, seq.free.row[m].mem
    slots = 1
    due = late = ZERO
    while True:
        job, time = next_release(seq, p, options.overrun, due, late)
        if job < 0:
            return slots
        run = seq.run[job]
        if run.late:
            late += 1
        else:
            due += 1
        if slots == 1 or time > times[slots - 1]:  # what is expected to end now is not free yet
            times[slots] = time
            profile[slots] = profile[slots - 1]
            slots += 1
        for c in range(run.at, run.at + run.len):
            _add(
                nodes,
                jobs,
                seq.status.first + job,
                options.rule == EXCLUSIVE,
                seq.chunk[c].node,
                seq.chunk[c].gpus,
                begin,
                profile[slots - 1 : slots],
                ONE,
            )


@inner_allocating
def _add(nodes, jobs, j, whole, m, gpus, begin, profile, sign):
    """Add a chunk to some times of a profile, or take it from them."""
    cpu, mem = needs(nodes, jobs, j, gpus, m)
    if whole:
        gpus, cpu, mem = nodes.row[m].gpus, nodes.row[m].cpu_milli, nodes.row[m].mem_mb
    profile[:, 0, m - begin] += sign * gpus
    if profile.shape[1] > 1:
        profile[:, 1, m - begin] += sign * cpu
        profile[:, 2, m - begin] += sign * mem
