"""Single values of Slurm's answers: numbers in both JSON dialects, times, durations, lists of nodes, memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rltune.slurm.records import Parsed

Record = TypeVar("Record")

NO_VALUE = {16: frozenset({0xFFFE}), 32: frozenset({0xFFFFFFFE}), 64: frozenset({0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE})}
INFINITE = {16: frozenset({0xFFFF}), 32: frozenset({0xFFFFFFFF}), 64: frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})}
"""Slurm's own numbers for "not set" and "without end", by the bits of the field (slurm.h); in a wider field they are
numbers like any other. Fields of 64 bits are times, which Slurm gives those of 32 bits too, and memory, never so large."""
EMPTY = frozenset({"", "N/A", "(null)", "None", "none", "Unknown", "NONE"})
MOST_NODES = 100_000
LARGEST = 2**63
"""Numbers above this are no counts."""
DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([cn]?)")
MEMORY_MB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
BRACKET = re.compile(r"\[([^][]*)\]")
PIECE = re.compile(r"(\d+)(?:-(\d+))?")


class Fault(ValueError):
    """A record, or one value of it, that cannot be read; its text says what was found."""


def collect(items: Iterable[Any], read: Callable[[Any], Record], name: Callable[[Any], str]) -> Parsed[Record]:
    """Read record by record: those that can be read, and a line for each that cannot."""
    records, faults = [], []
    for k, item in enumerate(items):
        try:
            records.append(read(item))
        except Fault as fault:
            faults.append(f"record {k} ({name(item)}): {fault}")
    return Parsed(tuple(records), tuple(faults))


def number(value: Any, what: str, bits: int = 32) -> float | None:
    """A number of either dialect: plain, or ``{set, infinite, number}``; infinity without end, None where not set.

    ``bits``: width of Slurm's field, 16, 32 or 64, which decides what plain numbers mean "without end" and "not set".
    """
    says_so = isinstance(value, dict)
    if says_so:
        if value.get("infinite") is True:
            return math.inf
        if value.get("set") is False:
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if text in EMPTY:
            return None
        if text.upper() in ("INFINITE", "UNLIMITED"):
            return math.inf
        if not re.fullmatch(r"[0-9]{1,19}(\.[0-9]{1,9})?", text):
            raise Fault(f"{what}: found {shown(value)}, expected a number")
        value = float(text) if "." in text else int(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Fault(f"{what}: found {shown(value)}, expected a number")
    if not says_so and value in NO_VALUE[bits]:
        return None
    if not says_so and value in INFINITE[bits]:
        return math.inf
    if not 0 <= value < LARGEST:
        raise Fault(f"{what}: found {shown(value)}, expected a number of 0 or more")
    return value


def count(value: Any, what: str, default: int | None = None, bits: int = 32) -> int:
    """A whole number; ``default`` where it is not set. Raises Fault where it is not set and there is no default."""
    found = number(value, what, bits)
    if found is None and default is not None:
        return default
    if found is None or math.isinf(found) or found != int(found):
        raise Fault(f"{what}: found {shown(value)}, expected a whole number")
    return int(found)


def moment(value: Any, what: str) -> float | None:
    """A point in time, s since 1970; None where not set (0 is not set)."""
    found = number(value, what, 64)
    return None if not found or math.isinf(found) else float(found)


def text_of(value: Any, what: str, default: str = "") -> str:
    """A text; ``default`` where it is absent or Slurm's word for nothing."""
    if value is None:
        return default
    if not isinstance(value, str):
        raise Fault(f"{what}: found {shown(value)}, expected a text")
    return default if value.strip() in EMPTY else value.strip()


def words(value: Any, what: str) -> tuple[str, ...]:
    """Words, given as a list, or as one text with commas."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise Fault(f"{what}: found {shown(value)}, expected words")
    return tuple(word.strip() for word in value if word.strip() not in EMPTY)


def duration(text: str, what: str) -> float | None:
    """Seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds``, ``days-hours``; None: without end."""
    if text in EMPTY or text in ("UNLIMITED", "INFINITE", "NOT_SET", "Partition_Limit"):
        return None
    found = DURATION.fullmatch(text)
    if found is None or len(text) > 40:
        raise Fault(f"{what}: found {shown(text)}, expected days-hours:minutes:seconds")
    days, *rest = found.groups()
    parts = [int(p) for p in rest if p is not None]
    if days is not None:  # days-hours[:minutes[:seconds]]
        parts += [0] * (3 - len(parts))
        return float(86400 * int(days) + 3600 * parts[0] + 60 * parts[1] + parts[2])
    # minutes, minutes:seconds, hours:minutes:seconds
    hours, minutes, seconds = {1: (0, *parts, 0), 2: (0, *parts), 3: tuple(parts)}[len(parts)]
    return float(3600 * hours + 60 * minutes + seconds)


def memory(text: str, what: str) -> tuple[float, str] | None:
    """MB, and ``c`` where it is for each CPU; None where it is not set (0 is all the memory of a node)."""
    if text in EMPTY:
        return None
    found = MEMORY.fullmatch(text)
    if found is None or len(text) > 30:
        raise Fault(f"{what}: found {shown(text)}, expected a number with K, M, G, T or P")
    amount = float(found[1]) * MEMORY_MB[found[2]]
    return (amount, found[3]) if amount else None


def expand(names: str, what: str = "nodes") -> tuple[str, ...]:
    """Nodes of Slurm's short form: ``a[1-3,07],b`` is a1, a2, a3, a07, b. Raises Fault where it is none."""
    names = names.strip()
    if names in EMPTY:
        return ()
    found: list[str] = []
    for part in _split(names, what):
        heads = [""]
        last = 0
        for bracket in BRACKET.finditer(part):
            before, values = part[last : bracket.start()], _range(bracket[1], what)
            if len(heads) * len(values) > MOST_NODES:
                raise Fault(f"{what}: {shown(names)} stands for more than {MOST_NODES} nodes")
            heads = [head + before + value for head in heads for value in values]
            last = bracket.end()
        rest = part[last:]
        if not part or "[" in rest or "]" in rest or any(c.isspace() for c in part):
            raise Fault(f"{what}: found {shown(names)}, expected names of nodes")
        found += [head + rest for head in heads]
        if len(found) > MOST_NODES:
            raise Fault(f"{what}: {shown(names)} stands for more than {MOST_NODES} nodes")
    return tuple(found)


def shown(value: Any) -> str:
    """A value as an error message shows it: short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _split(names: str, what: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for k, char in enumerate(names):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise Fault(f"{what}: found {shown(names)}, expected names of nodes")
        if char == "," and not depth:
            parts.append(names[start:k])
            start = k + 1
    return [*parts, names[start:]]


def _range(text: str, what: str) -> list[str]:
    """Numbers of ``1-3,07``, with the zeros they were written with."""
    values: list[str] = []
    for part in text.split(","):
        found = PIECE.fullmatch(part)
        if found is None or len(part) > 40:
            raise Fault(f"{what}: found [{shown(text)}], expected numbers in the brackets")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last - first >= MOST_NODES or len(values) > MOST_NODES:
            raise Fault(f"{what}: found [{shown(text)}], expected at most {MOST_NODES} numbers, rising")
        values += [str(n).zfill(len(found[1])) for n in range(first, last + 1)]
    return values
