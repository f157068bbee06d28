"""What came out, in sentences made from the frames: every number in them is a cell of a CSV or a count of rows."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from rltune.report.artefact import Saved
from rltune.report.format import is_missing, show
from rltune.report.page.tables import slug
from rltune.report.studies import STUDIES, Study
from rltune.report.style import scheduler_title
from rltune.report.tables.common import best_measured
from rltune.report.verdict import TOO_FEW

DATA_MEANING = {
    "synthetic": "generated rows that follow the published distributions of the traces, not measurements",
    "sample": "a part of the published traces",
    "full": "the whole published traces",
    "own": "your own job log",
}


OUTCOMES = {
    "Better than its base policy": ("shows", ("better",)),
    "Better than a random order": ("shows_random", ("better",)),
    "Better than the strongest heuristic": ("shows_strong", ("better",)),
    "Worse than the strongest heuristic": ("shows_strong", ("worse",)),
    "The paper’s figure holds or is matched": ("verdict", ("matches", "holds")),
}
"""Ways in which a comparison may come out → the column of a study's table that says so, and its words for it."""


@dataclass(frozen=True)
class Score:
    """How many of the comparisons came out one way."""

    count: Markup
    of: int


@dataclass(frozen=True)
class Scores:
    """The outcomes of one study, as OUTCOMES has them; None where nothing was compared."""

    title: str
    scores: list[Score | None]


@dataclass(frozen=True)
class Group:
    """The comparisons of one trace."""

    title: str
    data: str
    notebook: str
    """Where the agents of the trace stand side by side."""
    sentences: list[Markup]


def cell(artefact: str, row: int, column: str, value: object, format: str, unsigned: bool = False) -> Markup:
    """A number with the place it comes from; `unsigned` where the words around it say which way it points."""
    return Markup('<data value="{v}" data-from="{a}.csv:{r}:{c}">{t}</data>').format(
        v=value, a=artefact, r=row, c=column, t=show(abs(value) if unsigned else value, format))


def comparisons(there: dict[str, Saved]) -> dict[Study, pd.DataFrame]:
    """Study → the best measured rows of its table; the index is that of its CSV."""
    frames = {study: there[study.numbers].frame for study in STUDIES if study.numbers in there}
    return {study: best_measured(frame) for study, frame in frames.items() if len(frame)}


def measured(rows: dict[Study, pd.DataFrame]) -> str:
    """The lengths of the best measured windows, in words."""
    return " or ".join(show(n, "int") for n in sorted({n for r in rows.values() for n in r["sequence_jobs"]}))


def scores(rows: dict[Study, pd.DataFrame]) -> list[Scores]:
    """How many comparisons came out for RLTune, study by study."""
    return [Scores(study.title, [_score(study, frame, *outcome) for outcome in OUTCOMES.values()])
            for study, frame in rows.items()]


def _score(study: Study, rows: pd.DataFrame, column: str, words: tuple[str, ...]) -> Score | None:
    """Of the comparisons that were measured and have windows enough for a verdict."""
    known = rows[column].replace(["", TOO_FEW], None).dropna() if column in rows else pd.Series(dtype=object)
    if known.empty:
        return None
    return Score(_count(study.numbers, f"{column}={'|'.join(words)}", int(known.isin(words).sum())), len(known))


def groups(rows: dict[Study, pd.DataFrame]) -> list[Group]:
    """A list of sentences a trace, a sentence a base policy and metric, about the best measured windows."""
    made: dict[str, Group] = {}
    for study, frame in rows.items():
        for title, mine in frame.groupby("trace_title", sort=False):
            same = mine.duplicated("policy", keep=False)
            first = mine.iloc[0]
            new = Group(str(title), str(first["data"]), f"compare-{first['trace']}", [])
            group = made.setdefault(str(title), new)
            group.sentences.extend(sentence(study, i, row, bool(same[i])) for i, row in mine.iterrows())
    return list(made.values())


def sentence(study: Study, index: int, row: pd.Series, with_setting: bool = False) -> Markup:
    """One comparison in plain words: the base policy, the paper, the strongest heuristic."""
    def number(column: str, format: str = study.format) -> Markup:
        unit = f"\u00a0{study.unit}" if study.unit and format == study.format else ""
        return cell(study.numbers, index, column, row[column], format) + unit

    def outcome(over: str, low: str, high: str, shows: str) -> Markup:
        return _outcome(study, index, row, over, low, high, str(row[shows]))

    setting = (f" ({row['preset']}, {row['blocking']}, {row['estimate']}, seed {row['seed']}, trained for "
               f"{row['metric']})" if with_setting else "")
    text = Markup("<strong>{}</strong>{}: {} {} with RLTune, {} without, over {} windows; ").format(
        scheduler_title(str(row["policy"])), setting, study.noun, number("rltune_mean"), number("base_mean"),
        number("windows", "int"))
    text += outcome("improvement", "low", "high", "shows") + ". "
    if not is_missing(row.get("paper_says")):
        text += Markup("The paper says {}").format(row["paper_says"])
        if not is_missing(row.get("verdict")):
            text += Markup(': <span class="badge {}">{}</span>').format(slug(row["verdict"]), row["verdict"])
        text += ". "
    if str(row.get("learned")).startswith("no"):
        text += Markup("<strong>It did not learn</strong>: on validation windows the agent does not beat both its base "
                       "policy and a random order. ") if row["learned"] == "no" else Markup(
                           "<strong>It did not learn</strong>: the heuristic that it started from was kept. ")
    if not is_missing(row.get("random_mean")):
        text += Markup("Against a random order ({}): ").format(number("random_mean"))
        text += outcome("over_random", "over_random_low", "over_random_high", "shows_random") + ". "
    if not is_missing(row.get("strong")):
        text += Markup("Against {} ({}), the strongest heuristic: ").format(row["strong"], number("strong_mean"))
        text += outcome("over_strong", "over_strong_low", "over_strong_high", "shows_strong") + "."
    return text


def _outcome(study: Study, index: int, row: pd.Series, value: str, low: str, high: str, shows: str) -> Markup:
    def size(column: str) -> Markup:
        return cell(study.numbers, index, column, row[column], "percent", unsigned=True)

    good, bad = study.words
    if is_missing(row[value]):
        why = "nobody waits, so there is " if study.metric == "wait" else ""
        return Markup("{}nothing to compare").format(why)
    word = good if row[value] >= 0 else bad
    if is_missing(row[low]) or is_missing(row[high]):
        return Markup("{} {}, too few windows for an interval").format(size(value), word)
    if shows == TOO_FEW:
        return Markup("{} {} over too few windows for a verdict").format(size(value), word)
    if shows == "open":
        return Markup("no difference is shown: {} {}, but the interval, {} {} to {} {}, covers zero").format(
            size(value), word, size(low), bad, size(high), good)
    ends = (low, high) if row[value] >= 0 else (high, low)
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
        naive = rows[rows["variant"].str.startswith("naive") & rows["pro_over_low"].notna()]
        if len(naive):
            told.append(Markup("Engineered features and look-ahead placement together: better than naive in {} of {} "
                               "settings, worse in {}, no difference shown in the others.").format(
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
