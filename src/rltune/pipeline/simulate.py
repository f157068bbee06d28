"""One simulation by hand: a trace, a cluster, a setting; its jobs and what they make of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.config import Workspace
from rltune.errors import ConfigError
from rltune.pipeline.plugins import explaining, load_plugins
from rltune.pipeline.prepare import Workload, ensure_clean, make_workload
from rltune.placement.counts import CountingPlacer, Counts
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.fairness import fairness, fairness_summary
from rltune.simulator.gantt import bars
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.simulator.timeline import time_average, timeline
from rltune.traces.split import disjoint_windows

WINDOW = 256
"""Jobs a window unless told (paper §5.2)."""
MOST_DRAWN = 2000
"""Jobs that a Gantt chart can show."""


@dataclass(frozen=True)
class Request:
    """What to simulate; the rules are a SchedulerConfig's."""

    trace: str
    cluster: str
    estimate: str = "lognormal-1"
    part: str = "all"
    """Jobs to take: all, train, validation or test …"""
    begin: int | None = None
    """… or all from this job on, in the order of submission, from 0."""
    jobs: int | None = None
    """At most so many of them."""
    window: int | None = None
    """Jobs of each disjoint window; None: WINDOW, or what there is."""
    replay: bool = False
    """One sequence of all jobs, instead of windows that each start from an idle cluster."""
    warm_up: float = 0.0
    """Share of a replay's jobs, from the first, that fill the cluster and are not measured."""
    by: str | None = None
    """Groups that will be asked for (Result.groups), and …"""
    drawn: bool = False
    """… whether bars will be (Result.bars): what cannot be had is then refused before the simulation."""


@dataclass(frozen=True)
class Result:
    """What happened."""

    workload: Workload
    scheduler: SchedulerConfig
    state: State
    seconds: float
    """Of the simulation, on the clock."""
    replay: bool
    warm_up: float
    who: pd.DataFrame
    """user and vc of each job of the workload, missing where not known."""
    counts: Counts | None = None
    """How the placer, if there is one, answered its questions."""
    left_out: int = 0
    """Jobs behind the last whole window."""
    has_limits: bool = False
    """Whether the trace has its users' own limits."""

    def jobs(self) -> pd.DataFrame:
        """A row a job: window, job_id, and the columns of rltune.simulator.metrics.job_table."""
        table = job_table(self.workload.jobs, self.state).rename(columns={"sequence": "window"})
        table.insert(1, "job_id", self.workload.job_ids[table["job"]])
        return table

    def placed(self) -> str:
        """How the placer answered, as a line; "" without one."""
        if self.counts is None:
            return ""
        names = ("settled", "cached", "optimal", "infeasible", "limit", "failure")
        parts = [f"{getattr(self.counts, name):,} {name}" for name in names if getattr(self.counts, name)]
        said = f": {', '.join(parts)}" if parts else ""
        clock = "; the clock ended some, so another run may differ" if self.counts.limit else ""
        return f"placement questions: {self.counts.asked:,}{said}{clock}"

    def about(self) -> str:
        """Which jobs, in words."""
        first, n = self.state.first, self.state.n
        jobs = f"jobs {first[0]:,} to {first[-1] + n[-1] - 1:,}"
        if not self.replay:
            windows = f"{len(n):,} window{'s' if len(n) > 1 else ''} of {n[0]:,}, each from an idle cluster"
            verbs = ("makes", "is") if self.left_out == 1 else ("make", "are")
            rest = f"; the last {self.left_out:,} {verbs[0]} no whole window and {verbs[1]} left out"
            return f"{jobs}: {windows}{rest if self.left_out else ''}"
        left_out = f", the first {int(np.ceil(self.warm_up * n[0])):,} of them not measured" if self.warm_up else ""
        return f"{jobs} as one sequence{left_out}"

    def metrics(self) -> dict[str, float]:
        """Of all measured jobs: mean, median and largest wait_s, jct_s, bsld; then utilisation and mean_queue, each
        over the measured time, from the first to the last submission of measured jobs, mean of the windows (NaN where
        that is no time); jobs_per_s: jobs simulated a second."""
        table = self.jobs()
        counted = self._counted(table)
        found: dict[str, float] = {}
        for column in ("wait_s", "jct_s", "bsld"):
            values = table.loc[counted, column]
            found |= {f"{column}_{how}": float(getattr(values, how)()) for how in ("mean", "median", "max")}
        begin, end = self._span(table)
        window = table["window"].to_numpy()

        def during(since: str, until: str) -> np.ndarray:
            """Seconds of each job's interval within the measured time."""
            length = np.minimum(table[until], end[window]) - np.maximum(table[since], begin[window])
            return np.maximum(length.to_numpy(), 0.0)

        span = np.where(end > begin, end - begin, np.nan)
        used = np.bincount(window, during("start_s", "end_s") * table["gpus"]) / span / self.workload.layout.gpus
        queued = np.bincount(window, during("submit_s", "start_s")) / span
        for name, values in (("utilisation", used), ("mean_queue", queued)):
            known = values[~np.isnan(values)]
            found[name] = float(known.mean()) if len(known) else float("nan")
        return {**found, "jobs_per_s": len(table) / self.seconds}

    def _counted(self, table: pd.DataFrame) -> np.ndarray:
        """Which jobs are measured."""
        inside = table.groupby("window").cumcount().to_numpy()
        return inside >= np.ceil(self.warm_up * self.state.n[table["window"]])

    def _span(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """[windows] first and last submission of measured jobs."""
        submit = table["submit_s"].where(self._counted(table)).groupby(table["window"])
        return submit.min().to_numpy(), submit.max().to_numpy()

    def groups(self, by: str) -> tuple[pd.DataFrame, dict[str, float]]:
        """(Measured jobs by group, how unequally the groups are treated) as rltune.simulator.fairness has them.

        ``by``: user or vc. Raises ConfigError for another, or when the trace names none.
        """
        table = self.jobs()
        table = table[self._counted(table)]
        group = _group(self.who, by, table["job"].to_numpy())
        return fairness(table, group), fairness_summary(table, group)

    def timeline(self) -> pd.DataFrame:
        """Over time, of each window: GPUs used and free, jobs queued and running, fragmentation
        (rltune.simulator.timeline)."""
        jobs, chunks = job_table(self.workload.jobs, self.state), chunk_table(self.state)
        parts = [
            timeline(one, chunks[chunks["sequence"] == s], self.workload.layout.nodes).assign(window=s)
            for s, one in jobs.groupby("sequence")
        ]
        return pd.concat(parts, ignore_index=True)

    def fragmentation(self, timeline: pd.DataFrame) -> float:
        """Mean over the measured time, as in ``metrics``, of a timeline of this result; then over the windows."""
        begin, end = self._span(self.jobs())
        means = [
            time_average(one[one["time_s"] >= begin[w]], "fragmentation", float(end[w]))
            for w, one in timeline.groupby("window")
        ]
        known = [mean for mean in means if not np.isnan(mean)]
        return float(np.mean(known)) if known else float("nan")

    def bound(self) -> tuple[float, float]:
        """(Lower bound on the mean wait of all jobs under any policy, their mean wait here), seconds."""
        wait = self.jobs().groupby("window")["wait_s"].mean()
        total = sum(
            lower_bound(self.workload.jobs, self.workload.layout, int(first), int(n), float(wait[s])).wait_s * n
            for s, (first, n) in enumerate(zip(self.state.first, self.state.n, strict=True))
        )
        return float(total / self.state.n.sum()), float((wait * self.state.n).sum() / self.state.n.sum())

    def bars(self) -> pd.DataFrame:
        """Bars of the first window, for a Gantt chart. Raises ConfigError when it has more jobs than can be seen."""
        _check_drawn(int(self.state.n[0]))
        table, chunks = job_table(self.workload.jobs, self.state), chunk_table(self.state)
        return bars(table[table["sequence"] == 0], chunks[chunks["sequence"] == 0], self.workload.layout.nodes)


def make_scheduler(workspace: Workspace, **names: str | float) -> SchedulerConfig:
    """A SchedulerConfig of these rules, with the policies of the user's own that the run has.

    Raises ConfigError for a rule that does not exist, or one that does not go with another.
    """
    load_plugins(workspace)
    try:
        return SchedulerConfig(**names)  # type: ignore[arg-type]
    except ValueError as error:
        raise ConfigError(f"--{error}") from None


Step = Callable[[str], AbstractContextManager[None]]


def run(
    workspace: Workspace, request: Request, scheduler: SchedulerConfig, step: Step = lambda text: nullcontext()
) -> Result:
    """Simulate; the clock does not count the engine's compilation. ``step`` is told what is being done, and is open
    for as long.

    Raises ConfigError when the request names jobs there are not, or contradicts itself.
    """
    if not 0 <= request.warm_up < 1:
        raise ConfigError(f"--warm-up: found {request.warm_up}, expected a share of the jobs, 0 or more and below 1")
    if request.warm_up and not request.replay:
        raise ConfigError("--warm-up: goes with --replay; windows start from an idle cluster")
    if request.replay and request.window is not None:
        raise ConfigError("--windows: does not go with --replay, which is one sequence")
    with step(f"reading {request.trace}, fitted to {request.cluster}"):
        workload = make_workload(workspace, request.trace, request.cluster, request.estimate)
    begin, end = _range(request, workload)
    if request.window is not None and not 1 <= request.window <= end - begin:
        raise ConfigError(f"--windows: found {request.window}, expected 1 to {end - begin}: so many jobs are there")
    if request.warm_up and np.ceil(request.warm_up * (end - begin)) >= end - begin:
        raise ConfigError(f"--warm-up: found {request.warm_up}, which leaves none of {end - begin} jobs to measure")
    if request.replay:
        first, n = np.array([begin]), np.array([end - begin])
    else:
        length = request.window if request.window is not None else min(WINDOW, end - begin)
        first = disjoint_windows(begin, end, length)
        n = np.full(len(first), length)
    if request.drawn:
        _check_drawn(int(n[0]))
    trace_jobs = ensure_clean(workspace, request.trace)[0]
    who = trace_jobs.set_index("job_id")[["user", "vc"]].loc[workload.job_ids]
    if request.by is not None:
        measured = begin + int(np.ceil(request.warm_up * (end - begin)))
        _group(who, request.by, np.arange(measured, first[-1] + n[-1]))

    def placer() -> CountingPlacer | None:
        return placer_of(scheduler.placement, workspace.config.lookahead)

    with step("compiling the simulator; a minute after a change of the sources, else at once"):
        simulate(workload.jobs, workload.layout, first[:1], np.ones(1, np.int64), scheduler, placer=placer())
    began = time.perf_counter()
    what = f"simulating {int(n.sum()):,} jobs under {scheduler.policy}, backfill {scheduler.backfill}"
    with explaining(workspace.plugins), step(what):
        asked = placer()
        state = simulate(workload.jobs, workload.layout, first, n, scheduler, placer=asked)
    took = max(time.perf_counter() - began, 1e-9)
    left_out = int(end - first[-1] - n[-1])
    has_limits = bool(trace_jobs["requested_s"].notna().any())
    counts = asked.counts if asked else None
    return Result(workload, scheduler, state, took, request.replay, request.warm_up, who, counts, left_out, has_limits)


def _group(who: pd.DataFrame, by: str, rows: np.ndarray) -> np.ndarray:
    """The groups of some jobs, missing where not known."""
    if by not in who:
        raise ConfigError(f"--by: found {by!r}; allowed: {', '.join(who)}")
    group = who[by].to_numpy()[rows]
    if pd.isna(group).all():
        raise ConfigError(f"--by: found {by}, but the trace names no {by} of these jobs")
    return group


def _check_drawn(jobs: int) -> None:
    if jobs > MOST_DRAWN:
        found = f"found {jobs} jobs in one sequence"
        raise ConfigError(f"--gantt: {found}, at most {MOST_DRAWN} can be drawn; take fewer with --jobs")


def _range(request: Request, workload: Workload) -> tuple[int, int]:
    """First job and the one after the last."""
    total = len(workload.jobs.gpus)
    parts = {"all": (0, total), **{p: getattr(workload.split, p) for p in ("train", "validation", "test")}}
    if request.part not in parts:
        raise ConfigError(f"--part: found {request.part!r}; allowed: {', '.join(parts)}")
    begin, end = parts[request.part]
    if request.begin is not None:
        if request.part != "all":
            raise ConfigError("--from: does not go with --part; give one of them")
        if not 0 <= request.begin < total:
            raise ConfigError(f"--from: found {request.begin}, expected 0 to {total - 1}: so many jobs are there")
        begin = request.begin
    if request.jobs is not None:
        if not 1 <= request.jobs <= end - begin:
            raise ConfigError(f"--jobs: found {request.jobs}, expected 1 to {end - begin}: so many are there")
        end = begin + request.jobs
    return begin, end
