"""A placement question made small: the jobs that matter, and node classes instead of nodes; and its solution.

Nodes of one group with the same free vector in every slot are interchangeable, so of each class only as many enter the
model as the jobs have chunks; nothing is lost, and the size does not grow with the cluster. Where jobs that share nodes
slow one another down, the nodes of a class differ in what they cost the chosen job alone: the cheapest come first.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from rltune.cluster.candidates import same_class
from rltune.cluster.free import needs
from rltune.cluster.search import AS_MANY, NEVER, fewest_nodes, strict_nodes
from rltune.kernels import ZERO, allocating, record
from rltune.placement.presolve import largest_node
from rltune.simulator.config import DOUBLE
from rltune.simulator.releases import next_release, update_late_jobs
from rltune.simulator.state import sequence_of

QUESTION = record(bool="now", float64="wait_s")
"""What is asked of the chosen job: whether it may start as a whole now; seconds it waits for that otherwise (−1: it does
not wait)."""


class Outcome(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    LIMIT = "limit"
    FAILURE = "failure"


@dataclass(frozen=True)
class Solution:
    """What a solver chose: the chosen job's chunks as (index in the instance's ``member``, GPUs), full ones first;
    none: it waits."""

    outcome: Outcome
    objective: float
    chunks: tuple[tuple[int, int], ...] = ()


class Instance(NamedTuple):
    """K jobs (the chosen one first, then the next of the ranking that matter to it) on C classes over S slots.

    Slot 0 is now; slot s begins s slot lengths later, when what should have ended by then is free again. CPU and memory
    of a chunk are its own need, or its GPU share.
    """

    rank: np.ndarray  # [K] int64, in the ranking, 0 for the chosen job
    size: np.ndarray  # [K, T] int64, GPUs of a full chunk
    full: np.ndarray  # [K, T] int64, full chunks; −1: the type is not allowed
    rem: np.ndarray  # [K, T] int64, GPUs of the last chunk
    cpu: np.ndarray  # [K] int64, thousandths of a CPU per GPU, −1: GPU share
    mem: np.ndarray  # [K] int64, MB per GPU, −1: GPU share
    length: np.ndarray  # [K] int64, slots a job lasts by its estimate, S at most
    gpus: np.ndarray  # [1] int64, of the chosen job
    split: np.ndarray  # [T] int64, nodes the chosen job takes if it is split now; 0: it is not
    split_s: np.ndarray  # [T] float64, seconds it then loses, each counted split_worth times
    colocated_s: np.ndarray  # [T] float64, seconds it loses co-located as a whole
    colocated_split_s: np.ndarray  # [T] float64, seconds it loses more co-located if it is split
    split_length: np.ndarray  # [T] int64, slots it then lasts, S at most
    question: np.ndarray  # [1] QUESTION
    slot_s: np.ndarray  # [1] float64, seconds from one slot to the next
    type: np.ndarray  # [C] int64
    free: np.ndarray  # [C, S, 3] int64, GPUs, thousandths of a CPU and MB free in each slot
    share_cpu: np.ndarray  # [C] int64, thousandths of a CPU that go with one GPU of the node
    share_mem: np.ndarray  # [C] int64
    whole: np.ndarray  # [C] bool, nothing runs on these nodes and the pool has none larger
    count: np.ndarray  # [C] int64, nodes, at most as many as there are chunks
    colocated: np.ndarray  # [count.sum()] bool, a job of several GPUs runs there, and the chosen job is one
    price_s: np.ndarray  # [count.sum()] float64, seconds that such jobs lose if the chosen job joins them
    member: np.ndarray  # [count.sum()] int64, the first nodes of each class, class by class (not part of the problem)

    def key(self) -> bytes:
        """The problem as bytes: equal for equal problems, wherever their nodes lie."""
        return b"|".join(x.tobytes() for x in self[:-1])


def build_instance(
    nodes, jobs, state, s: int, table: np.ndarray, k: int, startable: np.ndarray, slots: int, slot_s: float
) -> Instance:
    """The reduced problem of one sequence from what rltune.placement.presolve found.

    A job that may wait is looked at in two slots: now, and when it would start as a whole.
    """
    options, status = state.options, state.status[s]
    ranks = np.concatenate([[0], startable]).astype(np.int64)
    j = state.first[s] + state.top[s, ranks]
    chosen, pool = jobs.row[j[0]], jobs.row["pool"][j[0]]
    if status["may_wait"]:
        # a little longer, so that rounding does not take what ends then for later
        slots, slot_s = 2, max(float(status["reserved"] - status["now"]), 1.0) * (1 + 1e-9)
    cut, row = jobs.cut[j], jobs.row[j]
    size, full, rem = (np.ascontiguousarray(cut[name]) for name in ("size", "full", "rem"))
    full = np.where((size == 0) & (full > 0), -1, full)  # not cut into equal chunks: not an option of the model
    split, question = np.zeros(full.shape[1], np.int64), np.zeros(1, QUESTION)
    question["now"] = not status["split"]
    if status["split"]:
        _splits(nodes, jobs, state, s, split)
    question["wait_s"] = status["reserved"] - status["now"] if status["may_wait"] else -1.0
    together = options.interference_slowdown != 1.0 and chosen["gpus"] > 1
    lasts_s, worth = chosen["estimate_s"] * cut["slow"][0], options.split_worth if status["may_wait"] else 1.0
    colocated = options.interference_slowdown if together else 1.0
    strict = np.maximum(full, 0) + (rem > 0)
    slowdown = np.where(split > strict[0], cut["spread"][0] * options.multi_node_slowdown, 1.0)
    strict[0] = np.maximum(strict[0], split)
    chunks = int(strict.max(axis=1).sum())
    if together or slots > 1:
        price_s = _prices(nodes, jobs, state, s, pool, chosen["estimate_s"]) if together else np.zeros(0)
        free, count, member = _slots(nodes, jobs, state, s, pool, slots, slot_s, chunks, price_s)
    else:
        free, count, member = _now(nodes, state, s, table, k, chunks)
    node = nodes.row[member[np.cumsum(count) - count]]

    def length(lasts_s: np.ndarray) -> np.ndarray:
        return np.clip(np.ceil(lasts_s / slot_s), 1, slots).astype(np.int64)

    return Instance(
        ranks,
        size,
        full,
        rem,
        row["cpu_milli"].copy(),
        row["mem_mb"].copy(),
        length(row["estimate_s"]),
        jobs.gpus[j[:1]].copy(),
        split,
        worth * lasts_s * (slowdown - 1.0),
        lasts_s * (colocated - 1.0),
        lasts_s * np.maximum(colocated - slowdown, 0.0),
        length(chosen["estimate_s"] * slowdown),
        question,
        np.array([slot_s]),
        node["type"].copy(),
        free,
        node["share_cpu"].copy(),
        node["share_mem"].copy(),
        free[:, 0, 0] == largest_node(nodes, pool),
        count,
        state.free.row["multi_gpu_jobs"][s, member] > 0 if together else np.zeros(len(member), np.bool_),
        price_s[member - nodes.pool["start"][pool]] if together else np.zeros(len(member)),
        member,
    )


@allocating
def _splits(nodes, jobs, st, s, split):
    """Write to ``split`` [T] the nodes that the chosen job takes on each type if it is split now."""
    seq, options = sequence_of(st, s), st.options
    j = seq.status.first + seq.status.chosen
    extra = AS_MANY if seq.status.may_wait else options.extra
    for kind in range(split.shape[0]):
        if jobs.cut[j, kind].full >= 0:
            d = nodes.domain_of[jobs.row[j].pool, kind]
            n = NEVER
            if seq.free.total[d] >= jobs.row[j].gpus:
                n = fewest_nodes(nodes, jobs, seq.free, j, options.rule, d)
            if n < NEVER and n <= strict_nodes(jobs, j, kind) + extra:
                split[kind] = n


@allocating
def _prices(nodes, jobs, st, s, pool, lasts_s):
    """Seconds [nodes of the pool] that jobs that are alone on a node lose while a job that lasts so long is there."""
    seq, options = sequence_of(st, s), st.options
    begin = nodes.pool[pool].start
    price_s = np.zeros(nodes.pool[pool].stop - begin)
    update_late_jobs(seq, pool)
    for i in range(seq.status.running):
        job = seq.heap[i].job
        row, run = jobs.row[seq.status.first + job], seq.run[job]
        slow = jobs.cut[seq.status.first + job, nodes.row[seq.chunk[run.at].node].type].slow
        if row.pool != pool or row.gpus < 2 or run.slowdown >= options.interference_slowdown * slow:
            continue
        slowdown = run.slowdown / slow  # over what it would be on this type by itself
        now, left = seq.status.now, run.due - seq.status.now
        if run.late:
            left = now - run.start if options.overrun == DOUBLE else 0.0
        for c in range(run.at, run.at + run.len):
            price_s[seq.chunk[c].node - begin] += min(left / slowdown, lasts_s) * (
                options.interference_slowdown - slowdown
            )
    return price_s


@allocating
def _now(nodes, st, s, table, k, chunks):
    """(free [k, 1, 3], count, member) of the classes of rltune.cluster.candidates."""
    seq = sequence_of(st, s)
    free, count = np.empty((k, 1, 3), np.int64), np.empty(k, np.int64)
    for c in range(k):
        free[c, 0, 0], free[c, 0, 1], free[c, 0, 2] = table[c].gpus, table[c].cpu, table[c].mem
        count[c] = min(table[c].count, chunks)
    member, n = np.empty(count.sum(), np.int64), 0
    for c in range(k):
        m = table[c].lowest
        for _ in range(count[c]):
            while not same_class(nodes, seq.free, m, table, c):
                m += 1
            member[n] = m
            n += 1
            m += 1
    return free, count, member


@allocating
def _slots(nodes, jobs, st, s, pool, slots, slot_s, chunks, price_s):
    """(free [C, S, 3], count, member) of classes of nodes that are alike in every slot, by their lowest nodes.

    With a ``price_s`` [nodes of the pool] the members of a class are those without such a job, then the cheapest.
    """
    seq = sequence_of(st, s)
    begin, stop = nodes.pool[pool].start, nodes.pool[pool].stop
    free = _free_by_slot(nodes, jobs, seq, st.options.overrun, pool, slots, slot_s)
    first, count = np.empty(stop - begin, np.int64), np.zeros(stop - begin, np.int64)
    kind = np.empty(stop - begin, np.int64)
    k = 0
    for m in range(stop - begin):
        if free[m, slots - 1, 0] == 0:
            kind[m] = -1
            continue
        c = 0
        while c < k:
            other = first[c]
            if nodes.row[begin + m].group == nodes.row[begin + other].group and (free[m] == free[other]).all():
                break
            c += 1
        if c == k:
            first[c] = m
            k += 1
        kind[m] = c
        count[c] = min(count[c] + 1, chunks)
    order = np.arange(stop - begin)
    if price_s.shape[0] > 0:
        cost = price_s.copy()
        for m in range(stop - begin):
            if seq.free.row[begin + m].multi_gpu_jobs == 0:
                cost[m] = -1.0
        order = np.argsort(cost, kind="mergesort")
    left, at = count[:k].copy(), np.cumsum(count[:k]) - count[:k]
    member = np.empty(count[:k].sum(), np.int64)
    for m in order:
        c = kind[m]
        if c >= 0 and left[c] > 0:
            member[at[c] + count[c] - left[c]] = begin + m
            left[c] -= 1
    return free[first[:k]].copy(), count[:k].copy(), member


@allocating
def _free_by_slot(nodes, jobs, seq, overrun, pool, slots, slot_s):
    """[nodes of the pool, S, 3]: what is free now, and with what running jobs release when they should end."""
    begin, stop = nodes.pool[pool].start, nodes.pool[pool].stop
    free = np.empty((stop - begin, slots, 3), np.int64)
    for m in range(stop - begin):
        left = seq.free.row[begin + m]
        free[m, :, 0], free[m, :, 1], free[m, :, 2] = left.gpus, left.cpu, left.mem
    update_late_jobs(seq, pool)
    due = late = ZERO
    while True:
        job, end, due, late = next_release(seq, pool, overrun, due, late)
        if job < 0 or end > seq.status.now + (slots - 1) * slot_s:
            break
        slot = max(1, int(np.ceil((end - seq.status.now) / slot_s)))
        run = seq.run[job]
        for i in range(run.at, run.at + run.len):
            chunk = seq.chunk[i]
            cpu, mem = needs(nodes, jobs, seq.status.first + job, chunk.gpus, chunk.node)
            m = chunk.node - begin
            free[m, slot:, 0] += chunk.gpus
            free[m, slot:, 1] += cpu
            free[m, slot:, 2] += mem
    return free
