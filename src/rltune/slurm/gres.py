"""GPUs of Slurm's generic resources in live answers; ``rltune.traces.gres`` takes them apart."""

from __future__ import annotations

import re
from collections import Counter

from rltune.slurm.values import Fault
from rltune.traces import gres
from rltune.traces.gres import PARENTHESES


def gpus(text: str, what: str = "gres") -> dict[str, int]:
    """GPUs for each type, as :func:`rltune.traces.gres.gpus`. Raises Fault, with the field's name, where they cannot be
    read."""
    try:
        return gres.gpus(text)
    except ValueError as error:
        raise Fault(f"{what}: {error}") from None


def times(found: dict[str, int], factor: int) -> dict[str, int]:
    """So many of each, ``factor`` times."""
    return {kind: amount * factor for kind, amount in found.items() if amount * factor}


def added(parts: list[dict[str, int]]) -> dict[str, int]:
    """GPUs of several lists together."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def only_type(found: dict[str, int]) -> str | None:
    """The one type; None where there is none, or several."""
    kinds = [kind for kind, amount in found.items() if kind and amount]
    return kinds[0] if len(kinds) == 1 else None


def types_of(per_node: str) -> tuple[str, ...]:
    """Types that a node's resources name, GPUs in use or not: ``gpu:p100:0`` names p100."""
    names = []
    for item in PARENTHESES.sub("", per_node.replace("(null)", "")).split(","):
        parts = re.split("[:=]", item.strip().removeprefix("gres/").removeprefix("gres:"))
        if parts[0] == "gpu" and len(parts) > 2 and parts[1]:
            names.append(parts[1])
    return tuple(names)
