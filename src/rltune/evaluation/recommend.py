"""The recommendation of a what-if analysis, by a rule that climbs from today's order to what is more work to run.

1. Fewer blocks of arrivals than FEWEST: ``too few days``. No verdict of any kind.
2. Today's jobs wait less than ``least_wait_s`` in the mean: ``no waits``. There is nothing to save.
3. From today's order it goes up to the rule with the fewest hours waited, from there to QSSF, from there to RLTune;
   each time only if the step is *shown*: the interval of what is saved against the rung it stands on lies above zero,
   Holm's p-value of it is below 1 − confidence, and at least ``worth`` of the hours are saved.
4. The rung it ends on is recommended: ``keep`` (today's), ``rule``, ``qssf`` or ``rltune``.

The best rule is known only in hindsight, on the very days it is judged on; that favours the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.whatif import QSSF, RLTUNE, TODAY

Outcome = Literal["too few days", "no waits", "keep", "rule", "qssf", "rltune"]


@dataclass(frozen=True)
class Advice:
    """What came out."""

    outcome: Outcome
    chosen: str
    """Scheduler that is recommended; today's where nothing is."""
    reached: str
    """The best without RLTune, by the same rule: what RLTune had to beat."""
    blocks: int


def shown(step: pd.Series, worth: float, confidence: float) -> bool:
    """Whether a comparison of ``rltune.evaluation.whatif.steps`` shows a saving, and one worth a change."""
    return bool(step["low"] > 0 and step["p_holm"] < round(1 - confidence, 9) and step["gain"] >= worth)


def recommend(
    totals: pd.DataFrame, steps: pd.DataFrame, *, worth: float, least_wait_s: float, confidence: float
) -> Advice:
    """The recommendation from the frames of ``rltune.evaluation.whatif``; the rule stands at the top of this module."""
    today = totals[totals["scheduler"] == TODAY].iloc[0]
    blocks = int(today["windows"])
    if blocks < FEWEST:
        return Advice("too few days", TODAY, TODAY, blocks)
    if today["wait_mean_s"] < least_wait_s:
        return Advice("no waits", TODAY, TODAY, blocks)
    compared = steps.set_index(["ours", "theirs"])
    rules = totals[totals["kind"] == "rule"]
    best = str(rules.loc[rules["wait_h"].idxmin(), "scheduler"])
    rung, reached = TODAY, TODAY
    for higher in (best, QSSF, RLTUNE):
        if higher == RLTUNE:
            reached = rung
        if (higher, rung) in compared.index and shown(compared.loc[(higher, rung)], worth, confidence):
            rung = higher
    outcome: Outcome = "keep" if rung == TODAY else "rule" if rung == best else "qssf" if rung == QSSF else "rltune"
    return Advice(outcome, rung, reached, blocks)
