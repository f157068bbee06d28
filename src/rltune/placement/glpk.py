"""The look-ahead model of rltune.placement.model in GLPK itself, by swiglpk: one problem object, refilled in place."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import swiglpk as glp

from rltune.config import LookaheadConfig
from rltune.placement.instance import Instance
from rltune.placement.matrix import EQUAL, columns_of, entries_at_most, options_of, rows_of, worth_of
from rltune.placement.outcome import Outcome, Solution


class Buffer:
    """A GLPK array that numpy writes into; entry 0 is not used, as GLPK counts from 1."""

    def __init__(self, kind: Any, item: Any, length: int) -> None:
        self.glpk = kind(length + 1)
        self.values = np.ctypeslib.as_array((item * (length + 1)).from_address(int(self.glpk.cast())))


class GlpkModel:
    """The model in one GLPK problem object; one per process is enough."""

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

        ``columns``: some of those of :func:`columns_of`, to ask what a given way is worth; default: all.
        """
        options = options_of(instance)
        if columns is None:
            columns = columns_of(instance, options, self.config)
        company = bool(columns["own"].any())
        needed = entries_at_most(len(options), len(columns), instance.free.shape[1])
        if len(self._row.values) <= needed:
            self._grow(2 * needed)
        matrix = self._row.values, self._column.values, self._value.values
        entries, kind, bound = rows_of(instance, options, columns, *matrix)
        self._load(instance, options, columns, kind, bound, entries, company)
        # cuts pay for splits alone: the hardest on real rows take a second with them, more than five without
        self.search.mir_cuts = glp.GLP_ON if instance.split.any() else glp.GLP_OFF
        return self._search(options, columns)

    def _load(
        self,
        instance: Instance,
        options: np.ndarray,
        columns: np.ndarray,
        kind: np.ndarray,
        bound: np.ndarray,
        entries: int,
        company: bool,
    ) -> None:
        """Replace what is in the problem object."""
        problem, s = self.problem, len(options)
        glp.glp_erase_prob(problem)
        glp.glp_set_obj_dir(problem, glp.GLP_MAX)
        glp.glp_add_cols(problem, s + len(columns) + company)
        glp.glp_add_rows(problem, len(kind))
        for c in range(1, s + len(columns) + 1):
            glp.glp_set_col_kind(problem, c, glp.GLP_BV)
        for r, (what, value) in enumerate(zip(kind.tolist(), bound.tolist()), 1):
            glp.glp_set_row_bnds(problem, r, glp.GLP_FX if what == EQUAL else glp.GLP_UP, value, value)
        if company:  # a number, not a choice: the most that company costs on any node taken
            glp.glp_set_col_bnds(problem, s + len(columns) + 1, glp.GLP_LO, 0.0, 0.0)
            glp.glp_set_obj_coef(problem, s + len(columns) + 1, -1.0)
        for o, worth in enumerate(worth_of(instance, options, self.config).tolist(), 1):
            if worth:
                glp.glp_set_obj_coef(problem, o, worth)
        for c in np.flatnonzero(columns["cost"]).tolist():
            glp.glp_set_obj_coef(problem, s + c + 1, -float(columns["cost"][c]))
        glp.glp_load_matrix(problem, entries, self._row.glpk, self._column.glpk, self._value.glpk)

    def _search(self, options: np.ndarray, columns: np.ndarray) -> Solution:
        nothing = float("nan")
        code = glp.glp_simplex(self.problem, self.simplex)  # intopt starts from its basis
        if code != 0:
            return Solution(Outcome.LIMIT if code == glp.GLP_ETMLIM else Outcome.FAILURE, nothing)
        if glp.glp_get_status(self.problem) != glp.GLP_OPT:
            none = glp.glp_get_status(self.problem) in (glp.GLP_NOFEAS, glp.GLP_INFEAS)
            return Solution(Outcome.INFEASIBLE if none else Outcome.FAILURE, nothing)
        code = glp.glp_intopt(self.problem, self.search)
        if code != 0:
            return Solution(Outcome.LIMIT if code == glp.GLP_ETMLIM else Outcome.FAILURE, nothing)
        status = glp.glp_mip_status(self.problem)
        if status != glp.GLP_OPT:
            return Solution(Outcome.INFEASIBLE if status == glp.GLP_NOFEAS else Outcome.FAILURE, nothing)
        now = options[columns["option"]]
        mine = np.flatnonzero((now[:, 0] == 0) & (now[:, 2] == 0)).tolist()
        first = len(options) + 1
        taken = columns[[c for c in mine if glp.glp_mip_col_val(self.problem, first + c) > 0.5]]
        taken = taken[np.argsort(~taken["full"], kind="stable")]
        chunks = tuple(zip(taken["node"].tolist(), taken["gpus"].tolist()))
        return Solution(Outcome.OPTIMAL, glp.glp_mip_obj_val(self.problem), chunks)
