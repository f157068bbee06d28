"""Placement questions at random, and the best answer by trying every allocation of every job."""

from __future__ import annotations

import numpy as np
from placement_ways import Way, Ways
from workload_cases import compiled, random_cluster, random_rows

from rltune.cluster.fit import Jobs
from rltune.cluster.free import Free as Index
from rltune.cluster.free import change
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import State, new_state

Free = tuple[tuple[int, int, int], ...]


class Oracle(Ways):
    """One question: sequence 0 of a state in which a job is chosen and others follow in the ranking."""

    def __init__(self, jobs: Jobs, layout: Layout, state: State, config: LookaheadConfig) -> None:
        super().__init__(jobs, layout, int(state.first[0] + state.status["chosen"][0]))
        self.config = config
        self.next = [
            (config.rank_decay ** (rank - 1), int(state.first[0] + r))
            for rank, r in enumerate(state.top[0])
            if rank > 0 and r >= 0
        ]
        self.free: Free = tuple(row[:3] for row in state.free.row[0].tolist())
        self.known: dict[tuple[Free, int], float] = {}

    def best(self) -> float:
        """The largest value of any way of the chosen job."""
        values = {}
        for way in self.whole(self.chosen, self.free):
            alike = self.alike(way)
            if alike not in values:
                values[alike] = self.value(way)
        return max(values.values())

    def alike(self, way: Way) -> tuple:
        """Equal for ways that differ by swapping identical nodes only."""
        return tuple(sorted((gpus, int(self.node["group"][m]), self.free[m]) for m, gpus in way))

    def value(self, way: Way) -> float:
        """What a way of the chosen job is worth: the next jobs that can start beside it, less what it costs."""
        return self._starts(self.after(self.chosen, way, self.free), 0) - self.cost(way)

    def cost(self, way: Way) -> float:
        """Whole nodes of the largest size touched, and GPUs left beside a remainder."""
        whole = sum(self.free[m][0] == self.largest for m, _ in way)
        full = self.jobs.cut["full"][self.chosen, self.node["type"][way[0][0]]]
        left = self.free[way[-1][0]][0] - way[-1][1] if len(way) > full else 0
        return self.config.whole_node * whole + self.config.tightness * left

    def _starts(self, free: Free, i: int) -> float:
        """Largest weight of the next jobs from the i-th on that can start together."""
        if i == len(self.next):
            return 0.0
        if (free, i) not in self.known:
            weight, j = self.next[i]
            best = self._starts(free, i + 1)
            for way in self.whole(j, free):
                best = max(best, weight + self._starts(self.after(j, way, free), i + 1))
            self.known[free, i] = best
        return self.known[free, i]

    def after(self, j: int, way: Way, free: Free) -> Free:
        """What is free when the job has started; never less than nothing."""
        out = list(free)
        for m, gpus in way:
            assert self.fits(j, gpus, m, out), f"job {j} exceeds node {m}"
            out[m] = tuple(a - b for a, b in zip(out[m], self.needs(j, gpus, m), strict=True))
        return tuple(out)

    def written(self, state: State) -> Way:
        """The answer in the state's place buffers; asserts that it is a way of the chosen job."""
        n = int(state.status["place_len"][0])
        way = tuple(state.place[0, :n].tolist())
        kind = int(self.node["type"][way[0][0]])
        size, full, rem = self.jobs.cut[self.chosen, kind].tolist()
        assert [g for _, g in way] == [size] * full + [rem] * (rem > 0)
        assert len({m for m, _ in way}) == n
        assert {int(self.node["type"][m]) for m, _ in way} == {kind}
        self.after(self.chosen, way, self.free)
        return way


def empty_state(jobs: Jobs, layout: Layout, top: int) -> State:
    """One sequence of all the jobs on an idle cluster."""
    how = SchedulerConfig("fifo", "none", "lookahead").options()
    return new_state(jobs, layout.nodes, [0], [len(jobs.row)], how, top=top)


def leave_free(state: State, layout: Layout, gpus: np.ndarray, cpu: np.ndarray, mem: np.ndarray) -> None:
    """Take from every node what is more than this."""
    free = Index(*(column[0] for column in state.free))
    for m, wanted in enumerate(zip(gpus, cpu, mem, strict=True)):
        change(layout.nodes, free, m, *(int(w) - int(f) for w, f in zip(wanted, list(free.row[m])[:3], strict=True)))


def question(
    seed: int, config: LookaheadConfig, nodes: int = 5, n: int = 12, types: int | None = None
) -> tuple[Jobs, Layout, State] | None:
    """A pool of at most ``nodes`` nodes, partly in use, a chosen job with two ways or more, and others.

    None where no job has two ways: the simulator asks nothing then.
    """
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, pools=1, types=types or int(rng.integers(1, 3)))
    if cluster.nodes > nodes:
        return None
    rows = random_rows(rng, cluster, n)
    rows[0] = {"submit_s": 0.0, "gpus": 1}
    jobs, layout = compiled(cluster, rows)
    return ask(jobs, layout, config, rng)


def ask(jobs: Jobs, layout: Layout, config: LookaheadConfig, rng: np.random.Generator) -> tuple | None:
    """The same on a cluster and jobs of one's own."""
    n = len(jobs.gpus)
    if n < 3:
        return None
    state, node = empty_state(jobs, layout, config.jobs), layout.nodes.row
    share = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0], len(node))
    gpus = np.ceil(node["gpus"] * share)
    cpu = np.floor(node["cpu_milli"] * share * rng.choice([0.7, 1, 1], len(share)))
    mem = np.floor(node["mem_mb"] * share * rng.choice([0.7, 1, 1], len(share)))
    whole = share == 1
    cpu[whole], mem[whole] = node["cpu_milli"][whole], node["mem_mb"][whole]
    leave_free(state, layout, gpus, cpu, mem)
    order = rng.permutation(n)
    oracle = Oracle(jobs, layout, state, config)
    able = [r for r in order if len({oracle.alike(w) for w in oracle.whole(int(r), oracle.free)}) > 1]
    if not able:
        return None
    ranking = [able[0], *(r for r in order if r != able[0])][: config.jobs]
    state.status["chosen"][0] = able[0]
    state.top[0, : len(ranking)] = ranking
    return jobs, layout, state
