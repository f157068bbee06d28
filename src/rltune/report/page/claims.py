"""The paper's claims beside what this run found, a line each: the table `claims` at its best measured windows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Saved
from rltune.report.format import is_missing
from rltune.report.page.marks import OUTCOME, badge, cell
from rltune.report.verdict import ABSENT

TABLE = "claims"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper that this run can say something of."""

    text: str
    where: str
    """In the paper."""
    paper: Markup
    ours: Markup
    data: str
    windows: Markup
    verdict: str
    """By the rule; "" where there is no interval."""
    heuristic: Markup
    """What RLTune is against the strongest heuristic on the same windows; empty where that was not compared."""
    artefact: str
    """Id of the table it is from."""
    learned: bool
    """False where the agent says that it learned nothing."""


def claims(there: dict[str, Saved]) -> list[Claim]:
    """One line a claim and setting, of the windows of which there are most; claims without a counterpart have none."""
    if TABLE not in there:
        return []
    frame = there[TABLE].frame
    frame = frame[frame["verdict"] != ABSENT]
    most = frame.groupby("key", sort=False)["windows"].transform("max")
    best = frame[frame["windows"] == most]
    several = best["key"].duplicated(keep=False)
    return [_claim(i, row, there, bool(several[i])) for i, row in best.iterrows()]


def untested(there: dict[str, Saved]) -> list[str]:
    """The claims of the paper without a counterpart in this run."""
    if TABLE not in there:
        return []
    frame = there[TABLE].frame
    return [f"{row['claim']} ({row['where']})" for _, row in frame[frame["verdict"] == ABSENT].iterrows()]


def _claim(index: int, row: pd.Series, there: dict[str, Saved], several: bool) -> Claim:
    def number(column: str, format: str = "percent") -> Markup:
        return cell(TABLE, index, column, row[column], format)

    ours = number("ours") if not is_missing(row["ours"]) else Markup("–")
    if not is_missing(row["low"]) and not is_missing(row["high"]):
        ours += Markup(' <span class="interval">{} to {}</span>').format(number("low"), number("high"))
    setting = f" ({row['preset']}, {row['estimate']}, seed {row['seed']})" if several else ""
    return Claim(
        text=str(row["claim"]) + setting,
        where=str(row["where"]),
        paper=number("paper"),
        ours=ours,
        data=str(row["data"]),
        windows=number("windows", "int"),
        verdict="" if is_missing(row["verdict"]) else str(row["verdict"]),
        heuristic=_heuristic(row, there),
        artefact=str(row["artefact"]),
        learned=not str(row["learned"]).startswith("no"),
    )


def _heuristic(row: pd.Series, there: dict[str, Saved]) -> Markup:
    """How the same agent does against the strongest heuristic, from the row that the claim's number is from."""
    name = str(row["artefact"])
    if name not in there or is_missing(row["row"]) or "shows_strong" not in there[name].frame:
        return Markup("")
    index = int(row["row"])
    source = there[name].frame.loc[index]
    if is_missing(source["over_strong"]) or source["shows_strong"] not in OUTCOME:
        return Markup("")
    return Markup('{} {} <span class="interval">{} to {}; {}</span>').format(
        badge(source["shows_strong"], OUTCOME[source["shows_strong"]]),
        *(cell(name, index, c, source[c], "percent") for c in ("over_strong", "over_strong_low", "over_strong_high")),
        source["strong"],
    )
