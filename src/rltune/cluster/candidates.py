"""Candidate placements of a job, counted on classes of interchangeable nodes.

A *candidate* is a strict allocation (rltune.cluster.search) in equal chunks up to swapping identical nodes: nodes of one
group with the same free GPUs, CPUs and memory. A job that no equal chunks could hold has none.
"""

import numpy as np

from rltune.cluster.bits import WORD, lowest, without_lowest
from rltune.cluster.free import needs
from rltune.cluster.search import idle
from rltune.kernels import ZERO, allocating, inlined, inner_allocating, record

MAX_CANDIDATES = 8  # counted up to here


@inner_allocating
def holds(nodes, jobs, left, j, gpus, m):
    """Whether node ``m``, of which so much is ``left`` (FREE or CLASS), has room for a chunk of ``gpus`` of job ``j``."""
    cpu, mem = needs(nodes, jobs, j, gpus, m)
    return left.gpus >= gpus and left.cpu >= cpu and left.mem >= mem


CLASS = record(int64="group gpus cpu mem count lowest type")
"""Nodes of one group with the same free GPUs, CPUs and memory: how many, the lowest, their GPU type."""


@allocating
def class_table(nodes):
    """An empty table for the classes of any pool: as many rows as the largest has nodes."""
    return np.empty((nodes.pool["stop"] - nodes.pool["start"]).max(), CLASS)


@allocating
def classes(nodes, pool, free, only_idle, out):
    """Sort a pool's nodes into classes (``out``, CLASS) in the order of their lowest nodes; number of classes.

    Nodes without a free GPU are left out, and with ``only_idle`` those of which anything is taken. Full nodes are not
    even looked at, so that the cost grows with what is free and not with the cluster.
    """
    k = ZERO
    for kind in range(nodes.domain_of.shape[1]):
        d = nodes.domain_of[pool, kind]
        if d >= 0 and free.total[d] > 0:
            k = _classes_of(nodes, d, free, only_idle, out, k)
    if nodes.domain_of.shape[1] > 1:  # of one type they are in order already
        before, rank = out[:k].copy(), np.argsort(out[:k].lowest.astype(np.float64), kind="mergesort")
        for i in range(k):
            out[i] = before[rank[i]]
    return k


@inner_allocating
def _classes_of(nodes, d, free, only_idle, out, first):
    """Add the classes of one domain after the first ``first``; number of all."""
    k, found = first, first
    here = nodes.domain[d]
    for x in range(here.words):
        word = np.uint64(0)
        for gpus in range(1, here.largest + 1):
            word |= free.words[here.word_at + gpus * here.words + x]
        while word != np.uint64(0):
            m = nodes.member[here.member_at + WORD * x + lowest(word)]
            word = without_lowest(word)
            if only_idle and not idle(nodes, free, m):
                continue
            if found == k or not same_class(nodes, free, m, out, found):  # most often the class of the node before
                found = first
                while found < k and not same_class(nodes, free, m, out, found):
                    found += 1
            row = out[found]
            if found == k:
                left = free.row[m]
                row.group, row.gpus, row.cpu, row.mem = nodes.row[m].group, left.gpus, left.cpu, left.mem
                row.count, row.lowest, row.type = 0, m, nodes.row[m].type
                k += 1
            row.count += 1
    return k


@inlined
def same_class(nodes, free, m, out, i):
    """Whether node ``m`` is one of the i-th class."""
    row, left = out[i], free.row[m]
    same = row.gpus == left.gpus and row.group == nodes.row[m].group
    return same and row.cpu == left.cpu and row.mem == left.mem


@allocating
def count_candidates(nodes, jobs, j, table, k):
    """Candidates of job ``j`` on the classes ``table[:k]``, up to MAX_CANDIDATES; 0 when it does not fit in equal chunks."""
    candidates = 0
    for kind in range(jobs.cut.shape[1]):
        candidates += candidates_of_type(nodes, jobs, j, kind, table, k)
    return min(candidates, MAX_CANDIDATES)


@inner_allocating
def candidates_of_type(nodes, jobs, j, kind, table, k):
    """Candidates of job ``j`` on nodes of one GPU type, counted up to MAX_CANDIDATES."""
    full, size, rem = jobs.cut[j, kind].full, jobs.cut[j, kind].size, jobs.cut[j, kind].rem
    if full < 0 or size == 0:  # not cut into equal chunks
        return 0
    whole, whole_classes, rest_classes = 0, 0, 0
    for i in range(k):
        if table[i].type != kind:
            continue
        if full > 0 and holds(nodes, jobs, table[i], j, size, table[i].lowest):
            whole += table[i].count
            whole_classes += 1
        if rem > 0 and holds(nodes, jobs, table[i], j, rem, table[i].lowest):
            rest_classes += 1
    if whole < full:
        return 0
    if full > 0 and whole > full and whole_classes > 1 and (full > 1 or rem > 0):
        return _mixtures(nodes, jobs, j, kind, size, full, rem, table, k)
    if rem == 0:
        return max(1, whole_classes) if whole > full else 1
    if full > 0 and whole == full:
        return max(0, rest_classes - whole_classes)  # every whole node is used up
    return min(rest_classes, MAX_CANDIDATES)


@inner_allocating
def _mixtures(nodes, jobs, j, kind, size, full, rem, table, k):
    """Candidates of ``full`` chunks from several classes and the rest from what is left, up to MAX_CANDIDATES."""
    total = 0
    for last in range(k if rem > 0 else 1):
        fits = table[last].type == kind and holds(nodes, jobs, table[last], j, rem, table[last].lowest)
        if rem > 0 and not fits:
            continue
        # choices[f]: mixtures of f full chunks of the classes so far
        choices = np.zeros(full + 1, np.int64)
        choices[0] = 1
        for i in range(k):
            if table[i].type != kind or not holds(nodes, jobs, table[i], j, size, table[i].lowest):
                continue
            here = table[i].count - (1 if rem > 0 and i == last else 0)
            for f in range(full, 0, -1):
                for x in range(1, min(here, f) + 1):
                    choices[f] += choices[f - x]
                choices[f] = min(choices[f], MAX_CANDIDATES)
        total += choices[full]
        if total >= MAX_CANDIDATES:
            return MAX_CANDIDATES
    return total
