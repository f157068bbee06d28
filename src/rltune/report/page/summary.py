"""What came out, in half a minute: every number is a cell of a CSV, a count of rows or a sum of a column."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from rltune.config import Workspace
from rltune.report.artefact import Saved
from rltune.report.format import show
from rltune.report.page.claims import Claim
from rltune.report.page.marks import badge, count, total
from rltune.report.studies import STUDIES, Study
from rltune.report.common import best_measured
from rltune.report.verdict import FAILS, HOLDS, MATCHES, TOO_FEW, UNDECIDED

OUTCOMES = {
    "Better than its base policy": ("shows", ("better",)),
    "Better than a random order": ("shows_random", ("better",)),
    "Better than the strongest heuristic": ("shows_strong", ("better",)),
    "Worse than the strongest heuristic": ("shows_strong", ("worse",)),
    "The paper’s figure holds or is matched": ("verdict", ("matches", "holds")),
}
"""Ways in which a comparison may come out → the column of a study's table that says so, and its words for it."""
UP_TO = "Abstract"
"""Where the paper prints its headlines, which repeat the best of its other claims."""


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
class Answer:
    """A question that every reader has, and the answer."""

    question: str
    word: str
    """The answer in a word or two; "" where it takes a sentence."""
    told: Markup


def comparisons(there: dict[str, Saved]) -> dict[Study, pd.DataFrame]:
    """Study → the best measured rows of its table; the index is that of its CSV."""
    frames = {study: there[study.numbers].frame for study in STUDIES if study.numbers in there}
    return {study: best_measured(frame) for study, frame in frames.items() if len(frame)}


def measured(rows: dict[Study, pd.DataFrame]) -> str:
    """The lengths of the best measured windows, in words."""
    return " or ".join(show(n, "int") for n in sorted({n for r in rows.values() for n in r["sequence_jobs"]}))


def scores(rows: dict[Study, pd.DataFrame]) -> list[Scores]:
    """How many comparisons came out for RLTune, study by study."""
    return [
        Scores(study.title, [_score({study: frame}, *outcome) for outcome in OUTCOMES.values()])
        for study, frame in rows.items()
    ]


def _score(rows: dict[Study, pd.DataFrame], column: str, words: tuple[str, ...]) -> Score | None:
    """Of the comparisons that were measured and have windows enough for a verdict."""
    told = {
        study: frame[column].replace(["", TOO_FEW], None).dropna() for study, frame in rows.items() if column in frame
    }
    known = {study: values for study, values in told.items() if len(values)}
    if not known:
        return None
    hits = sum(int(values.isin(words).sum()) for values in known.values())
    return Score(count([s.numbers for s in known], f"{column}={'|'.join(words)}", hits), sum(map(len, known.values())))


def answers(
    workspace: Workspace, there: dict[str, Saved], rows: dict[Study, pd.DataFrame], claimed: list[Claim], without: int
) -> list[Answer]:
    """What was run, on which data, what holds, what does not, whether it takes an agent at all."""
    found = [Answer("What was run", "", _run(workspace, rows))]
    if claimed:
        found.append(_claims(claimed, without))
    if rows:
        found += [a for a in (_learned(rows), _heuristic(rows)) if a]
    return found


def _run(workspace: Workspace, rows: dict[Study, pd.DataFrame]) -> Markup:
    config = workspace.config
    cells = config.cells()
    kinds: dict[str, list[str]] = {}
    for name in dict.fromkeys(cell.trace for cell in cells):
        kinds.setdefault(workspace.trace(name).data, []).append(workspace.trace(name).title)
    traces = Markup(", ").join(
        Markup("{}\u00a0{}").format(", ".join(titles), badge(data, f"{data} data")) for data, titles in kinds.items()
    )
    told = Markup("{}: {}.").format(
        _several(
            len(cells),
            "agent",
            "was trained on the earlier part of its trace",
            "were trained on the earlier parts of their traces",
        ),
        traces,
    )
    if rows:
        told += Markup(
            " Judged on the later part, which training does not see, in windows of {} jobs, each from an idle cluster."
        ).format(measured(rows))
    return told


def _several(n: int, noun: str, one: str, more: str) -> str:
    return f"{n} {noun} {one}" if n == 1 else f"{n} {noun}s {more}"


def _claims(claimed: list[Claim], without: int) -> Answer:
    single = [c for c in claimed if c.where != UP_TO]
    counts = {word: sum(c.verdict == word for c in single) for word in (MATCHES, HOLDS, UNDECIDED, FAILS)}
    undecided = len(single) - sum(counts.values()) + counts[UNDECIDED]
    told = Markup("Of {} figures of the paper that this run can be compared with, ").format(len(single))
    told += Markup("{} {}, {} {}, {} {} and {} {}. ").format(
        counts[MATCHES],
        badge(MATCHES, "matched"),
        counts[HOLDS],
        badge(HOLDS, "hold with another size"),
        undecided,
        badge(UNDECIDED),
        counts[FAILS],
        badge(FAILS, "do not hold"),
    )
    if fails := [c for c in single if c.verdict == FAILS]:
        told += Markup("Not: {}. ").format("; ".join(c.text[0].lower() + c.text[1:] for c in fails))
    told += Markup("{} more have no counterpart here.").format(without)
    good = counts[MATCHES] + counts[HOLDS]
    word = _share(good, len(single), unknown=undecided)
    word = "Yes, as far as they can be compared" if word == "Yes" else word
    return Answer("Do the paper’s figures hold?", word, told)


def _share(good: int, of: int, unknown: int = 0) -> str:
    """Of so many, so many good: in a word."""
    if not of or (not good and unknown == of):
        return "Not decided"
    if good == of:
        return "Yes"
    return "In part" if good else "No"


def _learned(rows: dict[Study, pd.DataFrame]) -> Answer | None:
    better, random = (
        _score(rows, *OUTCOMES["Better than its base policy"]),
        _score(rows, *OUTCOMES["Better than a random order"]),
    )
    if better is None:
        return None
    told = Markup("Better than its base policy in {} of {} comparisons").format(better.count, better.of)
    if random is not None:
        told += Markup(", than a random order of the same queue in {} of {}").format(random.count, random.of)
    idle = {s: f["learned"].astype(str).str.startswith("no") for s, f in rows.items() if "learned" in f}
    idle_count = sum(int(c.sum()) for c in idle.values())
    told += Markup(
        ". A base policy that lets a job that does not fit block the queue is beaten by almost anything: "
        "the random order is the control. "
    )
    if idle_count:
        told += Markup("In {} of {} the agent learned nothing by its own account.").format(
            count([s.numbers for s in idle], "learned=no", idle_count), sum(map(len, idle.values()))
        )
    counted = better if random is None else random
    return Answer(
        "Does the agent beat its base policy, and a random order?", _share(int(_value(counted)), counted.of), told
    )


def _heuristic(rows: dict[Study, pd.DataFrame]) -> Answer | None:
    column, _ = OUTCOMES["Better than the strongest heuristic"]
    better, worse = (_score(rows, column, (word,)) for word in ("better", "worse"))
    if better is None or worse is None:
        return None
    won, lost, of = _value(better), _value(worse), better.of
    word = "No" if won == of else "Yes" if not won else "Mostly" if 2 * won < of else "Sometimes"
    rivals = max(int(f["rivals"].max()) for f in rows.values() if "rivals" in f and f["rivals"].notna().any())
    told = Markup(
        "Against the strongest of {} heuristics on the very same windows (chosen in hindsight, so harder to beat than "
        "any that one could have picked) RLTune is better in {} of {} comparisons, worse in {}; in the other {} no "
        "difference is shown."
    ).format(rivals, better.count, of, worse.count, of - won - lost)
    return Answer("Does a simple heuristic do as well?", word, told)


def _value(score: Score) -> int:
    return int(score.count.striptags())


def others(there: dict[str, Saved]) -> list[Markup]:
    """What else one should know at once: the ablation, the load, the cost."""
    told = []
    if "ablation-numbers" in there and len(frame := there["ablation-numbers"].frame):
        rows = best_measured(frame)
        naive = rows[rows["variant"].str.startswith("naive") & rows["pro_over_low"].notna()]
        if len(naive):
            told.append(
                Markup(
                    "Engineered features and look-ahead placement together: better than naive in {} of {} "
                    "settings, worse in {}, no difference shown in the others."
                ).format(
                    count(["ablation-numbers"], "pro_over_low>0", (naive["pro_over_low"] > 0).sum()),
                    len(naive),
                    count(["ablation-numbers"], "pro_over_high<0", (naive["pro_over_high"] < 0).sum()),
                )
            )
    if "loads" in there:
        frame = there["loads"].frame
        over = int((frame["load_test"] > 1).sum())
        told.append(
            Markup("The test part asks for more GPU time than the cluster has in {} of {} workloads{}").format(
                count(["loads"], "load_test>1", over),
                len(frame),
                "; waits there grow with the length of the window and are no steady state." if over else ".",
            )
        )
    if "costs" in there:
        frame = there["costs"].frame
        trouble = {c: int(frame[f"milp_{c}"].sum()) for c in ("infeasible", "limit", "failure")}
        told.append(
            Markup(
                "Training took {}\u00a0s over {} agents. Of {} questions to the placement model {} "
                "were infeasible, {} hit the time limit and {} failed."
            ).format(
                total("costs", "training_s", frame["training_s"].sum()),
                len(frame),
                total("costs", "milp_asked", frame["milp_asked"].sum()),
                *(total("costs", f"milp_{c}", n) for c, n in trouble.items()),
            )
        )
    return told
