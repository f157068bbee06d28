"""The verdict on a comparison, by a rule printed on the page."""

import math

from rltune.evaluation.intervals import FEWEST

TOO_FEW = "too few to say"
TOO_SLOW = "cycles too long"
"""Instead of a verdict, where the controller's load on the machine may have changed the result more than its order."""
ABSENT = "not in this configuration"
"""Instead of a verdict, where a run has no counterpart of a claim."""
MATCHES, HOLDS, UNDECIDED, FAILS = "matches", "holds", "undecided", "does not hold"

RULE = (
    "“matches”: our interval covers the paper’s figure and lies on its side of zero; "
    "“holds”: it lies on the paper’s side of zero but does not cover the figure; "
    "“undecided”: it covers both zero and the paper’s figure; "
    "“does not hold”: anything else. "
    f"Below {FEWEST} windows (of runs on Slurm: repetitions) there is no verdict."
)


def verdict(paper: float, low: float, high: float, windows: int) -> str:
    """Ours against the paper's figure (both relative improvements); "" where either is unknown (NaN).

    Fewer windows than FEWEST give no verdict. A wide interval that covers zero as well as the figure is evidence for
    neither, hence `undecided`.
    """
    if any(map(math.isnan, (paper, low, high))):
        return ""
    if windows < FEWEST:
        return TOO_FEW
    covers = low <= paper <= high
    same_side = (low > 0 and paper > 0) or (high < 0 and paper < 0)
    if same_side:
        return MATCHES if covers else HOLDS
    return UNDECIDED if covers else FAILS


def direction(low: float, high: float, windows: int) -> str:
    """What an interval of an improvement shows: `better`, `worse`, or `open` where it covers zero; without interval TOO_FEW."""
    if windows < FEWEST or math.isnan(low) or math.isnan(high):
        return TOO_FEW
    return "better" if low > 0 else "worse" if high < 0 else "open"
