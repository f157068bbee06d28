"""A placer that puts every question of a run to the models and to enumeration; runs that raise such questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from placement_enumeration import NOW, Allocation, Enumeration
from workload_cases import compiled, random_cluster, random_rows

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.placement.instance import Instance, Outcome
from rltune.placement.kernel import GlpkSolver
from rltune.placement.lookahead import Lookahead, reduce
from rltune.placement.model import CvxpySolver
from rltune.placement.presolve import fall_back
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import State


def per_node(instance: Instance, oracle: Enumeration) -> Instance:
    """The same problem with every node of the pool in it, each a class of its own."""
    m = np.array(oracle.pool)
    node, free = oracle.node[m], np.array(oracle.free).transpose(1, 0, 2)[m]
    price_s = np.array([oracle.price_s(i) if oracle.together else 0.0 for i in m])
    return instance._replace(
        type=node["type"],
        free=free,
        share_cpu=node["cpu_milli"] // node["gpus"],
        share_mem=node["mem_mb"] // node["gpus"],
        whole=free[:, 0, 0] == node["gpus"].max(),
        count=np.ones(len(m), np.int64),
        colocated=np.array([oracle.together and i in oracle.wide for i in m]),
        price_s=price_s,
        member=m,
    )


def written(state: State) -> Allocation:
    """The answer in the state's place buffers."""
    return tuple(state.place[0, : state.status["place_len"][0]].tolist())


@dataclass
class Compare:
    """Asks the kernel, CVXPY's program (``slow``: one question in so many), enumeration and the placer itself; goes on by
    the placer's answer, or every second time by the simulator's own rule."""

    config: LookaheadConfig
    scheduler: SchedulerConfig
    slow: int = 8
    count: Counter = field(default_factory=Counter)
    top: int = field(init=False)

    def __post_init__(self) -> None:
        self.top, self.lookahead = self.config.jobs, Lookahead(self.config)
        self.solvers = GlpkSolver(self.config), CvxpySolver(self.config)

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """One sequence asks."""
        n, instance = reduce(jobs, layout, state, 0, self.config, always=True)
        oracle = Enumeration(jobs, layout, state, self.config, self.scheduler, instance.rank[1:].tolist())
        best = oracle.best()
        solvers = self.solvers[: 1 + (self.count["asked"] % self.slow == 0)]
        solutions = [solver.solve(instance) for solver in solvers]
        for solution in solutions:
            assert solution.outcome is Outcome.OPTIMAL
            assert solution.objective == pytest.approx(best, abs=1e-6)
            chunks = [(int(instance.member[i]), gpus) for i, gpus in solution.chunks]
            assert oracle.value(tuple(chunks)) == pytest.approx(best, abs=1e-6)
        self.lookahead.place(jobs, layout, state, asking)
        # worth as much as the best for all the next jobs, also those the model leaves out
        every = Enumeration(jobs, layout, state, self.config, self.scheduler)
        allocation = written(state)
        assert every.value(allocation) == pytest.approx(every.best(), abs=1e-6), (
            "presolved or solved, written or remembered"
        )
        self._count(oracle, instance, allocation, n)
        if self.count["asked"] % 2:
            state.status["place_len"][0] = fall_back(layout.nodes, jobs, state, 0)

    def _count(self, oracle: Enumeration, instance: Instance, allocation: Allocation, n: int) -> None:
        values = oracle.values()
        met = oracle.together and any(m in oracle.wide for m, _ in allocation)
        split = bool(allocation) and oracle.kind != NOW
        outcomes = {
            "asked": True,
            f"asked {oracle.kind}": True,
            "presolved": n > 0,
            "later": any(f != oracle.free[0] for f in oracle.free),
            "shared": met,
            "sharing avoided": oracle.together and bool(allocation) and not met and len(oracle.wide) > 0,
            "matters": min(values.values()) < max(values.values()) - 1e-6,
            "waits": not allocation,
            "split": split,
            "split not the first there is": split and sorted(allocation) not in [sorted(w) for w in values][:1],
            "next jobs": len(instance.rank) > 1,
        }
        self.count.update({name: 1 for name, so in outcomes.items() if so})


def compared(
    config: LookaheadConfig, scheduler_of: Callable[[int], SchedulerConfig], seeds: range, n: int, enough: int = 10**6
) -> Counter:
    """Runs of small cases, with every question compared, until ``enough`` were asked; what kinds of questions they were."""
    count: Counter = Counter()
    for seed, jobs, layout in small_cases(seeds, nodes=4, n=n):
        if count["asked"] > enough:
            break
        placer = Compare(config, scheduler_of(seed))
        simulate(jobs, layout, [0], [len(jobs.row)], placer.scheduler, placer=placer, check=True)
        count += placer.count
    return count


def small_cases(seeds: range, nodes: int, n: int) -> Iterator[tuple[int, Jobs, Layout]]:
    """(Seed, jobs, layout) of random clusters with so many nodes a pool at most; one in four has two pools."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        config = random_cluster(rng, pools=2 if seed % 4 == 3 else 1, types=int(rng.integers(1, 3)))
        if max(sum(g.nodes for g in pool.groups) for pool in config.pools) <= nodes:
            yield seed, *compiled(config, [{"submit_s": 0.0, "gpus": 1, "vc": "a"}, *random_rows(rng, config, n)])
