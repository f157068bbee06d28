"""The look-ahead placement program in CVXPY, constraint by constraint; rltune.placement.kernel is the same for GLPK.

The *chosen* job (k = 0) is to be placed with regard to the next jobs of the ranking. Each job has *options* o: one of
the GPU types it may use, one of S slots to start in, as a whole (in strict chunks) or, the chosen job, split. Slot 0 is
now; slot s begins s · slot_s seconds from now, and what running jobs should have released by then is free. A job lasts
⌈estimate / slot_s⌉ slots. The chosen job's options depend on the question:

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
e[o]        whether the chosen job is co-located in this option (number, as small as may be)
==========  ========================================================================================

The objective (1) counts starts: its unit is one start, now, of the next-ranked job. A start in slot t counts
(S − t)/S, and decay^(rank − 1) by its job's rank. Seconds that the chosen job loses (split, waiting, co-located), and
those that jobs on its nodes lose through it, count by the horizon, the length of all slots. Each wholly free node of
the pool's largest size that it touches costs ``whole_node``, each GPU left free next to its last chunk (split: next to
every chunk) ``tightness``. Where it may wait, all that is not its own seconds counts ``others`` times. Only the chosen
job's nodes are applied, and only if it starts now; the others are decided again. *Co-located* are jobs of several GPUs
that share a node, where that slows them down.
"""

import time
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from rltune.config import LookaheadConfig
from rltune.placement.instance import Instance, Outcome, Solution


class CvxpySolver:
    """Solves the program with one of CVXPY's solvers."""

    def __init__(self, config: LookaheadConfig, solver: str = "HIGHS") -> None:
        self.config, self.solver = config, solver

    def solve(self, instance: Instance) -> Solution:
        """Solve one instance; never raises for what the solver says, the outcome tells."""
        p = parameters_of(instance, self.config)
        shape = p.fits_rem.shape
        s, e = cp.Variable(shape[0], boolean=True), cp.Variable((shape[0], 1), nonneg=True)
        y, u = cp.Variable(shape, boolean=True), cp.Variable(shape, boolean=True)
        z, x = cp.Variable(shape[1], boolean=True), cp.Variable(shape[1], integer=True)

        objective = (  # (1)
            p.gain @ s
            - cp.sum(cp.multiply(p.cost_rem, y) + cp.multiply(p.cost_full, u))
            - (p.cost_split @ z - p.tightness * cp.sum(x))
            - p.colocated_cost @ e[:, 0]
        )
        starts = p.job @ s
        constraints = [
            starts[0] == 1,  # (2) the chosen job starts
            starts <= 1,  # (3) no job starts twice
            cp.sum(y, axis=1) == cp.multiply(p.rem_chunks, s),  # (4) a started option has its last chunk
            cp.sum(u, axis=1) == cp.multiply(p.full_chunks, s),  # (5) and all its full chunks
            y <= p.fits_rem,
            u <= p.fits_full,
            y + u <= 1,  # (6) each on a separate node that holds it
            p.may_split @ z == cp.multiply(p.split_nodes, s),  # (7) a split has its number of nodes
            p.may_split @ x == cp.multiply(p.split_gpus, s),  # (8) and all its GPUs,
            z <= x,
            x <= cp.multiply(p.most_gpus, z),  # (9) one or more on each, and no more than the node has
            cp.multiply(p.meets, y + u) <= e @ np.ones((1, shape[1])),
            cp.multiply(p.meets_split, np.ones((shape[0], 1)) @ z[None, :]) <= e @ np.ones((1, shape[1])),  # (10)
        ]
        for rem, full, split in zip(p.use_rem, p.use_full, p.use_split, strict=True):  # each slot's GPUs, CPUs, memory
            used = cp.sum(cp.multiply(rem, y) + cp.multiply(full, u), axis=0) + cp.multiply(split, x)
            constraints.append(used <= 1)  # (11) they suffice on every node

        problem = cp.Problem(cp.Maximize(objective), constraints)
        outcome = self._run(problem)
        if outcome is not Outcome.OPTIMAL:
            return Solution(outcome, float("nan"))
        taken = [o for o in np.flatnonzero(p.job[0]) if s.value[o] > 0.5 and not p.later[o]]
        chunks = [(int(n), int(p.full_gpus[o])) for o in taken for n in np.flatnonzero(u.value[o] > 0.5)]
        chunks += [(int(n), int(p.rem_gpus[o])) for o in taken for n in np.flatnonzero(y.value[o] > 0.5)]
        chunks += [(int(n), round(x.value[n])) for n in np.flatnonzero(z.value > 0.5)]
        return Solution(outcome, float(problem.value), tuple(chunks))

    def _run(self, problem: cp.Problem) -> Outcome:
        limit_s = self.config.time_limit_s
        limit = {"HIGHS": {"time_limit": limit_s, "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}}
        limit["GLPK_MI"] = {"tm_lim": int(limit_s * 1000)}
        began = time.perf_counter()
        try:
            problem.solve(solver=self.solver, **limit.get(self.solver, {}))
        except cp.error.SolverError:  # some say "undefined" when their clock stopped them, too; ours tells them apart
            return Outcome.LIMIT if time.perf_counter() - began >= limit_s else Outcome.FAILURE
        if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
            return Outcome.INFEASIBLE
        return Outcome.OPTIMAL if problem.status == cp.OPTIMAL else Outcome.LIMIT


@dataclass(frozen=True)
class Parameters:
    """An instance as the program's constants: K jobs, O options, N nodes (of ``Instance.member``), S slots."""

    job: np.ndarray  # [K, O] 0 or 1, whether the option is the job's
    later: np.ndarray  # [O] bool, it does not start now
    gain: np.ndarray  # [O] in starts; the chosen job's: less what it loses
    full_chunks: np.ndarray  # [O] 0 for a split
    full_gpus: np.ndarray  # [O] GPUs of each
    rem_chunks: np.ndarray  # [O] 0 or 1
    rem_gpus: np.ndarray  # [O]
    split_nodes: np.ndarray  # [O] 0 for what is no split
    split_gpus: np.ndarray  # [O]
    fits_rem: np.ndarray  # [O, N] whether the last chunk fits the node by itself
    fits_full: np.ndarray  # [O, N]
    may_split: np.ndarray  # [O, N] whether the split may have the node
    most_gpus: np.ndarray  # [N] that the node could give a split
    use_rem: np.ndarray  # [3 S, O, N] GPUs, CPUs, memory of the last chunk in each slot, over the node's free
    use_full: np.ndarray  # [3 S, O, N]
    use_split: np.ndarray  # [3 S, N] the same of one GPU of the chosen job's, split
    cost_rem: np.ndarray  # [O, N] what the chosen job's last chunk costs on the node, if now
    cost_full: np.ndarray  # [O, N]
    cost_split: np.ndarray  # [N] what having the node costs it split, with all its free GPUs left free
    tightness: float  # what a GPU of these spares it that it takes
    meets: np.ndarray  # [O, N] whether the chosen job, as a whole and now, would be co-located on the node
    meets_split: np.ndarray  # [O, N] the same, split
    colocated_cost: np.ndarray  # [O] what that costs it


def parameters_of(instance: Instance, config: LookaheadConfig) -> Parameters:
    """Expand classes into nodes and jobs into options."""
    node_class, question = np.repeat(np.arange(len(instance.count)), instance.count), instance.question[0]
    slots, allowed = instance.free.shape[1], instance.full >= 0
    horizon_s = float(instance.slot_s[0]) * slots
    # (job, type, slot, whether split) of every option
    option = [(0, t, 0, True) for t in np.flatnonzero(instance.split)]
    option += [(0, t, 0, False) for t in np.flatnonzero(allowed[0]) if question["now"]]
    option += [(0, t, 1, False) for t in np.flatnonzero(allowed[0]) if question["wait_s"] >= 0]
    option += [(k, t, slot, False) for k, t in np.argwhere(allowed) if k > 0 for slot in range(slots)]
    k, t, slot, split = (np.array(x) for x in zip(*option, strict=True))
    full_chunks, rem, size = (np.where(split, 0, x[k, t]) for x in (instance.full, instance.rem, instance.size))
    same_type = t[:, None] == instance.type[node_class][None, :]
    free = instance.free[node_class].transpose(1, 2, 0).astype(float)  # [S, 3, N]

    # GPUs, CPUs and memory that one GPU of an option takes on a node: [3, O, N]
    cpu, mem = (
        np.where(own[k][:, None] >= 0, own[k][:, None], share[node_class])
        for own, share in ((instance.cpu, instance.share_cpu), (instance.mem, instance.share_mem))
    )
    each = np.stack([np.ones(same_type.shape), cpu, mem])
    # shares of what is free keep all rows of the program on one scale: [S, 3, O, N]
    share_of = np.where(each > 0, each / np.maximum(free[:, :, None, :], 1e-9), 0.0)
    # whether an option has its nodes in a slot: [S, 1, O, 1]
    length, every = np.where(split, instance.split_length[t], instance.length[k]), np.arange(slots)[:, None]
    lasts = ((slot <= every) & (every < slot + length))[:, None, :, None]

    def fits(gpus: np.ndarray) -> np.ndarray:
        """In the slot the option starts in, the one with the least free: [O, N]."""
        need = gpus[:, None] * each
        return same_type & (gpus > 0)[:, None] & (need <= free[slot].transpose(1, 0, 2)).all(axis=0)

    def use(gpus: np.ndarray, may: np.ndarray) -> np.ndarray:
        return np.where(lasts & may, gpus[:, None] * share_of, 0.0).reshape(-1, *may.shape)

    fits_rem, fits_full = fits(rem), fits(size) & (full_chunks > 0)[:, None]
    may_split = same_type & split[:, None]
    some, now = may_split.any(axis=0), ((k == 0) & (slot == 0) & ~split)[:, None]
    less = config.others if question["wait_s"] >= 0 else 1.0
    tightness, price = less * config.tightness, instance.price_s / horizon_s
    touched = less * config.whole_node * instance.whole[node_class] + price
    rank, loses_s = instance.rank[k], np.where(split, instance.split_s[t], np.where(slot > 0, question["wait_s"], 0.0))
    starts = less * config.rank_decay ** (np.maximum(rank, 1) - 1.0) * (slots - slot) / slots
    # one split option at most is on a node's type
    most_gpus = np.floor(np.min(free[0] / np.maximum(each[:, 0], 1e-9), axis=0) + 1e-9)
    return Parameters(
        job=(np.arange(len(instance.rank))[:, None] == k).astype(float),
        later=slot > 0,
        gain=np.where(rank > 0, starts, -loses_s / horizon_s),
        full_chunks=full_chunks,
        full_gpus=size,
        rem_chunks=(rem > 0).astype(int),
        rem_gpus=rem,
        split_nodes=np.where(split, instance.split[t], 0),
        split_gpus=np.where(split, instance.gpus[0], 0),
        fits_rem=fits_rem,
        fits_full=fits_full,
        may_split=may_split,
        most_gpus=np.where(some, most_gpus, 0),
        use_rem=use(rem, fits_rem),
        use_full=use(size, fits_full),
        use_split=use(split.astype(int), may_split).sum(axis=1),
        cost_rem=np.where(now & fits_rem, touched + tightness * (free[0, 0] - rem[:, None]), 0.0),
        cost_full=np.where(now & fits_full, touched, 0.0),
        cost_split=np.where(some, touched + tightness * free[0, 0], 0.0),
        tightness=tightness,
        meets=now & instance.colocated,
        meets_split=may_split & instance.colocated,
        colocated_cost=np.where(split, instance.colocated_split_s[t], instance.colocated_s[t]) / horizon_s,
    )
