"""A placer that puts every question of a run to the models and to enumeration; runs that raise such questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from placement_enumeration import NOW, Enumeration, Way
from workload_cases import compiled, random_cluster, random_rows

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.ways import room
from rltune.config import LookaheadConfig
from rltune.placement.glpk import GlpkModel
from rltune.placement.instance import Instance, build_instance
from rltune.placement.lookahead import Lookahead
from rltune.placement.model import LookaheadModel, arrays
from rltune.placement.outcome import Outcome
from rltune.placement.settle import fall_back, is_solved, settle
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import State


def reduced(jobs: Jobs, layout: Layout, state: State, config: LookaheadConfig) -> tuple[Instance, list[int], int]:
    """(The problem of sequence 0, places of the next jobs in it, chunks if it is settled without the solver)."""
    table, startable = room(layout.nodes), np.empty(config.jobs, np.int64)
    terms = (config.whole_node, config.tightness, config.rank_decay, config.slots, table, startable)
    n_next, k, n = settle(layout.nodes, jobs, state, 0, *terms, is_solved(jobs, state, 0))
    places = startable[:n_next]
    instance = build_instance(layout.nodes, jobs, state, 0, table, k, places, config.slots, config.slot_s)
    return instance, places.tolist(), n


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
        company=np.array([oracle.together and i in oracle.wide for i in m]),
        price_s=price_s,
        member=m,
    )


def written(state: State) -> Way:
    """The answer in the state's place buffers."""
    return tuple(state.place[0, : state.status["place_len"][0]].tolist())


@dataclass
class Compare:
    """Asks both models, enumeration and the placer itself; goes on by the placer's answer, or every second time by the
    simulator's own rule. ``size``: options and nodes of the CVXPY model, which is compiled once."""

    config: LookaheadConfig
    scheduler: SchedulerConfig
    models: dict[int, LookaheadModel] = field(default_factory=dict)
    size: tuple[int, int] = (18, 5)
    count: Counter = field(default_factory=Counter)
    top: int = field(init=False)

    def __post_init__(self) -> None:
        self.top, self.fast, self.lookahead = self.config.jobs, GlpkModel(self.config), Lookahead(self.config)

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """One sequence asks."""
        instance, places, n = reduced(jobs, layout, state, self.config)
        oracle = Enumeration(jobs, layout, state, self.config, self.scheduler, places)
        best = oracle.best()
        slots = instance.free.shape[1]
        if slots not in self.models:
            self.models[slots] = LookaheadModel(self.config.jobs, *self.size, slots)
        solutions = self.fast.solve(instance), self.models[slots].solve(arrays(instance, self.config), 20)
        for solution in solutions:
            assert solution.outcome is Outcome.OPTIMAL
            assert solution.objective == pytest.approx(best, abs=1e-6)
            chunks = [(int(instance.member[i]), gpus) for i, gpus in solution.chunks]
            assert oracle.value(tuple(chunks)) == pytest.approx(best, abs=1e-6)
        self.lookahead.place(jobs, layout, state, asking)
        # worth as much as the best for all the next jobs, also those the model leaves out
        every = Enumeration(jobs, layout, state, self.config, self.scheduler)
        way = written(state)
        assert every.value(way) == pytest.approx(every.best(), abs=1e-6), "settled or solved, written or remembered"
        self._count(oracle, instance, way, n)
        if self.count["asked"] % 2:
            state.status["place_len"][0] = fall_back(layout.nodes, jobs, state, 0)

    def _count(self, oracle: Enumeration, instance: Instance, way: Way, n: int) -> None:
        values = oracle.values()
        met = oracle.together and any(m in oracle.wide for m, _ in way)
        split = bool(way) and oracle.kind != NOW
        told = {
            "asked": True,
            f"asked {oracle.kind}": True,
            "settled": n > 0,
            "later": any(f != oracle.free[0] for f in oracle.free),
            "company met": met,
            "company avoided": oracle.together and bool(way) and not met and len(oracle.wide) > 0,
            "matters": min(values.values()) < max(values.values()) - 1e-6,
            "waits": not way,
            "split": split,
            "split not the first there is": split and sorted(way) not in [sorted(w) for w in values][:1],
            "next jobs": len(instance.rank) > 1,
        }
        self.count.update({name: 1 for name, so in told.items() if so})


def small_cases(seeds: range, nodes: int, n: int) -> Iterator[tuple[int, Jobs, Layout]]:
    """(Seed, jobs, layout) of random clusters with so many nodes a pool at most; one in four has two pools."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        config = random_cluster(rng, pools=2 if seed % 4 == 3 else 1, types=int(rng.integers(1, 3)))
        if max(sum(g.nodes for g in pool.groups) for pool in config.pools) <= nodes:
            yield seed, *compiled(config, [{"submit_s": 0.0, "gpus": 1, "vc": "a"}, *random_rows(rng, config, n)])
