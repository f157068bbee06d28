"""The placement model's answers are optimal: against enumeration, other solvers and the unreduced program."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
from placement_enumeration import NOW, SPLIT, WAIT, Allocation, Enumeration, weighted
from workload_cases import cluster, compiled, group, random_case, random_cluster, random_rows

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.config.cells import LOCALITIES
from rltune.placement.agreement import resolve_sample
from rltune.placement.instance import Instance, Outcome
from rltune.placement.kernel import GlpkSolver
from rltune.placement.lookahead import Lookahead, reduce
from rltune.placement.model import CvxpySolver
from rltune.placement.presolve import fall_back
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import chunk_table
from rltune.simulator.state import State

SCHEDULER = SchedulerConfig("fifo", "none", "lookahead")


def random_scheduler(seed: int) -> SchedulerConfig:
    """A locality by the seed, the rest at random."""
    rng = np.random.default_rng(seed)
    return SchedulerConfig(
        str(rng.choice(["saf", "fifo", "wfp3"])),
        str(rng.choice(["easy", "none"])),
        "lookahead",
        LOCALITIES[seed % len(LOCALITIES)],
        str(rng.choice(["double", "now"])),
        bool(rng.integers(2)),
        multi_node_slowdown=float(rng.choice([1.1, 1.3, 2.0])),
        interference_slowdown=float(rng.choice([1.0, 1.25, 1.6])),
    )


def per_node(instance: Instance, oracle: Enumeration) -> Instance:
    """The same problem with every node of the pool in it, each a separate class."""
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
        colocated=np.array([oracle.together and i in oracle.multi_gpu_nodes for i in m]),
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
        met = oracle.together and any(m in oracle.multi_gpu_nodes for m, _ in allocation)
        split = bool(allocation) and oracle.question != NOW
        outcomes = {
            "asked": True,
            f"asked {oracle.question}": True,
            "presolved": n > 0,
            "not presolved": n == 0,
            "later": any(f != oracle.free[0] for f in oracle.free),
            "shared": met,
            "sharing avoided": oracle.together and bool(allocation) and not met and len(oracle.multi_gpu_nodes) > 0,
            "matters": min(values.values()) < max(values.values()) - 1e-6,
            "waits": not allocation,
            "split": split,
            "split not the first there is": split and sorted(allocation) not in [sorted(w) for w in values][:1],
            "next jobs": len(instance.rank) > 1,
        }
        self.count.update({name: 1 for name, so in outcomes.items() if so})


def compared(config: LookaheadConfig, scheduler_of: Callable[[int], SchedulerConfig], questions: int) -> Counter:
    """Runs of small cases with every question compared, until so many were asked; what kinds of questions they were."""
    count: Counter = Counter()
    for seed in range(5000):
        if count["asked"] > questions:
            break
        rng = np.random.default_rng(seed)
        cluster_config = random_cluster(rng, pools=2 if seed % 4 == 3 else 1, types=int(rng.integers(1, 3)))
        if max(sum(g.nodes for g in pool.groups) for pool in cluster_config.pools) > 4:
            continue
        rows = [{"submit_s": 0.0, "gpus": 1, "vc": "a"}, *random_rows(rng, cluster_config, 25)]
        jobs, layout = compiled(cluster_config, rows)
        placer = Compare(config, scheduler_of(seed))
        simulate(jobs, layout, [0], [len(jobs.row)], placer.scheduler, placer=placer, check=True)
        count += placer.count
    assert count["asked"] > questions
    return count


SMALL = {"rank_decay": 0.7, "whole_node": 0.05}


def by_saf(overrun: str, seed: int) -> SchedulerConfig:
    """With EASY backfilling."""
    return SchedulerConfig("saf", "easy", "lookahead", overrun=overrun)


def by_fifo(seed: int) -> SchedulerConfig:
    """Every question is of a job that fits as a whole."""
    return SCHEDULER


def split_now(seed: int) -> SchedulerConfig:
    """Any scheduler under plus_one or any."""
    return random_scheduler(5 * seed + 1 + seed % 2)


FITS = {"presolved": 30, "not presolved": 20, "matters": 60, "next jobs": 100}
EVERY_KIND = {f"asked {NOW}": 200, f"asked {SPLIT}": 60, f"asked {WAIT}": 80, "split": 100, "waits": 30, "shared": 60}
EVERY_KIND |= {"sharing avoided": 40, "matters": 400, "split not the first there is": 15, "next jobs": 400}
SLOTS = {"later": 20, "presolved": 3}


@pytest.mark.parametrize(
    ("weights", "settings", "scheduler_of", "questions", "least"),
    [
        ({}, {"jobs": 5}, by_fifo, 150, FITS),
        ({"whole_node": 0.3, "tightness": 0.05, "rank_decay": 0.5}, {"jobs": 5}, by_fifo, 150, FITS),
        ({"whole_node": 0.0, "tightness": 0.2, "rank_decay": 1.0}, {"jobs": 5}, by_fifo, 150, FITS),
        ({**SMALL, "others": 0.2}, {"jobs": 3, "slot_s": 200.0}, random_scheduler, 1700, EVERY_KIND),
        ({**SMALL, "others": 1.0}, {"jobs": 3, "slot_s": 200.0}, random_scheduler, 1700, EVERY_KIND),
        *(
            (SMALL, {"jobs": 3, "slots": slots, "slot_s": slot_s}, partial(by_saf, overrun), 60, SLOTS)
            for slots, slot_s in ((2, 30.0), (3, 60.0))
            for overrun in ("double", "now")
        ),
        (
            SMALL,
            {"jobs": 3, "slots": 2, "slot_s": 100.0},
            split_now,
            400,
            {f"asked {SPLIT}": 40, "later": 100, "shared": 30},
        ),
    ],
)
def test_both_models_equal_enumeration_in_runs(weights, settings, scheduler_of, questions, least):
    """And so does what the placer writes, whether presolved, solved or remembered."""
    count = compared(weighted(weights, **settings), scheduler_of, questions)
    assert all(count[kind] > number for kind, number in least.items()), count


def test_presolve_counts_what_the_job_takes_of_a_wholly_free_node():
    """CPUs cut the job in two chunks of two on whole V100 nodes; one P100 node holds it and is no whole node."""
    config = weighted({"whole_node": 0.5, "tightness": 0.01}, jobs=2)
    types = cluster([group(3, 4, "V100", cpus=8), group(1, 4, "P100", cpus=64)])
    jobs, layout = compiled(types, [{"gpus": 4, "cpus": 16.0}, {"gpus": 1, "cpus": 1.0}])
    placer = Lookahead(config)
    state = simulate(jobs, layout, [0], [2], SCHEDULER, placer=placer)
    assert placer.counts.asked > 0
    assert chunk_table(state).query("job == 0")[["node", "gpus"]].to_numpy().tolist() == [[3, 4]]


@dataclass
class Agreement(Lookahead):
    """Puts every question to several solvers, and to one with every node a separate class."""

    compared: int = 0

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        _, instance = reduce(jobs, layout, state, 0, self.config, always=True)
        full = per_node(instance, Enumeration(jobs, layout, state, self.config, SCHEDULER))
        glpk, solvers = GlpkSolver(self.config), (CvxpySolver(self.config), CvxpySolver(self.config, "GLPK_MI"))
        solutions = [glpk.solve(instance), glpk.solve(full), *(solver.solve(instance) for solver in solvers)]
        assert {s.outcome for s in solutions} == {Outcome.OPTIMAL}
        assert np.ptp([s.objective for s in solutions]) < 1e-5
        self.compared += 1
        super().place(jobs, layout, state, asking)


def test_solvers_agree_with_each_other_and_with_every_node_a_separate_class():
    rng = np.random.default_rng(5)
    types = cluster([group(8, 2, "P100"), group(6, 8, "P100", cpus=40), group(4, 4, "V100")])
    rows = [
        {"gpus": int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16])), "cpus": float(rng.choice([2, 8, 24]))}
        | {"submit_s": 10.0 * (i // 12), "run_s": float(rng.integers(10, 500))}
        | ({"gpu_type": str(rng.choice(["P100", "V100"]))} if rng.random() < 0.5 else {})
        for i in range(36)
    ]
    jobs, layout = compiled(types, rows)
    placer = Agreement(LookaheadConfig(jobs=8))
    simulate(jobs, layout, [0], [len(jobs.gpus)], SCHEDULER, placer=placer)
    assert placer.compared > 10


def test_a_sample_of_a_runs_questions_is_solved_again_with_the_same_objectives():
    """And a run with ``solver: cvxpy`` is answered as well: all questions, none by the fall-back."""
    jobs, layout = random_case(9, n=50)
    runs = []
    for solver in ("glpk", "cvxpy"):
        placer = Lookahead(LookaheadConfig(jobs=4, solver=solver), sample=6)
        scheduler = replace(SCHEDULER, interference_slowdown=1.5)  # questions of sharing nodes are not presolved
        simulate(jobs, layout, [0], [len(jobs.gpus)], scheduler, placer=placer, check=True)
        assert placer.counts.optimal == placer.counts.calls >= 6 == len(placer.kept)
        runs.append(placer)
    table = resolve_sample(runs[0], n=5, seed=3)
    assert len(table) == 5 and table["agree"].all() and (table[["glpk_ms", "cvxpy_ms"]] > 0).all(axis=None)
    assert (table["glpk"] - table["cvxpy"]).abs().max() < 1e-6
    assert resolve_sample(runs[0], n=5, seed=3)["glpk"].equals(table["glpk"]), "the same sample"
    assert resolve_sample(Lookahead(LookaheadConfig())).empty
