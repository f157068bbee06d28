"""What learning and deciding cost: training time, decisions per second, solver calls and their outcomes."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact
from rltune.report.artefacts import describe
from rltune.report.common import about, where
from rltune.report.format import show
from rltune.report.paper import PaperResults

ANSWERS = ("milp_asked", "milp_presolved", "milp_cached", "milp_calls")
TROUBLES = ("milp_infeasible", "milp_limit", "milp_failure")
PRINTED = {
    "least": "training_hours.least",
    "most": "training_hours.most",
    "decision": "inference_ms",
    "solver": "solver_ms",
}


def costs(
    cells: pd.DataFrame, windows: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults
) -> tuple[Artefact, pd.DataFrame]:
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
    return describe(
        "costs",
        frame,
        paper,
        cells=cells,
        limited=int(frame["milp_limit"].sum()) if len(frame) else 0,
        where=paper.artefacts["costs"].where,
        printed={name: show(paper.value("costs", key), "printed") for name, key in PRINTED.items()},
    ), frame


def _ratio(amount: float, per: float) -> float:
    return float(amount / per) if per else float("nan")
