"""What learning and deciding cost: training time, decisions a second, solver calls and how they ended."""

from __future__ import annotations

import pandas as pd

from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.paper import PaperResults
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, varying, where

ANSWERS = ("milp_asked", "milp_presolved", "milp_cached", "milp_calls")
TROUBLES = ("milp_infeasible", "milp_limit", "milp_failure")


def costs(
    cells: pd.DataFrame, windows: pd.DataFrame, histories: pd.DataFrame, paper: PaperResults, source: str = ""
) -> tuple[Artefact, pd.DataFrame]:
    """One row a cell: seconds of training, decisions and decisions a second, solver calls and outcomes.

    Of the questions asked of the placement model (`milp_asked`) some are answered without a solver, some are answered
    from memory, the rest call the solver (`milp_calls`); a call ends optimal, infeasible, at the limit or in failure.
    """
    rows = []
    for _, cell in cells.iterrows():
        training, test = where(histories, cell=cell["cell"]), where(windows, cell=cell["cell"], role="rltune")
        base = where(windows, cell=cell["cell"], role="base")
        answered = {c: sum(int(part[c].sum()) for part in (training, test, base)) for c in ANSWERS}
        ended = {c: sum(int(part[c].sum()) for part in (training, test, base)) for c in TROUBLES}
        decisions, rollout_s = training["decisions"].sum(), training["rollout_seconds"].sum()
        rows.append(
            {
                **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
                "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
                "epochs": len(training),
                "training_s": rollout_s + training["update_seconds"].sum(),
                "training_decisions": int(decisions),
                "training_decisions_per_s": _ratio(decisions, rollout_s),
                "training_mean_queue": _ratio((training["mean_queue"] * training["decisions"]).sum(), decisions),
                "test_decisions": int(test["decisions"].sum()),
                "test_choices_share": _ratio(test["choices"].sum(), test["decisions"].sum()),
                "test_decisions_per_s": _ratio(test["decisions"].sum(), test["seconds"].sum()),
                "test_decision_ms": 1000 * _ratio(test["seconds"].sum(), test["decisions"].sum()),
                **answered,
                "milp_optimal": answered["milp_calls"] - sum(ended.values()),
                **ended,
                "solve_p50_ms": training["milp_p50_ms"].median(),
                **{f"solve_{at}_ms": training[f"milp_{at}_ms"].max() for at in ("p95", "p99", "max")},
            }
        )
    frame = pd.DataFrame(rows)
    train, test, milp = "Training", "Test", "Placement model in training and at test: answers, calls, outcomes"
    solve = "A solve in training"
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{
            c: Column(SETTING_TITLE[c].capitalize(), "", "plain-int" if c == "seed" else "text") for c in varying(cells)
        },
        "epochs": Column("Epochs", "", "int", train),
        "training_s": Column("Time", "s", "seconds", train),
        "training_decisions_per_s": Column("Decisions", "1/s", "int", train),
        "training_mean_queue": Column("Mean queue", "jobs", "number", train),
        "test_decisions": Column("Decisions", "", "int", test),
        "test_choices_share": Column("With a choice", "", "percent", test, help="Decisions with at least two jobs."),
        "test_decisions_per_s": Column("Decisions", "1/s", "int", test),
        "test_decision_ms": Column(
            "A decision",
            "ms",
            "number",
            test,
            help="With the simulator and placement; all windows are decided side by side.",
        ),
        "milp_asked": Column("Asked", "", "int", milp, help="The job has several places and others are queued."),
        "milp_presolved": Column("Settled", "", "int", milp, help="No solver could have bettered the answer at hand."),
        "milp_cached": Column("From memory", "", "int", milp),
        "milp_calls": Column("Solved", "", "int", milp),
        "milp_optimal": Column("Optimal", "", "int", milp),
        "milp_infeasible": Column("Infeasible", "", "int", milp),
        "milp_limit": Column("Time limit", "", "int", milp),
        "milp_failure": Column("Failure", "", "int", milp),
        "solve_p50_ms": Column("p50", "ms", "number", solve, help="Median over epochs of their medians."),
        "solve_p95_ms": Column("p95", "ms", "number", solve, help="Largest of all epochs."),
        "solve_p99_ms": Column("p99", "ms", "number", solve, help="Largest of all epochs."),
        "solve_max_ms": Column("Longest", "ms", "number", solve),
    }
    printed = {
        k: show(paper.value("costs", *k.split("/")), "printed")
        for k in ("training_hours/least", "training_hours/most", "inference_ms", "solver_ms")
    }
    limited = int(frame["milp_limit"].sum()) if len(frame) else 0
    notes = [
        f"The paper ({paper.artefacts['costs'].where}) reports {printed['training_hours/least']} to "
        f"{printed['training_hours/most']} h of training, {printed['inference_ms']} ms a decision and "
        f"{printed['solver_ms']} ms more for the solver, on other hardware and with other budgets. Its figures for "
        "whole decisions, by length of the queue, stand beside ours in the next table.",
        constant_settings(cells),
    ]
    if limited:
        notes.insert(
            0,
            f"{limited:,} solves stopped at the time limit: those results depend on the clock and are not "
            "reproducible to the byte.",
        )
    return Artefact(
        "costs",
        "table",
        "Cost of training and deciding",
        paper_ref=paper.ref("costs"),
        caption="Seconds of simulation and updates in training, speed of decisions, and what became of every call of "
        "the placement model. A decision is a pick from the queue, whether or not there was a choice.",
        data=data_labels(cells),
        source=source,
        columns=columns,
        notes=tuple(n for n in notes if n),
    ), frame


def _ratio(amount: float, per: float) -> float:
    return float(amount / per) if per else float("nan")
