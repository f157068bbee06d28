"""The look-ahead placement model in CVXPY, to be read; rltune.placement.glpk is the same for the hot path.

Over the chosen job (k = 0) and the next jobs of the ranking that matter to it, each with *options* o: one of the GPU
types it may use, and one of T slots to start in (the chosen job: the first, now). Slot t begins (t − 1) · slot_s
seconds from now; what running jobs should have given back by then is free. A job lasts ⌈estimate / slot_s⌉ slots.

==========  ========================================================================================
variable    meaning
==========  ========================================================================================
s[o]        the job starts in this option (0/1)
y[o, n]     its last chunk goes to node n (0/1)
u[o, n]     one of its full chunks goes to node n (0/1)
==========  ========================================================================================

maximise    Σ_k w_k · (T + 1 − t)/T · (job k starts in slot t)   next jobs started, soon, weighted by rank
            − whole · (wholly free nodes of the pool's largest size
                       that the chosen job touches)                kept for multi-GPU jobs
            − tight · (GPUs left free beside the chosen job's last chunk)

subject to  the chosen job starts; no job starts twice; a started option has all its chunks, each on a node of
its own; in every slot the GPUs, CPUs and memory of every node suffice for those that hold it then.

w_k = decay^(rank_k − 1): the unit of the objective is one start, now, of the next-ranked job; (T + 1 − t)/T is the share
of the T slots that a start in slot t does not wait. Only the chosen job's nodes are applied, so only its placement is
charged for what it does to the nodes; the others are decided anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from rltune.config import LookaheadConfig
from rltune.placement.instance import Instance
from rltune.placement.outcome import Outcome, Solution


@dataclass(frozen=True)
class Arrays:
    """An instance as the model's parameters: O options on N nodes."""

    weight: np.ndarray  # [O] worth of starting the option's job
    job: np.ndarray  # [O] int64, which job the option belongs to
    n_full: np.ndarray  # [O]
    n_rem: np.ndarray  # [O] 0 or 1
    may_rem: np.ndarray  # [O, N] 0 or 1: the last chunk fits the node by itself
    may_full: np.ndarray  # [O, N]
    use_rem: np.ndarray  # [3 S, O, N] GPUs, CPUs, memory of the last chunk in each slot, as shares of the node's free
    use_full: np.ndarray  # [3 S, O, N]
    cost_rem: np.ndarray  # [O, N] what the chosen job's last chunk costs on the node
    cost_full: np.ndarray  # [O, N]
    node_class: np.ndarray  # [N] int64


def arrays(instance: Instance, config: LookaheadConfig) -> Arrays:
    """Expand classes into nodes and jobs into options."""
    jobs, types = instance.full.shape
    node_class = np.repeat(np.arange(len(instance.count)), instance.count)
    kind = instance.type[node_class]
    slots = instance.free.shape[1]
    option = [
        (k, t, slot)
        for k in range(jobs)
        for t in range(types)
        if instance.full[k, t] >= 0
        for slot in range(slots if k > 0 else 1)
    ]
    k, t, slot = (np.array(x) for x in zip(*option, strict=True))
    n_full, rem, size = instance.full[k, t], instance.rem[k, t], instance.size[k, t]
    same = t[:, None] == kind[None, :]
    free = instance.free[node_class].transpose(1, 2, 0).astype(float)  # [S, 3, N]

    def use(gpus: np.ndarray) -> np.ndarray:
        cpu = np.where(instance.cpu[k] >= 0, instance.cpu[k], -1)[:, None]
        mem = np.where(instance.mem[k] >= 0, instance.mem[k], -1)[:, None]
        cpu = np.where(cpu >= 0, cpu, instance.share_cpu[node_class][None, :])
        mem = np.where(mem >= 0, mem, instance.share_mem[node_class][None, :])
        need = np.stack([np.broadcast_to(gpus[:, None], same.shape), gpus[:, None] * cpu, gpus[:, None] * mem])
        # shares of what is free keep all rows of the model on one scale: [S, 3, O, N]
        return np.where(need > 0, need / np.maximum(free[:, :, None, :], 1e-9), 0.0)

    def fits(share: np.ndarray) -> np.ndarray:
        """In the slot the option starts in, the one with the least free: [O, N]."""
        return (share[slot, :, np.arange(len(slot))] <= 1).all(axis=1)

    def held(share: np.ndarray, may: np.ndarray) -> np.ndarray:
        """Where and when an option would hold nodes, as rows of all slots' resources: [3 S, O, N]."""
        lasts = (slot <= np.arange(slots)[:, None]) & (np.arange(slots)[:, None] < slot + instance.length[k])
        return np.where(lasts[:, None, :, None] & may, share, 0.0).reshape(-1, *may.shape)

    use_rem, use_full = use(rem), use(size)
    may_rem = same & (rem > 0)[:, None] & fits(use_rem)
    may_full = same & (n_full > 0)[:, None] & fits(use_full)
    chosen = (k == 0)[:, None]
    left = free[0, 0][None, :] - rem[:, None]
    whole = instance.whole[node_class][None, :]
    rank = instance.rank[k]
    return Arrays(
        np.where(rank == 0, 0.0, config.rank_decay ** (np.maximum(rank, 1) - 1) * (slots - slot) / slots), k, n_full,
        (rem > 0).astype(int), may_rem, may_full, held(use_rem, may_rem), held(use_full, may_full),
        np.where(chosen & may_rem, config.whole_node * whole + config.tightness * left, 0.0),
        np.where(chosen & may_full, config.whole_node * whole, 0.0), node_class,
    )  # fmt: skip


class LookaheadModel:
    """The model for one size (jobs, options, nodes, slots), compiled once by CVXPY and solved again for each instance."""

    def __init__(self, jobs: int, options: int, nodes: int, slots: int = 1) -> None:
        shape = (options, nodes)
        self.shape = shape
        self.s = cp.Variable(options, boolean=True)
        self.y = cp.Variable(shape, boolean=True)
        self.u = cp.Variable(shape, boolean=True)
        self.weight = cp.Parameter(options, nonneg=True)
        self.member = cp.Parameter((jobs, options), nonneg=True)
        self.n_full = cp.Parameter(options, nonneg=True)
        self.n_rem = cp.Parameter(options, nonneg=True)
        self.may_rem = cp.Parameter(shape, nonneg=True)
        self.may_full = cp.Parameter(shape, nonneg=True)
        self.use_rem = [cp.Parameter(shape, nonneg=True) for _ in range(3 * slots)]
        self.use_full = [cp.Parameter(shape, nonneg=True) for _ in range(3 * slots)]
        self.cost_rem = cp.Parameter(shape, nonneg=True)
        self.cost_full = cp.Parameter(shape, nonneg=True)
        starts = self.member @ self.s
        constraints = [
            starts[0] == 1,
            starts <= 1,
            cp.sum(self.y, axis=1) == cp.multiply(self.n_rem, self.s),
            cp.sum(self.u, axis=1) == cp.multiply(self.n_full, self.s),
            self.y <= self.may_rem,
            self.u <= self.may_full,
            self.y + self.u <= 1,
        ]
        for rem, full in zip(self.use_rem, self.use_full, strict=True):
            constraints.append(cp.sum(cp.multiply(rem, self.y) + cp.multiply(full, self.u), axis=0) <= 1)
        worth = self.weight @ self.s
        cost = cp.sum(cp.multiply(self.cost_rem, self.y)) + cp.sum(cp.multiply(self.cost_full, self.u))
        self.problem = cp.Problem(cp.Maximize(worth - cost), constraints)

    def solve(self, a: Arrays, time_limit_s: float, solver: str = "GLPK_MI") -> Solution:
        """Solve one instance; never raises for what a solver says, the outcome tells."""
        o, n = a.may_rem.shape
        options, nodes = self.shape

        def padded(x: np.ndarray) -> np.ndarray:
            out = np.zeros(self.shape)
            out[:o, :n] = x
            return out

        def row(x: np.ndarray) -> np.ndarray:
            return np.concatenate([x, np.zeros(options - o)])

        member = np.zeros(self.member.shape)
        member[a.job, np.arange(o)] = 1
        self.member.value, self.weight.value = member, row(a.weight)
        self.n_full.value, self.n_rem.value = row(a.n_full), row(a.n_rem)
        self.may_rem.value, self.may_full.value = padded(a.may_rem), padded(a.may_full)
        for parameters, values in ((self.use_rem, a.use_rem), (self.use_full, a.use_full)):
            for parameter, value in zip(parameters, values, strict=True):
                parameter.value = padded(value)
        self.cost_rem.value, self.cost_full.value = padded(a.cost_rem), padded(a.cost_full)
        limit = {"GLPK_MI": {"tm_lim": int(time_limit_s * 1000)}, "HIGHS": {"time_limit": time_limit_s}}
        began = time.perf_counter()
        try:
            self.problem.solve(solver=solver, **limit.get(solver, {}))
        except cp.error.SolverError:
            # GLPK says "undefined" both when its clock stopped it and when it failed; our clock tells them apart
            late = time.perf_counter() - began >= time_limit_s
            return Solution(Outcome.LIMIT if late else Outcome.FAILURE, float("nan"))
        if self.problem.status in ("infeasible", "infeasible_inaccurate"):
            return Solution(Outcome.INFEASIBLE, float("nan"))
        if self.problem.status != "optimal":
            return Solution(Outcome.LIMIT, float("nan"))
        return Solution(Outcome.OPTIMAL, float(self.problem.value), self._chunks(a))

    def _chunks(self, a: Arrays) -> tuple[tuple[int, bool], ...]:
        o, n = a.may_rem.shape
        y, u = (v.value[:o, :n] > 0.5 for v in (self.y, self.u))
        mine = a.job == 0
        last = [(int(a.node_class[i]), False) for i in np.nonzero(y[mine].any(axis=0))[0]]
        full = [(int(a.node_class[i]), True) for i in np.nonzero(u[mine].any(axis=0))[0]]
        return tuple(sorted(full, key=lambda c: c[0]) + last)
