"""What one placement question costs: the compiled proof and GLPK kept in memory, next to CVXPY and HiGHS.

Questions are harvested from replays of held-out windows of Philly's rows: every question with two candidate placements or more, at least K jobs queued and queues of custom order
(SAF and FIFO, with and without EASY). Philly's jobs say nothing of CPUs and memory, so half of them get requests of
half to all of their GPU share, drawn from a seed: all three resources bind. Nothing is remembered between questions, and
every answer is proven optimal: by the bound of rltune.placement.presolve, or by GLPK to a gap of zero. The 10,000 nodes
are the same kinds of nodes and synthetic jobs at load 1.2. One core. The last line is one JSON object.
"""

from dataclasses import dataclass, field

import parts.one_core  # noqa: F401

# isort: split
import numpy as np
from parts.output import parser_of, report
from simulator import nodes_of, synthetic

from rltune.cluster.fit import Jobs
from rltune.cluster.layout import Layout
from rltune.cluster.workload import build_workload
from rltune.config import LookaheadConfig
from rltune.config.context import Run
from rltune.placement.counts import timed
from rltune.placement.instance import Instance, Outcome
from rltune.placement.kernel import GlpkSolver, columns_of, options_of
from rltune.placement.lookahead import Lookahead, reduce
from rltune.placement.model import CvxpySolver
from rltune.placement.presolve import fall_back
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import State
from rltune.traces.split import disjoint_windows

LENGTH, SLOW = 256, 60
"""Jobs of a window; questions the slow contenders are asked."""
TIMED: dict[str, dict[str, object]] = {}
"""What was timed → how many questions, and the median, 95th and 99th percentile in ms."""
ORDERS = (("saf", "none"), ("saf", "easy"), ("fifo", "none"), ("fifo", "easy"))


@dataclass
class Harvest:
    """A placer that answers by best_fit, and times the look-ahead on questions with enough jobs queued."""

    config: LookaheadConfig
    most: int
    ms: list[float] = field(default_factory=list)
    unsolved_ms: list[float] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    best_fit_optimal: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.top = self.config.jobs
        self.placer, self.model = Lookahead(self.config), GlpkSolver(self.config)

    def place(self, jobs: Jobs, layout: Layout, state: State, asking: np.ndarray) -> None:
        """Ask, time, and go on by best_fit, so that every contender sees the same questions."""
        for s in asking:
            if len(self.ms) < self.most and (state.top[s] >= 0).all():
                self._question(jobs, layout, state, s)
            state.status["place_len"][s] = fall_back(layout.nodes, jobs, state, s)

    def _question(self, jobs: Jobs, layout: Layout, state: State, s: int) -> None:
        self.placer._memory.clear()
        before = self.placer.counts.presolved
        _, ms = timed(self.placer.place, jobs, layout, state, np.array([s]))
        self.ms.append(ms)
        if self.placer.counts.presolved == before:
            self.unsolved_ms.append(ms)
        _, instance = reduce(jobs, layout, state, s, self.config, always=True)
        self.instances.append(instance)
        best = self.model.solve(instance).objective
        n = fall_back(layout.nodes, jobs, state, s)
        self.best_fit_optimal.append(self._value(instance, layout, state, s, n) > best - 1e-7)

    def _value(self, instance: Instance, layout: Layout, state: State, s: int, n: int) -> float:
        """The model's value of best_fit's allocation: every other node is closed to the chosen job."""
        free, group = state.free.row[s], layout.nodes.row["group"]
        options = options_of(instance)
        columns = columns_of(instance, options, self.config)
        keep = options[columns["option"], 0] != 0
        used: dict[int, int] = {}
        for m, gpus in state.place[s, :n].tolist():
            first = np.cumsum(instance.count) - instance.count
            here = np.flatnonzero(instance.member == m)
            if len(here):  # classes of several slots tell nodes apart that are alike now
                c = np.searchsorted(first, here[0], side="right") - 1
            else:
                low = instance.member[first]
                c = np.flatnonzero((group[low] == group[m]) & (free[low] == free[m]))[0]
            node = first[c] + used.get(c, 0)
            used[c] = used.get(c, 0) + 1
            keep |= (options[columns["option"], 0] == 0) & (columns["node"] == node) & (columns["gpus"] == gpus)
        return self.model.solve(instance, columns[keep]).objective


def with_requests(jobs: Jobs, layout: Layout, seed: int = 7) -> Jobs:
    """Half of the jobs ask for CPUs and memory of their own, half to all of the smallest share of a GPU."""
    rng = np.random.default_rng(seed)
    row = jobs.row.copy()
    requests = rng.random(len(row)) < 0.5
    for name, share in (("cpu_milli", "share_cpu"), ("mem_mb", "share_mem")):
        drawn = (layout.nodes.row[share].min() * rng.uniform(0.5, 1.0, len(row))).astype(np.int64)
        row[name] = np.where(requests, drawn, row[name])
    row["shape"] = np.unique(
        np.column_stack([row[n] for n in ("pool", "gpus", "cpu_milli", "mem_mb")]), axis=0, return_inverse=True
    )[1].reshape(-1)
    return Jobs(row, jobs.cut)


def harvest(jobs: Jobs, layout: Layout, first: np.ndarray, length: int, config: LookaheadConfig, most: int) -> Harvest:
    """Questions of all orders, an equal share each."""
    every = Harvest(config, 0)
    for policy, backfill in ORDERS:
        every.most += most // len(ORDERS)
        n = np.full(len(first), length)
        simulate(jobs, layout, first, n, SchedulerConfig(policy, backfill, "lookahead"), placer=every)
    return every


def tell(name: str, ms: list[float]) -> None:
    """Print quantiles, and keep them in TIMED."""
    p50, p95, p99, most = np.percentile(ms, (50, 95, 99, 100))
    print(f"{name:<44} {len(ms):>6} questions: {p50:7.3f} / {p95:7.3f} / {p99:7.3f} / {most:8.3f} ms", flush=True)
    TIMED[name] = {"questions": len(ms), "ms": [round(float(p), 4) for p in (p50, p95, p99)]}


def contenders(instances: list[Instance], config: LookaheadConfig) -> None:
    """The same instances, without the compiled proof, by each solver; objectives must agree."""
    solvers = {
        "1,000 of them, all by GLPK, its problem kept in memory": GlpkSolver(config),
        "some of these by CVXPY, HiGHS": CvxpySolver(config),
        "some of these by CVXPY, GLPK": CvxpySolver(config, "GLPK_MI"),
    }
    ms: dict[str, list[float]] = {name: [] for name in solvers}
    for i, instance in enumerate(instances):
        objectives = []
        for name in list(solvers)[: len(solvers) if i < SLOW else 1]:
            solution, taken = timed(solvers[name].solve, instance)
            assert solution.outcome is Outcome.OPTIMAL, (name, solution)
            ms[name].append(taken)
            objectives.append(solution.objective)
        assert np.ptp(objectives) < 1e-6
    for name, of_solver in ms.items():
        tell(name, of_solver)


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    parser = parser_of(__doc__)
    args = parser.parse_args()
    work = build_workload(Run.open("config/real-rows.yaml"), "philly-rows", "philly-192", "lognormal-1")
    layout, first = work.layout, disjoint_windows(*work.split.test, LENGTH)
    jobs = with_requests(work.jobs, layout)
    config = LookaheadConfig()
    harvest(jobs, layout, first[:2], LENGTH, config, 8)  # compiles
    print("median / p95 / p99 / longest")
    here = harvest(jobs, layout, first, LENGTH, config, 4000)
    tell("36 nodes, 8 jobs", here.ms)
    tell("those of them that are not presolved, by GLPK", here.unsolved_ms)
    rng = np.random.default_rng(1)
    contenders([here.instances[i] for i in rng.permutation(len(here.instances))[:1000]], config)
    wide = config.model_copy(update={"jobs": 16})
    tell("36 nodes, 16 jobs", harvest(jobs, layout, first, LENGTH, wide, 2000).ms)
    slots = config.model_copy(update={"slots": 4})
    four = harvest(jobs, layout, first, LENGTH, slots, 1000)
    tell("36 nodes, 8 jobs, 4 slots", four.ms)
    large = nodes_of(10_000)
    many = with_requests(synthetic(150_000, large, load=1.2, longest_s=6 * 3600), large)
    big = harvest(many, large, np.array([0]), len(many.row), config, 2000)
    tell("10,000 nodes, 8 jobs (synthetic)", big.ms)
    shares = {
        f"bestfit_not_optimal_share{end}": round(1 - float(np.mean(asked.best_fit_optimal)), 4)
        for end, asked in {"": here, "_t4": four, "_10000": big}.items()
    }
    report({**shares, "timed": TIMED}, args.write)


if __name__ == "__main__":
    main()
