"""The same agents and base policies under other placements and localities, on the same windows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rltune.evaluation.compare import compare, select
from rltune.report.artefact import Artefact, Column
from rltune.report.format import show
from rltune.report.style import POLICY_TITLE
from rltune.report.tables.common import SETTING_TITLE, constant_settings, data_labels, lengths, varying, where
from rltune.report.tables.holm import holm_note, with_holm
from rltune.report.verdict import direction

NAN = float("nan")
SIDES = {"rltune": "rltune_also", "base": "base_also"}
"""Role under the cell's own placement and locality → role under the others."""
CHOICE = ("placement", "locality")
TESTED = {f"{side}_p": f"{side}_holm" for side in SIDES}


def placements(
    cells: pd.DataFrame,
    windows: pd.DataFrame,
    *,
    bootstrap: int,
    confidence: float,
    seed: int,
    multi_node_slowdown: float,
    interference_slowdown: float,
    source: str = "",
) -> tuple[Artefact, pd.DataFrame]:
    """One row a cell × window length × (placement, locality), the cell's own first, for cells judged in several.

    Of the agent (`rltune_…`) and of its base policy (`base_…`): mean wait in s, mean BSLD, utilisation of the GPUs over
    the submission span, and the improvement over the same scheduler under the cell's own placement and locality, a
    fraction with interval (empty in the cell's own row). `milp_asked` and `milp_calls` count both schedulers' questions
    to the placer and its solves. ``multi_node_slowdown``, ``interference_slowdown``: the factors of the run's `simulation`. Empty when no cell
    was judged in more than its own.
    """
    rows: list[dict[str, Any]] = []
    used = []
    for _, cell in cells.iterrows():
        mine = where(windows, cell=cell["cell"])
        others = where(mine, role=SIDES["rltune"])[list(CHOICE)].drop_duplicates().to_dict("records")
        if not others:
            continue
        used.append(cell["cell"])
        for n in lengths(where(mine, role=SIDES["rltune"])):
            rows.append(_row(cell, mine, n, {}, bootstrap, confidence, seed))
            rows += [_row(cell, mine, n, other, bootstrap, confidence, seed) for other in others]
    frame = pd.DataFrame(rows)
    if len(frame):
        frame = with_holm(frame, TESTED)
    return _artefact(
        cells[cells["cell"].isin(used)], frame, confidence, multi_node_slowdown, interference_slowdown, source
    ), frame


def _row(
    cell: pd.Series, windows: pd.DataFrame, n: int, other: dict[str, str], bootstrap: int, confidence: float, seed: int
) -> dict[str, Any]:
    """One row; ``other``: the placement and locality where they are not the cell's own."""
    choice = other or {c: cell[c] for c in CHOICE}
    row: dict[str, Any] = {
        **{k: cell[k] for k in ("trace_title", "trace", "data", "policy", *SETTING_TITLE, "cell")},
        **{f"own_{c}": cell[c] for c in CHOICE},
        **choice,
        "title": choice["placement"] + ("" if other else " ★"),
        "base": POLICY_TITLE.get(cell["policy"], cell["policy"]),
        "sequence_jobs": n,
    }
    asked = {"milp_asked": 0, "milp_calls": 0}
    for own, also in SIDES.items():
        which = {"role": also, **other} if other else {"role": own}
        found = select(windows, n, which)
        row |= {
            "windows": len(found),
            f"{own}_mean": found["wait_s"].mean(),
            f"{own}_bsld": found["bsld"].mean(),
            f"{own}_utilisation": found["utilisation_span"].mean(),
        }
        low = high = less = p = NAN
        if other:
            c = compare(windows, "wait", n, which, {"role": own}, bootstrap, confidence, seed)
            less, low, high, p = c.improvement, c.low, c.high, c.p
        row |= {
            f"{own}_less": less,
            f"{own}_low": low,
            f"{own}_high": high,
            f"{own}_p": p,
            f"{own}_shows": direction(low, high, len(found)) if other else "",
        }
        asked = {name: count + int(found[name].sum()) for name, count in asked.items()}
    return row | asked


def _artefact(
    cells: pd.DataFrame,
    frame: pd.DataFrame,
    confidence: float,
    multi_node_slowdown: float,
    interference_slowdown: float,
    source: str,
) -> Artefact:
    sides = {"rltune": "RLTune", "base": "Base policy"}
    differ = varying(cells) if len(cells) else []
    columns = {
        "trace_title": Column("Trace"),
        "base": Column("Base policy"),
        **{
            f"own_{c}" if c in CHOICE else c: Column(
                f"Own {SETTING_TITLE[c]}" if c in CHOICE else SETTING_TITLE[c].capitalize(),
                "",
                "plain-int" if c == "seed" else "text",
            )
            for c in differ
        },
        "sequence_jobs": Column("Window", "jobs", "int"),
        "title": Column("Placement", help="★: the agent’s own placement and locality, which it was trained with."),
        "locality": Column("Locality"),
    }
    for side, group in sides.items():
        columns |= {
            f"{side}_mean": Column("Mean wait", "s", "seconds", group),
            f"{side}_less": Column("Less wait than with ★", "", "percent", group, f"{side}_low", f"{side}_high"),
            f"{side}_holm": Column("Holm p", "", "p", group, help="After Holm’s correction over this table."),
            f"{side}_shows": Column("Is", "", "text", group, help="Beside the same scheduler with ★."),
            f"{side}_bsld": Column("BSLD", "", "number", group, help="Mean bounded slowdown."),
            f"{side}_utilisation": Column(
                "Utilisation",
                "",
                "percent",
                group,
                help="Of the GPUs, from the first to the last submission of a window.",
            ),
        }
    columns |= {
        "milp_asked": Column("Asked", "", "int", "Placer, both schedulers", help="Questions where to put a job."),
        "milp_calls": Column("Solves", "", "int", "Placer, both schedulers", help="Questions that took a MILP solve."),
        "windows": Column("Windows", "", "int", help="Disjoint windows of the test part."),
    }
    notes = (
        "An agent has the same weights in all of its rows, and every row of it is of the same windows and estimates: "
        "only the choice of nodes differs. What the base policy gains as well is the placement’s own doing; what the "
        "agent alone gains or loses comes of scheduling under a placement that it was not trained with.",
        "“better” and “worse” where the interval is on one side of zero, “open” where it covers zero: no difference is "
        "shown.",
        holm_note(frame, TESTED, "over ★", confidence) if len(frame) else "",
        _costs(multi_node_slowdown, interference_slowdown),
        constant_settings(cells, without=CHOICE) if len(cells) else "",
    )
    return Artefact(
        "placements",
        "table",
        "The same agents under other placements",
        caption="Every trained agent and its base policy, run under other placements and localities than its own (★). "
        f"Brackets: {100 * confidence:.0f} % interval of the relative improvement over ★, paired by window; negative "
        "is worse.",
        data=data_labels(cells),
        source=source,
        columns=columns if len(frame) else {},
        notes=tuple(n for n in notes if n),
    )


def _costs(multi_node_slowdown: float, interference_slowdown: float) -> str:
    """What a split and company cost in this run, in a sentence or two."""
    if multi_node_slowdown == interference_slowdown == 1:
        return (
            "In this run a split costs nothing: a job runs no longer on more nodes than it needs, nor beside other "
            "jobs (multi_node_slowdown and interference_slowdown are 1). What spreads jobs looks better here than on a real cluster."
        )
    split = (
        f"A job on more nodes than the fewest that hold it runs {show(multi_node_slowdown, 'printed')} times as long"
        if multi_node_slowdown != 1
        else "A job on more nodes than the fewest that hold it runs no longer"
    )
    beside = (
        f"a job of several GPUs runs {show(interference_slowdown, 'printed')} times as long while another such job is on one "
        "of its nodes"
        if interference_slowdown != 1
        else "jobs that share a node do not slow one another down"
    )
    return f"{split}; {beside}."
