"""The look-ahead placement model in CVXPY, to be read; rltune.placement.glpk is the same for the hot path.

Over the chosen job (k = 0) and the next jobs of the ranking that matter to it, each with *options* o: one of the GPU
types it may use, one of S slots to start in, as a whole (in strict chunks) or, the chosen job, split. Slot 0 is now;
slot s begins s · slot_s seconds from now, and what running jobs should have given back by then is free. A job lasts
⌈estimate / slot_s⌉ slots. What the chosen job may do is the question:

==========  ========================================================================================
question    the chosen job's options
==========  ========================================================================================
now         it fits as a whole: it starts so, now
split       it does not, and the locality allows any job more nodes: it starts split, now
wait        it does not, and may wait: it starts split, now, or as a whole in the second of two slots,
            which begins when it should fit so
==========  ========================================================================================

A split takes the fewest nodes of a type that could hold the job now, with any number of GPUs on each.

==========  ========================================================================================
variable    meaning
==========  ========================================================================================
s[o]        the job starts in this option (0/1)
y[o, n]     its last chunk goes to node n (0/1)
u[o, n]     one of its full chunks goes to node n (0/1)
z[n]        the chosen job, split, has node n (0/1)
x[n]        GPUs it has there (whole number)
e[o]        whether the chosen job has company in this option (number, as small as may be)
==========  ========================================================================================

maximise    Σ_k w_k · (S − t)/S · (job k starts in slot t)        next jobs started, soon, weighted by rank
            − lose/horizon · (the chosen job is split)              seconds that it runs longer
            − wait/horizon · (the chosen job waits)                 seconds until the second slot
            − whole · (wholly free nodes of the pool's largest size
                       that the chosen job touches)                kept for multi-GPU jobs
            − tight · (GPUs left free beside the chosen job's last chunk; split: beside every chunk)
            − Σ_n price_n/horizon · (the chosen job touches node n) what those lose whom it joins there
            − Σ_o own_o/horizon · e[o]                              what the chosen job loses itself by company

subject to  the chosen job starts; no job starts twice; a started option has all its chunks, each on a node of
its own; a split has its number of nodes and all its GPUs, one or more on each; in every slot the GPUs, CPUs and memory
of every node suffice for those that hold it then; e[o] is at least 1 where the chosen job, if it starts now, touches a
node with company.

w_k = decay^(rank_k − 1); where the chosen job may wait, w, *whole* and *tight* count ``others`` times. The unit of the
objective is one start, now, of the next-ranked job; (S − t)/S is the share of the S slots that a start in slot t does
not wait, and the horizon, which turns seconds into starts, is all S slots. Only the chosen job's nodes are applied, and
only if it starts now, so only then is its placement charged for what it does to the nodes; the others are decided anew.
*Company* on a node is a job of several GPUs, where the chosen job is one too and such jobs slow one another down: *own*
seconds are what the chosen job loses by it in an option, the node's *price* what the others do.
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
    """An instance as the model's parameters: O options on N nodes, those of ``Instance.member``, over S slots."""

    weight: np.ndarray  # [O] worth of the option in starts, of the chosen job's less what it loses
    job: np.ndarray  # [O] int64, which job the option belongs to
    waits: np.ndarray  # [O] bool, it does not start now
    n_full: np.ndarray  # [O] 0 for a split
    n_rem: np.ndarray  # [O] 0 or 1
    n_split: np.ndarray  # [O] nodes of a split, 0 for other options
    gpus_split: np.ndarray  # [O] its GPUs
    rem: np.ndarray  # [O] int64, GPUs of the last chunk
    size: np.ndarray  # [O] int64, GPUs of a full chunk
    may_rem: np.ndarray  # [O, N] 0 or 1: the last chunk fits the node by itself
    may_full: np.ndarray  # [O, N]
    may_split: np.ndarray  # [O, N] 0 or 1: the split may have the node
    use_rem: np.ndarray  # [3 S, O, N] GPUs, CPUs, memory of the last chunk in each slot, as shares of the node's free
    use_full: np.ndarray  # [3 S, O, N]
    use_split: np.ndarray  # [3 S, N] the same of one GPU of the chosen job's, split
    most: np.ndarray  # [N] GPUs the node could give a split
    cost_rem: np.ndarray  # [O, N] what the chosen job's last chunk costs on the node, if now
    cost_full: np.ndarray  # [O, N]
    cost_split: np.ndarray  # [N] what having the node costs it split, with all its free GPUs left free
    tightness: float  # what a GPU of these spares it that it takes
    met: np.ndarray  # [O, N] 0 or 1: the chosen job, as a whole and now, would have company on the node
    met_split: np.ndarray  # [O, N] the same, split
    own: np.ndarray  # [O] what company costs it itself


def _options(instance: Instance) -> list[tuple[int, int, int, bool]]:
    """(job, type, slot, whether split) of every option."""
    jobs, types = instance.full.shape
    question, allowed = instance.question[0], instance.full >= 0
    option = [(0, t, 0, True) for t in range(types) if instance.split[t] > 0]
    for wanted, slot in ((question["now"], 0), (question["wait_s"] >= 0, 1)):
        option += [(0, t, slot, False) for t in range(types) if wanted and allowed[0, t]]
    slots = range(instance.free.shape[1])
    return option + [
        (k, t, slot, False) for k in range(1, jobs) for t in range(types) if allowed[k, t] for slot in slots
    ]


def arrays(instance: Instance, config: LookaheadConfig) -> Arrays:
    """Expand classes into nodes and jobs into options."""
    node_class = np.repeat(np.arange(len(instance.count)), instance.count)
    kind, question = instance.type[node_class], instance.question[0]
    slots = instance.free.shape[1]
    horizon_s = float(instance.slot_s[0]) * slots
    k, t, slot, split = (np.array(x) for x in zip(*_options(instance), strict=True))
    n_full, rem, size = (np.where(split, 0, x[k, t]) for x in (instance.full, instance.rem, instance.size))
    same = t[:, None] == kind[None, :]
    free = instance.free[node_class].transpose(1, 2, 0).astype(float)  # [S, 3, N]

    # GPUs, CPUs and memory that one GPU of an option takes on a node: [3, O, N]
    cpu, mem = (
        np.where(own[k][:, None] >= 0, own[k][:, None], share[node_class])
        for own, share in ((instance.cpu, instance.share_cpu), (instance.mem, instance.share_mem))
    )
    each = np.stack([np.ones(same.shape), cpu, mem])
    # shares of what is free keep all rows of the model on one scale: [S, 3, O, N]
    share_of = np.where(each > 0, each / np.maximum(free[:, :, None, :], 1e-9), 0.0)

    def fits(gpus: np.ndarray) -> np.ndarray:
        """In the slot the option starts in, the one with the least free: [O, N]."""
        need = gpus[:, None] * each
        return same & (gpus > 0)[:, None] & (need <= free[slot].transpose(1, 0, 2)).all(axis=0)

    # where and when an option would hold nodes: [S, 1, O, 1]
    length = np.where(split, instance.split_length[t], instance.length[k])
    lasts = (slot <= np.arange(slots)[:, None]) & (np.arange(slots)[:, None] < slot + length)
    lasts = lasts[:, None, :, None]

    def held(gpus: np.ndarray, may: np.ndarray) -> np.ndarray:
        """As rows of all slots' resources: [3 S, O, N]."""
        return np.where(lasts & may, gpus[:, None] * share_of, 0.0).reshape(-1, *may.shape)

    may_rem, may_full = fits(rem), fits(size) & (n_full > 0)[:, None]
    may_split = same & split[:, None]
    now = ((k == 0) & (slot == 0) & ~split)[:, None]
    less = config.others if question["wait_s"] >= 0 else 1.0
    whole, tightness = less * config.whole_node * instance.whole[node_class], less * config.tightness
    price = instance.price_s / horizon_s
    left = free[0, 0] - rem[:, None]
    rank, loses_s = instance.rank[k], np.where(split, instance.lose_s[t], np.where(slot > 0, question["wait_s"], 0.0))
    worth = config.rank_decay ** (np.maximum(rank, 1) - 1.0) * (slots - slot) / slots
    worth *= less
    # of each node the one split option there is on its type, if any
    some = may_split.any(axis=0)
    most = np.floor(np.min(free[0] / np.maximum(each[:, 0], 1e-9), axis=0) + 1e-9)
    return Arrays(
        np.where(rank > 0, worth, -loses_s / horizon_s),
        k,
        slot > 0,
        n_full,
        (rem > 0).astype(int),
        np.where(split, instance.split[t], 0),
        np.where(split, instance.gpus[0], 0),
        rem,
        size,
        may_rem,
        may_full,
        may_split,
        held(rem, may_rem),
        held(size, may_full),
        held(split.astype(int), may_split).sum(axis=1),
        np.where(some, most, 0),
        np.where(now & may_rem, whole + price + tightness * left, 0.0),
        np.where(now & may_full, whole + price, 0.0),
        np.where(some, whole + price + tightness * free[0, 0], 0.0),
        tightness,
        now & instance.company,
        may_split & instance.company,
        np.where(split, instance.own_split_s[t], question["own_s"]) / horizon_s,
    )


class LookaheadModel:
    """The model for one size (jobs, options, nodes, slots), compiled once by CVXPY and solved again for each instance."""

    def __init__(self, jobs: int, options: int, nodes: int, slots: int = 1) -> None:
        shape = (options, nodes)
        self.shape = shape
        self.s = cp.Variable(options, boolean=True)
        self.y = cp.Variable(shape, boolean=True)
        self.u = cp.Variable(shape, boolean=True)
        self.z = cp.Variable(nodes, boolean=True)
        self.x = cp.Variable(nodes, integer=True)
        self.e = cp.Variable(options, nonneg=True)
        # GLPK_MI kills the process where its presolver is left with rows but without a column; one of these is left
        idle = cp.Variable(3, boolean=True)
        self.weight = cp.Parameter(options)
        self.member = cp.Parameter((jobs, options), nonneg=True)
        self.n_full = cp.Parameter(options, nonneg=True)
        self.n_rem = cp.Parameter(options, nonneg=True)
        self.n_split = cp.Parameter(options, nonneg=True)
        self.gpus_split = cp.Parameter(options, nonneg=True)
        self.may_rem = cp.Parameter(shape, nonneg=True)
        self.may_full = cp.Parameter(shape, nonneg=True)
        self.may_split = cp.Parameter(shape, nonneg=True)
        self.use_rem = [cp.Parameter(shape, nonneg=True) for _ in range(3 * slots)]
        self.use_full = [cp.Parameter(shape, nonneg=True) for _ in range(3 * slots)]
        self.use_split = [cp.Parameter(nodes, nonneg=True) for _ in range(3 * slots)]
        self.most = cp.Parameter(nodes, nonneg=True)
        self.cost_rem = cp.Parameter(shape, nonneg=True)
        self.cost_full = cp.Parameter(shape, nonneg=True)
        self.cost_split = cp.Parameter(nodes, nonneg=True)
        self.tightness = cp.Parameter(nonneg=True)
        self.met = cp.Parameter(shape, nonneg=True)
        self.met_split = cp.Parameter(shape, nonneg=True)
        self.own = cp.Parameter(options, nonneg=True)
        starts = self.member @ self.s
        touched = cp.reshape(self.e, (options, 1), order="C") @ np.ones((1, nodes))
        constraints = [
            starts[0] == 1,
            starts <= 1,
            cp.sum(self.y, axis=1) == cp.multiply(self.n_rem, self.s),
            cp.sum(self.u, axis=1) == cp.multiply(self.n_full, self.s),
            self.y <= self.may_rem,
            self.u <= self.may_full,
            self.y + self.u <= 1,
            self.may_split @ self.z == cp.multiply(self.n_split, self.s),
            self.may_split @ self.x == cp.multiply(self.gpus_split, self.s),
            self.z <= self.x,
            self.x <= cp.multiply(self.most, self.z),
            cp.multiply(self.met, self.y + self.u) <= touched,
            cp.multiply(self.met_split, np.ones((options, 1)) @ cp.reshape(self.z, (1, nodes), order="C")) <= touched,
            cp.sum(idle) >= 1,
            cp.sum(idle) <= 2,
        ]
        for rem, full, split in zip(self.use_rem, self.use_full, self.use_split, strict=True):
            chunks = cp.sum(cp.multiply(rem, self.y) + cp.multiply(full, self.u), axis=0)
            constraints.append(chunks + cp.multiply(split, self.x) <= 1)
        worth = self.weight @ self.s
        cost = cp.sum(cp.multiply(self.cost_rem, self.y)) + cp.sum(cp.multiply(self.cost_full, self.u))
        cost_split = self.cost_split @ self.z - self.tightness * cp.sum(self.x)
        self.problem = cp.Problem(cp.Maximize(worth - cost - cost_split - self.own @ self.e), constraints)

    def solve(self, a: Arrays, time_limit_s: float, solver: str = "GLPK_MI") -> Solution:
        """Solve one instance; never raises for what a solver says, the outcome tells."""
        o = len(a.job)

        def padded(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
            out = np.zeros(shape)
            out[tuple(slice(length) for length in x.shape)] = x
            return out

        member = np.zeros(self.member.shape)
        member[a.job, np.arange(o)] = 1
        self.member.value, self.tightness.value = member, a.tightness
        for name in (
            "weight",
            "n_full",
            "n_rem",
            "n_split",
            "gpus_split",
            "may_rem",
            "may_full",
            "may_split",
            "most",
            "cost_rem",
            "cost_full",
            "cost_split",
            "met",
            "met_split",
            "own",
        ):
            parameter = getattr(self, name)
            parameter.value = padded(getattr(a, name), parameter.shape)
        for parameters, values in (
            (self.use_rem, a.use_rem),
            (self.use_full, a.use_full),
            (self.use_split, a.use_split),
        ):
            for parameter, value in zip(parameters, values, strict=True):
                parameter.value = padded(value, parameter.shape)
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

    def _chunks(self, a: Arrays) -> tuple[tuple[int, int], ...]:
        """(Node, GPUs) of the chosen job, full chunks first; none where it starts later."""
        taken = [o for o in np.flatnonzero(a.job == 0) if self.s.value[o] > 0.5 and not a.waits[o]]
        chunks = [(int(n), int(a.size[o])) for o in taken for n in np.flatnonzero(self.u.value[o] > 0.5)]
        chunks += [(int(n), int(a.rem[o])) for o in taken for n in np.flatnonzero(self.y.value[o] > 0.5)]
        return (*chunks, *((int(n), round(self.x.value[n])) for n in np.flatnonzero(self.z.value > 0.5)))
