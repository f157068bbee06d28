"""RLTune's agents beside QSSF, other learners and the strongest heuristic: what is run besides the evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product

import numpy as np
import pandas as pd

from rltune.config import Cell, Workspace
from rltune.config.comparisons import YARDSTICK, Lineup, against_qssf, agent_of, for_metric
from rltune.evaluation.contenders import Contender, Course, judge
from rltune.evaluation.evaluate import test_windows
from rltune.evaluation.latency import QUEUES, decision_times
from rltune.evaluation.long_run import compare_long, long_run, span_of
from rltune.pipeline.cells import ensure_evaluated, ensure_policy, workload_of
from rltune.pipeline.plugins import load_plugins
from rltune.pipeline.prepare import Workload, ensure_workload
from rltune.simulator.batch import SchedulerConfig
from rltune.traces.split import disjoint_windows, spread

BATCHES, BATCH_JOBS = 10, 256
"""Of the paper's Table 9."""


def course_of(workspace: Workspace, workload: Workload) -> Course:
    """A workload under the run's rules."""
    return Course(workload.jobs, workload.layout, workspace.config.lookahead, workload.calibrated)


def scheduler_of(workspace: Workspace, cell: Cell, **changes: str) -> SchedulerConfig:
    """The rules of a cell, with some of them changed."""
    names = {name: getattr(cell, name) for name in ("policy", "backfill", "placement", "locality")}
    return SchedulerConfig(**{**names, **changes}, **workspace.config.simulation.model_dump())


def agent_in(workspace: Workspace, cell: Cell, workload: Workload) -> Contender:
    """A cell's agent, trained now if it is not."""
    return Contender(scheduler_of(workspace, cell), ensure_policy(workspace, cell, workload))


def qssf_windows(workspace: Workspace) -> pd.DataFrame:
    """A row a cell × scheduler × test window, of the cells that stand against QSSF, with ``cell`` and ``who``.

    ``rltune``, as it was judged; ``qssf``: smallest predicted area first with EASY, in the cell's placement and
    locality; ``qssf_best_fit``: the same with best_fit, where that differs; ``fifo_easy``: EASY alone;
    ``saf_lognormal``: smallest area first with EASY, by estimates of YARDSTICK. All run the evaluation's windows.
    """
    frames = []
    for cell in against_qssf(workspace.config):
        ensure_evaluated(workspace, cell)
        judged = pd.read_csv(workspace.windows(cell))
        frames.append(judged[judged["role"] == "rltune"].assign(cell=cell.name, who="rltune"))
        workload = workload_of(workspace, cell)
        other = ensure_workload(workspace, cell.trace, cell.cluster, YARDSTICK)
        qssf = Contender(scheduler_of(workspace, cell, policy="saf"))
        told = {"qssf": qssf, "fifo_easy": Contender(scheduler_of(workspace, cell, policy="fifo"))}
        if cell.placement != "best_fit":
            told["qssf_best_fit"] = Contender(scheduler_of(workspace, cell, policy="saf", placement="best_fit"))
        for length, first in test_windows(workload.split, workspace.config.evaluation).items():
            for source, contenders in ((workload, told), (other, {"saf_lognormal": qssf})):
                found = judge(course_of(workspace, source), contenders, first, length)
                frames.append(found.assign(cell=cell.name))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def qssf_long_runs(workspace: Workspace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(A row a cell × {rltune, qssf} × job of one long sequence of the test part; a row a cell: how their JCT compares,
    the fields of rltune.evaluation.long_run.LongComparison), both with ``cell``; empty where nothing stands against
    QSSF.

    One cell a workload and estimate: one trained for JCT, else for wait.
    """
    workloads: dict[tuple[str, ...], list[Cell]] = {}
    for cell in against_qssf(workspace.config):
        workloads.setdefault((cell.trace, cell.cluster, cell.estimate), []).append(cell)
    frames, compared, evaluation = [], [], workspace.config.evaluation
    for cells in workloads.values():
        cell = for_metric(cells, "jct")[0]
        workload = workload_of(workspace, cell)
        contenders = {
            "rltune": agent_in(workspace, cell, workload),
            "qssf": Contender(scheduler_of(workspace, cell, policy="saf")),
        }
        course = course_of(workspace, workload)
        jobs = long_run(course, contenders, *span_of(workload.split))
        jct_s = {who: one["jct_s"].to_numpy() for who, one in jobs.groupby("who")}
        found = compare_long(
            jct_s["rltune"], jct_s["qssf"], evaluation.bootstrap, evaluation.confidence, evaluation.seed
        )
        frames.append(jobs.assign(cell=cell.name))
        compared.append({"cell": cell.name, **asdict(found)})
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), pd.DataFrame(compared)


def batches(workspace: Workspace, lineup: Lineup) -> pd.DataFrame:
    """A row a scheduler × window: BATCHES windows of BATCH_JOBS jobs of the test part, disjoint and evenly spread;
    fewer, or shorter, where it has not so many.

    ``who``: fifo, strong (of the run's heuristics under its backfill rules with best_fit the one that waits least on
    these windows, in hindsight), or the kind of agent; ``cell``, ``preset`` and ``base`` (base policy) of agents;
    ``policy``, ``backfill``, ``placement`` and ``locality`` it ran with, of an agent that chose its way those of it;
    ``seconds`` of a window on the clock.
    """
    load_plugins(workspace)
    lead = lineup.cells[0]
    workload = workload_of(workspace, lead)
    begin, end = workload.split.test
    length = min(BATCH_JOBS, end - begin)
    first = spread(disjoint_windows(begin, end, length), BATCHES)
    evaluation, course = workspace.config.evaluation, course_of(workspace, workload)
    rivals = {
        f"strong {policy} {backfill}": Contender(
            scheduler_of(workspace, lead, policy=policy, backfill=backfill, placement="best_fit")
        )
        for policy, backfill in product(evaluation.baseline_policies, evaluation.baseline_backfills)
    }
    waits = judge(course, rivals, first, length).groupby("who", sort=False)["wait_s"].mean()
    fifo = Contender(scheduler_of(workspace, lead, policy="fifo", placement="best_fit"))
    contenders = {"fifo": fifo, "strong": rivals[str(waits.idxmin())]}
    agents = {cell.name: cell for cell in lineup.cells}
    contenders |= {name: agent_in(workspace, cell, workload) for name, cell in agents.items()}
    frame = judge(course, contenders, first, length)
    about = pd.DataFrame([_about(workspace, name, agents.get(name)) for name in frame.pop("who")])
    same = {axis: getattr(lead, axis) for axis in ("trace", "cluster", "estimate")}
    return pd.concat([about, frame], axis=1).assign(**same)


def _about(workspace: Workspace, name: str, cell: Cell | None) -> dict[str, str]:
    """What a row of :func:`batches` says of who ran it; ``cell``: of an agent."""
    if cell is None:
        return {"who": name, "cell": "", "preset": "", "base": ""}
    return {"who": agent_of(workspace.config, cell), "cell": name, "preset": cell.preset, "base": cell.policy}


def all_batches(workspace: Workspace, lineups: Sequence[Lineup]) -> pd.DataFrame:
    """:func:`batches` of every lineup, one behind the other."""
    return pd.concat([batches(workspace, lineup) for lineup in lineups], ignore_index=True)


def time_decisions(workspace: Workspace, queues_of_each: int = 4) -> tuple[str, pd.DataFrame]:
    """(Name of the cell, its agent's decisions in queues of several lengths as rltune.evaluation.latency times them).

    The run's first cell of RLTune's with look-ahead placement, or its first of RLTune's, or its first.
    """
    cells = workspace.config.cells()
    mine = [cell for cell in cells if agent_of(workspace.config, cell) == "rltune"] or cells
    cell = next((cell for cell in mine if cell.placement == "lookahead"), mine[0])
    workload = workload_of(workspace, cell)
    policy = ensure_policy(workspace, cell, workload)
    frame = decision_times(policy, workload.jobs, workload.layout, workspace.config.lookahead, QUEUES, queues_of_each)
    return cell.name, frame


def arrivals_per_day(workspace: Workspace) -> dict[str, float]:
    """Jobs submitted a day in the test part of each cell, by the cell's name."""
    known: dict[tuple[str, str], float] = {}  # whatever the estimate
    for cell in workspace.config.cells():
        if (cell.trace, cell.cluster) not in known:
            workload = workload_of(workspace, cell)
            submit = workload.jobs.submit_s[slice(*workload.split.test)]
            span = float(np.ptp(submit))
            known[cell.trace, cell.cluster] = len(submit) / (span / 86400) if span > 0 else float("nan")
    return {cell.name: known[cell.trace, cell.cluster] for cell in workspace.config.cells()}
