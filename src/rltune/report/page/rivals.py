"""Every comparison of a run in a line: against base policy, random order and strongest heuristic."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from rltune.report.format import is_missing
from rltune.report.page.marks import OUTCOME, badge, cell, count
from rltune.report.studies import Study
from rltune.report.style import POLICY_TITLE

OPPONENTS = {
    "Its base policy": ("improvement", "low", "high", "shows", "base_mean"),
    "A random order": ("over_random", "over_random_low", "over_random_high", "shows_random", "random_mean"),
    "The strongest heuristic": ("over_strong", "over_strong_low", "over_strong_high", "shows_strong", "strong_mean"),
}
"""Opponent → columns of a study's table: improvement, its interval, what that shows, the opponent's mean."""
BACKFILL = {"none": "no backfilling", "greedy": "whatever fits starts", "easy": "EASY"}


@dataclass(frozen=True)
class Line:
    """One comparison."""

    base: str
    setting: str
    """What tells it from others of the same base policy; "" where nothing must."""
    metric: str
    rltune: Markup
    opponents: list[Markup]
    """As OPPONENTS has them."""
    learned: str
    """What to know of the agent's learning; "" where it learned."""


@dataclass(frozen=True)
class Group:
    """The comparisons of one trace."""

    title: str
    data: str
    notebook: str
    """Where the agents of the trace stand side by side."""
    said: Markup
    """How they came out, in one sentence."""
    lines: list[Line]


def groups(rows: dict[Study, pd.DataFrame]) -> list[Group]:
    """A table a trace; ``rows``: the best measured rows of each study's table, by the index of its CSV."""
    titles = dict.fromkeys(str(t) for frame in rows.values() for t in frame["trace_title"])
    made = []
    for title in titles:
        mine = {study: part for study, frame in rows.items() if len(part := frame[frame["trace_title"] == title])}
        first = next(iter(mine.values())).iloc[0]
        lines = [
            _line(study, i, row, bool(same[i]))
            for study, part in mine.items()
            for same in [part.duplicated("policy", keep=False)]
            for i, row in part.iterrows()
        ]
        made.append(Group(title, str(first["data"]), f"compare-{first['trace']}", said(mine, title), lines))
    return made


def said(rows: dict[Study, pd.DataFrame], trace: str) -> Markup:
    """How the comparisons of a trace came out."""
    parts = []
    for name, (_, _, _, shows, _) in OPPONENTS.items():
        known = {s: f[shows] for s, f in rows.items() if shows in f and f[shows].isin(OUTCOME).any()}
        if not known:
            continue
        of = sum(int(column.isin(OUTCOME).sum()) for column in known.values())
        better, worse = (
            count(
                [s.numbers for s in known],
                f"trace_title={trace},{shows}={word}",
                sum(int((column == word).sum()) for column in known.values()),
            )
            for word in ("better", "worse")
        )
        told = Markup("{}{}: better in {}, worse in {} of {}")
        parts.append(told.format(name[0].lower(), name[1:], better, worse, of))
    return Markup("Against ") + Markup("; against ").join(parts) + "." if parts else Markup("")


def _line(study: Study, index: int, row: pd.Series, with_setting: bool) -> Line:
    unit = f"\u00a0{study.unit}" if study.unit else ""
    told = [BACKFILL.get(row["backfill"], row["backfill"]), *([row["preset"], row["estimate"]] if with_setting else [])]
    learned = (
        ""
        if not str(row.get("learned")).startswith("no")
        else (
            "learned nothing: on validation it does not beat both its base policy and a random order"
            if row["learned"] == "no"
            else "learned nothing: kept the heuristic that it started from"
        )
    )
    return Line(
        base=POLICY_TITLE.get(str(row["policy"]), str(row["policy"])),
        setting=", ".join(map(str, told)),
        metric=study.noun,
        rltune=cell(study.numbers, index, "rltune_mean", row["rltune_mean"], study.format) + unit,
        opponents=[_opponent(study, index, row, name, *columns) for name, columns in OPPONENTS.items()],
        learned=learned,
    )


def _opponent(
    study: Study, index: int, row: pd.Series, name: str, value: str, low: str, high: str, shows: str, mean: str
) -> Markup:
    if is_missing(row.get(mean)):
        return Markup('<span class="none">not compared</span>')
    unit = f"\u00a0{study.unit}" if study.unit else ""
    who = f"{row['strong']}: " if name == "The strongest heuristic" else ""
    theirs = Markup('<span class="theirs">{}{}{}</span>').format(
        who, cell(study.numbers, index, mean, row[mean], study.format), unit
    )
    if is_missing(row[value]):
        why = "nobody waits: " if study.metric == "wait" else ""
        return theirs + Markup('<span class="none">{}nothing to compare</span>').format(why)

    good, bad = study.words

    def size(column: str) -> Markup:
        return cell(study.numbers, index, column, row[column], "percent", unsigned=True)

    def side(column: str) -> str:
        return good if row[column] >= 0 else bad

    shown = Markup('<span class="mark {}">{} {}</span> {}').format(
        row[shows] if row[shows] in OUTCOME else "few",
        size(value),
        side(value),
        badge(row[shows], OUTCOME.get(str(row[shows]), "no interval")),
    )
    if not is_missing(row[low]) and not is_missing(row[high]):
        least, most = (low, high) if row[value] >= 0 else (high, low)
        first = "" if side(least) == side(most) else f" {side(least)}"
        ends = (size(least), first, size(most), side(most))
        shown += Markup(' <span class="interval">{}{} to {} {}</span>').format(*ends)
    return theirs + shown
