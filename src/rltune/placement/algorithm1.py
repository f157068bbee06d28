"""Algorithm 1 of the paper (§3.2), as printed: a binary program that chooses between spreading and packing one job.

Variables: x (0: way 1, spread; 1: way 2, pack) and the occupancy matrix CJO, one binary a node and GPU. A way's GPUs are
occupied where it is taken (CJO = 1 − x, or x); CPUs and memory of the GPUs occupied on a node stay within what it has
free; the occupied GPUs are maximised, over the whole cluster and not for the job.

What that objective can tell apart: both ways hold as many GPUs, and every other entry of CJO is free to be 1, so it is
the same for either way unless CPUs or memory bind somewhere; then the way wins that leaves more GPUs *countable*, which
says nothing about later jobs. Where both ways use a node, CJO = 1 − x and CJO = x contradict each other and there is no
solution. It is here to be compared with, and costs what building a CVXPY problem costs: for evaluation only.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import BEST_FIT, SPREAD, find
from rltune.kernels import ZERO, allocating
from rltune.placement.counts import Counts
from rltune.placement.instance import Outcome
from rltune.simulator.state import State, sequence_of

Allocation = dict[int, int]
"""GPUs on each node."""


@dataclass(frozen=True)
class NodeStatus:
    """What a node has free: GPUs, CPU cores, memory in GB."""

    gpus: int
    cpus: float
    mem_gb: float


def algorithm1(
    way1: Allocation,
    way2: Allocation,
    cluster_status: dict[int, NodeStatus],
    gpus_per_node: int,
    cpu_per_gpu: float,
    mem_per_gpu: float,
) -> tuple[Outcome, int, float]:
    """Solve the listing with GLPK_MI; (outcome, selected way: 1 or 2, objective).

    ``cpu_per_gpu`` in cores, ``mem_per_gpu`` in GB. Without a solution way 2, pack, is selected, the objective is NaN.
    """
    valid_nodes = {node: i for i, node in enumerate(cluster_status)}
    x = cp.Variable(boolean=True)
    cjo = cp.Variable((len(cluster_status), gpus_per_node), boolean=True)
    constraints = []
    for way, value in ((way1, 1 - x), (way2, x)):
        for node, gpus in way.items():
            if node in valid_nodes:
                constraints += [cjo[valid_nodes[node], g] == value for g in range(gpus)]
    for i, free in enumerate(cluster_status.values()):
        # The listing repeats the node's rows once a free GPU; its row CJO[i][g] ≤ available GPUs binds nothing. Its rows
        # Σ CJO[i] · need ≤ available are divided by the need and rounded down: the same for binaries, and without the
        # fractions that GLPK would otherwise enumerate for minutes.
        if min(free.gpus, gpus_per_node) > 0:
            for have, need in ((free.cpus, cpu_per_gpu), (free.mem_gb, mem_per_gpu)):
                if need > 0:
                    constraints.append(cp.sum(cjo[i]) <= math.floor(have / need + 1e-9))
    problem = cp.Problem(cp.Maximize(cp.sum(cjo)), constraints)
    try:
        problem.solve(solver=cp.GLPK_MI)
    except cp.error.SolverError:
        return Outcome.FAILURE, 2, float("nan")
    if problem.status != cp.OPTIMAL:
        return Outcome.INFEASIBLE, 2, float("nan")
    return Outcome.OPTIMAL, 1 if x.value < 0.5 else 2, float(problem.value)


@dataclass
class Algorithm1:
    """A :class:`~rltune.simulator.batch.Placer` that asks Algorithm 1 where spreading and packing differ.

    ``counts.presolved``: the two allocations are the same; ``infeasible``: they share a node, and the job is packed.
    """

    counts: Counts = field(default_factory=Counts)
    top: int = 1
    """It looks at the chosen job alone."""

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Write the chosen job's nodes for each sequence in ``asking``."""
        for s in asking:
            self.counts.asked += 1
            way1 = _allocate(layout, jobs, state, s, SPREAD)
            way2 = _allocate(layout, jobs, state, s, BEST_FIT)
            if way1 == way2:
                self.counts.presolved += 1
                continue
            began = time.perf_counter()
            outcome, selected, _ = algorithm1(way1, way2, *_status(jobs, layout, state, s, way2))
            self.counts.times_s.append(time.perf_counter() - began)
            setattr(self.counts, outcome.value, getattr(self.counts, outcome.value) + 1)
            if selected == 1:
                _allocate(layout, jobs, state, s, SPREAD)


def _allocate(layout: Layout, jobs: Jobs, state: State, s: int, rule: int) -> Allocation:
    """Where a rule puts the chosen job; left in the sequence's ``place``."""
    n = int(_find(layout.nodes, jobs, state, s, rule))
    state.status["place_len"][s] = n
    return {int(m): int(g) for m, g in state.place[s, :n].tolist()}


@allocating
def _find(nodes, jobs, st, s, rule):
    seq = sequence_of(st, s)
    return find(nodes, jobs, seq.free, seq.status.first + seq.status.chosen, rule, ZERO, seq.place)


def _status(
    jobs: Jobs, layout: Layout, state: State, s: int, way: Allocation
) -> tuple[dict[int, NodeStatus], int, float, float]:
    """(cluster_status, gpus_per_node, cpu_per_gpu, mem_per_gpu) of the chosen job's pool; what the trace does not say
    a GPU takes is the share of the node that packing would use."""
    j = int(state.first[s] + state.status["chosen"][s])
    here = layout.nodes.pool[jobs.pool[j]]
    nodes = range(int(here["start"]), int(here["stop"]))
    free, node, row = state.free.row[s], layout.nodes.row, jobs.row[j]
    status = {m: NodeStatus(int(free["gpus"][m]), free["cpu"][m] / 1000, free["mem"][m] / 1000) for m in nodes}
    packed = node[next(iter(way))]
    cpu = row["cpu_milli"] if row["cpu_milli"] >= 0 else packed["share_cpu"]
    mem = row["mem_mb"] if row["mem_mb"] >= 0 else packed["share_mem"]
    return status, int(node["gpus"][here["start"] : here["stop"]].max()), cpu / 1000, mem / 1000
