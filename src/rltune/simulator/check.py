"""Invariants of a run, for tests and debugging: checked at every instant where a setting asks for it."""

from __future__ import annotations

import numpy as np

from rltune.cluster.bits import flip
from rltune.cluster.free import needs
from rltune.cluster.search import EXCLUSIVE
from rltune.kernels import allocating
from rltune.simulator.queue import before


@allocating
def check(nodes, jobs, one, how):
    """Raise RuntimeError where state and schedule contradict each other.

    Free and used add up to the capacity of every node and resource, and none is negative; the index agrees with the
    free vectors; queues, running jobs and starts account for every job that has arrived, once.
    """
    me = one.me
    used = np.zeros((nodes.row.shape[0], 3), np.int64)
    for i in range(me.running):
        job = one.heap[i].job
        run, row = one.run[job], jobs.row[me.first + job]
        if not (run.start >= row.submit_s and run.start <= me.now and run.end > me.now):
            raise RuntimeError("a running job starts before its submission or later than now, or has ended")
        got = 0
        for c in range(run.at, run.at + run.len):
            m, gpus = one.chunk[c].node, one.chunk[c].gpus
            got += gpus
            cpu, mem = needs(nodes, jobs, me.first + job, gpus, m)
            if how.rule == EXCLUSIVE:
                gpus, cpu, mem = nodes.row[m].gpus, nodes.row[m].cpu_milli, nodes.row[m].mem_mb
            used[m, 0] += gpus
            used[m, 1] += cpu
            used[m, 2] += mem
        if got != row.gpus:
            raise RuntimeError("a running job has not the GPUs it asked for")
    for m in range(nodes.row.shape[0]):
        node, left = nodes.row[m], one.free.row[m]
        if (
            used[m, 0] + left.gpus != node.gpus
            or used[m, 1] + left.cpu != node.cpu_milli
            or used[m, 2] + left.mem != node.mem_mb
        ):
            raise RuntimeError("free and used do not add up to the capacity of a node")
        if left.gpus < 0 or left.cpu < 0 or left.mem < 0:
            raise RuntimeError("more is used of a node than it has")
    _check_index(nodes, one.free)
    if how.company:
        _check_wide(jobs, one)
    waiting = 0
    for q in range(one.line.shape[0]):
        line = one.line[q]
        waiting += line.len
        agreements = 0
        for i in range(line.at, line.at + line.len):
            agreements += jobs.row[me.first + one.queue[i]].sla
            if not np.isnan(one.run[one.queue[i]].start):
                raise RuntimeError("a queued job has started")
            if line.ranked and i > line.at and not before(jobs, one, one.queue[i - 1], one.queue[i]):
                raise RuntimeError("a queue is out of order")
        if agreements != line.sla:
            raise RuntimeError("jobs under an agreement are miscounted")
    if waiting + me.started + (1 if me.head >= 0 else 0) != me.arrived:
        raise RuntimeError("queued and started jobs do not add up to those that have arrived")
    if how.tracks:
        for p in range(one.ends.shape[0]):
            waiting += one.ends[p].due_len + one.ends[p].late_len
        if waiting != me.running + me.arrived - me.started - (1 if me.head >= 0 else 0):
            raise RuntimeError("running jobs and expected ends do not agree")


@allocating
def _check_wide(jobs, one):
    wide = np.zeros(one.free.row.shape[0], np.int64)
    for i in range(one.me.running):
        run = one.run[one.heap[i].job]
        if jobs.row[one.me.first + one.heap[i].job].gpus > 1:
            for c in range(run.at, run.at + run.len):
                wide[one.chunk[c].node] += 1
    for m in range(wide.shape[0]):
        if wide[m] != one.free.row[m].wide:
            raise RuntimeError("running jobs of several GPUs are miscounted on a node")


@allocating
def _check_index(nodes, free):
    words, count, total = np.zeros_like(free.words), np.zeros_like(free.count), np.zeros_like(free.total)
    for m in range(nodes.row.shape[0]):
        node, gpus = nodes.row[m], free.row[m].gpus
        domain = nodes.domain[node.domain]
        flip(words, domain.word_at + gpus * domain.words, node.slot)
        count[domain.bucket_at + gpus] += 1
        total[node.domain] += gpus
    if (words != free.words).any() or (count != free.count).any() or (total != free.total).any():
        raise RuntimeError("the index of free nodes does not agree with what is free")
