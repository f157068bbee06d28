"""The paper's claims beside what this run found, a line each: the table `claims` at its best measured windows."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Saved
from rltune.report.format import is_missing
from rltune.report.page.marks import OUTCOME, badge, cell
from rltune.report.verdict import ABSENT

TABLE = "claims"
Claim = dict[str, Any]
"""One claim of the paper that this run can say something of: text, where (in the paper), paper, ours, data, windows,
verdict ("" where there is no interval), heuristic (what RLTune is against the strongest heuristic on the same windows;
empty where that was not compared), artefact (id of the table it is from), learned (False where the agent says that it
learned nothing)."""


def claims(there: dict[str, Saved]) -> list[Claim]:
    """One line a claim and setting, of the windows of which there are most; claims without a counterpart have none."""
    if TABLE not in there:
        return []
    frame = there[TABLE].frame
    frame = frame[frame["verdict"] != ABSENT]
    most = frame.groupby("key", sort=False)["windows"].transform("max")
    best = frame[frame["windows"] == most]
    several = best["key"].duplicated(keep=False)
    found = []
    for i, row in best.iterrows():
        number = {c: cell(TABLE, i, c, row[c], "percent") for c in ("paper", "ours", "low", "high")}
        interval = Markup(' <span class="interval">{low} to {high}</span>').format(**number)
        setting = f" ({row['preset']}, {row['estimate']}, seed {row['seed']})" if several[i] else ""
        found.append(
            {
                "text": row["claim"] + setting,
                "where": row["where"],
                "paper": number["paper"],
                "ours": number["ours"] + ("" if is_missing(row["low"]) else interval),
                "data": row["data"],
                "windows": cell(TABLE, i, "windows", row["windows"], "int"),
                "verdict": "" if is_missing(row["verdict"]) else row["verdict"],
                "heuristic": _heuristic(row, there),
                "artefact": row["artefact"],
                "learned": not str(row["learned"]).startswith("no"),
            }
        )
    return found


def untested(there: dict[str, Saved]) -> list[str]:
    """The claims of the paper without a counterpart in this run."""
    if TABLE not in there:
        return []
    frame = there[TABLE].frame
    return [f"{row['claim']} ({row['where']})" for _, row in frame[frame["verdict"] == ABSENT].iterrows()]


def _heuristic(row: pd.Series, there: dict[str, Saved]) -> Markup:
    """How the same agent does against the strongest heuristic, from the row that the claim's number is from."""
    name, index = str(row["artefact"]), int(row["row"])
    if name not in there or "shows_strong" not in there[name].frame:
        return Markup("")
    source = there[name].frame.loc[index]
    if is_missing(source["over_strong"]) or source["shows_strong"] not in OUTCOME:
        return Markup("")
    return Markup('{} {} <span class="interval">{} to {}; {}</span>').format(
        badge(source["shows_strong"], OUTCOME[source["shows_strong"]]),
        *(cell(name, index, c, source[c], "percent") for c in ("over_strong", "over_strong_low", "over_strong_high")),
        source["strong"],
    )
