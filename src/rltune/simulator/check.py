"""Invariants of a run, for tests and debugging: checked at every event time of a run that asks for it."""

import numpy as np

from rltune.cluster.bits import flip
from rltune.cluster.free import needs
from rltune.cluster.search import EXCLUSIVE
from rltune.kernels import allocating, inner_allocating
from rltune.simulator.queue import before
from rltune.simulator.state import CHECK, EVENT, sequence_of


@allocating
def check_all(nodes, jobs, st):
    """Check every sequence with CHECK, and let it go on."""
    for s in range(st.status.shape[0]):
        if st.status[s].phase == CHECK:
            seq = sequence_of(st, s)
            _check(nodes, jobs, seq, st.options)
            seq.status.phase = EVENT


@inner_allocating
def _check(nodes, jobs, seq, options):
    """Raise RuntimeError where state and schedule contradict each other.

    Free and used add up to the capacity of every node and resource, and none is negative; the index agrees with the
    free vectors; queues, running jobs and starts account for every job that has arrived, once.
    """
    status = seq.status
    used = np.zeros((nodes.row.shape[0], 3), np.int64)
    for i in range(status.running):
        job = seq.heap[i].job
        run, row = seq.run[job], jobs.row[status.first + job]
        if not (run.start >= row.submit_s and run.start <= status.now and run.end > status.now):
            raise RuntimeError("a running job starts before its submission or later than now, or has ended")
        got = 0
        for c in range(run.at, run.at + run.len):
            m, gpus = seq.chunk[c].node, seq.chunk[c].gpus
            got += gpus
            if nodes.row[m].domain != nodes.row[seq.chunk[run.at].node].domain:
                raise RuntimeError("a running job is in two pools or on two GPU types")
            cpu, mem = needs(nodes, jobs, status.first + job, gpus, m)
            if options.rule == EXCLUSIVE:
                gpus, cpu, mem = nodes.row[m].gpus, nodes.row[m].cpu_milli, nodes.row[m].mem_mb
            used[m, 0] += gpus
            used[m, 1] += cpu
            used[m, 2] += mem
        if got != row.gpus:
            raise RuntimeError("a running job has not the GPUs it asked for")
    for m in range(nodes.row.shape[0]):
        node, left = nodes.row[m], seq.free.row[m]
        if (
            used[m, 0] + left.gpus != node.gpus
            or used[m, 1] + left.cpu != node.cpu_milli
            or used[m, 2] + left.mem != node.mem_mb
        ):
            raise RuntimeError("free and used do not add up to the capacity of a node")
        if left.gpus < 0 or left.cpu < 0 or left.mem < 0:
            raise RuntimeError("more is used of a node than it has")
    _check_index(nodes, seq.free)
    if options.counts_colocated:
        _check_colocated(jobs, seq)
    waiting = 0
    for q in range(seq.queue.shape[0]):
        queue = seq.queue[q]
        waiting += queue.len
        agreements = 0
        for i in range(queue.at, queue.at + queue.len):
            agreements += jobs.row[status.first + seq.waiting[i]].sla
            if not np.isnan(seq.run[seq.waiting[i]].start):
                raise RuntimeError("a queued job has started")
            if queue.ranked and i > queue.at and not before(jobs, seq, seq.waiting[i - 1], seq.waiting[i]):
                raise RuntimeError("a queue is out of order")
        if agreements != queue.sla:
            raise RuntimeError("jobs under an agreement are miscounted")
    if waiting + status.started + (1 if status.head >= 0 else 0) != status.arrived:
        raise RuntimeError("queued and started jobs do not add up to those that have arrived")
    if options.tracks:
        for p in range(seq.ends.shape[0]):
            waiting += seq.ends[p].due_len + seq.ends[p].late_len
        if waiting != status.running + status.arrived - status.started - (1 if status.head >= 0 else 0):
            raise RuntimeError("running jobs and expected ends do not agree")


@inner_allocating
def _check_colocated(jobs, seq):
    running = np.zeros(seq.free.row.shape[0], np.int64)
    for i in range(seq.status.running):
        run = seq.run[seq.heap[i].job]
        if jobs.row[seq.status.first + seq.heap[i].job].gpus > 1:
            for c in range(run.at, run.at + run.len):
                running[seq.chunk[c].node] += 1
    for m in range(running.shape[0]):
        if running[m] != seq.free.row[m].multi_gpu_jobs:
            raise RuntimeError("running jobs of several GPUs are miscounted on a node")


@inner_allocating
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
