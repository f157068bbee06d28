"""The look-ahead model as columns and rows for GLPK (rltune.placement.glpk), less what the reduced problem proves idle.

- Nodes of a class are alike, so of each class job 0 needs only the first c₀, job 1 only the first c₀ + c₁ and so on
  (c: most chunks of the job): any solution can be renumbered to that, and most of the symmetry is gone.
- A CPU or memory row is left out where its GPU row implies it (no chunk takes a larger share of what the node has free
  of CPU or memory than of GPUs), and any row that all jobs together cannot exceed.
- That an option puts at most one chunk on a node needs no rows but these: a full chunk is the most a node could ever
  give the job, and a split takes as few nodes as could hold it.

A split's GPUs on a node are told by one column for each number of them, where the CVXPY model has one whole number.
"""

from __future__ import annotations

import numpy as np

from rltune.config import LookaheadConfig
from rltune.kernels import allocating
from rltune.placement.instance import Instance

COLUMN = np.dtype(
    [
        ("option", np.int64),
        ("node", np.int64),
        ("cls", np.int64),
        ("gpus", np.int64),
        ("full", np.bool_),
        ("cost", np.float64),
        ("own", np.float64),
    ],
    align=True,
)
"""A chunk of an option on a node: number of the option, of the node, its class, GPUs, whether it is a full chunk or the
last, what it costs the objective, and what company there costs the job, however many such chunks it has."""
UPPER, EQUAL = 0, 1
"""Kinds of rows: at most, or exactly, the bound."""


@allocating
def options_of(instance):
    """(job, type, slot, whether split) of every option, [O, 4]: a job starts on a type in a slot.

    The chosen job: now, as a whole or split, or, where it may wait, as a whole in the second slot.
    """
    full, slots, question = instance.full, instance.free.shape[1], instance.question[0]
    out = np.empty((full.size * (slots + 1), 4), np.int64)
    n = 0
    for k in range(full.shape[0]):
        for slot in range(slots):
            for t in range(full.shape[1]):
                if k == 0 and slot == 0 and instance.split[t] > 0:
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = k, t, slot, 1
                    n += 1
                if k == 0 and not (question.now and slot == 0 or question.wait_s >= 0 and slot == 1):
                    continue
                if full[k, t] >= 0:
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = k, t, slot, 0
                    n += 1
    return out[:n]


def worth_of(instance: Instance, options: np.ndarray, config: LookaheadConfig) -> np.ndarray:
    """What starting each option is worth [O]; to the chosen job, which starts in any case, what it loses by it."""
    slots, slot, question = instance.free.shape[1], options[:, 2], instance.question[0]
    rank = instance.rank[options[:, 0]]
    worth = config.rank_decay ** (np.maximum(rank, 1) - 1.0) * (slots - slot) / slots
    if question["wait_s"] >= 0:
        worth *= config.others
    loses_s = np.where(options[:, 3] == 1, instance.lose_s[options[:, 1]], np.where(slot > 0, question["wait_s"], 0.0))
    return np.where(rank > 0, worth, -loses_s / horizon_s(instance))


def horizon_s(instance: Instance) -> float:
    """Seconds all slots are long: what a start now is worth more than none within them."""
    return float(instance.slot_s[0]) * instance.free.shape[1]


@allocating
def use_of(instance, job, gpus, c, r):
    """GPUs (r = 0), thousandths of a CPU (1) or MB (2) that a chunk takes on a node of class ``c``."""
    if r == 0:
        return gpus
    own = instance.cpu[job] if r == 1 else instance.mem[job]
    share = instance.share_cpu[c] if r == 1 else instance.share_mem[c]
    return gpus * (own if own >= 0 else share)


@allocating
def _holds(instance, job, gpus, c, slot):
    for r in range(3):
        if use_of(instance, job, gpus, c, r) > instance.free[c, slot, r]:
            return False
    return True


@allocating
def _lasts(instance, option, slot):
    """Whether the job of an option holds its nodes in a slot."""
    length = instance.split_length[option[1]] if option[3] == 1 else instance.length[option[0]]
    return option[2] <= slot < option[2] + length


def columns_of(instance: Instance, options: np.ndarray, config: LookaheadConfig) -> np.ndarray:
    """The chunk columns, COLUMN: every option's chunks on the nodes it may need, nodes numbered class by class."""
    less = config.others if instance.question["wait_s"][0] >= 0 else 1.0  # as the starts of the others count less
    return _columns_of(instance, options, less * config.whole_node, less * config.tightness)


@allocating
def _columns_of(instance, options, whole_worth, tightness):
    jobs, classes = instance.full.shape[0], instance.count.shape[0]
    begin = np.zeros(classes + 1, np.int64)
    begin[1:] = np.cumsum(instance.count)
    most = np.zeros(jobs, np.int64)
    for i in range(options.shape[0]):
        k, t = options[i, 0], options[i, 1]
        chunks = instance.full[k, t] + (1 if instance.rem[k, t] > 0 else 0)
        most[k] = max(most[k], instance.split[t] if options[i, 3] == 1 else chunks)
    reach = np.cumsum(most)
    horizon_s = instance.slot_s[0] * instance.free.shape[1]
    kinds = 2  # of chunks: full and last; or of a split, one for each number of GPUs
    if instance.split.any():
        kinds = max(kinds, instance.free[:, 0, 0].max())
    out = np.empty(kinds * options.shape[0] * begin[-1], COLUMN)
    n = 0
    for i in range(options.shape[0]):
        k, t, slot, is_split = options[i]
        for c in range(classes):
            if instance.type[c] != t:
                continue
            for kind in range(kinds if is_split else 2):
                full = kind == 0 and not is_split
                gpus = kind + 1 if is_split else instance.size[k, t] if full else instance.rem[k, t]
                if is_split and gpus > instance.gpus[0] - instance.split[t] + 1:  # one GPU at least on the others
                    break
                if gpus == 0 or full and instance.full[k, t] == 0 or not _holds(instance, k, gpus, c, slot):
                    continue
                cost = 0.0
                if k == 0 and slot == 0:
                    cost = whole_worth if instance.whole[c] else 0.0
                    if not full:
                        cost += tightness * (instance.free[c, 0, 0] - gpus)
                for m in range(begin[c], begin[c] + min(instance.count[c], reach[k])):
                    row = out[n]
                    row.option, row.node, row.cls, row.gpus, row.full, row.cost = i, m, c, gpus, full, cost
                    row.own = 0.0
                    if k == 0 and slot == 0 and instance.company[m]:
                        question = instance.question[0]
                        row.cost += instance.price_s[m] / horizon_s
                        row.own = (instance.own_split_s[t] if is_split else question.own_s) / horizon_s
                    n += 1
    return out[:n]


def entries_at_most(options: int, columns: int, slots: int) -> int:
    """Entries of the matrix: an option in three rows, a chunk in two rows of its option, one of company and three of its
    node a slot."""
    return 3 * options + (4 + 3 * slots) * columns


@allocating
def rows_of(instance, options, columns, row, column, value):
    """Fill the matrix (GLPK's triplets, from entry 1); (entries, kinds of the rows, their bounds)."""
    jobs, count, n_columns = instance.full.shape[0], options.shape[0], columns.shape[0]
    nodes, slots = instance.count.sum(), instance.free.shape[1]
    most = jobs + 2 * count + 3 * nodes * slots + n_columns
    kind, bound = np.empty(most, np.int64), np.empty(most)
    e = r = 0
    for k in range(jobs):  # one option at most; the chosen job's exactly one
        r += 1
        kind[r - 1], bound[r - 1] = EQUAL if k == 0 else UPPER, 1.0
        for i in range(count):
            if options[i, 0] == k:
                e += 1
                row[e], column[e], value[e] = r, i + 1, 1.0
    for i in range(count):  # all chunks of an option that is taken
        k, t = options[i, 0], options[i, 1]
        for full in (True, False):
            chunks = instance.full[k, t] if full else (1 if instance.rem[k, t] > 0 else 0)
            if options[i, 3] == 1:  # its nodes, then its GPUs
                chunks = instance.split[t] if full else instance.gpus[0]
            if chunks == 0:
                continue
            r += 1
            kind[r - 1], bound[r - 1] = EQUAL, 0.0
            e += 1
            row[e], column[e], value[e] = r, i + 1, -chunks
            for c in range(n_columns):
                if columns[c].option == i and (columns[c].full == full or options[i, 3] == 1):
                    e += 1
                    row[e], column[e], value[e] = r, count + c + 1, 1.0
                    if options[i, 3] == 1 and not full:
                        value[e] = columns[c].gpus
    for c in range(n_columns):  # company costs the job as much as on the node where it costs most
        if columns[c].own > 0.0:
            r += 1
            kind[r - 1], bound[r - 1] = UPPER, 0.0
            e += 2
            row[e - 1], column[e - 1], value[e - 1] = r, count + c + 1, columns[c].own
            row[e], column[e], value[e] = r, count + n_columns + 1, -1.0
    # columns by node: heads and links of one list a node
    head, link = np.full(nodes, -1, np.int64), np.empty(n_columns, np.int64)
    for c in range(n_columns - 1, -1, -1):
        m = columns[c].node
        link[c], head[m] = head[m], c
    largest = np.empty(jobs)
    for m in range(nodes):
        for slot in range(slots):
            if slot > 0 and _starts(options, columns, head, link, m, slot) == 0:
                continue  # whatever holds the node then did so in the slot before, when no more was free
            for resource in range(3):
                largest[:] = 0.0
                implied, before, both = resource > 0, -1, 0.0
                c = head[m]
                while c >= 0:
                    option = options[columns[c].option]
                    if _lasts(instance, option, slot):
                        here, job = columns[c].cls, option[0]
                        free = max(instance.free[here, slot, resource], 1)
                        share = use_of(instance, job, columns[c].gpus, here, resource) / free
                        # an option's full and last chunk follow one another: that they exclude each other is this row's
                        both = both + share if columns[c].option == before else share
                        before = columns[c].option
                        largest[job] = max(largest[job], both)
                        implied = implied and share <= columns[c].gpus / max(instance.free[here, slot, 0], 1)
                    c = link[c]
                if implied or largest.sum() <= 1.0:
                    continue
                r += 1
                kind[r - 1], bound[r - 1] = UPPER, 1.0
                c = head[m]
                while c >= 0:
                    option = options[columns[c].option]
                    if _lasts(instance, option, slot):
                        here = columns[c].cls
                        used = use_of(instance, option[0], columns[c].gpus, here, resource)
                        if used > 0:
                            e += 1
                            row[e], column[e] = r, count + c + 1
                            value[e] = used / max(instance.free[here, slot, resource], 1)
                    c = link[c]
    return e, kind[:r], bound[:r]


@allocating
def _starts(options, columns, head, link, m, slot):
    """Chunks that could begin on node ``m`` in a slot."""
    n = 0
    c = head[m]
    while c >= 0:
        n += options[columns[c].option, 2] == slot
        c = link[c]
    return n
