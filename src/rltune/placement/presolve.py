"""Answers without a solver: the chosen job's best allocation, where a certificate proves that none is better."""

import numpy as np

from rltune.cluster.candidates import candidates_of_type, classes, holds, same_class
from rltune.cluster.free import CHUNK, take
from rltune.cluster.search import AS_MANY, BEST_FIT, find, split
from rltune.kernels import MINUS_ONE, NO, ONE, ZERO, allocating, inner_allocating
from rltune.simulator.contention import split_loses_s
from rltune.simulator.state import sequence_of

MOST_SUBSETS = 10
"""Next jobs up to which all their subsets are bounded (1,024 of them)."""


@allocating
def presolve(nodes, jobs, st, s, whole_node, tightness, decay, slots, table, startable):
    """Place the chosen job without a solver where that is provably optimal.

    No allocation is better for the chosen job itself than its best one (whole node kept, tightness), and no set of
    next jobs can be worth more than the best set for which enough GPUs of each type are free. If that set
    can start next to the best allocation, both bounds are met at once; a packing by best_fit is tried as certificate.
    With several slots a job that cannot start now may start later, so that only all of them now is a proof.
    Returns (number of next jobs that matter, classes, chunks of the allocation if presolved else 0). ``table``
    (rltune.cluster.candidates.class_table) gets the classes, ``startable`` [K] the next jobs' ranks. Only
    the solver can answer whether and how to split the chosen job, or which nodes it is to share.
    """
    seq = sequence_of(st, s)
    chosen = jobs.row[seq.status.first + seq.status.chosen]
    asks_solver = seq.status.split or (st.options.interference_slowdown != 1.0 and chosen.gpus > 1)
    k = classes(nodes, chosen.pool, seq.free, NO, table)
    could = np.zeros((seq.top.shape[0], jobs.cut.shape[1]), np.bool_)
    n_next = _rivals(nodes, jobs, seq, slots > 1 or seq.status.may_wait, asks_solver, table, k, startable, could)
    if asks_solver:
        return n_next, k, 0
    n = _best_allocation(nodes, jobs, seq, whole_node, tightness, table, k)
    if n == 0:
        return n_next, k, 0
    wanted = np.ones(n_next, np.bool_)
    if _together(nodes, jobs, seq, n, startable, could, wanted):
        return n_next, k, n
    if slots == 1 and n_next <= MOST_SUBSETS and _best_set(nodes, jobs, seq, decay, startable, could, wanted):
        if _together(nodes, jobs, seq, n, startable, could, wanted):
            return n_next, k, n
    return n_next, k, 0


@allocating
def fall_back(nodes, jobs, st, s):
    """Place the chosen job by the simulator's own rules; number of chunks, 0 where it should wait."""
    seq, options = sequence_of(st, s), st.options
    j = seq.status.first + seq.status.chosen
    if not seq.status.may_wait:
        return find(nodes, jobs, seq.free, j, options.rule, options.extra, seq.place)
    n = split(nodes, jobs, seq.free, j, MINUS_ONE, options.rule, AS_MANY, seq.place)
    loses_s = split_loses_s(nodes, jobs, options, j, seq.place[0].node, n)
    return n if loses_s < seq.status.reserved - seq.status.now else 0


@inner_allocating
def _together(nodes, jobs, seq, n, startable, could, wanted):
    """Whether the wanted next jobs can be packed next to the chosen job's ``n`` chunks: by best_fit, those with the
    fewest types first, then the largest. All is released at the end."""
    first = seq.status.first
    take(nodes, jobs, seq.free, first + seq.status.chosen, NO, seq.place, ZERO, n, MINUS_ONE)
    left, packed, chunks = wanted.copy(), np.empty(wanted.sum(), np.int64), np.empty(wanted.sum(), np.int64)
    kept = np.empty((wanted.sum(), seq.place.shape[0]), CHUNK)
    done = 0
    while done < packed.shape[0]:
        best, best_key = -1, 1 << 60
        for i in range(left.shape[0]):
            if left[i]:
                key = could[startable[i]].sum() * 1_000_000 - jobs.row[first + seq.top[startable[i]]].gpus
                if key < best_key:
                    best, best_key = i, key
        left[best] = False
        other = first + seq.top[startable[best]]
        chunks[done] = find(nodes, jobs, seq.free, other, BEST_FIT, ZERO, kept[done])
        if chunks[done] == 0:
            break
        take(nodes, jobs, seq.free, other, NO, kept[done], ZERO, chunks[done], MINUS_ONE)
        packed[done] = other
        done += 1
    for i in range(done):
        take(nodes, jobs, seq.free, packed[i], NO, kept[i], ZERO, chunks[i], ONE)
    take(nodes, jobs, seq.free, first + seq.status.chosen, NO, seq.place, ZERO, n, ONE)
    return done == packed.shape[0]


@inner_allocating
def _best_set(nodes, jobs, seq, decay, startable, could, wanted):
    """The most valuable next jobs for which enough GPUs are free, type by type and in all; False if that is all of them.

    Only GPUs are counted, so this bounds what any placement can start.
    """
    first, types = seq.status.first, jobs.cut.shape[1]
    n = wanted.shape[0]
    free = np.zeros(types, np.int64)
    for t in range(types):
        d = nodes.domain_of[jobs.row[first + seq.status.chosen].pool, t]
        if d >= 0:
            free[t] = seq.free.total[d]
    reached = could[0].copy()
    for i in range(n):
        reached |= could[startable[i]]
    everything = 0
    for t in range(types):
        if reached[t]:
            everything += free[t]
    best, best_value = 0, -1.0
    asked = np.empty(types, np.int64)
    for bits in range(1 << n):
        value, total = 0.0, jobs.row[first + seq.status.chosen].gpus
        asked[:] = 0
        if could[0].sum() == 1:
            asked[np.argmax(could[0])] = total
        for i in range(n):
            if bits >> i & 1:
                gpus = jobs.row[first + seq.top[startable[i]]].gpus
                value += decay ** (startable[i] - 1)
                total += gpus
                if could[startable[i]].sum() == 1:
                    asked[np.argmax(could[startable[i]])] += gpus
        if value > best_value and total <= everything and (asked <= free).all():
            best, best_value = bits, value
    for i in range(n):
        wanted[i] = best >> i & 1 == 1
    return best != (1 << n) - 1


@inner_allocating
def _rivals(nodes, jobs, seq, later, asks_solver, table, k, startable, could):
    """Ranks of the next jobs that could start now and that the chosen job's nodes can matter to.

    A job matters if it could use a GPU type that the chosen job, or another job that matters, could use; what
    the others do is the same whichever allocation is chosen. ``could`` [K, T] gets the types each job could start on: now,
    or with ``later`` at any time; the chosen job in any case where the solver is asked.
    """
    first, top, types = seq.status.first, seq.top.shape[0], jobs.cut.shape[1]
    pool = jobs.row[first + seq.status.chosen].pool
    for i in range(top):
        if seq.top[i] >= 0 and jobs.row[first + seq.top[i]].pool == pool:  # one queue may hold all pools
            for kind in range(types):
                cut = jobs.cut[first + seq.top[i], kind]
                could[i, kind] = candidates_of_type(nodes, jobs, first + seq.top[i], kind, table, k) > 0 or (
                    cut.full >= 0 and (later and cut.size > 0 if i > 0 else asks_solver)
                )
    reached = could[0].copy()
    matters = np.zeros(top, np.bool_)
    grew = True
    while grew:
        grew = False
        for i in range(1, top):
            if not matters[i] and (could[i] & reached).any():
                matters[i] = True
                grew = True
                reached |= could[i]
    n = 0
    for i in range(1, top):
        if matters[i]:
            startable[n] = i
            n += 1
    return n


@allocating
def largest_node(nodes, pool):
    """GPUs of the largest node of a pool."""
    most = 0
    for kind in range(nodes.domain_of.shape[1]):
        d = nodes.domain_of[pool, kind]
        if d >= 0:
            most = max(most, nodes.domain[d].largest)
    return most


@inner_allocating
def _best_allocation(nodes, jobs, seq, whole_node, tightness, table, k):
    """Chunks of the chosen job's best allocation by its own terms; 0 where full chunks have a choice of classes (the solver's)."""
    free, place = seq.free, seq.place
    j = seq.status.first + seq.status.chosen
    here = nodes.pool[jobs.row[j].pool]
    best_cost, best_kind, best_class = np.inf, -1, -1
    largest = largest_node(nodes, jobs.row[j].pool)
    for kind in range(jobs.cut.shape[1]):
        full, size, rem = jobs.cut[j, kind].full, jobs.cut[j, kind].size, jobs.cut[j, kind].rem
        if full < 0 or size == 0:
            continue
        whole_classes, available, whole_free = 0, 0, 0
        for i in range(k):
            if table[i].type == kind and holds(nodes, jobs, table[i], j, size, table[i].lowest):
                whole_classes += 1
                available += table[i].count
                whole_free = table[i].gpus
        if full > 0 and whole_classes > 1:
            return 0
        if available < full:
            continue
        for i in range(k):
            if rem == 0 and i > 0:
                break
            left, untouched = 0, 0.0
            if rem > 0:
                m = table[i].lowest
                if table[i].type != kind or not holds(nodes, jobs, free.row[m], j, rem, m):
                    continue
                if full > 0 and table[i].count <= full and holds(nodes, jobs, free.row[m], j, size, m):
                    continue
                left = table[i].gpus - rem
                untouched = 1.0 if table[i].gpus == largest else 0.0
            if full > 0 and whole_free == largest:
                untouched += full
            cost = whole_node * untouched + tightness * left
            if cost < best_cost - 1e-12:
                best_cost, best_kind, best_class = cost, kind, i
    if best_kind < 0:
        return 0
    full, size, rem = jobs.cut[j, best_kind].full, jobs.cut[j, best_kind].size, jobs.cut[j, best_kind].rem
    n = 0
    for m in range(here.start, here.stop):
        if n == full:
            break
        if nodes.row[m].type == best_kind and holds(nodes, jobs, free.row[m], j, size, m):
            place[n].node, place[n].gpus = m, size
            n += 1
    if rem > 0:
        # the class of the last chunk may be the one the full chunks were taken from: go on behind them
        m = table[best_class].lowest
        while True:
            used = False
            for i in range(full):
                used = used or place[i].node == m
            if same_class(nodes, free, m, table, best_class) and not used:
                break
            m += 1
        place[n].node, place[n].gpus = m, rem
        n += 1
    return n
