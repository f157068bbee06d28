"""A single simulation, for ``rltune simulate`` and notebooks: one scheduler on a trace and a cluster; its jobs, their metrics."""

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rltune.cluster.workload import Workload
from rltune.config import RunConfig
from rltune.errors import ConfigError
from rltune.placement.counts import Counts
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.gantt import bars
from rltune.simulator.metrics import chunk_table, job_table
from rltune.simulator.state import State
from rltune.simulator.timeline import timeline
from rltune.traces.split import disjoint_windows

WINDOW = 256
"""Jobs per window by default (paper §5.2)."""
MOST_DRAWN = 2000
"""Jobs that a Gantt chart can show."""
ANSWERS = ("presolved", "cached", "optimal", "infeasible", "limit", "failure")
Stage = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Request:
    """Which jobs to simulate."""

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
    drawn: bool = False
    """Whether bars will be asked for (Result.bars): impossible ones are then refused before the simulation."""


@dataclass(frozen=True)
class Result:
    """The simulation of a request."""

    workload: Workload
    state: State
    seconds: float
    """Of the simulation, on the clock."""
    request: Request
    counts: Counts | None = None
    """How the placer, if there is one, answered its questions."""
    left_out: int = 0
    """Jobs after the last whole window."""

    @property
    def has_limits(self) -> bool:
        """Whether the trace has time limits that users requested."""
        return bool(self.workload.table["requested_s"].notna().any())

    def jobs(self) -> pd.DataFrame:
        """A row per job: window, job_id, and the columns of rltune.simulator.metrics.job_table; user and vc, where known."""
        table = job_table(self.workload.jobs, self.state).rename(columns={"sequence": "window"})
        table.insert(1, "job_id", self.workload.job_ids[table["job"]])
        return table.assign(**{c: self.workload.table[c].to_numpy()[table["job"]] for c in ("user", "vc")})

    def placed(self) -> str:
        """How the placer answered, as a line; "" without one."""
        if self.counts is None:
            return ""
        parts = [f"{n:,} {name}" for name in ANSWERS if (n := getattr(self.counts, name))]
        answers = f": {', '.join(parts)}" if parts else ""
        clock = "; the time limit ended some, so another run may differ" if self.counts.limit else ""
        return f"placement questions: {self.counts.asked:,}{answers}{clock}"

    def about(self) -> str:
        """Which jobs, in words."""
        first, n = self.state.first, self.state.n
        jobs = f"jobs {first[0]:,} to {first[-1] + n[-1] - 1:,}"
        if not self.request.replay:
            windows = f"{len(n):,} window{'s' if len(n) > 1 else ''} of {n[0]:,}, each from an idle cluster"
            verbs = ("makes", "is") if self.left_out == 1 else ("make", "are")
            rest = f"; the last {self.left_out:,} {verbs[0]} no whole window and {verbs[1]} left out"
            return f"{jobs}: {windows}{rest if self.left_out else ''}"
        warm_up = int(_warm_up(self.request, n[0]))
        return f"{jobs} as one sequence{f', the first {warm_up:,} of them not measured' if warm_up else ''}"

    def metrics(self) -> dict[str, float]:
        """Of all measured jobs: mean, median and largest wait_s, jct_s, bsld; then utilisation and mean_queue, each
        over the measured time, from the first to the last submission of measured jobs, mean of the windows (NaN where
        that is no time); jobs_per_s: jobs simulated a second."""
        table = self.jobs()
        inside = table.groupby("window").cumcount().to_numpy()
        measured = table[inside >= _warm_up(self.request, self.state.n)[table["window"]]]
        found: dict[str, float] = {}
        for column in ("wait_s", "jct_s", "bsld"):
            found |= {f"{column}_{name}": float(measured[column].agg(name)) for name in ("mean", "median", "max")}
        submit = measured.groupby("window")["submit_s"]
        begin, end, window = submit.min().to_numpy(), submit.max().to_numpy(), table["window"].to_numpy()

        def during(since: str, until: str) -> np.ndarray:
            """Seconds of each job's interval within the measured time."""
            length = np.minimum(table[until], end[window]) - np.maximum(table[since], begin[window])
            return np.maximum(length.to_numpy(), 0.0)

        span = np.where(end > begin, end - begin, np.nan)
        used = np.bincount(window, during("start_s", "end_s") * table["gpus"]) / span / self.workload.layout.gpus
        queued = np.bincount(window, during("submit_s", "start_s")) / span
        found |= {"utilisation": float(pd.Series(used).mean()), "mean_queue": float(pd.Series(queued).mean())}
        return {**found, "jobs_per_s": len(table) / self.seconds}

    def timeline(self) -> pd.DataFrame:
        """Over time, of each window: GPUs used, jobs queued and running (rltune.simulator.timeline)."""
        jobs = job_table(self.workload.jobs, self.state)
        parts = [timeline(rows).assign(window=s) for s, rows in jobs.groupby("sequence")]
        return pd.concat(parts, ignore_index=True)

    def bound(self) -> tuple[float, float]:
        """(Lower bound on the mean wait of all jobs under any policy, their mean wait here), seconds."""
        wait = self.jobs().groupby("window")["wait_s"].mean()
        jobs, layout, n = self.workload.jobs, self.workload.layout, self.state.n
        bounds = [
            lower_bound(jobs, layout, int(first), int(n[s]), float(wait[s])).wait_s
            for s, first in enumerate(self.state.first)
        ]
        return float(np.dot(bounds, n) / n.sum()), float((wait * n).sum() / n.sum())

    def bars(self) -> pd.DataFrame:
        """Bars of the first window, for a Gantt chart; the request has said that it is ``drawn``."""
        return bars_of(self.workload, self.state, 0)


def bars_of(workload: Workload, state: State, sequence: int) -> pd.DataFrame:
    """Bars of one sequence of a state (rltune.simulator.gantt.bars)."""
    tables = job_table(workload.jobs, state), chunk_table(state)
    return bars(*(table[table["sequence"] == sequence] for table in tables), workload.layout.nodes)


def make_scheduler(config: RunConfig, **names: str | float | None) -> SchedulerConfig:
    """A scheduler configuration of these names; what is None is as in the run's ``simulation``.

    Raises ConfigError for a rule that does not exist, or one that does not go with another.
    """
    given = {name: value for name, value in names.items() if value is not None}
    try:
        return SchedulerConfig(**{**config.simulation.model_dump(), **given})
    except ValueError as error:
        option, *rest = re.split(r"(?=[: ])", str(error), maxsplit=1)
        raise ConfigError(f"--{option.replace('_', '-')}{''.join(rest)}") from None


def run(
    config: RunConfig,
    workload: Workload,
    request: Request,
    scheduler: SchedulerConfig,
    stage: Stage = lambda text: nullcontext(),
) -> Result:
    """Simulate; the time is without the engine's compilation. ``stage`` is given what is being done, and is open for as
    long.

    Raises ConfigError when the request names jobs there are not.
    """
    first, n, end = _sequences(request, workload)
    scheduler = replace(scheduler, **workload.slowdowns)
    if request.drawn and n[0] > MOST_DRAWN:
        found = f"found {n[0]} jobs in one sequence"
        raise ConfigError(f"--gantt: {found}, at most {MOST_DRAWN} can be drawn; take fewer with --jobs")
    with stage("compiling the simulator; a minute after a change of the sources, else at once"):
        placer = placer_of(scheduler.placement, config.lookahead)
        simulate(workload.jobs, workload.layout, first[:1], np.ones(1, np.int64), scheduler, placer=placer)
    placer = placer_of(scheduler.placement, config.lookahead)
    what = f"simulating {int(n.sum()):,} jobs under {scheduler.policy}, backfill {scheduler.backfill}"
    began = time.perf_counter()
    with stage(what):
        state = simulate(workload.jobs, workload.layout, first, n, scheduler, placer=placer)
    seconds = max(time.perf_counter() - began, 1e-9)
    counts = placer.counts if placer else None
    return Result(workload, state, seconds, request, counts, int(end - first[-1] - n[-1]))


def _warm_up(request: Request, n: Any) -> Any:
    """Jobs of sequences of ``n`` that are not measured, without the product's rounding: 7 of 100 for 0.07."""
    return np.ceil(np.round(request.warm_up * n, 6))


def _sequences(request: Request, workload: Workload) -> tuple[np.ndarray, np.ndarray, int]:
    """(First job of each sequence, its number of jobs, the job after the last that was asked for)."""
    total = len(workload.jobs.gpus)
    begin, end = (0, total) if request.part == "all" else getattr(workload.split, request.part)
    if request.begin is not None:
        if not 0 <= request.begin < total:
            raise ConfigError(f"--from: found {request.begin}, expected 0 to {total - 1}: so many jobs are there")
        begin = request.begin
    if request.jobs is not None:
        if not 1 <= request.jobs <= end - begin:
            raise ConfigError(f"--jobs: found {request.jobs}, expected 1 to {end - begin}: so many are there")
        end = begin + request.jobs
    n = end - begin
    if request.window is not None and not 1 <= request.window <= n:
        raise ConfigError(f"--windows: found {request.window}, expected 1 to {n}: so many jobs are there")
    if request.warm_up and _warm_up(request, n) >= n:
        raise ConfigError(f"--warm-up: found {request.warm_up}, which leaves none of {n} jobs to measure")
    if request.replay:
        return np.array([begin]), np.array([n]), end
    length = request.window if request.window is not None else min(WINDOW, n)
    first = disjoint_windows(begin, end, length)
    return first, np.full(len(first), length), end
