"""A comparison in words: how much, how sure that is, and what it shows."""

from typing import Any

import pandas as pd

from rltune.evaluation.compare import BASE, STRONG
from rltune.evaluation.intervals import CONFIDENCE
from rltune.metrics import METRICS
from rltune.report.common import best_measured
from rltune.report.format import is_missing, show, show_interval
from rltune.report.style import title_of
from rltune.report.verdict import direction

WORDS = {"open": "undecided"}
"""What `direction` finds, where a sentence has another word for it."""
SIMPLE = {"better": "no simple rule does as well", "worse": "a simple rule does better"}


def gain(metric: str, found: Any, than: str, columns: tuple[str, str, str] = ("improvement", "low", "high")) -> str:
    """`89.1 % less than FIFO (84.2 to 92.5 %: better)`: an improvement of a mean, its interval, what that shows.

    ``found``: a row with ``columns`` (value, low, high; fractions) and `windows`.
    """
    value, low, high = (found[column] for column in columns)
    if is_missing(value):
        return f"not comparable with {'that ' * than.startswith('under ')}{than}"
    shows = direction(low, high, found["windows"])
    if value < 0:
        low, high = -high, -low
    sure = filter(None, (show_interval(low, high, "percent"), WORDS.get(shows, shows)))
    return f"{show(abs(value), 'percent')} {METRICS[metric].words[int(value < 0)]} than {than} ({': '.join(sure)})"


def answer(gains: pd.DataFrame) -> str:
    """Whether an agent gains, how sure that is, and whether a simple rule would have done as well, in one sentence.

    ``gains``: as rltune.evaluation.compare.against_all. It is of their first metric, at the window length with the most windows.
    """
    rows = best_measured(gains)
    rows = rows[rows["metric"] == rows["metric"].iloc[0]].set_index("against")
    base, strong = rows.loc[BASE], rows.loc[STRONG]
    metric = METRICS[base["metric"]]
    of = f"{base['windows']} windows of {base['sequence_jobs']} jobs, {100 * CONFIDENCE:g} % intervals"
    if is_missing(base["improvement"]) and is_missing(strong["improvement"]):
        return f"There is no {metric.noun} to compare ({of})."
    parts = [
        gain(metric.name, base, f"under {title_of(base)}, the base policy"),
        gain(metric.name, strong, f"under {title_of(strong)}, the best rule in hindsight"),
    ]
    shows = direction(strong["low"], strong["high"], strong["windows"])
    simple = SIMPLE.get(shows, "whether a simple rule does as well is undecided")
    if is_missing(strong["improvement"]):
        simple = "a simple rule does as well or better"
    return f"{metric.noun[0].upper()}{metric.noun[1:]} is {parts[0]} and {parts[1]}, so {simple} ({of})."


def tally(rows: pd.DataFrame, columns: tuple[str, str, str], noun: str = "comparison") -> str:
    """`better in 3, undecided in 1 of 4 comparisons`: what the comparisons in a table's rows show; ``columns`` and `windows` as for `gain`."""
    value, low, high = columns
    known = rows.dropna(subset=[value]) if value in rows else pd.DataFrame(columns=[low, high, "windows"])
    shows = pd.Series(list(map(direction, known[low], known[high], known["windows"])), dtype=object).replace(WORDS)
    counts = [f"{word} in {n}" for word, n in shows.value_counts().items()]
    return (
        f"{', '.join(counts)} of {len(known)} {noun}{'s' * (len(known) != 1)}" if counts else "not compared in this run"
    )
