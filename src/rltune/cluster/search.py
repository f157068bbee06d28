"""Where a job goes: placement rules and localities, on the index of free nodes.

A *strict* allocation takes the fewest nodes of one GPU type that could ever hold the job: ``full`` chunks of
``size`` GPUs (the most one node of the type can give it) and one of ``rem``, each on a separate node. The rules
choose chunk by chunk, the remainder last. Where no cut into equal chunks could ever hold the job, for the type's nodes
differ in size and the large ones are too few, any allocation on the fewest nodes that could hold it is strict: it is
placed like a split (below). The rules:

==================  ==============================================================================================
first_fit           the lowest node that holds the chunk
best_fit            the node with the fewest free GPUs that holds it (packing), then the lowest
spread              the node with the most free GPUs (load balancing), then the lowest
isolating_best_fit  as best_fit, but a job of several GPUs goes first to nodes on which no other such job runs
exclusive           the smallest idle node, then the lowest; the job takes the whole of it (Slurm's OverSubscribe=NO)
==================  ==============================================================================================

Of several GPU types a job may use, those of the lowest rank go first (rltune.cluster.types). Of these first_fit takes
the first in which it fits, best_fit and exclusive the one whose last chunk leaves the fewest GPUs on its node, spread
the one that leaves the most, isolating_best_fit as best_fit, but first one where it shares no node with such a job;
then the first.

Where a strict allocation does not fit, ``extra`` nodes more may be allowed (locality plus_one: one, any: as many as
there are). A *split* takes the fewest nodes possible: the nodes with the most room for the job, each to the full, and
the last chunk by the rule; among nodes with the same room isolating_best_fit prefers those without such a job. Of
several types the one with the fewest nodes, then the first.
"""

from typing import get_args

import numpy as np

from rltune.cluster.bits import lowest, without_lowest
from rltune.cluster.free import needs
from rltune.config.cells import Locality, Placement
from rltune.kernels import MINUS_ONE, ONE, ZERO, allocating, inlined, inner_allocating, inner_kernel, kernel

FIRST_FIT, BEST_FIT, ISOLATING_BEST_FIT, SPREAD, EXCLUSIVE = np.arange(5)  # typed: rltune.kernels says why
RULES = dict(zip((p for p in get_args(Placement) if p != "lookahead"), range(5), strict=True))
ISOLATING = 5  # and 6: the two halves of isolating_best_fit: nodes without such a job, and the others
STRICT, PLUS_ONE, ANY, WORTH_IT, SOONEST_END = range(5)
LOCALITIES = dict(zip(get_args(Locality), range(5), strict=True))
NEVER = np.int64(1 << 50)
"""More nodes than there are."""
AS_MANY = np.int64(1 << 40)
"""Nodes more than strict without a limit."""
EXTRA = np.array([0, 1, AS_MANY, 0, 0])
"""Nodes more than strict that each locality allows any job; worth_it and soonest_end allow a head more (see
rltune.simulator.engine)."""


@kernel
def find(nodes, jobs, free, j, rule, extra, place):
    """Place job ``j`` on what is free; number of chunks written to ``place``, 0 when it does not fit."""
    return find_on(nodes, jobs, free, j, MINUS_ONE, rule, extra, place)


@inner_kernel
def find_on(nodes, jobs, free, j, only, rule, extra, place):
    """The same on the GPU type ``only``, unless that is −1."""
    n = _strict(nodes, jobs, free, j, only, rule, place)
    if n == 0 and extra > 0:
        n = split(nodes, jobs, free, j, only, rule, extra, place)
    return n


@inlined
def strict_nodes(jobs, j, kind):
    """Nodes of a strict allocation on one GPU type (at most, where the chunks are not equal)."""
    cut = jobs.cut[j, kind]
    return cut.full + (1 if cut.rem > 0 else 0)


@inner_kernel
def _strict(nodes, jobs, free, j, only, rule, place):
    best_kind, best_rank, best_left, n_best = MINUS_ONE, ZERO, ZERO, ZERO
    types = jobs.cut.shape[1]
    for kind in range(types):
        if jobs.cut[j, kind].full < 0 or (only >= 0 and kind != only):
            continue
        d = nodes.domain_of[jobs.row[j].pool, kind]
        if free.total[d] < jobs.row[j].gpus:
            continue
        n = _chunks(nodes, jobs, free, j, kind, d, rule, place)
        if n == 0:
            continue
        if types == 1 or only >= 0:
            return n
        rank = jobs.cut[j, kind].rank
        left = free.row[place[n - 1].node].gpus - place[n - 1].gpus
        if rule == ISOLATING_BEST_FIT and _is_co_located(jobs, free, j, place, n):
            left += NEVER
        better = rule != FIRST_FIT and (left > best_left if rule == SPREAD else left < best_left)
        if best_kind < 0 or rank < best_rank or (rank == best_rank and better):
            best_kind, best_rank, best_left, n_best = kind, rank, left, n
    if best_kind >= 0:
        _chunks(nodes, jobs, free, j, best_kind, nodes.domain_of[jobs.row[j].pool, best_kind], rule, place)
    return n_best


@inner_kernel
def _is_co_located(jobs, free, j, place, n):
    """Whether ``j`` is a job of several GPUs, and another one runs on a node of its ``n`` chunks."""
    for c in range(n):
        if free.row[place[c].node].multi_gpu_jobs > 0 and jobs.row[j].gpus > 1:
            return True
    return False


@inner_kernel
def _chunks(nodes, jobs, free, j, kind, d, rule, place):
    """A strict allocation in one domain; number of chunks, 0 when it does not fit."""
    full, size, rem = jobs.cut[j, kind].full, jobs.cut[j, kind].size, jobs.cut[j, kind].rem
    if size == 0:
        n = fewest_nodes(nodes, jobs, free, j, rule, d)
        if n > full:
            return 0
        _fill(nodes, jobs, free, j, rule, d, n, place)
        return n
    n = 0
    if full > 0:
        n = _pick(nodes, jobs, free, j, d, rule, size, full, place, ZERO)
        if n < full:
            return 0
    if rem > 0:
        n = _pick(nodes, jobs, free, j, d, rule, rem, ONE, place, full)
        if n == full:
            return 0
    return n


@inner_kernel
def _pick(nodes, jobs, free, j, d, rule, chunk, wanted, place, already):
    """Add up to ``wanted`` chunks of ``chunk`` GPUs after the first ``already``, by the rule; the new number."""
    isolates = rule == ISOLATING_BEST_FIT and jobs.row[j].gpus > 1
    n, target = already, already + wanted
    for half in range(2 if isolates else 1):
        if n < target:
            allowed = ISOLATING + half if isolates else rule
            n = _pick_among(nodes, jobs, free, j, d, allowed, chunk, place, already, n, target)
    return n


@inner_kernel
def _pick_among(nodes, jobs, free, j, d, rule, chunk, place, already, n, target):
    """Go on from ``n`` chunks to ``target``, next to the first ``already``."""
    here = nodes.domain[d]
    most, words, at = here.largest, here.words, here.word_at
    steps = 1 if rule == FIRST_FIT else most - chunk + 1
    for step in range(steps):
        low = high = most - step if rule == SPREAD else chunk + step
        if rule == FIRST_FIT:
            low, high = chunk, most  # all nodes with room, in their order
        elif free.count[here.bucket_at + low] == 0:
            continue
        for x in range(words):
            word = free.words[at + low * words + x]
            for f in range(low + 1, high + 1):
                word |= free.words[at + f * words + x]
            while word != np.uint64(0):
                m = nodes.member[here.member_at + 64 * x + lowest(word)]
                word = without_lowest(word)
                if _usable(nodes, jobs, free, j, rule, chunk, m, place, already):
                    place[n].node, place[n].gpus = m, chunk
                    n += 1
                    if n == target:
                        return n
    return n


@inner_kernel
def _usable(nodes, jobs, free, j, rule, chunk, m, place, already):
    """Whether node ``m``, known to have the GPUs, holds the chunk and is not among the first ``already`` chosen."""
    for i in range(already):
        if place[i].node == m:
            return False
    if rule == EXCLUSIVE and not idle(nodes, free, m):
        return False
    if rule >= ISOLATING and (free.row[m].multi_gpu_jobs == 0) != (rule == ISOLATING):
        return False
    cpu, mem = needs(nodes, jobs, j, chunk, m)
    return free.row[m].cpu >= cpu and free.row[m].mem >= mem


@inlined
def idle(nodes, free, m):
    """Whether nothing of node ``m`` is taken."""
    node, left = nodes.row[m], free.row[m]
    return left.gpus == node.gpus and left.cpu == node.cpu_milli and left.mem == node.mem_mb


@inner_kernel
def _available(nodes, jobs, free, j, rule, m):
    """GPUs that node ``m`` can give job ``j`` now."""
    if rule == EXCLUSIVE and not idle(nodes, free, m):
        return 0
    most = free.row[m].gpus
    cpu, mem = needs(nodes, jobs, j, 1, m)
    if cpu * most > free.row[m].cpu:
        most = free.row[m].cpu // cpu
    if mem * most > free.row[m].mem:
        most = free.row[m].mem // mem
    return most


@allocating
def fewest_nodes(nodes, jobs, free, j, rule, d):
    """Nodes that job ``j`` takes on what is free in a domain if its chunks may be unequal; NEVER if it does not fit."""
    here = nodes.domain[d]
    nodes_with = np.zeros(here.largest + 1, np.int64)
    for i in range(here.member_at, here.member_at + here.nodes):
        nodes_with[_available(nodes, jobs, free, j, rule, nodes.member[i])] += 1
    n, left = 0, jobs.row[j].gpus
    for r in range(here.largest, 0, -1):
        used = min(nodes_with[r], (left + r - 1) // r)
        n += used
        left -= used * r
        if left <= 0:
            return n
    return NEVER


@allocating
def split(nodes, jobs, free, j, only, rule, extra, place):
    """Place job ``j`` on up to ``extra`` nodes more than strict, on the fewest possible; chunks, 0 for none."""
    best_kind, best_rank, fewest = MINUS_ONE, ZERO, NEVER
    for kind in range(jobs.cut.shape[1]):
        if jobs.cut[j, kind].full < 0 or (only >= 0 and kind != only):
            continue
        d = nodes.domain_of[jobs.row[j].pool, kind]
        if free.total[d] < jobs.row[j].gpus:
            continue
        n = fewest_nodes(nodes, jobs, free, j, rule, d)
        rank = jobs.cut[j, kind].rank
        better = best_kind < 0 or rank < best_rank or (rank == best_rank and n < fewest)
        if n <= strict_nodes(jobs, j, kind) + extra and better:
            best_kind, best_rank, fewest = kind, rank, n
    if best_kind < 0:
        return 0
    _fill(nodes, jobs, free, j, rule, nodes.domain_of[jobs.row[j].pool, best_kind], fewest, place)
    return fewest


@inner_allocating
def _fill(nodes, jobs, free, j, rule, d, n, place):
    """Write a split on ``n`` nodes: the n − 1 with the most room to the full, the rest by the rule."""
    left, k = jobs.row[j].gpus, 0
    here = nodes.domain[d]
    mine = nodes.member[here.member_at : here.member_at + here.nodes]
    isolates = rule == ISOLATING_BEST_FIT and jobs.row[j].gpus > 1
    for r in range(here.largest, 0, -1):
        for shared in range(2 if isolates else 1):
            if k == n - 1:
                break
            for m in mine:
                if k == n - 1:
                    break
                if isolates and (free.row[m].multi_gpu_jobs > 0) != (shared == 1):
                    continue
                if _available(nodes, jobs, free, j, rule, m) == r:
                    place[k].node, place[k].gpus = m, r
                    left -= r
                    k += 1
    best, best_left = -1, 0
    for m in mine:
        if _available(nodes, jobs, free, j, rule, m) < left:
            continue
        taken = False
        for u in range(k):
            taken = taken or place[u].node == m
        spare = free.row[m].gpus
        if isolates and free.row[m].multi_gpu_jobs > 0:
            spare += NEVER
        better = spare > best_left if rule == SPREAD else spare < best_left and rule != FIRST_FIT
        if not taken and (best < 0 or better):
            best, best_left = m, spare
    place[k].node, place[k].gpus = best, left


@inlined
def in_equal_chunks(jobs, j):
    """Whether job ``j`` is cut into equal chunks on all types it may use: others a placer is not asked to split."""
    for kind in range(jobs.cut.shape[1]):
        if jobs.cut[j, kind].full > 0 and jobs.cut[j, kind].size == 0:
            return False
    return True
