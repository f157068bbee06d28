"""Algorithm 1 of the paper (§3.2), as printed: a binary program that chooses between spreading and packing one job.

Variables: x (0: way 1, spread; 1: way 2, pack) and the occupancy matrix CJO, one binary a node and GPU. A way's GPUs are
occupied where it is taken (CJO = 1 − x, or x); CPUs and memory of the GPUs occupied on a node stay within what it has
free; the occupied GPUs are maximised, over the whole cluster and not for the job.

What that objective can tell apart: both ways hold as many GPUs, and every other entry of CJO is free to be 1, so it is
the same for either way unless CPUs or memory bind somewhere; then the way wins that leaves more GPUs *countable*, which
says nothing about later jobs. Where both ways use a node, CJO = 1 − x and CJO = x contradict each other and there is no
solution.

Once x is given, nodes have nothing to do with each other, so both sums are known in closed form. :func:`choose` compares
them; :func:`solve` is the program for a solver, to read and to check against.
"""

from dataclasses import dataclass, field

import numpy as np

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.search import BEST_FIT, SPREAD, find
from rltune.kernels import ZERO, allocating
from rltune.placement.counts import Counts, timed
from rltune.placement.instance import Outcome
from rltune.simulator.state import State, sequence_of

PACK = 2
"""The way of a tie, and where there is no solution."""


def solve(way1: np.ndarray, way2: np.ndarray, most: np.ndarray, gpus_per_node: int) -> tuple[Outcome, int, float]:
    """Solve the listing with CVXPY and GLPK_MI; (outcome, selected way: 1 or 2, objective or NaN).

    ``way1``, ``way2`` [nodes]: GPUs that each takes of a node. ``most`` [nodes]: GPUs that a node's free CPUs and memory
    suffice for (:func:`countable`).
    """
    import cvxpy as cp  # takes seconds to load

    x = cp.Variable(boolean=True)
    cjo = cp.Variable((len(most), gpus_per_node), boolean=True)
    constraints = [cp.sum(cjo, axis=1) <= most]
    for way, taken in ((way1, 1 - x), (way2, x)):
        node, gpu = np.nonzero(np.arange(gpus_per_node) < way[:, None])
        if len(node):
            constraints.append(cjo[node, gpu] == taken)
    problem = cp.Problem(cp.Maximize(cp.sum(cjo)), constraints)
    problem.solve(solver=cp.GLPK_MI)
    if problem.status != cp.OPTIMAL:
        return Outcome.INFEASIBLE, PACK, float("nan")
    return Outcome.OPTIMAL, 1 if x.value < 0.5 else 2, float(problem.value)


def choose(way1: np.ndarray, way2: np.ndarray, most: np.ndarray, gpus_per_node: int) -> tuple[Outcome, int, float]:
    """The same without a solver; of two ways with the same sum, PACK, where a solver's choice is arbitrary.

    A node can count ``most`` GPUs, but none of those that the other way would take; the way taken must be among them.
    """
    sums = {
        selected: np.minimum(most, gpus_per_node - other).sum()
        for selected, way, other in ((PACK, way2, way1), (1, way1, way2))
        if (way <= most).all() and not np.minimum(way, other).any()
    }
    if not sums:
        return Outcome.INFEASIBLE, PACK, float("nan")
    selected = max(sums, key=lambda way: sums[way])
    return Outcome.OPTIMAL, selected, float(sums[selected])


def countable(free: np.ndarray, cpu_per_gpu: float, mem_per_gpu: float, gpus_per_node: int) -> np.ndarray:
    """GPUs [nodes] that CPUs and memory of a node suffice for; all of them where no GPU is free, as in the listing.

    ``free``: with fields gpus, cpu, mem, in the units of ``cpu_per_gpu`` and ``mem_per_gpu``. The listing's rows
    for CPUs and memory of a node are divided by the need and rounded down: the same for binaries. Its rows for single
    entries of CJO bind nothing.
    """
    most = np.full(len(free), gpus_per_node)
    for have, need in ((free["cpu"], cpu_per_gpu), (free["mem"], mem_per_gpu)):
        if need > 0:
            most = np.minimum(most, have // need)
    return np.where(free["gpus"] > 0, most, gpus_per_node)


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
            spread, packed = (_allocate(layout, jobs, state, s, rule) for rule in (SPREAD, BEST_FIT))
            if np.array_equal(spread, packed):
                self.counts.presolved += 1
                continue
            (outcome, selected, _), took_ms = timed(_ask, layout, jobs, state, s, spread, packed)
            self.counts.add(outcome.value, took_ms)
            if selected == 1:
                _allocate(layout, jobs, state, s, SPREAD)


def _allocate(layout: Layout, jobs: Jobs, state: State, s: int, rule: int) -> np.ndarray:
    """Where a rule puts the chosen job: GPUs on each node [nodes]; left in the sequence's ``place``."""
    n = int(_find(layout.nodes, jobs, state, s, rule))
    state.status["place_len"][s] = n
    gpus = np.zeros(len(layout.nodes.row), int)
    gpus[state.place["node"][s, :n]] = state.place["gpus"][s, :n]
    return gpus


@allocating
def _find(nodes, jobs, st, s, rule):
    seq = sequence_of(st, s)
    return find(nodes, jobs, seq.free, seq.status.first + seq.status.chosen, rule, ZERO, seq.place)


def _ask(
    layout: Layout, jobs: Jobs, state: State, s: int, spread: np.ndarray, packed: np.ndarray
) -> tuple[Outcome, int, float]:
    """Algorithm 1's answer for the chosen job, on the nodes of its pool.

    What the trace does not say a GPU takes is the share of the node that packing would use first.
    """
    j = int(state.first[s] + state.status["chosen"][s])
    row, pool = jobs.row[j], layout.nodes.pool[jobs.pool[j]]
    here = slice(int(pool["start"]), int(pool["stop"]))
    first = layout.nodes.row[state.place["node"][s, 0]]  # packing was the last to be tried
    cpu = row["cpu_milli"] if row["cpu_milli"] >= 0 else first["share_cpu"]
    mem = row["mem_mb"] if row["mem_mb"] >= 0 else first["share_mem"]
    gpus_per_node = int(layout.nodes.row["gpus"][here].max())
    most = countable(state.free.row[s][here], cpu, mem, gpus_per_node)
    return choose(spread[here], packed[here], most, gpus_per_node)
