"""Where the gains of a run come from: its workloads under other scheduling rules, with exact run times, by groups of
jobs, and on clusters that keep up with their load."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from rltune.cluster.load import offered_load
from rltune.cluster.workload import Workload
from rltune.config import Cell, RunConfig
from rltune.config.cells import AXES
from rltune.config.comparisons import BALANCED, balanced_cells, grouped
from rltune.config.context import Run
from rltune.errors import ConfigError
from rltune.evaluation.compare import strong_baseline, where
from rltune.evaluation.contenders import (
    Contender,
    Policies,
    Workloads,
    by_window,
    contender_of,
    heuristics,
    rule_of,
    run,
    simulate_windows,
    workload_of,
)
from rltune.evaluation.evaluate import bound_s, evaluate, test_windows
from rltune.evaluation.groups import size_class
from rltune.evaluation.intervals import FEWEST
from rltune.policies import FIRST_FAIR, IDS
from rltune.simulator.metrics import job_table
from rltune.traces.split import spread

MOST_WINDOWS = 40
"""Test windows at most, evenly spread over all: enough for intervals, in a minute."""
ORDERS = ("fifo", "sjf", "saf")
"""Orders that are run under every step of the rules, next to the base policies of the cells."""
GIVEN, EXACT, BOUND, AGENT = "given", "exact", "bound", "agent"
WINDOW = ["policy", "backfill", "window", "first_job", "wait_s"]


class Step(NamedTuple):
    """Rules of one step."""

    sticky_head: bool
    """As in SchedulerConfig."""
    backfill: str
    pools_apart: bool
    """Whether every pool is run by itself, so that a head that stays blocks its own pool only."""


STEPS = {
    "released": Step(True, "none", False),
    "own_pool": Step(True, "none", True),
    "reranked": Step(False, "none", False),
    "greedy": Step(False, "greedy", False),
    "easy": Step(False, "easy", False),
    "conservative": Step(False, "conservative", False),
}
"""From the rules of the paper's released code (the chosen job blocks the whole cluster until it starts) on."""


@dataclass(frozen=True)
class Study:
    """A workload of the run with the agents trained for it."""

    run: Run
    title: str
    data: str
    cells: tuple[Cell, ...]
    """Cells of RLTune proper on the trace, cluster, estimate and locality; the first is examined closely."""
    workload: Workload
    evaluated: pd.DataFrame
    """Test results of the run's cells (rltune.report.read.results)."""
    length: int = 0
    """Jobs in a window; 0: those of the shortest windows, of which there are most."""

    @property
    def main(self) -> Cell:
        """The first cell."""
        return self.cells[0]

    @cached_property
    def every_window(self) -> dict[int, np.ndarray]:
        """Length → first jobs of all test windows."""
        return test_windows(self.workload.split, self.run.config.evaluation)

    @cached_property
    def windows(self) -> tuple[int, np.ndarray]:
        """(Length in jobs, first jobs) of the test windows."""
        length = self.length or min(self.every_window)
        return length, spread(self.every_window[length], MOST_WINDOWS)

    @property
    def test_jobs(self) -> int:
        """Jobs of the test part."""
        begin, end = self.workload.split.test
        return end - begin

    @property
    def has_windows(self) -> bool:
        """Whether the test part has a window of any length."""
        return self.test_jobs >= min(self.run.config.evaluation.sequence_jobs)

    @property
    def longest(self) -> int:
        """Jobs in the longest windows of which there are enough for a verdict, else in the shortest."""
        found = self.every_window
        return max((n for n, first in found.items() if len(first) >= FEWEST), default=min(found))

    def results(self, cell: Cell) -> pd.DataFrame:
        """What the evaluation has of a cell on these windows."""
        length, first = self.windows
        rows = where(self.evaluated, cell=cell.name, sequence_jobs=length)
        rows = rows[rows["first_job"].isin(first)]
        return rows.assign(window=np.searchsorted(first, rows["first_job"]))

    def heuristics(self) -> dict[str, Contender]:
        """The run's heuristics in the locality of the study; on a balanced cluster those of the slice."""
        config, main = self.run.config, self.main
        tuned = config.tuned_on(main.trace, main.cluster.removesuffix(BALANCED), main.estimate)
        return heuristics(config, self.workload, main.locality, tuned)

    def labelled(self, frame: pd.DataFrame, **more: object) -> pd.DataFrame:
        """The frame with workload, data, sequence_jobs, and ``more`` in front."""
        values = {**more, "workload": self.title, "data": self.data, "sequence_jobs": self.windows[0]}
        return frame.assign(**values)[[*values, *(c for c in frame if c not in values)]]


def studies(run: Run, chosen: pd.DataFrame, workloads: Workloads, evaluated: pd.DataFrame) -> list[Study]:
    """The workloads of some cells, each once.

    ``chosen``: a row per cell of RLTune proper with its name as cell, trace_title, data, trace, cluster, estimate and
    locality; ``evaluated``: as in Study.
    """
    keys = ["trace_title", "data", "trace", "cluster", "estimate", "locality"]
    differ = [k for k in ("estimate", "locality") if chosen[k].nunique() > 1]
    found = []
    for values, group in chosen.groupby(keys, sort=False):
        of = dict(zip(keys, values, strict=True))
        title = ", ".join([of["trace_title"], *(of[k] for k in differ)])
        cells = tuple(run.config.cell(name) for name in group["cell"])
        workload = workloads[of["trace"], of["cluster"], of["estimate"]]
        found.append(Study(run, title, of["data"], cells, workload, evaluated))
    return found


def has_steps(policy: str) -> bool:
    """Whether an order is the same where pools are run apart: not with fair shares, which count use in all pools."""
    return IDS[policy] < FIRST_FAIR


def rule_steps(these: Sequence[Study]) -> pd.DataFrame:
    """Orders under every step of the rules and the agents, on the same windows.

    Columns: workload, data, sequence_jobs, pools, who (order | agent), policy, step, backfill, window, first_job,
    wait_s; of agents those of :func:`agents`.
    """
    frames = []
    for study in these:
        length, first = study.windows
        orders = list(dict.fromkeys([*filter(has_steps, (c.policy for c in study.cells)), *ORDERS]))
        stepped = steps_of(study.workload, first, length, orders, study.main.locality, study.run.config)
        frame = pd.concat([stepped.assign(who="order"), agents(study)], ignore_index=True)
        frames.append(study.labelled(frame, pools=len(study.workload.layout.pools)))
    return pd.concat(frames, ignore_index=True)


def steps_of(
    workload: Workload, first: np.ndarray, length: int, policies: Sequence[str], locality: str, config: RunConfig
) -> pd.DataFrame:
    """A row per policy × step × window: policy, step, backfill, window, first_job, wait_s (the mean over its jobs).

    All with best_fit, and with the other rules of the run's ``simulation``. ``policies``: none that goes by fair shares.
    """
    frames = []
    for policy, (name, step) in product(policies, STEPS.items()):
        contender = rule_of(config, policy, step.backfill, locality, sticky_head=step.sticky_head)
        if step.pools_apart:
            waits = _pools_apart(workload, contender, first, length)
        else:
            waits = simulate_windows(workload, contender, first, length)[0]["wait_s"]
        window = {"window": np.arange(len(first)), "first_job": first, "wait_s": waits}
        frames.append(pd.DataFrame({"policy": policy, "step": name, "backfill": step.backfill, **window}))
    return pd.concat(frames, ignore_index=True)


def _pools_apart(workload: Workload, contender: Contender, first: np.ndarray, length: int) -> np.ndarray:
    """Mean wait of each window [S], s, where each pool has its jobs and its nodes to itself, as if there were no other."""
    total = np.zeros(len(first))
    for p in range(len(workload.layout.pools)):
        rows = np.flatnonzero(workload.jobs.pool == p)
        begin, end = np.searchsorted(rows, first), np.searchsorted(rows, first + length)
        some = np.flatnonzero(end > begin)
        if len(some):
            pool = replace(workload, table=workload.table.iloc[rows], jobs=workload.jobs.take(rows))
            state, _ = run(pool, contender, begin[some], (end - begin)[some])
            waits = job_table(pool.jobs, state).groupby("sequence")["wait_s"].sum()
            total[some] += waits.to_numpy()
    return total / length


def agents(study: Study) -> pd.DataFrame:
    """A row per agent × window; agents that differ in their seed alone are one, with their mean wait.

    Columns: who, policy (its base policy), base_backfill (the base's rule), other (values of the further axes in which
    agents of this base and rule differ), step, backfill (what it was evaluated under; "easy or conservative" where
    seeds chose differently), window, first_job, wait_s.
    """
    alike, frames = grouped(study.cells, lambda cell: cell.but(seed=0)), []
    for agent, seeds in alike.items():
        rivals = [cell for cell in alike if (cell.policy, cell.backfill) == (agent.policy, agent.backfill)]
        other = [str(getattr(agent, a)) for a in AXES if len({getattr(cell, a) for cell in rivals}) > 1]
        rows = pd.concat([study.results(cell).query("role == 'rltune'") for cell in seeds])
        means = rows.groupby(["window", "first_job"], sort=False)["wait_s"].mean().reset_index()
        about = {"policy": agent.policy, "base_backfill": agent.backfill, "other": ", ".join(other)}
        rules = " or ".join(dict.fromkeys(rows["backfill"]))
        frames.append(means.assign(who=AGENT, **about, step="", backfill=rules))
    return pd.concat(frames, ignore_index=True)


def headroom(these: Sequence[Study]) -> pd.DataFrame:
    """How much there is to gain at all: a row per scheduler × window.

    ``kind``: given (heuristics with the workload's estimates), exact (with true run times), bound (what no schedule goes
    below), agent (those of :func:`agents`). Columns: workload, data, sequence_jobs, kind and WINDOW.
    """
    frames = []
    for study in these:
        length, first = study.windows
        bound = pd.DataFrame({"policy": "", "backfill": "", "window": np.arange(len(first)), "first_job": first})
        parts = {
            GIVEN: by_window(study.workload, study.heuristics(), first, length)[WINDOW],
            EXACT: by_window(study.workload.with_exact_estimates(), study.heuristics(), first, length)[WINDOW],
            BOUND: bound.assign(wait_s=bound_s(study.workload, first, length)),
            AGENT: agents(study).drop(columns=["who", "step"]),
        }
        frames += [study.labelled(frame.assign(kind=kind)) for kind, frame in parts.items()]
    return pd.concat(frames, ignore_index=True)


def jobs_of(these: Sequence[Study], test_jobs: pd.DataFrame) -> pd.DataFrame:
    """Every job of the windows under the first agent (``rltune``), its base policy (``base``) and the heuristic that
    is best on these windows (``strong``): a row per job × scheduler.

    ``test_jobs``: those of the run's cells, with ``cell``. Columns: workload, data, sequence_jobs, scheduler, policy
    (of rltune: its base policy), backfill (of rltune: what it was evaluated under), window, job_id, gpus, wait_s, bsld,
    user, vc, size (rltune.evaluation.groups).
    """
    frames = []
    columns = ["scheduler", "policy", "backfill", "window", "job_id", "gpus", "wait_s", "bsld"]
    for study in these:
        length, first = study.windows
        results, workload = study.results(study.main), study.workload
        best = strong_baseline(results, "wait", length)
        saved = where(test_jobs, cell=study.main.name, sequence_jobs=length)
        at = where(results, role="rltune")[["window", "first_job", "backfill"]]
        rules = {"rltune": at["backfill"].iloc[0], "base": study.main.backfill}
        numbers = dict(zip(np.searchsorted(study.every_window[length], at["first_job"]), at["window"], strict=True))
        saved = saved[saved["window"].isin(numbers)]
        ran = {"policy": study.main.policy, "backfill": saved["role"].map(rules)}
        saved = saved.assign(window=saved["window"].map(numbers), scheduler=saved["role"], **ran)
        named = {name: best[name] for name in ("policy", "backfill", "placement")}
        strongest = contender_of(study.run.config, study.main, **named)
        state, _ = run(workload, strongest, first, np.full(len(first), length))
        strong = job_table(workload.jobs, state).rename(columns={"sequence": "window"})
        ran = {"policy": best["policy"], "backfill": best["backfill"], "job_id": workload.job_ids[strong["job"]]}
        strong = strong.assign(scheduler="strong", **ran)
        base, rltune = (where(saved, scheduler=who)[columns] for who in ("base", "rltune"))
        every = pd.concat([base, strong[columns], rltune], ignore_index=True)
        every = every.merge(workload.table[["job_id", "user", "vc"]], on="job_id", how="left", validate="many_to_one")
        frames.append(study.labelled(every.assign(size=size_class(every["gpus"].to_numpy()))))
    return pd.concat(frames, ignore_index=True)


def balanced(these: Sequence[Study], workloads: Workloads, policies: Policies) -> pd.DataFrame:
    """Heuristics and the first agent on the slice it was trained for, and on the cluster of the same name with BALANCED
    behind it, where the workloads have it; the agent is used there as it is.

    Windows are as long as may be, for each begins idle, and a cluster that keeps up takes long to fill. Columns:
    workload, data, sequence_jobs, load (slice | balanced), cluster (title), offered (load of the test part), role
    (baseline | rltune | base), policy, backfill, window, first_job, wait_s. Empty where no workload has one; those too
    short for a window are left out (:func:`too_short`). Raises ConfigError where all of them are.
    """
    pairs = _thinned(these, workloads)
    if pairs and not any(there.has_windows for _, there in pairs):
        raise ConfigError(
            f"evaluation.sequence_jobs: found {min(these[0].run.config.evaluation.sequence_jobs)} at least, more than the "
            f"balanced clusters' test parts have: {', '.join(too_short(these, workloads))}; give a shorter length, or "
            "leave these clusters out of `workloads`"
        )
    frames = [pd.DataFrame()]
    for study, there in (pair for pair in pairs if pair[1].has_windows):
        config, length = study.run.config, min(there.longest, study.longest)
        here, there = replace(study, length=length), replace(there, length=length)
        changes = {"sequence_jobs": [length], "max_windows": MOST_WINDOWS, "also": []}
        short = config.model_copy(update={"evaluation": config.evaluation.model_copy(update=changes)})
        found = evaluate(there.main, policies[study.main], there.workload, short).windows
        first = test_windows(there.workload.split, short.evaluation)[length]
        simple = by_window(there.workload, there.heuristics(), first, length).assign(role="baseline")
        both = pd.concat([found, simple], ignore_index=True)
        frames += [_loaded(here, here.results(here.main), "slice"), _loaded(there, both, "balanced")]
    return pd.concat(frames, ignore_index=True)


def too_short(these: Sequence[Study], workloads: Workloads) -> list[str]:
    """Workloads that :func:`balanced` leaves out, in words: on the balanced cluster so few jobs are left that the test
    part has no window."""
    thinned = _thinned(these, workloads)
    return [f"{study.title} ({there.test_jobs:,} test jobs)" for study, there in thinned if not there.has_windows]


def _thinned(these: Sequence[Study], workloads: Workloads) -> list[tuple[Study, Study]]:
    """(Study, its first cell on the balanced cluster), where the run's workloads have that."""
    return [
        (study, replace(study, cells=(thin,), workload=workload_of(thin, workloads)))
        for study in these
        for thin in balanced_cells(study.run.config, study.cells[:1])
    ]


def _loaded(study: Study, results: pd.DataFrame, load: str) -> pd.DataFrame:
    """Results of a study's workload, with what the test part asks of its cluster."""
    cluster, workload = study.run.clusters[study.main.cluster], study.workload
    kept = results[results["role"].isin(["baseline", "rltune", "base"])][["role", *WINDOW]]
    offered = offered_load(workload.table.iloc[slice(*workload.split.test)], cluster.gpus)
    return study.labelled(kept, load=load, cluster=cluster.title, offered=offered)
