"""The recommendation of a what-if analysis, by a rule that climbs from today's order to what is more work to run.

1. Fewer blocks of arrivals than FEWEST: ``too few days``. No verdict of any kind.
2. Today's jobs wait less than ``least_wait_s`` in the mean: ``no waits``. There is nothing to save.
3. From today's order it goes up to the rule with the fewest hours waited, from there to QSSF, from there to the
   way RLTune chose, without its network, where that is none of these, and from there to RLTune; each time only if the
   step shows fewer hours than the step it stands on (rltune.evaluation.whatif.steps: an interval above zero, Holm's
   p-value below 1 − confidence), and at least ``worth`` of them.
4. The step it ends on is recommended: ``rule``, ``qssf``, ``way`` or ``rltune``. Where that is today's: ``keep``, if
   whatever had the fewest hours can have saved less than ``worth`` (the upper end of its interval), else ``open``: it
   looks better, and the log is too short to show it.

The best rule is known only in hindsight, on the very days it is judged on; that favours the rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.whatif import QSSF, RLTUNE, CURRENT, CONFIGURATION

Outcome = Literal["too few days", "no waits", "keep", "open", "rule", "qssf", "configuration", "rltune"]


@dataclass(frozen=True)
class Advice:
    """What came out."""

    outcome: Outcome
    chosen: str
    """Scheduler that is recommended; today's where nothing is."""
    reached: str
    """The best without RLTune, by the same rule: what RLTune had to beat."""
    blocks: int


def recommend(totals: pd.DataFrame, steps: pd.DataFrame, *, worth: float, least_wait_s: float) -> Advice:
    """The recommendation from the frames of ``rltune.evaluation.whatif``; the rule stands at the top of this module."""
    today = totals[totals["scheduler"] == CURRENT].iloc[0]
    blocks = int(today["windows"])
    if blocks < FEWEST:
        return Advice("too few days", CURRENT, CURRENT, blocks)
    if today["wait_mean_s"] < least_wait_s:
        return Advice("no waits", CURRENT, CURRENT, blocks)
    compared = steps.set_index(["ours", "theirs"])
    rules = totals[totals["kind"] == "rule"]
    best = str(rules.loc[rules["wait_h"].idxmin(), "scheduler"])
    step, reached = CURRENT, CURRENT
    for higher in (best, QSSF, CONFIGURATION, RLTUNE):
        if higher == RLTUNE:
            reached = step
        if (higher, step) in compared.index:
            step = compared.loc[(higher, step)]
            step = higher if step["shows"] == "fewer" and step["gain"] >= worth else step
    if step == CURRENT:
        fewest = str(totals.loc[totals["wait_h"].idxmin(), "scheduler"])
        looks = fewest != CURRENT and compared.loc[(fewest, CURRENT), "high"] >= worth
        return Advice("open" if looks else "keep", CURRENT, reached, blocks)
    return Advice("rule" if step == best else step, step, reached, blocks)  # type: ignore[arg-type]


def days_needed(log_days: float, blocks: int) -> int:
    """How many days a log would have to be long for a verdict, whose measured part has ``blocks`` of arrivals in
    ``log_days`` days; rounded up to tens."""
    return math.ceil(log_days * FEWEST / max(blocks, 1) / 10) * 10
