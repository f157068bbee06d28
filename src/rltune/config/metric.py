"""What an agent is rewarded for, by name: one metric, or a weighted mix of several."""

import re
from decimal import Decimal
from typing import Annotated

from rltune import metrics
from rltune.config.base import parsed_by
from rltune.errors import ConfigError

METRICS: tuple[str, ...] = tuple(metrics.METRICS)
_PART = re.compile(r"(?P<weight>0\.0*[1-9][0-9]*)\*(?P<metric>\w+)")


def parse_metric(name: str) -> dict[str, float]:
    """Weight of each metric in ``name``: ``bsld`` → {"bsld": 1.0}, ``0.7*wait+0.3*utilisation`` → both.

    A mix has one name only: its parts in the order of METRICS, each once, with weights above 0 that add up to 1, no
    zeros at their end. Raises ConfigError for any other name, and says how it is written where it can be guessed.
    """
    if name in METRICS:
        return {name: 1.0}
    parts = [_PART.fullmatch(part) for part in str(name).replace(" ", "").split("+")]
    weights = {part["metric"]: Decimal(part["weight"]) for part in parts if part and part["metric"] in METRICS}
    if len(weights) < len(parts):
        raise ConfigError(
            f"found {name!r}, expected {', '.join(METRICS)}, or a mix of them whose weights add up to 1, such as "
            "0.7*wait+0.3*utilisation"
        )
    if sum(weights.values()) != 1:
        raise ConfigError(f"found {name!r}, whose weights add up to {sum(weights.values())}, expected 1")
    canonical = "+".join(f"{weights[m].normalize():f}*{m}" for m in METRICS if m in weights)
    if name != canonical:
        raise ConfigError(f"found {name!r}, expected it written as {canonical}: a mix has one name only")
    return {metric: float(weights[metric]) for metric in METRICS if metric in weights}


Metric = Annotated[str, parsed_by(parse_metric)]
