"""Features of a pool at a decision, and of jobs of one shape on its free GPUs."""

import numpy as np

from rltune.cluster.candidates import MAX_CANDIDATES, classes, count_candidates
from rltune.cluster.search import EXCLUSIVE, find, in_equal_chunks
from rltune.environment.features import CFF_THRESHOLD, EMPHASIS, POOL, SHAPE, slots
from rltune.kernels import ZERO, inlined, record
from rltune.simulator.backfill import free_in_pool
from rltune.simulator.config import DOUBLE
from rltune.simulator.releases import next_release, update_late_jobs

HORIZON_S = 3600.0
"""How far ahead future availability looks (our choice)."""
RELEASE_SCALE_S = 600.0
"""Time to the next expected release that is shown as one half (our choice)."""

_SLOT = slots(SHAPE) | slots(POOL)
CAN, WAYS, SAMPLED_WAYS, DSR, FUTURE = (
    _SLOT[n] for n in ("can_schedule_now", "num_ways", "sampled_ways", "dsr", "future_availability")
)
CFF, FLAG, FREE_SHARE, FREE_NODES, QUEUE_LENGTH, BACKLOG, NEXT_RELEASE = (
    _SLOT[n] for n in ("cff", "scattered", "free_share", "free_nodes", "queue_length", "backlog", "next_release")
)

SHAPED = record(int64="counted seen")
"""What is known of a shape: number of the free vector its candidates were counted on; of the observation of its supply."""
FREED = record(int64="started running number known", float64="cff nodes")
"""A sequence's free vector: jobs started and running tell whether it has changed since it got its number; a pool's
fragmentation and share of free nodes, and for which number and pool they are known."""


@inlined
def pool_features(nodes, seq, options, pool, fact, seen, m, wants, freed, gpus, out):
    """Features of a pool, for the ``m`` jobs ``seen`` queued for it, into ``out`` [POOL features].

    ``gpus`` [3, T] becomes the pool's GPUs by type: free, expected back within the horizon, in all.
    """
    if wants[SHAPE, DSR] or wants[SHAPE, FUTURE]:
        _sums(nodes, seq, options, pool, wants[SHAPE, FUTURE], gpus)
    if wants[POOL, CFF] or wants[POOL, FLAG] or wants[POOL, FREE_NODES]:
        _scatter(nodes, seq, pool, freed)
        out[CFF], out[FREE_NODES] = freed.cff, freed.nodes
        out[FLAG] = 1.0 if freed.cff > CFF_THRESHOLD else 0.0
    if wants[POOL, FREE_SHARE]:
        out[FREE_SHARE] = free_in_pool(nodes, seq.free, pool) / nodes.pool[pool].gpus
    if wants[POOL, QUEUE_LENGTH]:
        out[QUEUE_LENGTH] = min(np.log2(1.0 + seq.status.queued) / 8.0, 2.0)
    if wants[POOL, BACKLOG]:
        area_s = 0.0
        for k in range(m):
            area_s += fact[seen[k].row].area_s
        out[BACKLOG] = min(np.log10(1.0 + area_s / (3600.0 * nodes.pool[pool].gpus)) / 3.0, 2.0)
    if wants[POOL, NEXT_RELEASE]:
        update_late_jobs(seq, pool)
        job, at, _, _ = next_release(seq, pool, options.overrun, ZERO, ZERO)
        ahead = max(at - seq.status.now, 0.0)
        out[NEXT_RELEASE] = ahead / (ahead + RELEASE_SCALE_S) if job >= 0 else 1.0


@inlined
def shape_features(nodes, jobs, seq, options, pool, seen, m, wants, this, freed, gpus, table, shaped, out):
    """Features of the shapes of the jobs ``seen`` of a pool, into ``out`` [shapes, SHAPE features].

    Candidate placements are counted once a free vector, supply once an observation of the pool, which has the number ``this``.
    """
    supply, k = wants[SHAPE, DSR] or wants[SHAPE, FUTURE], -1
    for i in range(m):
        j, shape = np.int64(seen[i].row), seen[i].shape
        known = shaped[shape]
        if known.counted != freed.number:
            known.counted, candidates = freed.number, 0
            if _free(nodes, jobs, seq, pool, j) >= jobs.row[j].gpus:
                if k < 0:
                    k = classes(nodes, pool, seq.free, options.rule == EXCLUSIVE, table)
                candidates = count_candidates(nodes, jobs, j, table, k)
                if candidates == 0 and (
                    options.extra > 0 or not in_equal_chunks(jobs, j)
                ):  # a split, or no equal chunks: one candidate, if any
                    candidates = min(find(nodes, jobs, seq.free, j, options.rule, options.extra, seq.place), 1)
            out[shape, CAN] = 1.0 if candidates > 0 else 0.0
            out[shape, WAYS] = candidates / MAX_CANDIDATES
            out[shape, SAMPLED_WAYS] = (EMPHASIS if candidates > 1 else 1.0) * candidates / MAX_CANDIDATES
        if supply and known.seen != this:
            known.seen = this
            _supply(jobs, j, gpus, out[shape])


@inlined
def _free(nodes, jobs, seq, pool, j):
    """Free GPUs of the types that a job may use."""
    free = 0
    for t in range(nodes.domain_of.shape[1]):
        d = nodes.domain_of[pool, t]
        if d >= 0 and jobs.cut[j, t].full >= 0:
            free += seq.free.total[d]
    return free


@inlined
def _supply(jobs, j, gpus, out):
    """The two features about the GPUs that a job may use."""
    free, back, capacity = 0.0, 0.0, 0.0
    for t in range(gpus.shape[1]):
        if jobs.cut[j, t].full >= 0:
            free += gpus[0, t]
            back += gpus[1, t]
            capacity += gpus[2, t]
    ratio = jobs.row[j].gpus / max(free, 1.0)
    out[DSR] = ratio / (1.0 + ratio)
    out[FUTURE] = min(max((free - jobs.row[j].gpus + back) / capacity, -1.0), 1.0)


@inlined
def _scatter(nodes, seq, pool, freed):
    """A pool's fragmentation (0 when nothing is free) and share of nodes with every GPU free, where not known."""
    known = freed.number * nodes.pool.shape[0] + pool
    if freed.known == known:
        return
    freed.known = known
    squares, weights, idle = 0, 0, 0
    for m in range(nodes.pool[pool].start, nodes.pool[pool].stop):
        here, size = seq.free.row[m].gpus, nodes.row[m].gpus
        squares += here * here
        weights += size * here
        idle += here == size
    freed.cff = 1.0 - squares / weights if weights > 0 else 0.0
    freed.nodes = idle / (nodes.pool[pool].stop - nodes.pool[pool].start)


@inlined
def _sums(nodes, seq, options, pool, ahead, gpus):
    """A pool's GPUs by type: free, with ``ahead`` those expected back within the horizon, in all."""
    now, ends = seq.status.now, seq.ends[pool]
    for t in range(gpus.shape[1]):
        d = nodes.domain_of[pool, t]
        gpus[0, t] = seq.free.total[d] if d >= 0 else 0.0
        gpus[1, t] = 0.0
        gpus[2, t] = nodes.domain[d].gpus if d >= 0 else 0.0
    if not ahead:
        return
    update_late_jobs(seq, pool)
    for i in range(ends.due_at, ends.due_at + ends.due_len):
        run = seq.run[seq.due[i]]
        if run.due > now + HORIZON_S:
            break
        _count_back(nodes, seq, options, run, gpus)
    for i in range(ends.late_at + ends.late_len - 1, ends.late_at - 1, -1):
        run = seq.run[seq.late[i]]
        if options.overrun == DOUBLE and now + (now - run.start) > now + HORIZON_S:
            break
        _count_back(nodes, seq, options, run, gpus)


@inlined
def _count_back(nodes, seq, options, run, gpus):
    for c in range(run.at, run.at + run.len):
        node = nodes.row[seq.chunk[c].node]
        gpus[1, node.type if gpus.shape[1] > 1 else 0] += node.gpus if options.rule == EXCLUSIVE else seq.chunk[c].gpus
