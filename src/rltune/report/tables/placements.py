"""The same agents and base policies under other placements and localities, on the same windows."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rltune.config import ClusterConfig
from rltune.evaluation.compare import compare, select
from rltune.evaluation.intervals import Intervals
from rltune.report import common
from rltune.report.artefact import Column, Table
from rltune.report.artefacts import describe
from rltune.report.common import where
from rltune.report.verdict import direction

ALSO = {"rltune": "rltune_also", "base": "base_also"}
"""Role under the cell's own placement and locality → role under the others."""
CHOICE = ("placement", "locality")
TESTED = {f"{side}_p": f"{side}_holm" for side in ALSO}


def placements(
    cells: pd.DataFrame, windows: pd.DataFrame, by: Intervals, clusters: Mapping[str, ClusterConfig]
) -> Table:
    """One row per cell × window length × (placement, locality), the cell's own first, for cells evaluated in several.

    Of the agent (`rltune_…`) and of its base policy (`base_…`): mean wait in s, mean BSLD, utilisation of the GPUs over
    the submission span, and the improvement over the same scheduler under the cell's own placement and locality, a
    fraction with interval (empty in the cell's own row). `milp_asked` and `milp_calls` count both schedulers' placement
    decisions and solves. Cells whose agent chose another placement or locality in training are left out: it was not run
    with the cell's own. Empty when no cell has several.
    """
    rows: list[dict[str, Any]] = []
    for _, cell in cells.iterrows():
        results = where(windows, cell=cell["cell"])
        kept = where(results, role="rltune", **{c: cell[c] for c in CHOICE})
        also = where(results, role=ALSO["rltune"]) if len(kept) else results[:0]
        others = also[list(CHOICE)].drop_duplicates().to_dict("records")
        rows += [_row(cell, results, n, other, by) for n in common.lengths(also) for other in [{}, *others]]
    frame = common.with_holm(pd.DataFrame(rows), TESTED)
    used = cells[cells["cell"].isin([row["cell"] for row in rows])]
    on = [clusters[name] for name in used["cluster"].unique()]
    own = {f"own_{c}": Column(f"Own {c}") for c in CHOICE if used[c].nunique() > 1}
    return describe(
        "placements",
        frame,
        cells=used,
        without=CHOICE,
        settings=common.setting_columns(used, without=CHOICE) | own,
        sides={"rltune": "RLTune", "base": "Base policy"},
        holm=common.holm_note(frame, TESTED, "over ★"),
        slowed=[c for c in on if max(c.slowdowns.values()) > 1],
        free=any(max(c.slowdowns.values()) == 1 for c in on),
    ), frame


def _row(cell: pd.Series, windows: pd.DataFrame, n: int, other: dict[str, str], by: Intervals) -> dict[str, Any]:
    """One row; ``other``: the placement and locality where they are not the cell's own."""
    choice = other or {c: cell[c] for c in CHOICE}
    row: dict[str, Any] = {
        **common.about(cell),
        **{f"own_{c}": cell[c] for c in CHOICE},
        **choice,
        "title": choice["placement"] + ("" if other else " ★"),
        "sequence_jobs": n,
        **{"milp_asked": 0, "milp_calls": 0},
    }
    for side, also in ALSO.items():
        which = {"role": also, **other} if other else {"role": side}
        found = select(windows, n, which)
        row |= {
            "windows": len(found),
            f"{side}_mean": found["wait_s"].mean(),
            f"{side}_bsld": found["bsld"].mean(),
            f"{side}_utilisation": found["utilisation_span"].mean(),
            **dict.fromkeys([f"{side}_{k}" for k in ("less", "low", "high", "p")], common.NAN),
            f"{side}_shows": "",
            **{name: row[name] + int(found[name].sum()) for name in ("milp_asked", "milp_calls")},
        }
        if other:
            c = compare(windows, "wait", n, which, {"role": side}, by)
            row |= common.gain(f"{side}_less", c, prefix=f"{side}_")
            row[f"{side}_shows"] = direction(c.low, c.high, len(found))
    return row


def solvers(cells: pd.DataFrame, answers: pd.DataFrame) -> Table:
    """One row per cell with placement questions, which may be none: how many, how many answers agree and disagree, times in
    ms (medians).

    ``answers``: one row per cell × question (rltune.placement.agreement.resolve_sample).
    """
    asked = cells[cells["cell"].isin(answers["cell"])]
    of = answers.assign(difference=(answers["glpk"] - answers["cvxpy"]).abs()).groupby("cell")
    counts = of.agg(questions=("agree", "size"), agree=("agree", "sum"), difference=("difference", "max"))
    found = counts.astype({"agree": int}).join(of[["glpk_ms", "cvxpy_ms"]].median())
    about = pd.DataFrame([common.about(cell) for _, cell in asked.iterrows()], asked["cell"].tolist())
    frame = about.join(found).reset_index(drop=True)
    frame["disagree"] = frame["questions"] - frame["agree"]
    return describe("solvers", frame, cells=asked), frame
