"""Random workloads and settings for hypothesis, and the comparison of the engine with its plain-Python twin."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from hypothesis import strategies as st
from workload_cases import at_speeds, cluster, compiled, group

from rltune.cluster.fit import Jobs, with_wrong_speeds
from rltune.cluster.layout import Layout
from rltune.config.cells import BACKFILLS, LOCALITIES, PLANNED_TYPES
from rltune.policies import IDS
from rltune.reference import twin
from rltune.simulator.batch import SchedulerConfig, Simulation
from rltune.simulator.state import State

PLACEMENTS = ("first_fit", "best_fit", "spread", "exclusive", "isolating_best_fit")
SILENT = (3,)
"""Of these ``visible``, the ranking is not asked for while a job is past its maximum wait."""

Scores = Callable[[float, np.ndarray], np.ndarray]
"""(now in s, rows of Jobs) → scores, as a ranking from outside."""
Holds = Callable[[float, np.ndarray], bool]
"""(now in s, rows of Jobs) → whether nothing of the queue starts now."""


@dataclass(frozen=True, repr=False)
class Case:
    """Sequences of jobs of one workload under one setting."""

    jobs: Jobs
    layout: Layout
    first: list[int]
    n: list[int]
    scheduler: SchedulerConfig
    visible: int | None
    """Jobs an external ranking covers (0: all); None: the policy's own order."""

    def __repr__(self) -> str:
        rows = [f"{row} {cut}" for row, cut in zip(self.jobs.row.tolist(), self.jobs.cut.tolist())]
        nodes = [str(row) for row in self.layout.nodes.row[["gpus", "cpu_milli", "mem_mb", "type", "group"]].tolist()]
        pools = self.layout.nodes.pool.tolist()
        return "\n".join(
            [f"first {self.first}, n {self.n}, {self.scheduler}, {self.visible}", *rows, *nodes, f"{pools}"]
        )

    def scores(self, now: float, rows: np.ndarray) -> np.ndarray:
        """An external order with many ties that changes with time."""
        return (np.asarray(rows) * 7 + int(now)) % 5 * 1.0


def run_engine(
    jobs: Jobs,
    layout: Layout,
    first: Any,
    n: Any,
    scheduler: SchedulerConfig,
    visible: int | None = None,
    scores: Scores | None = None,
    holds: Holds | None = None,
    alone: bool = False,
) -> State:
    """Run sequences, checked at every event time, their queues ranked by ``scores`` and held back by ``holds`` where given."""
    silent = visible in SILENT
    run = Simulation(
        jobs, layout, np.asarray(first), np.asarray(n), scheduler, None, visible, check=True, alone=alone, silent=silent
    )
    while len(asking := run.advance()):
        for s in asking:
            rows, now = run.state.first[s] + run.state.queued_jobs(s), float(run.state.now[s])
            run.state.score[s, : len(rows)] = scores(now, rows)
            run.state.status["hold"][s] = holds is not None and holds(now, rows)
    return run.state


def allocations(state: State, s: int) -> list[dict[int, int]]:
    """Node → GPUs of each job of a sequence."""
    chunk = state.chunk[s]
    return [
        dict(zip(chunk["node"][at : at + n].tolist(), chunk["gpus"][at : at + n].tolist(), strict=True))
        for at, n in state.run[s, : state.n[s]][["at", "len"]].tolist()
    ]


def twin_of(case: Case, s: int = 0, holds: Holds | None = None, alone: bool = False) -> twin.Twin:
    """The same of one sequence by the twin, played to its end."""
    played = twin.Twin(
        case.jobs,
        case.layout,
        case.first[s],
        case.n[s],
        case.scheduler,
        None if case.visible is None else lambda now, rows: case.scores(now, np.array(rows)).tolist(),
        case.visible or 0,
        None if holds is None else lambda now, rows: holds(now, np.array(rows)),
        alone,
        silent=case.visible in SILENT,
    )
    played.play()
    return played


def assert_same(case: Case, holds: Holds | None = None, alone: bool = False) -> twin.Twin:
    """Engine and twin agree start by start, end by end and node by node; the twin of the first sequence."""
    rest = (case.scheduler, case.visible, case.scores, holds, alone)
    state = run_engine(case.jobs, case.layout, case.first, case.n, *rest)
    twins = [twin_of(case, s, holds, alone) for s in range(len(case.n))]
    for s, expected in enumerate(twins):
        rows, n = expected.rows, case.n[s]
        assert state.start[s, :n].tolist() == [expected.start[j] for j in rows], f"starts of sequence {s}"
        assert state.end[s, :n].tolist() == [expected.end[j] for j in rows], f"ends of sequence {s}"
        assert allocations(state, s) == [expected.allocation[j] for j in rows], f"allocations of sequence {s}"
    return twins[0]


def played(case: tuple[Jobs, Layout], policy: str = "fifo", *rules: Any, **more: Any) -> twin.Twin:
    """All jobs of a case under one setting by the twin; the engine does the same."""
    jobs, layout = case
    return assert_same(Case(jobs, layout, [0], [len(jobs.gpus)], SchedulerConfig(policy, *rules, **more), None))


def starts(case: tuple[Jobs, Layout], policy: str = "fifo", *rules: Any, **more: Any) -> list[float]:
    """Start times of all jobs of a case; engine and twin agree."""
    return list(map(float, in_order(played(case, policy, *rules, **more).start)))


def where(case: tuple[Jobs, Layout], policy: str = "fifo", *rules: Any, **more: Any) -> list[dict[int, int]]:
    """Node → GPUs of all jobs of a case; engine and twin agree."""
    return in_order(played(case, policy, *rules, **more).allocation)


def in_order(of_job: dict[int, Any]) -> list[Any]:
    """What belongs to each job, by rows."""
    return [of_job[j] for j in sorted(of_job)]


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Jobs, Layout]:
    """Some pools of some groups, and jobs that queue there."""
    types = ["V100", "P100", "K80"][: draw(st.integers(1, 3))]
    groups = st.builds(
        lambda nodes, gpus, kind, cpu, mem: group(nodes, gpus, kind, gpus * cpu, gpus * mem),
        st.integers(1, 3),
        st.sampled_from([2, 1, 4, 4, 8]),
        st.sampled_from(types),
        st.sampled_from([2.5, 4.0, 8.0]),
        st.sampled_from([16.0, 33.3]),
    )
    pools = draw(st.lists(st.lists(groups, min_size=1, max_size=3), min_size=1, max_size=3))
    config = cluster(
        *pools,
        gpu_types=draw(st.sampled_from(["match", "match", "ignore"])),
        priorities=[draw(st.sampled_from([1.0, 0.5, 0.0])) for _ in pools],
    )
    n = draw(st.sampled_from([2, 5, 15, 25, 30, 40]))
    sizes = {p.name: sum(g.nodes * g.gpus for g in p.groups) for p in config.pools}
    agreements, resources, exact = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    rare = st.sampled_from([False] * 7 + [True])
    rows, now = [{"vc": "a"}], 0.0
    for _ in range(n):
        now += draw(st.sampled_from([0.0, 0.0, 1.0, 1.0, 7.0, 30.0]))
        vc, run = draw(st.sampled_from(list(sizes))), draw(_SECONDS)
        gpus = draw(st.sampled_from([n for n in (1, 1, 2, 2, 3, 4, 5, 8, 12, 16) if n <= sizes[vc]]))
        row: dict[str, Any] = {"submit_s": now, "gpus": gpus, "run_s": run, "vc": vc}
        row["requested_s"] = run if exact else draw(st.sampled_from([run, run * 2, max(1.0, run // 3), 100.0, 7.5]))
        row["user"] = draw(st.sampled_from(["u", "v", "w", None]))
        row["sla"] = agreements and draw(rare)
        if resources:
            row["cpus"] = _times(draw(st.sampled_from([None, None, 0.5, 3.0, 6.0])), gpus)
            row["mem_gb"] = _times(draw(st.sampled_from([None, None, 1.0, 20.0, 30.0])), gpus)
        row["gpu_type"] = draw(st.sampled_from([None, None, None, *types, "|".join(types[-2:])]))
        rows.append({key: value for key, value in row.items() if value is not None})
    jobs, layout = compiled(config, rows)
    if draw(st.booleans()):
        jobs.row["qos"] = np.random.default_rng(n).choice([0.0, 0.5, 1.0, 2.0], len(jobs.row))
    if not draw(st.booleans()):
        return jobs, layout
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    slow = rng.choice([0.3, 0.5, 1.0, 1.7, np.inf], jobs.cut.shape)
    able = jobs.cut["full"] >= 0
    slow[~(np.isfinite(slow) & able).any(axis=1)] = 1.0  # what would run nowhere is left out before
    spread = slow * rng.choice([0.8, 1.0, 1.0, 2.5], jobs.cut.shape)
    return at_speeds(jobs, slow, spread, rng.uniform(0.2, 1.0, slow.shape[1])), layout


_SECONDS = st.sampled_from([10.0, 1.0, 50.0, 100.0, 100.0, 100.0, 300.0, 300.0, 1000.0, 0.3, 33.3, 17.0])


def _times(value: float | None, gpus: int) -> float | None:
    return None if value is None else value * gpus


def _setting(*values: Any) -> SchedulerConfig:
    """Rules for the type that plan, with what they go with."""
    given = dict(zip((field.name for field in fields(SchedulerConfig)), values))
    if given["types"] in PLANNED_TYPES:
        given |= {"backfill": "conservative", "sticky_head": False}
    if given["types"] == "allox":
        given["locality"] = "strict"
    return SchedulerConfig(**given)


SETTINGS = st.builds(
    _setting,
    st.sampled_from(list(IDS)),
    st.sampled_from(BACKFILLS),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(LOCALITIES),
    st.sampled_from(["double", "now"]),
    st.sampled_from([False, True]),
    st.sampled_from([1.0, 1.25, 2.0]),
    st.sampled_from([1.0, 1.0, 1.5, 1.7]),
    st.sampled_from(["auto", "any", "fastest_free", "fastest_only", "least", "allox", "joint", "joint"]),
    st.sampled_from([0.0, 0.03, 1.0]),
    st.sampled_from([1.0, 1.0, 0.3, 2.0]),
    st.sampled_from([{}, {}, {2: 0.01, 16: 0.05}, {1: 0.003}]),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A workload, all of it and some windows of it side by side, under one setting."""
    jobs, layout = draw(workloads())
    jobs = with_wrong_speeds(jobs, draw(st.sampled_from([0.0, 0.0, 0.4])), np.random.default_rng(1))
    n = len(jobs.gpus)
    windows = [(0, n)]
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, n - 1))
        windows.append((first, draw(st.integers(1, n - first))))
    first, length = (list(column) for column in zip(*windows))
    visible = draw(st.sampled_from([None, None, None, 0, 1, 3, 256]))
    return Case(jobs, layout, first, length, draw(SETTINGS), visible)
