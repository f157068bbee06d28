"""RLTune next to QSSF, other learners and the strongest heuristic: what is run besides the evaluation."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rltune.cluster.workload import Workload
from rltune.config import RunConfig
from rltune.config.comparisons import (
    YARDSTICK,
    Comparison,
    against_qssf,
    agent_of,
    for_metric,
    grouped,
    learners_compared,
)
from rltune.evaluation.compare import where
from rltune.evaluation.contenders import (
    Contender,
    Policies,
    Workloads,
    by_window,
    contender_of,
    heuristics,
    run,
    workload_of,
)
from rltune.evaluation.evaluate import test_windows
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.decision_time import QUEUES, decision_times
from rltune.simulator.metrics import job_table
from rltune.traces.split import disjoint_windows, spread

BATCHES, BATCH_JOBS = 10, 256
"""Of the paper's Table 9."""
LONGEST = 10_000
"""Jobs of the long sequence, at most (paper, Figure 17)."""
QUEUES_OF_EACH = 4
"""Queues of each length in which decisions are timed."""
BLOCK_JOBS = 256
"""Jobs of the long sequence that are resampled together, at least, where there are as many."""


def qssf_windows(config: RunConfig, workloads: Workloads, windows: pd.DataFrame) -> pd.DataFrame:
    """A row per cell × scheduler × test window, of the cells that are compared with QSSF, with ``cell`` and ``who``.

    ``rltune``, as it was evaluated (``windows``: the run's test results, with ``cell``); ``qssf``: smallest predicted
    area first with EASY, in the cell's placement and locality; ``qssf_best_fit``: the same with best_fit, where that
    differs; ``fifo_easy``: EASY alone; ``saf_lognormal``: smallest area first with EASY, by estimates of YARDSTICK. All
    run the evaluation's windows.
    """
    frames = []
    for cell in against_qssf(config):
        frames.append(where(windows, cell=cell.name, role="rltune").assign(who="rltune"))
        saf, qssf = (contender_of(config, cell, policy=policy) for policy in ("saf", "qssf"))
        others = {"qssf": qssf, "fifo_easy": contender_of(config, cell, policy="fifo")}
        if cell.placement != "best_fit":
            others["qssf_best_fit"] = contender_of(config, cell, policy="qssf", placement="best_fit")
        workload, blurred = (workload_of(c, workloads) for c in (cell, cell.but(estimate=YARDSTICK)))
        for length, first in test_windows(workload.split, config.evaluation).items():
            for source, contenders in ((workload, others), (blurred, {"saf_lognormal": saf})):
                frames.append(by_window(source, contenders, first, length).assign(cell=cell.name))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def qssf_long_runs(config: RunConfig, workloads: Workloads, policies: Policies) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(A row per cell × {rltune, qssf} × job of one long sequence of the test part; a row per cell: how their JCT compares,
    as :func:`compare_long` has it), both with ``cell``; empty where nothing is compared with QSSF.

    One cell a workload and estimate: one trained for JCT, else for wait.
    """
    frames, compared, evaluation = [], [], config.evaluation
    intervals = Intervals(evaluation.bootstrap)
    for cells in grouped(against_qssf(config), lambda cell: (cell.trace, cell.cluster, cell.estimate)).values():
        cell = for_metric(cells, "jct")[0]
        contenders = {
            "rltune": contender_of(config, cell, policies[cell]),
            "qssf": contender_of(config, cell, policy="qssf"),
        }
        jobs = long_run(workload_of(cell, workloads), contenders)
        jct_s = {who: rows["jct_s"].to_numpy() for who, rows in jobs.groupby("who")}
        frames.append(jobs.assign(cell=cell.name))
        compared.append({"cell": cell.name, **compare_long(jct_s["rltune"], jct_s["qssf"], intervals)})
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), pd.DataFrame(compared)


def long_run(workload: Workload, contenders: Mapping[str, Contender]) -> pd.DataFrame:
    """A row per contender × job of the last LONGEST of the test part, in the order of submission and as one sequence
    from an idle cluster: ``who``, and the columns of rltune.simulator.metrics.job_table."""
    begin, end = workload.split.test
    first = np.array([max(begin, end - LONGEST)])
    frames = []
    for name, contender in contenders.items():
        state, _ = run(workload, contender, first, end - first)
        frames.append(job_table(workload.jobs, state).drop(columns="sequence").assign(who=name))
    return pd.concat(frames, ignore_index=True)


def compare_long(ours: np.ndarray, theirs: np.ndarray, intervals: Intervals) -> dict[str, float]:
    """Two schedulers on the same jobs [J], in the order of submission, of a metric to be minimised: jobs, blocks,
    ours_mean, theirs_mean, improvement (1 − Σ ours / Σ theirs), low, high.

    The interval is that of rltune.evaluation.intervals, over blocks of at least BLOCK_JOBS consecutive jobs in the
    place of windows. What a job waits for was decided many jobs before: where a backlog outlasts the blocks drawn
    together, the interval is too narrow.
    """
    blocks = max(1, len(ours) // BLOCK_JOBS)
    starts = np.linspace(0, len(ours), blocks + 1).astype(np.int64)[:-1]
    found = intervals.less(np.add.reduceat(ours, starts), np.add.reduceat(theirs, starts))
    means = {"ours_mean": float(ours.mean()), "theirs_mean": float(theirs.mean())}
    improvement = {"improvement": found.gain, "low": found.low, "high": found.high}
    return {"jobs": len(ours), "blocks": blocks, **means, **improvement}


def batches(config: RunConfig, workloads: Workloads, policies: Policies) -> pd.DataFrame:
    """A row per comparison of learners (rltune.config.comparisons) × scheduler × window: BATCHES windows of BATCH_JOBS jobs
    of the test part, disjoint and evenly spread; fewer, or shorter, where it has not so many.

    ``who``: fifo, strong (of the run's heuristics under its backfill rules with best_fit the one that waits least on
    these windows, in hindsight), or the kind of agent; ``cell``, ``preset``, ``base`` (base policy) and ``unlearned`` (whether training kept nothing) of agents;
    ``policy``, ``backfill``, ``placement`` and ``locality`` it ran with, of an agent those it chose; ``seconds`` of a
    window on the clock.
    """
    compared = learners_compared(config)
    return pd.concat([_batches(config, of, workloads, policies) for of in compared], ignore_index=True)


def _batches(config: RunConfig, comparison: Comparison, workloads: Workloads, policies: Policies) -> pd.DataFrame:
    """:func:`batches` of one comparison."""
    lead = comparison[0]
    workload = workload_of(lead, workloads)
    begin, end = workload.split.test
    length = min(BATCH_JOBS, end - begin)
    first = spread(disjoint_windows(begin, end, length), BATCHES)
    rivals = heuristics(config, workload, lead.locality, config.tuned_on(lead.trace, lead.cluster, lead.estimate))
    waits = by_window(workload, rivals, first, length).groupby("who", sort=False)["wait_s"].mean()
    contenders = {
        "fifo": contender_of(config, lead, policy="fifo", placement="best_fit"),
        "strong": rivals[str(waits.idxmin())],
        **{cell.name: contender_of(config, cell, policies[cell]) for cell in comparison},
    }
    frame = by_window(workload, contenders, first, length, timed=True)
    about = {name: (name, "", "", "", False) for name in ("fifo", "strong")}
    for cell in comparison:
        unlearned = not policies[cell].facts["learned"]
        about[cell.name] = (agent_of(config, cell), cell.name, cell.preset, cell.policy, unlearned)
    columns = ["who", "cell", "preset", "base", "unlearned"]
    labels = pd.DataFrame([about[name] for name in frame.pop("who")], columns=columns)
    same = {axis: getattr(lead, axis) for axis in ("trace", "cluster", "estimate")}
    return pd.concat([labels, frame], axis=1).assign(**same)


def time_decisions(config: RunConfig, workloads: Workloads, policies: Policies) -> tuple[str, pd.DataFrame]:
    """(Name of the cell, its agent's decisions in queues of several lengths, timed as in decision_times).

    The run's first cell of RLTune's with look-ahead placement, or its first of RLTune's, or its first.
    """
    cells = config.cells()
    rltune_cells = [cell for cell in cells if agent_of(config, cell) == "rltune"] or cells
    cell = next((cell for cell in rltune_cells if cell.placement == "lookahead"), rltune_cells[0])
    workload = workload_of(cell, workloads)
    times = decision_times(policies[cell], workload.jobs, workload.layout, config.lookahead, QUEUES, QUEUES_OF_EACH)
    return cell.name, times


def arrivals_per_day(config: RunConfig, workloads: Workloads) -> dict[str, float]:
    """Jobs submitted a day in the test part of each cell, by the cell's name."""
    found = {}
    for cell in config.cells():
        workload = workload_of(cell, workloads)
        submit_s = workload.jobs.submit_s[slice(*workload.split.test)]
        span_s = float(np.ptp(submit_s))
        found[cell.name] = len(submit_s) / (span_s / 86400) if span_s > 0 else float("nan")
    return found
