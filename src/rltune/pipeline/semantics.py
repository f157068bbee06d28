"""What stands behind the gains of a run: its workloads under other rules, with perfect estimates, by groups of jobs,
and on clusters that keep up with the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from rltune.cluster.load import offered_load
from rltune.config import Cell, Workspace
from rltune.config.cells import AXES
from rltune.errors import ConfigError
from rltune.evaluation.compare import strong_baseline
from rltune.evaluation.evaluate import evaluate, test_windows
from rltune.evaluation.groups import size_class
from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.studies.headroom import headroom, heuristics_on
from rltune.evaluation.studies.rule_steps import ladder, may_climb
from rltune.pipeline.cells import ensure_policy
from rltune.pipeline.plugins import explaining, load_plugins
from rltune.pipeline.prepare import Workload, ensure_fitted, ensure_workload
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import job_table
from rltune.traces.split import spread

MOST_WINDOWS = 40
"""Test windows at most, evenly spread over all: enough for intervals, in a minute."""
ORDERS = ("fifo", "sjf", "saf")
"""Orders that are taken up the ladder of rules, beside the base policies of the cells."""
BALANCED = "-balanced"
"""Ending of the name of a cluster that is another one with arrivals thinned to what it can keep up with."""


@dataclass(frozen=True)
class Study:
    """A workload of the run with the agents trained for it."""

    workspace: Workspace
    title: str
    data: str
    cells: tuple[Cell, ...]
    """Cells of RLTune proper on the trace, cluster, estimate and locality; the first is the one looked at closely."""
    length: int = 0
    """Jobs in a window; 0: those of the shortest windows, of which there are most."""

    @property
    def main(self) -> Cell:
        """The first cell."""
        return self.cells[0]

    @cached_property
    def workload(self) -> Workload:
        """Jobs, nodes and split."""
        return ensure_workload(self.workspace, self.main.trace, self.main.cluster, self.main.estimate)

    @cached_property
    def windows(self) -> tuple[int, np.ndarray]:
        """(length in jobs, first jobs) of the test windows."""
        found = test_windows(self.workload.split, self.workspace.config.evaluation)
        length = self.length or min(found)
        return length, spread(found[length], MOST_WINDOWS)

    @property
    def test_jobs(self) -> int:
        """Jobs of the test part."""
        begin, end = self.workload.split.test
        return end - begin

    @property
    def has_windows(self) -> bool:
        """Whether the test part has a window of any length."""
        return self.test_jobs >= min(self.workspace.config.evaluation.sequence_jobs)

    @property
    def longest(self) -> int:
        """Jobs in the longest windows of which there are enough for a verdict, else in the shortest."""
        found = test_windows(self.workload.split, self.workspace.config.evaluation)
        return max((n for n, first in found.items() if len(first) >= FEWEST), default=min(found))

    def results(self, cell: Cell) -> pd.DataFrame:
        """What the evaluation has of a cell on these windows."""
        length, first = self.windows
        frame = pd.read_csv(self.workspace.windows(cell))
        frame = frame[(frame["sequence_jobs"] == length) & frame["first_job"].isin(first)]
        return frame.assign(window=np.searchsorted(first, frame["first_job"]))

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with workload, data and sequence_jobs in front."""
        return _in_front(frame, workload=self.title, data=self.data, sequence_jobs=self.windows[0])


def studies(workspace: Workspace, chosen: pd.DataFrame) -> list[Study]:
    """The workloads of some cells, each once; ``chosen``: a row a cell of RLTune proper with its name as cell,
    trace_title, data, trace, cluster, estimate and locality."""
    keys = ["trace_title", "data", "trace", "cluster", "estimate", "locality"]
    differ = [k for k in ("estimate", "locality") if chosen[k].nunique() > 1]
    found = []
    for values, group in chosen.groupby(keys, sort=False):
        told = dict(zip(keys, values, strict=True))
        title = ", ".join([told["trace_title"], *(told[k] for k in differ)])
        cells = tuple(workspace.config.cell(name) for name in group["cell"])
        found.append(Study(workspace, title, told["data"], cells))
    return found


def ladders(these: Sequence[Study]) -> pd.DataFrame:
    """Orders under every step (rltune.evaluation.studies.rule_steps) and the agents, on the same windows.

    Columns: workload, data, sequence_jobs, pools, who (order | agent), policy, step, backfill, window, first_job,
    wait_s; of agents those of :func:`agents`.
    """
    frames = []
    for study in these:
        length, first = study.windows
        orders = list(dict.fromkeys([c.policy for c in study.cells if may_climb(c.policy)] + list(ORDERS)))
        rule_steps = ladder(
            study.workload.jobs,
            study.workload.layout,
            first,
            length,
            orders,
            study.main.locality,
            study.workspace.config.simulation,
        )
        frame = pd.concat([rule_steps.assign(who="order"), agents(study)], ignore_index=True)
        frames.append(_in_front(study.labelled(frame), pools=len(study.workload.layout.pools)))
    return pd.concat(frames, ignore_index=True)


def agents(study: Study) -> pd.DataFrame:
    """A row an agent × window; agents that differ in their seed alone are one, with their mean wait.

    Columns: who, policy (its base policy), base_backfill (the base's rule), other (values of the further axes in which
    agents of this base and rule differ), step, backfill (what it was judged under; "easy or conservative" where seeds
    chose differently), window, first_job, wait_s.
    """
    alike: dict[Cell, list[Cell]] = {}
    for cell in study.cells:
        alike.setdefault(cell.but(seed=0), []).append(cell)
    frames = []
    for own, seeds in alike.items():
        rivals = [cell for cell in alike if (cell.policy, cell.backfill) == (own.policy, own.backfill)]
        other = [str(getattr(own, a)) for a in AXES if len({getattr(cell, a) for cell in rivals}) > 1]
        rows = pd.concat([study.results(cell).query("role == 'rltune'") for cell in seeds])
        means = rows.groupby(["window", "first_job"], sort=False)["wait_s"].mean().reset_index()
        rules = " or ".join(dict.fromkeys(rows["backfill"]))
        frames.append(
            means.assign(
                who="agent",
                policy=own.policy,
                base_backfill=own.backfill,
                other=", ".join(other),
                step="",
                backfill=rules,
            )
        )
    return pd.concat(frames, ignore_index=True)


def rooms(these: Sequence[Study]) -> pd.DataFrame:
    """Heuristics with given and exact estimates, the bound, and the agents: the rows of rltune.evaluation.studies.headroom, and
    those of :func:`agents` as kind ``agent``; with workload, data and sequence_jobs."""
    frames = []
    for study in these:
        config = study.workspace.config
        length, first = study.windows
        load_plugins(study.workspace)
        with explaining(study.workspace.plugins):
            found = headroom(
                study.workload.jobs,
                study.workload.layout,
                first,
                length,
                config.evaluation.baseline_policies,
                config.evaluation.baseline_backfills,
                study.main.locality,
                config.simulation,
            )
        mine = agents(study).drop(columns=["who", "step"]).assign(kind="agent")
        frames.append(study.labelled(pd.concat([found, mine], ignore_index=True)))
    return pd.concat(frames, ignore_index=True)


def payers(these: Sequence[Study]) -> pd.DataFrame:
    """Every job of the windows under the first agent (``rltune``), its base policy (``base``) and the heuristic that
    is best on these windows (``strong``): a row a job × scheduler.

    Columns: workload, data, sequence_jobs, scheduler, policy (of rltune: its base policy), backfill (of rltune: what it
    was judged under), window, job_id, gpus, wait_s, bsld, user, vc, size (rltune.evaluation.groups).
    """
    frames = []
    for study in these:
        length, first = study.windows
        results = study.results(study.main)
        told = strong_baseline(results, "wait", length)
        saved = pd.read_parquet(study.workspace.test_jobs(study.main))
        saved = saved[saved["sequence_jobs"] == length]
        at = results[results["role"] == "rltune"][["window", "first_job", "backfill"]]
        rules = {"rltune": at["backfill"].iloc[0]}
        every = test_windows(study.workload.split, study.workspace.config.evaluation)[length]
        numbers = dict(zip(np.searchsorted(every, at["first_job"]), at["window"], strict=True))
        saved = saved[saved["window"].isin(numbers)]
        saved = saved.assign(
            window=saved["window"].map(numbers),
            scheduler=saved["role"],
            policy=study.main.policy,
            backfill=saved["role"].map(rules).fillna(study.main.backfill),
        )
        scheduler = SchedulerConfig(
            told["policy"],
            told["backfill"],
            told["placement"],
            study.main.locality,
            **study.workspace.config.simulation.model_dump(),
        )
        load_plugins(study.workspace)
        with explaining(study.workspace.plugins):
            state = simulate(study.workload.jobs, study.workload.layout, first, np.full(len(first), length), scheduler)
        strong = job_table(study.workload.jobs, state).rename(columns={"sequence": "window"})
        strong = strong.assign(
            scheduler="strong",
            policy=told["policy"],
            backfill=told["backfill"],
            job_id=study.workload.job_ids[strong["job"]],
        )
        columns = ["scheduler", "policy", "backfill", "window", "job_id", "gpus", "wait_s", "bsld"]
        table, _ = ensure_fitted(study.workspace, study.main.trace, study.main.cluster)
        base, mine = (saved[saved["scheduler"] == who][columns] for who in ("base", "rltune"))
        both = pd.concat([base, strong[columns], mine], ignore_index=True)
        both = both.merge(table[["job_id", "user", "vc"]], on="job_id", how="left", validate="many_to_one")
        frames.append(study.labelled(both.assign(size=size_class(both["gpus"].to_numpy()))))
    return pd.concat(frames, ignore_index=True)


def balanced(these: Sequence[Study]) -> pd.DataFrame:
    """Heuristics and the first agent on the slice it was trained for, and on the cluster of the same name with BALANCED
    behind it, where the run's workloads have it; the agent goes there as it is. Windows are as long as may be, for each
    begins idle, and a cluster that keeps up takes long to fill.

    Columns: workload, data, sequence_jobs, load (slice | balanced), cluster (title), offered (load of the test part),
    role (baseline | rltune | base), policy, backfill, window, first_job, wait_s. Empty where no workload has
    one; those too short for a window are left out (:func:`too_short`). Raises ConfigError where all of them are.
    """
    pairs = [(study, there) for study in these if (there := _thinned(study)) is not None]
    if pairs and not any(there.has_windows for _, there in pairs):
        raise ConfigError(
            f"evaluation.sequence_jobs: found {min(these[0].workspace.config.evaluation.sequence_jobs)} at least, more "
            f"than the balanced clusters' test parts have: {', '.join(too_short(these))}; give a shorter length, or leave "
            "these clusters out of `workloads`"
        )
    frames = [pd.DataFrame()]
    for study, there in pairs:
        if not there.has_windows:
            continue
        config, thin = study.workspace.config, there.main
        length = min(there.longest, study.longest)
        here, there = replace(study, length=length), replace(there, length=length)
        evaluation = config.evaluation.model_copy(
            update={"sequence_jobs": [length], "max_windows": MOST_WINDOWS, "also": []}
        )
        work = there.workload
        policy = ensure_policy(study.workspace, study.main, study.workload)
        judged, _ = evaluate(
            thin,
            policy,
            work.jobs,
            work.job_ids,
            work.layout,
            work.split,
            evaluation,
            config.lookahead,
            config.simulation,
            calibrated=work.calibrated,
        )
        load_plugins(study.workspace)
        with explaining(study.workspace.plugins):
            simple = heuristics_on(
                work.jobs,
                work.layout,
                test_windows(work.split, evaluation)[length],
                length,
                evaluation.baseline_policies,
                evaluation.baseline_backfills,
                thin.locality,
                config.simulation,
            )
        both = pd.concat([judged, simple.assign(role="baseline")], ignore_index=True)
        frames += [_loaded(here, here.results(here.main), "slice"), _loaded(there, both, "balanced")]
    return pd.concat(frames, ignore_index=True)


def too_short(these: Sequence[Study]) -> list[str]:
    """Workloads that :func:`balanced` leaves out, in words: on the balanced cluster so few jobs are left that the test
    part has no window."""
    thinned = [(study, there) for study in these if (there := _thinned(study)) is not None and not there.has_windows]
    return [f"{study.title} ({there.test_jobs:,} test jobs)" for study, there in thinned]


def _thinned(study: Study) -> Study | None:
    """The study's first cell on the balanced cluster, where the run's workloads have it."""
    thin = study.main.but(cluster=study.main.cluster + BALANCED)
    if thin.cluster not in {w.cluster for w in study.workspace.config.all_workloads() if w.trace == thin.trace}:
        return None
    return Study(study.workspace, study.title, study.data, (thin,))


def _loaded(study: Study, results: pd.DataFrame, load: str) -> pd.DataFrame:
    """Results of a study's workload, with what the test part asks of its cluster."""
    cluster, split = study.workspace.cluster(study.main.cluster), study.workload.split
    table, _ = ensure_fitted(study.workspace, study.main.trace, study.main.cluster)
    kept = results[results["role"].isin(["baseline", "rltune", "base"])]
    kept = kept[["role", "policy", "backfill", "window", "first_job", "wait_s"]]
    offered = offered_load(table.iloc[slice(*split.test)], cluster.gpus)
    return study.labelled(_in_front(kept, load=load, cluster=cluster.title, offered=offered))


def _in_front(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    return frame.assign(**values)[[*values, *frame.columns]]
