"""What learning and deciding cost: training, decisions, solver calls, latency by queue length, and when training breaks even."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.evaluation.compare import Comparison, compare, strong_baseline
from rltune.evaluation.intervals import Intervals
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import NAN, about, best_measured, lengths, where
from rltune.report.paper import PaperResults
from rltune.report.style import title_of
from rltune.report.tables.comparison import AGENT

ANSWERS = ("milp_asked", "milp_presolved", "milp_cached", "milp_calls")
TROUBLES = ("milp_infeasible", "milp_limit", "milp_failure")


def costs(cells: pd.DataFrame, windows: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per cell: seconds of training, decisions and decisions per second, solver calls and outcomes.

    Of the placement decisions (`milp_asked`) some are presolved (`milp_presolved`), some cached, the rest call the solver
    (`milp_calls`); a call ends optimal, infeasible, at the time limit or in failure.
    """
    rows = []
    for _, cell in cells.iterrows():
        training, test = where(histories, cell=cell["cell"]), where(windows, cell=cell["cell"], role="rltune")
        parts = (training, test, where(windows, cell=cell["cell"], role="base"))
        counts = {c: sum(int(part[c].sum()) for part in parts) for c in (*ANSWERS, *TROUBLES)}
        decisions, rollout_s = training["decisions"].sum(), training["rollout_seconds"].sum()
        rows.append(
            {
                **about(cell),
                "epochs": len(training),
                "training_s": rollout_s + training["update_seconds"].sum(),
                "training_decisions": int(decisions),
                "training_decisions_per_s": _ratio(decisions, rollout_s),
                "training_mean_queue": _ratio((training["mean_queue"] * training["decisions"]).sum(), decisions),
                "test_decisions": int(test["decisions"].sum()),
                "test_choices_share": _ratio(test["choices"].sum(), test["decisions"].sum()),
                "test_decisions_per_s": _ratio(test["decisions"].sum(), test["seconds"].sum()),
                "test_decision_ms": 1000 * _ratio(test["seconds"].sum(), test["decisions"].sum()),
                **counts,
                "milp_optimal": counts["milp_calls"] - sum(counts[c] for c in TROUBLES),
                "solve_p50_ms": training["milp_p50_ms"].median(),
                **{f"solve_{at}_ms": training[f"milp_{at}_ms"].max() for at in ("p95", "p99", "max")},
            }
        )
    frame = pd.DataFrame(rows)
    return describe("costs", frame, paper, cells=cells), frame


def _ratio(amount: float, per: float) -> float:
    return float(amount / per) if per else NAN


PARTS = {"inference": "Observation and network", "placement": "Placement model", "decision": "Whole decision"}


def latency(cells: pd.DataFrame, cell: str, decisions: pd.DataFrame, paper: PaperResults) -> Table:
    """One row per queue length: median and 95th percentile of each part of a decision in ms, and the paper's figure.

    ``decisions``: queue, and inference_s, placement_s and decision_s of each decision (rltune.evaluation.studies.decision_time), of
    the agent of ``cell``. ``growth``: the median over that of the row of half the queue.
    """
    by_queue = decisions.groupby("queue")
    frame = by_queue.size().to_frame("decisions")
    for part in PARTS:
        for at, q in (("median", 0.5), ("p95", 0.95)):
            frame[f"{part}_{at}_ms"] = 1000 * by_queue[f"{part}_s"].quantile(q)
    frame["paper_s"] = [paper.number("costs", "decision_s", queue) for queue in frame.index]
    for ours, column in (("growth", "decision_median_ms"), ("paper_growth", "paper_s")):
        frame[ours] = frame[column] / frame[column].reindex(frame.index // 2).to_numpy()
    frame, used = frame.reset_index(), where(cells, cell=cell)
    return describe("latency", frame, paper, rows=used, cell=used.iloc[0], parts=PARTS), frame


def break_even(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    histories: pd.DataFrame,
    jobs_per_day: Mapping[str, float],
    by: Intervals,
) -> Table:
    """One row per cell of RLTune trained for wait (if there is none: for anything), at the window length with the most
    windows.

    ``jobs_per_day``: of the test part, by cell. ``saved_h`` and ``over_strong_h``: hours of waiting saved per day
    against the base policy and against the strongest heuristic, negative for more waiting; ``deciding_s``: seconds of
    simulating and deciding a day of jobs; ``break_even_min``: operation until the waiting saved equals the training time.
    """
    ours = where(cells, agent="rltune")
    chosen = where(ours, metric="wait") if (ours["metric"] == "wait").any() else ours
    rows: list[dict[str, Any]] = []
    for _, cell in chosen.iterrows():
        results, training = where(windows, cell=cell["cell"]), where(histories, cell=cell["cell"])
        daily = jobs_per_day[cell["cell"]]
        for n in lengths(results):
            base = compare(results, "wait", n, AGENT, {"role": "base"}, by)
            row = {
                **about(cell),
                "sequence_jobs": n,
                "windows": base.windows,
                "jobs_per_day": daily,
                "training_s": float((training["rollout_seconds"] + training["update_seconds"]).sum()),
                "deciding_s": float(where(results, sequence_jobs=n, **AGENT)["seconds"].mean()) / n * daily,
                **_saved("saved", base, daily),
            }
            best = strong_baseline(results, "wait", n)
            over = _saved("over_strong", compare(results, "wait", n, AGENT, best, by), daily)
            rows.append(row | over | {"strong": title_of(best)})
    frame = best_measured(pd.DataFrame(rows)).reset_index(drop=True)
    frame["break_even_min"] = (frame["training_s"] / 3600 / frame["saved_h"] * 24 * 60).where(frame["saved_h"] > 0)
    return describe("break-even", frame, cells=chosen), frame


def _saved(name: str, found: Comparison, daily: float) -> dict[str, float]:
    """Hours saved per day, with the ends of the interval, from a comparison of mean waits."""
    hours = found.theirs_mean * daily / 3600 if found.theirs_mean > 0 else NAN
    ends = {"h": found.improvement, "low": found.low, "high": found.high}
    return {f"{name}_{end}": hours * value for end, value in ends.items()}
