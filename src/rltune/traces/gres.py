"""GPUs in the many spellings of Slurm's generic resources ("GRES", "TRES"): the one place that takes them apart.

The same two GPUs are ``gpu:p100:2``, ``gres:gpu:p100:2``, ``gres/gpu:p100=2``, ``gpu:p100:2(S:0-1)`` or
``gpu:p100:2(IDX:0,3)`` or ``gpu:p100(CNT:2)``; ``gpu:2`` names no type, ``gpu`` and ``gpu:p100`` are one GPU each. A type may begin with a
digit: ``gpu:2080ti:4``, ``gpu:3090:8``, ``gpu:1g.5gb:7``; a number in the last place is how many.
"""

import re
from collections import Counter

EMPTY = frozenset({"", "N/A", "(null)", "None", "none", "Unknown", "NONE"})
"""Slurm's words for nothing."""
COUNT = re.compile(r"\(CNT:(\d+)\)")
PARENTHESES = re.compile(r"\([^()]*\)")
AMOUNT = re.compile(r"(0*\d{1,9})([KkMmGg]?)")
FACTOR = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
LEFT_OUT = frozenset({"no_consume", "one_sharing", "all_sharing", ""})


def gpus(text: str) -> dict[str, int]:
    """GPUs for each type in a list of resources; those of no type under an empty name; other resources left out.

    Where a list gives GPUs in all and of a type (``gres/gpu=4,gres/gpu:p100=4``), the typed are part of the whole.
    Raises ValueError where an entry about GPUs cannot be read.
    """
    if text.strip() in EMPTY:
        return {}
    plain = PARENTHESES.sub("", COUNT.sub(r":\1", text.replace("(null)", "")))
    if "(" in plain or ")" in plain:
        raise ValueError(f"found {text[:80]!r}, expected resources such as gpu:p100:4")
    found: Counter[str] = Counter()
    whole = 0
    for item in plain.split(","):
        entry = re.sub("^gres[/:]", "", item.strip())
        if re.split("[:=]", entry, maxsplit=1)[0] != "gpu":
            continue
        kind, amount = _one(entry, text)
        if "=" in entry and not kind:
            whole = amount
        else:
            found[kind] += amount
    if whole > sum(found.values()):
        found[""] += whole - sum(found.values())
    return {kind: amount for kind, amount in found.items() if amount}


def _one(entry: str, text: str) -> tuple[str, int]:
    """Type and number of one entry about GPUs."""
    named, equals, number = entry.partition("=")
    _, *parts = named.split(":")
    parts = [part for part in parts if part.lower() not in LEFT_OUT]
    if equals:
        parts.append(number)
    if not parts:
        return "", 1
    amount = AMOUNT.fullmatch(parts[-1])
    if amount is None and len(parts) == 1 and not equals:
        return parts[0], 1
    if amount is None or len(parts) > 2:
        raise ValueError(f"found {text[:80]!r}, expected resources such as gpu:p100:4")
    return "".join(parts[:-1]), int(amount[1]) * FACTOR[amount[2].upper()]
