"""Look-ahead over several time slots: both models against enumeration on questions met in runs, and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from workload_cases import cluster, compiled, group, random_cluster, random_rows, simple

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.ways import room
from rltune.config import LookaheadConfig
from rltune.placement.glpk import GlpkModel
from rltune.placement.instance import build_instance
from rltune.placement.lookahead import Lookahead
from rltune.placement.model import LookaheadModel, arrays
from rltune.placement.outcome import Outcome
from rltune.placement.settle import fall_back, settle
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.metrics import chunk_table
from rltune.simulator.state import State

Free = tuple[tuple[tuple[int, int, int], ...], ...]  # slot, node → GPUs, thousandths of a CPU, MB


class Enumeration:
    """A question's best value over every way of the chosen job, and every way and slot of the others."""

    def __init__(
        self, jobs: Jobs, layout: Layout, state: State, config: LookaheadConfig, places: list[int], overrun: str
    ) -> None:
        self.jobs, self.node, self.config = jobs, layout.nodes.row, config
        self.first, self.now, self.overrun = int(state.first[0]), float(state.now[0]), overrun
        self.places = [(int(r), self.first + int(state.top[0, r])) for r in places]
        self.chosen = self.first + int(state.me["chosen"][0])
        here = layout.nodes.pool[jobs.pool[self.chosen]]
        self.pool = range(here["start"], here["stop"])
        self.largest = max(int(self.node["gpus"][m]) for m in self.pool)
        self.free = tuple(self._free(state, slot) for slot in range(config.slots))

    def _free(self, state: State, slot: int) -> tuple[tuple[int, int, int], ...]:
        """What is free when a slot begins, from the running jobs one by one."""
        free = {m: list(state.free.row[0][m].tolist()) for m in range(len(self.node))}
        for job, run in enumerate(state.run[0]):
            if np.isnan(run["start"]) or run["end"] <= self.now:
                continue
            due = run["start"] + self.jobs.estimate_s[self.first + job]
            if due <= self.now:
                due = self.now + (self.now - run["start"]) if self.overrun == "double" else self.now
            if slot > 0 and due <= self.now + slot * self.config.slot_s:
                for m, gpus in state.chunk[0][run["at"] : run["at"] + run["len"]].tolist():
                    for r, need in enumerate(self.needs(self.first + job, gpus, m)):
                        free[m][r] += need
        return tuple(tuple(free[m]) for m in range(len(self.node)))

    def needs(self, j: int, gpus: int, m: int) -> tuple[int, int, int]:
        row, node = self.jobs.row[j], self.node[m]
        cpu = int(row["cpu_milli"]) if row["cpu_milli"] >= 0 else int(node["share_cpu"])
        mem = int(row["mem_mb"]) if row["mem_mb"] >= 0 else int(node["share_mem"])
        return gpus, gpus * cpu, gpus * mem

    def placed(self, j: int, slot: int, free: Free) -> Iterator[tuple[tuple, Free]]:
        """Every way of a job from a slot on, with what is free beside it."""
        length = max(1, int(np.ceil(self.jobs.estimate_s[j] / self.config.slot_s)))
        for kind, (size, full, rem) in enumerate(self.jobs.cut[j].tolist()):
            if full < 0 or size == 0:
                continue
            mine = [m for m in self.pool if self.node["type"][m] == kind]
            for whole in combinations(mine, full):
                for last in [m for m in mine if m not in whole] if rem else [None]:
                    way = tuple((m, size) for m in whole) + (((last, rem),) if rem else ())
                    out = [list(nodes) for nodes in free]
                    fits = True
                    for t in range(slot, min(slot + length, len(free))):
                        for m, gpus in way:
                            left = tuple(a - b for a, b in zip(out[t][m], self.needs(j, gpus, m), strict=True))
                            fits = fits and min(left) >= 0
                            out[t][m] = left
                    if fits:
                        yield way, tuple(tuple(nodes) for nodes in out)

    def best(self) -> float:
        return max(self.rest(0, free) - self.cost(way) for way, free in self.placed(self.chosen, 0, self.free))

    def value(self, way: tuple) -> float:
        free = next(free for w, free in self.placed(self.chosen, 0, self.free) if sorted(w) == sorted(way))
        return self.rest(0, free) - self.cost(way)

    def cost(self, way: tuple) -> float:
        whole = sum(self.free[0][m][0] == self.largest for m, _ in way)
        _, full, rem = self.jobs.cut[self.chosen, self.node["type"][way[0][0]]].tolist()
        left = self.free[0][way[-1][0]][0] - way[-1][1] if rem else 0
        return self.config.whole_node * whole + self.config.tightness * left

    @lru_cache(maxsize=None)  # noqa: B019
    def rest(self, i: int, free: Free) -> float:
        if i == len(self.places):
            return 0.0
        rank, j = self.places[i]
        best = self.rest(i + 1, free)
        for slot in range(len(free)):
            worth = self.config.rank_decay ** (rank - 1) * (len(free) - slot) / len(free)
            best = max([best, *(worth + self.rest(i + 1, after) for _, after in self.placed(j, slot, free))])
        return best


@dataclass
class Compare:
    """A placer that puts every question to both models and to enumeration, and goes on by best_fit."""

    config: LookaheadConfig
    overrun: str
    asked: int = 0
    later: int = 0
    settled: int = 0
    top: int = field(init=False)

    def __post_init__(self) -> None:
        self.top, self.fast, self.lookahead = self.config.jobs, GlpkModel(self.config), Lookahead(self.config)

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        table, startable = room(layout.nodes), np.empty(self.top, np.int64)
        terms = (self.config.whole_node, self.config.tightness, self.config.rank_decay, self.config.slots)
        n_next, k, n = settle(layout.nodes, jobs, state, 0, *terms, table, startable)
        instance = build_instance(
            layout.nodes, jobs, state, 0, table, k, startable[:n_next], self.config.slots, self.config.slot_s
        )
        oracle = Enumeration(jobs, layout, state, self.config, startable[:n_next].tolist(), self.overrun)
        best = oracle.best()
        a = arrays(instance, self.config)
        readable = LookaheadModel(len(instance.rank), *a.may_rem.shape, self.config.slots)
        solutions = self.fast.solve(instance), readable.solve(a, 20)
        for solution in solutions:
            assert solution.outcome is Outcome.OPTIMAL
            assert solution.objective == pytest.approx(best, abs=1e-6)
        self.lookahead.place(jobs, layout, state, asking)
        way = tuple(state.place[0, : state.me["place_len"][0]].tolist())
        assert oracle.value(way) == pytest.approx(best, abs=1e-6), "settled or solved, written or remembered"
        self.asked, self.settled = self.asked + 1, self.settled + (n > 0)
        self.later += any(nodes != oracle.free[0] for nodes in oracle.free)
        state.me["place_len"][0] = fall_back(layout.nodes, jobs, state, 0)


@pytest.mark.parametrize("overrun", ["double", "now"])
@pytest.mark.parametrize(("slots", "slot_s"), [(2, 30.0), (3, 60.0)])
def test_both_models_equal_enumeration_in_runs(slots: int, slot_s: float, overrun: str) -> None:
    placer = Compare(LookaheadConfig(jobs=3, slots=slots, slot_s=slot_s, rank_decay=0.7, whole_node=0.05), overrun)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        config = random_cluster(rng, pools=1, types=int(rng.integers(1, 3)))
        if config.nodes > 4 or placer.asked > 60:
            continue
        jobs, layout = compiled(config, [{"submit_s": 0.0, "gpus": 1}, *random_rows(rng, config, 25)])
        setting = Setting("saf", "easy", "lookahead", overrun=overrun)
        simulate(jobs, layout, [0], [len(jobs.row)], setting, placer=placer)
    assert placer.asked > 60 and placer.later > 20 and placer.settled > 3


def test_it_looks_at_what_ends_soon() -> None:
    """Two nodes of four: three GPUs run for 60 s on the first, one for long on the second. A job of one GPU: best_fit
    takes the first node's last GPU, and then no node is whole when the next job, of four, could start; with a slot
    a minute from now it goes to the second node."""
    config = cluster([group(2, 4)])
    rows = [(0, 60, 3), (0, 10_000, 2), (1, 5000, 1), (1, 100, 4)]
    now = LookaheadConfig(jobs=4)
    soon = LookaheadConfig(jobs=4, slots=2, slot_s=60.0)
    starts = []
    for lookahead in (now, soon):
        jobs, layout = simple(config, *rows)
        placer = Lookahead(lookahead)
        state = simulate(jobs, layout, [0], [4], Setting("fifo", "none", "lookahead"), placer=placer)
        starts.append(state.start[0].tolist())
        table = chunk_table(state).set_index("job")["node"]
        assert table[2] == (0 if lookahead is now else 1)
    assert starts == [[0, 0, 1, 5001], [0, 0, 1, 60]]


def test_slots_do_not_change_a_run_in_which_nothing_could_start_later() -> None:
    jobs, layout = simple(cluster([group(3, 4)]), *[(i, 10_000 + i, 1 + i % 3) for i in range(12)])
    runs = []
    for slots in (1, 3):
        placer = Lookahead(LookaheadConfig(slots=slots, slot_s=1.0))
        runs.append(simulate(jobs, layout, [0], [12], Setting("saf", "easy", "lookahead"), placer=placer))
    np.testing.assert_array_equal(runs[0].start, runs[1].start)
