"""The program of rltune.placement.model, for GLPK by swiglpk: one problem object, refilled in place.

Here a variable is a *column*: that an option has a chunk of so many GPUs on a node, 0 or 1. A split has a column for
every number of GPUs that a node could give it, so z and x are one. Numbers in parentheses are the model's.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
import swiglpk as glp

from rltune.config import LookaheadConfig
from rltune.kernels import allocating, inlined, record
from rltune.placement.instance import Instance, Outcome, Solution

COLUMN = record(int64="option node cls gpus", bool="full", float64="cost colocated")
"""A chunk of an option on a node: number of the option, of the node, its class, GPUs, whether it is a full chunk or the
last, what it costs the objective, and what being co-located there costs the job, however many such chunks it has."""
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


def values_of(instance: Instance, options: np.ndarray, config: LookaheadConfig) -> np.ndarray:
    """(1): what the start of each option gains [O]; for the chosen job, which starts anyway, what it loses by it."""
    slots, slot, question = instance.free.shape[1], options[:, 2], instance.question[0]
    rank = instance.rank[options[:, 0]]
    gains = config.rank_decay ** (np.maximum(rank, 1) - 1.0) * (slots - slot) / slots
    if question["wait_s"] >= 0:
        gains *= config.others
    loses_s = np.where(options[:, 3] == 1, instance.split_s[options[:, 1]], np.where(slot > 0, question["wait_s"], 0.0))
    return np.where(rank > 0, gains, -loses_s / horizon_s(instance))


def horizon_s(instance: Instance) -> float:
    """Length of all slots in s, which turns seconds into starts."""
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
def _columns_of(instance, options, whole_node, tightness):
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
                    cost = whole_node if instance.whole[c] else 0.0
                    if not full:
                        cost += tightness * (instance.free[c, 0, 0] - gpus)
                for m in range(begin[c], begin[c] + min(instance.count[c], reach[k])):
                    row = out[n]
                    row.option, row.node, row.cls, row.gpus, row.full, row.cost = i, m, c, gpus, full, cost
                    row.colocated = 0.0
                    if k == 0 and slot == 0 and instance.colocated[m]:
                        loses_s = instance.colocated_split_s[t] if is_split else instance.colocated_s[t]
                        row.cost += instance.price_s[m] / horizon_s
                        row.colocated = loses_s / horizon_s
                    n += 1
    return out[:n]


class Rows(NamedTuple):
    """The matrix as GLPK takes it: triplets from entry 1 on, and kinds and bounds of the rows."""

    row: np.ndarray
    column: np.ndarray
    value: np.ndarray
    kind: np.ndarray
    bound: np.ndarray
    used: np.ndarray  # [2] int64, entries and rows so far


@inlined
def _add_row(rows, kind, bound):
    rows.kind[rows.used[1]], rows.bound[rows.used[1]] = kind, bound
    rows.used[1] += 1


@inlined
def _add_entry(rows, column, value):
    """In the last row; columns count from 1."""
    rows.used[0] += 1
    e = rows.used[0]
    rows.row[e], rows.column[e], rows.value[e] = rows.used[1], column, value


@allocating
def rows_of(instance, options, columns, row, column, value):
    """Fill the matrix; (entries, kinds of the rows, their bounds). Options come first among the columns."""
    most = instance.full.shape[0] + 2 * options.shape[0] + columns.shape[0]
    most += 3 * instance.count.sum() * instance.free.shape[1]
    rows = Rows(row, column, value, np.empty(most, np.int64), np.empty(most), np.zeros(2, np.int64))
    _starts_once(instance, options, rows)
    _has_its_chunks(instance, options, columns, rows)
    _colocation(options, columns, rows)
    _capacity(instance, options, columns, rows)
    return rows.used[0], rows.kind[: rows.used[1]], rows.bound[: rows.used[1]]


@allocating
def _starts_once(instance, options, rows):
    """(2), (3): the chosen job starts in exactly one option, another job in one at most."""
    for k in range(instance.full.shape[0]):
        _add_row(rows, EQUAL if k == 0 else UPPER, 1.0)
        for i in range(options.shape[0]):
            if options[i, 0] == k:
                _add_entry(rows, i + 1, 1.0)


@allocating
def _has_its_chunks(instance, options, columns, rows):
    """(4), (5): all full chunks and the last of an option that is taken; (7), (8): nodes and GPUs of a split."""
    for i in range(options.shape[0]):
        k, t, is_split = options[i, 0], options[i, 1], options[i, 3] == 1
        for first in (True, False):
            if is_split:
                number = instance.split[t] if first else instance.gpus[0]
            else:
                number = instance.full[k, t] if first else (1 if instance.rem[k, t] > 0 else 0)
            if number == 0:
                continue
            _add_row(rows, EQUAL, 0.0)
            _add_entry(rows, i + 1, -number)
            for c in range(columns.shape[0]):
                if columns[c].option == i and (columns[c].full == first or is_split):
                    _add_entry(rows, options.shape[0] + c + 1, columns[c].gpus if is_split and not first else 1.0)


@allocating
def _colocation(options, columns, rows):
    """(10): being co-located costs the job as much as on the node where it costs most."""
    for c in range(columns.shape[0]):
        if columns[c].colocated > 0.0:
            _add_row(rows, UPPER, 0.0)
            _add_entry(rows, options.shape[0] + c + 1, columns[c].colocated)
            _add_entry(rows, options.shape[0] + columns.shape[0] + 1, -1.0)


@allocating
def _capacity(instance, options, columns, rows):
    """(11), and with it (6): in every slot the resources of every node suffice; rows that others imply are left out."""
    nodes, slots = instance.count.sum(), instance.free.shape[1]
    # columns by node: heads and links of one list a node
    head, link = np.full(nodes, -1, np.int64), np.empty(columns.shape[0], np.int64)
    starts = np.zeros((nodes, slots), np.bool_)  # whether a chunk could begin there
    for c in range(columns.shape[0] - 1, -1, -1):
        m = columns[c].node
        link[c], head[m] = head[m], c
        starts[m, options[columns[c].option, 2]] = True
    largest = np.empty(instance.full.shape[0])
    for m in range(nodes):
        for slot in range(slots):
            if slot > 0 and not starts[m, slot]:
                continue  # whatever has the node then had it in the slot before, when no more was free
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
                _add_row(rows, UPPER, 1.0)
                c = head[m]
                while c >= 0:
                    option, here = options[columns[c].option], columns[c].cls
                    if _lasts(instance, option, slot):
                        used = use_of(instance, option[0], columns[c].gpus, here, resource)
                        if used > 0:
                            _add_entry(
                                rows, options.shape[0] + c + 1, used / max(instance.free[here, slot, resource], 1)
                            )
                    c = link[c]


class Buffer:
    """A GLPK array that numpy writes into; entry 0 is not used, as GLPK counts from 1."""

    def __init__(self, kind: Any, item: Any, length: int) -> None:
        self.glpk = kind(length + 1)
        self.values = np.ctypeslib.as_array((item * (length + 1)).from_address(int(self.glpk.cast())))


class GlpkSolver:
    """The program in one GLPK problem object; one per process is enough."""

    def __init__(self, config: LookaheadConfig) -> None:
        self.config = config
        self.problem = glp.glp_create_prob()
        self.simplex, self.search = glp.glp_smcp(), glp.glp_iocp()
        glp.glp_init_smcp(self.simplex)
        glp.glp_init_iocp(self.search)
        self.simplex.msg_lev = self.search.msg_lev = glp.GLP_MSG_OFF
        self.simplex.tm_lim = self.search.tm_lim = max(1, min(int(config.time_limit_s * 1000), 2**31 - 1))
        self._grow(4096)

    def __del__(self) -> None:
        glp.glp_delete_prob(self.problem)

    def _grow(self, entries: int) -> None:
        self._row, self._column = (Buffer(glp.intArray, ctypes.c_int, entries) for _ in range(2))
        self._value = Buffer(glp.doubleArray, ctypes.c_double, entries)

    def solve(self, instance: Instance, columns: np.ndarray | None = None) -> Solution:
        """Solve one instance; never raises for what the solver says, the outcome tells.

        ``columns``: some of those of :func:`columns_of`, to ask for the value of a given allocation; default: all.
        """
        options = options_of(instance)
        if columns is None:
            columns = columns_of(instance, options, self.config)
        # an option is in three rows; a chunk in two of its option, one of co-location and three of its node a slot
        needed = 3 * len(options) + (4 + 3 * instance.free.shape[1]) * len(columns)
        if len(self._row.values) <= needed:
            self._grow(2 * needed)
        matrix = self._row.values, self._column.values, self._value.values
        entries, kind, bound = rows_of(instance, options, columns, *matrix)
        self._load(columns, values_of(instance, options, self.config), kind, bound, entries)
        # cuts pay for splits alone: the hardest on real rows take a second with them, more than five without
        self.search.mir_cuts = glp.GLP_ON if instance.split.any() else glp.GLP_OFF
        return self._search(options, columns)

    def _load(self, columns: np.ndarray, values: np.ndarray, kind: np.ndarray, bound: np.ndarray, entries: int) -> None:
        """Replace what is in the problem object."""
        problem, binaries = self.problem, len(values) + len(columns)
        colocated = bool(columns["colocated"].any())
        glp.glp_erase_prob(problem)
        glp.glp_set_obj_dir(problem, glp.GLP_MAX)
        glp.glp_add_cols(problem, binaries + colocated)
        glp.glp_add_rows(problem, len(kind))
        for c in range(1, binaries + 1):
            glp.glp_set_col_kind(problem, c, glp.GLP_BV)
        for r, (what, value) in enumerate(zip(kind.tolist(), bound.tolist()), 1):
            glp.glp_set_row_bnds(problem, r, glp.GLP_FX if what == EQUAL else glp.GLP_UP, value, value)
        if colocated:  # a number, not a choice: the most that being co-located costs on any node taken
            glp.glp_set_col_bnds(problem, binaries + 1, glp.GLP_LO, 0.0, 0.0)
            glp.glp_set_obj_coef(problem, binaries + 1, -1.0)
        for o, value in enumerate(values.tolist(), 1):
            if value:
                glp.glp_set_obj_coef(problem, o, value)
        for c in np.flatnonzero(columns["cost"]).tolist():
            glp.glp_set_obj_coef(problem, len(values) + c + 1, -float(columns["cost"][c]))
        glp.glp_load_matrix(problem, entries, self._row.glpk, self._column.glpk, self._value.glpk)

    def _search(self, options: np.ndarray, columns: np.ndarray) -> Solution:
        for solve, parameters, status_of in (
            (glp.glp_simplex, self.simplex, glp.glp_get_status),
            (glp.glp_intopt, self.search, glp.glp_mip_status),  # starts from the basis of the relaxation
        ):
            if code := solve(self.problem, parameters):
                return Solution(Outcome.LIMIT if code == glp.GLP_ETMLIM else Outcome.FAILURE, float("nan"))
            if (status := status_of(self.problem)) != glp.GLP_OPT:
                none = status in (glp.GLP_NOFEAS, glp.GLP_INFEAS)
                return Solution(Outcome.INFEASIBLE if none else Outcome.FAILURE, float("nan"))
        now = options[columns["option"]]
        mine = np.flatnonzero((now[:, 0] == 0) & (now[:, 2] == 0)).tolist()
        first = len(options) + 1
        taken = columns[[c for c in mine if glp.glp_mip_col_val(self.problem, first + c) > 0.5]]
        taken = taken[np.argsort(~taken["full"], kind="stable")]
        chunks = tuple(zip(taken["node"].tolist(), taken["gpus"].tolist()))
        return Solution(Outcome.OPTIMAL, glp.glp_mip_obj_val(self.problem), chunks)
