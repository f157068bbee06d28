"""What came out, in sentences made from the frames: every number in them is a cell of a CSV or a count of rows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Saved
from rltune.report.format import is_missing, show
from rltune.report.page.tables import slug
from rltune.report.style import scheduler_title
from rltune.report.tables.common import best_measured
from rltune.report.verdict import TOO_FEW

DATA_MEANING = {
    "synthetic": "generated rows that follow the published distributions of the traces, not measurements",
    "sample": "a part of the published traces",
    "full": "the whole published traces",
    "own": "your own job log",
}
SOURCE = "fig12-numbers"


@dataclass(frozen=True)
class Tile:
    """One headline: how many of the comparisons came out one way."""

    count: Markup
    of: int
    text: str


@dataclass(frozen=True)
class Group:
    """The comparisons of one trace."""

    title: str
    data: str
    sentences: list[Markup]


def cell(artefact: str, row: int, column: str, value: object, format: str, unsigned: bool = False) -> Markup:
    """A number with the place it comes from; `unsigned` where the words around it say which way it points."""
    return Markup('<data value="{v}" data-from="{a}.csv:{r}:{c}">{t}</data>').format(
        v=value, a=artefact, r=row, c=column, t=show(abs(value) if unsigned else value, format))


def tiles(comparison: pd.DataFrame) -> list[Tile]:
    """How many comparisons came out for RLTune: over base policies, over the strongest heuristic, as in the paper."""
    rows = best_measured(comparison)
    found = [("shows", "better", "RLTune waits less than its base policy"),
             ("shows_random", "better", "RLTune waits less than a random order"),
             ("shows_strong", "better", "RLTune waits less than the strongest heuristic"),
             ("shows_strong", "worse", "RLTune waits more than the strongest heuristic")]
    made = [_tile(rows, column, [word], text) for column, word, text in found if column in rows]
    if "verdict" in rows and rows["verdict"].fillna("").ne("").any():
        made.append(_tile(rows[rows["verdict"].fillna("") != ""], "verdict", ["matches", "holds"],
                          "the paper’s printed figure holds or is matched"))
    return made


def _tile(rows: pd.DataFrame, column: str, words: list[str], text: str) -> Tile:
    known = rows[rows[column].notna()]
    count = int(known[column].isin(words).sum())
    return Tile(_count(SOURCE, f"{column}={'|'.join(words)}", count), len(known), text)


def groups(comparison: pd.DataFrame) -> list[Group]:
    """A list of sentences a trace, a sentence a base policy, about the best measured windows."""
    made = []
    for title, rows in best_measured(comparison).groupby("trace_title", sort=False):
        same = rows.duplicated("policy", keep=False)
        made.append(Group(
            str(title), str(rows["data"].iloc[0]),
            [sentence(i, row, bool(same[i])) for i, row in rows.iterrows()],
        ))
    return made


def sentence(index: int, row: pd.Series, with_setting: bool = False) -> Markup:
    """One comparison in plain words: the base policy, the paper, the strongest heuristic."""
    def number(column: str, format: str) -> Markup:
        return cell(SOURCE, index, column, row[column], format)

    setting = f" ({row['preset']}, {row['blocking']}, {row['estimate']}, seed {row['seed']})" if with_setting else ""
    text = Markup("<strong>{}</strong>{}: mean wait {}\u00a0s with RLTune, {}\u00a0s without, "
                  "over {} windows; ").format(
        scheduler_title(str(row["policy"])), setting, number("rltune_mean", "seconds"),
        number("base_mean", "seconds"), number("windows", "int"))
    text += _outcome(index, row, "improvement", "low", "high", str(row["shows"])) + ". "
    if not is_missing(row.get("paper_says")):
        text += Markup("The paper says {}").format(row["paper_says"])
        if not is_missing(row.get("verdict")):
            text += Markup(': <span class="badge {}">{}</span>').format(slug(row["verdict"]), row["verdict"])
        text += ". "
    if row.get("learned") == "no":
        text += Markup("<strong>It did not learn</strong>: on validation windows the agent does not beat both its base "
                       "policy and a random order. ")
    if not is_missing(row.get("random_mean")):
        text += Markup("Against a random order ({}\u00a0s): ").format(number("random_mean", "seconds"))
        ends = ("over_random_low", "over_random_high")
        text += _outcome(index, row, "over_random", *ends, str(row["shows_random"])) + ". "
    if not is_missing(row.get("strong")):
        text += Markup("Against {} ({}\u00a0s), the strongest heuristic: ").format(
            row["strong"], number("strong_mean", "seconds"))
        ends = ("over_strong_low", "over_strong_high")
        text += _outcome(index, row, "over_strong", *ends, str(row["shows_strong"])) + "."
    return text


def _outcome(index: int, row: pd.Series, value: str, low: str, high: str, shows: str) -> Markup:
    def size(column: str) -> Markup:
        return cell(SOURCE, index, column, row[column], "percent", unsigned=True)

    if is_missing(row[value]):
        return Markup("nobody waits, so there is nothing to compare")
    word = "less" if row[value] >= 0 else "more"
    if is_missing(row[low]) or is_missing(row[high]):
        return Markup("{} {}, too few windows for an interval").format(size(value), word)
    if shows == TOO_FEW:
        return Markup("{} {} over too few windows for a verdict").format(size(value), word)
    if shows == "open":
        return Markup("no difference is shown: {} {}, but the interval, {} more to {} less, covers zero").format(
            size(value), word, size(low), size(high))
    ends = (low, high) if word == "less" else (high, low)
    return Markup("{} {} (interval {} to {})").format(size(value), word, *map(size, ends))


def data_sentences(labels: list[str]) -> list[Markup]:
    """What the data are, label by label."""
    return [Markup('<span class="badge {c}">{l}</span> {m}').format(c=slug(x), l=x, m=DATA_MEANING.get(x, x))
            for x in labels]


def others(there: dict[str, Saved]) -> list[Markup]:
    """What else one should know at once: the ablation, the load, the cost."""
    told = []
    if "ablation-numbers" in there and len(frame := there["ablation-numbers"].frame):
        rows = best_measured(frame)
        naive = rows[(rows["variant"] == "naive") & rows["pro_over_low"].notna()]
        if len(naive):
            told.append(Markup("Engineered features and look-ahead placement together: less wait than naive in {} of "
                               "{} settings, more in {}, no difference shown in the others.").format(
                _count("ablation-numbers", "pro_over_low>0", (naive["pro_over_low"] > 0).sum()), len(naive),
                _count("ablation-numbers", "pro_over_high<0", (naive["pro_over_high"] < 0).sum())))
    if "loads" in there:
        frame = there["loads"].frame
        over = int((frame["load_test"] > 1).sum())
        told.append(Markup("The test part asks for more GPU time than the cluster has in {} of {} workloads{}").format(
            _count("loads", "load_test>1", over), len(frame),
            "; waits there grow with the length of the window and are no steady state." if over else "."))
    if "costs" in there:
        frame = there["costs"].frame
        trouble = {c: int(frame[f"milp_{c}"].sum()) for c in ("infeasible", "limit", "failure")}
        told.append(Markup("Training took {}\u00a0s over {} agents. Of {} questions to the placement model {} "
                           "were infeasible, {} hit the time limit and {} failed.").format(
            _sum("costs", "training_s", frame["training_s"].sum()), len(frame),
            _sum("costs", "milp_asked", frame["milp_asked"].sum()),
            *(_sum("costs", f"milp_{c}", n) for c, n in trouble.items())))
    return told


def _count(artefact: str, condition: str, value: int) -> Markup:
    return Markup('<data value="{v}" data-count="{a}.csv:{c}">{v}</data>').format(v=int(value), a=artefact, c=condition)


def _sum(artefact: str, column: str, value: float) -> Markup:
    return Markup('<data value="{v}" data-sum="{a}.csv:{c}">{t}</data>').format(
        v=value, a=artefact, c=column, t=show(value, "int"))
