"""Conservative backfilling: every queued job has a reservation, and a job starts where its reservation is now.

With types ``joint`` and ``allox`` the order and the GPU types of the first jobs, but for those under an agreement or past their
maximum wait, are planned first (rltune.simulator.joint, rltune.simulator.allox).

Jobs whose completion is planned choose among *alternatives*: the cluster's T GPU types on as few nodes as possible and, where the
locality allows more, as many again on up to ``extra`` more. Alternative a is of type a mod T.
"""

import numpy as np

from rltune.cluster.fit import CUT
from rltune.cluster.search import strict_nodes
from rltune.cluster.types import MATCHED, PLANNED
from rltune.kernels import MINUS_ONE, ZERO, allocating, inlined, inner_allocating, inner_kernel
from rltune.simulator.allox import matched
from rltune.simulator.availability import allocate, earliest, fill, free_during, take_slots, work_space
from rltune.simulator.contention import split_slowdown
from rltune.simulator.joint import Question, search
from rltune.simulator.queue import drop_started, urgency
from rltune.simulator.start import start_job
from rltune.simulator.state import POOL, RESERVE, sequence_of


@allocating
def reserve_all(nodes, jobs, st):
    """In every sequence with RESERVE give the chosen job, the head, then the others of its queue the earliest reservation; start
    those of now.

    A job is reserved the first time of the profile from which an allocation, chosen by the rule on what is free throughout, stays free
    for as long as the job would run on its slowest type, split where it may be; it holds it for as long as it runs there. Where
    completions are planned: the allocation of its alternative.
    """
    profile = work_space(nodes, jobs, st)
    for s in range(st.status.shape[0]):
        if st.status[s].phase == RESERVE:
            seq = sequence_of(st, s)
            ranked = _ranked(seq)
            for p in range(nodes.pool.shape[0]):
                if st.options.sticky_head or p == seq.status.queue:
                    unplanned = np.full(ranked.shape[0], -1, np.int64)
                    _plan_pool(nodes, jobs, seq, st.options, p, ranked, unplanned, profile)
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
def _plan_pool(nodes, jobs, seq, options, p, ranked, chosen, profile):
    """Reserve for the jobs of a pool in the order ``ranked``, each in its alternative ``chosen``; −1: in any. A plan overwrites both."""
    fill(nodes, jobs, seq, options, p, profile)
    # reservations are made again at every event: once nothing behind could start now, the rest need none
    fewest = _fewest(jobs, seq, p, ranked)
    planned = options.together == 0
    for r in range(ranked.shape[0]):
        if not options.whole and _none_fits(profile, fewest[r]):
            break
        if not planned and urgency(jobs, seq, ranked[r]) == 0:
            planned = True
            some = ranked[r : r + options.together]
            if some.shape[0] > 1:
                q = question(jobs, seq, options, some, p, profile)
                start, alternatives = matched(q) if options.together == MATCHED else search(q)[:2]
                turn = np.argsort(start, kind="mergesort")
                some[:], chosen[r : r + some.shape[0]] = some[turn], alternatives[turn]
                fewest = _fewest(jobs, seq, p, ranked)
        job = ranked[r]
        j = seq.status.first + job
        if jobs.row[j].pool != p:
            continue
        if options.least:
            i, x, a, lasts = _least(nodes, jobs, seq, options, j, chosen[r], profile)
            kind, extra = a % jobs.cut.shape[1], options.extra if a >= jobs.cut.shape[1] else ZERO
            free_during(jobs, options, j, kind, i, x, profile)
            n = allocate(nodes, jobs, seq, options, j, kind, extra, profile)
        else:
            i, x, kind = _soonest(nodes, jobs, seq, options, j, profile)
            n = allocate(nodes, jobs, seq, options, j, kind, options.extra, profile)
            m = seq.place[0].node
            slow = jobs.cut[j, nodes.row[m].type].slow * split_slowdown(nodes, jobs, options, j, m, n)
            lasts = jobs.row[j].estimate_s * slow
            while x > i + 1 and profile.begin_s[x - 1] >= profile.begin_s[i] + lasts:
                x -= 1
        take_slots(nodes, jobs, seq, options, j, i, x, lasts, n, profile)
        seq.run[job].planned = nodes.row[seq.place[0].node].type
        if i == 0:
            start_job(nodes, jobs, seq, options, job, n)
            for c in range(n):  # the next isolating_best_fit sees what runs there now
                m = seq.place[c].node
                profile.spare.row[m].multi_gpu_jobs = seq.free.row[m].multi_gpu_jobs


@inner_allocating
def _fewest(jobs, seq, p, ranked):
    """The fewest GPUs that a job from each rank on asks for, by type [ranks + 1, types]."""
    fewest = np.full((ranked.shape[0] + 1, jobs.cut.shape[1]), 1 << 40)
    for r in range(ranked.shape[0] - 1, -1, -1):
        j = seq.status.first + ranked[r]
        fewest[r] = fewest[r + 1]
        for kind in range(fewest.shape[1]):
            if jobs.row[j].pool == p and jobs.cut[j, kind].full >= 0:
                fewest[r, kind] = min(fewest[r, kind], jobs.row[j].gpus)
    return fewest


@inlined
def _none_fits(profile, fewest):
    """Whether on no type so many GPUs, ``fewest`` by type, are free now."""
    for kind in range(fewest.shape[0]):
        if profile.total[kind, 0] >= fewest[kind]:
            return False
    return True


@allocating
def question_of(nodes, jobs, st, s):
    """The Question that sequence ``s``, which is to RESERVE, asks of PLANNED jobs; of no jobs where it asks none."""
    seq = sequence_of(st, s)
    ranked, p = _ranked(seq), seq.status.queue
    profile = work_space(nodes, jobs, st)
    fill(nodes, jobs, seq, st.options, p, profile)
    r = ZERO
    while r < ranked.shape[0] and urgency(jobs, seq, ranked[r]) > 0:
        r += 1
    if _none_fits(profile, _fewest(jobs, seq, p, ranked)[r]):
        r = ranked.shape[0]
    return question(jobs, seq, st.options, ranked[r : r + PLANNED], p, profile)


@inner_allocating
def question(jobs, seq, options, some, p, profile):
    """What is to be planned together of some jobs of a sequence, all of one pool."""
    begin_s, begin, slots = profile.begin_s, profile.begin[p], profile.slots[0]
    types, jobs_n = jobs.cut.shape[1], some.shape[0]
    most = np.diff(begin).max()
    at_s, points = np.zeros((types, slots)), np.zeros(types, np.int64)
    free = np.zeros((types, slots, most + 1), np.int64)
    for kind in range(types):
        gpus = profile.free[:, 0, begin[kind] : begin[kind + 1]]
        for x in range(slots):
            row, before = profile.row_of[x], profile.row_of[max(x - 1, 0)]
            if x == 0 or _differ(gpus[row], gpus[before]):
                at_s[kind, points[kind]] = begin_s[x] - begin_s[0]
                free[kind, points[kind], : gpus.shape[1]] = gpus[row]
                free[kind, points[kind], most] = profile.total[kind, x]
                points[kind] += 1
    rows, alternatives = seq.status.first + some, _alternatives(jobs, options)
    lasts_s, price_s = np.empty((jobs_n, alternatives)), np.empty((jobs_n, alternatives))
    cut = np.empty((jobs_n, alternatives), CUT)
    for k in range(jobs_n):
        for a in range(alternatives):
            cut[k, a] = jobs.cut[rows[k], a % types]
            lasts_s[k, a], price_s[k, a] = _expected(jobs, options, rows[k], a)
            if a >= types:  # any chunks on so many nodes
                chunks = strict_nodes(jobs, rows[k], a - types) + options.extra
                cut[k, a].size, cut[k, a].full, cut[k, a].rem = 0, min(chunks, jobs.row[rows[k]].gpus), 0
    return Question(at_s, points, free, jobs.row[rows].gpus, cut, lasts_s, price_s)


@inlined
def _differ(ours, others):
    for k in range(ours.shape[0]):
        if ours[k] != others[k]:
            return True
    return False


@inner_kernel
def _soonest(nodes, jobs, seq, options, j, profile):
    """(Slot, the first slot after it, type) of the earliest allocation that could last as long as on the slowest type. The type is
    −1 where there are several."""
    lasts, kinds, only = 0.0, ZERO, MINUS_ONE
    for kind in range(jobs.cut.shape[1]):
        if jobs.cut[j, kind].full >= 0:
            lasts = max(lasts, jobs.row[j].estimate_s * _slowest(jobs, options, j, kind))
            kinds, only = kinds + 1, kind
    only = only if kinds == 1 else MINUS_ONE
    i, x, _ = earliest(nodes, jobs, seq, options, j, only, options.extra, lasts, np.inf, profile)
    return i, x, only


@inner_kernel
def _least(nodes, jobs, seq, options, j, planned, profile):
    """(Slot, the first slot after it, alternative, seconds) of the allocation of the least expected completion, with its price; of
    the alternative ``planned``, or with −1 of any.

    The fastest type is looked at first; another only as far as it could still be better.
    """
    begin_s, types = profile.begin_s, jobs.cut.shape[1]
    best, first, seconds = MINUS_ONE, np.inf, 0.0
    found, behind = ZERO, ZERO
    for rank in range(types):
        for a in range(_alternatives(jobs, options)):
            if jobs.cut[j, a % types].rank != rank or planned not in (MINUS_ONE, a):
                continue
            lasts, price = _expected(jobs, options, j, a)
            if lasts == np.inf:
                continue
            extra = options.extra if a >= types else ZERO
            i, x, fits = earliest(nodes, jobs, seq, options, j, a % types, extra, lasts, first - price, profile)
            ends = begin_s[i] + lasts + price
            if fits and (ends < first or (ends == first and a < best)):
                best, first, seconds = a, ends, lasts
                found, behind = i, x
    return found, behind, best, seconds


@inlined
def _alternatives(jobs, options):
    return jobs.cut.shape[1] * (2 if options.extra > 0 else 1)


@inner_kernel
def _expected(jobs, options, j, a):
    """Run time of a job in an alternative, by its estimate, and what that counts besides, s; ∞: it cannot be there.

    Its GPU time has a price, and a second that it runs longer on more nodes counts ``split_worth`` times. More nodes never
    count as faster: a strict allocation is taken where one fits.
    """
    types, estimate_s = jobs.cut.shape[1], jobs.row[j].estimate_s
    cut = jobs.cut[j, a % types]
    if cut.full < 0 or (a >= types and strict_nodes(jobs, j, a - types) >= jobs.row[j].gpus):
        return np.inf, 0.0
    lasts, price = estimate_s * cut.slow, cut.price * estimate_s
    if a < types:
        return lasts, price
    longer = max(1.0, cut.spread * options.multi_node_slowdown)
    return lasts * longer, price * longer + (options.split_worth - 1.0) * lasts * (longer - 1.0)


@inner_kernel
def _slowest(jobs, options, j, kind):
    """The most that a job's run time on a type may be over ``run_s``, for being on more nodes than strict."""
    cut, may_split = jobs.cut[j, kind], options.splits and strict_nodes(jobs, j, kind) < jobs.row[j].gpus
    return cut.slow * max(1.0, cut.spread * options.multi_node_slowdown if may_split else 1.0)
