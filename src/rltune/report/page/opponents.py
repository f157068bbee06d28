"""Every comparison of a run in a line: against base policy, random order and strongest heuristic."""

from dataclasses import dataclass

import pandas as pd

from rltune.evaluation.compare import where
from rltune.report.answer import tally
from rltune.report.studies import Study
from rltune.report.style import policy_title, title_of

OPPONENTS = {
    "Its base policy": ("improvement", "low", "high", "shows", "base_mean"),
    "A random order": ("over_random", "over_random_low", "over_random_high", "shows_random", "random_mean"),
    "The strongest heuristic": ("over_strong", "over_strong_low", "over_strong_high", "shows_strong", "strong_mean"),
}
"""Opponent → columns of a study's table: improvement, its interval, what that shows, the opponent's mean."""
BACKFILL = {"none": "no backfilling", "greedy": "greedy backfilling", "easy": "EASY"}


@dataclass(frozen=True)
class Line:
    """One comparison; the page's template has the rest from its row."""

    study: Study
    index: int
    """Of the row in the study's CSV."""
    row: pd.Series
    base: str
    setting: str
    """What distinguishes it from others of the same base policy; "" where nothing must."""
    learned: str
    """A remark on the agent's learning; "" where it learned."""

    @property
    def scheduler(self) -> str:
        """The base policy with its backfilling."""
        return title_of(self.row)


@dataclass(frozen=True)
class Group:
    """The comparisons of one trace."""

    title: str
    data: str
    notebook: str
    """The notebook that compares the agents of the trace."""
    tally: dict[str, str]
    """Opponent → in how many comparisons RLTune is better, worse or undecided, in words."""
    lines: list[Line]

    @property
    def headlines(self) -> list[Line]:
        """The first agent, and the first trained with the preset `tuned`, the strongest."""
        tuned = [line for line in self.lines if line.row["preset"] == "tuned"][:1]
        return self.lines[:1] + [line for line in tuned if line is not self.lines[0]]


Rows = dict[Study, pd.DataFrame]
"""The best measured rows of each study's table, by the index of its CSV."""


def column_of(rows: Rows, column: str) -> pd.Series:
    """A column of the tables that have it, by the table's id and the row."""
    found = {study.numbers: frame[column] for study, frame in rows.items() if column in frame}
    return pd.concat(found or {"": pd.Series(dtype=object)})


def groups(rows: Rows) -> list[Group]:
    """One per trace."""
    made = []
    for title in dict.fromkeys(str(t) for frame in rows.values() for t in frame["trace_title"]):
        of_trace = {study: part for study, frame in rows.items() if len(part := where(frame, trace_title=title))}
        first = next(iter(of_trace.values())).iloc[0]
        lines = [
            _line(study, int(i), row, (part["policy"] == row["policy"]).sum() > 1)
            for study, part in of_trace.items()
            for i, row in part.iterrows()
        ]
        every = pd.concat(of_trace.values())
        tallied = {name: tally(every, columns[:3]) for name, columns in OPPONENTS.items()}
        made.append(Group(title, str(first["data"]), f"compare-{first['trace']}", tallied, lines))
    return made


def _line(study: Study, index: int, row: pd.Series, with_setting: bool) -> Line:
    setting = [BACKFILL.get(row["backfill"], row["backfill"])]
    setting += [row["preset"], row["estimate"]] if with_setting else []
    learned = ""
    if str(row.get("learned")).startswith("no"):
        why = "on validation it does not beat both its base policy and a random order"
        learned = f"learned nothing: {why if row['learned'] == 'no' else 'kept the heuristic that it started from'}"
    return Line(study, index, row, policy_title(row["policy"]), ", ".join(map(str, setting)), learned)
