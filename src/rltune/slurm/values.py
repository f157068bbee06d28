"""Single values of Slurm's answers: numbers in both JSON dialects, times, texts, lists of nodes."""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rltune.slurm.records import Parsed, Record
from rltune.traces.gres import EMPTY

NO_VALUE = {16: frozenset({0xFFFE}), 32: frozenset({0xFFFFFFFE}), 64: frozenset({0xFFFFFFFE, 0xFFFFFFFFFFFFFFFE})}
INFINITE = {16: frozenset({0xFFFF}), 32: frozenset({0xFFFFFFFF}), 64: frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})}
"""Slurm's own numbers for "not set" and "without end", by the bits of the field (slurm.h); in a wider field they are
numbers like any other. Fields of 64 bits are times, which Slurm gives those of 32 bits too, and memory, never so large."""
MOST_NODES = 100_000
LARGEST = 2**63
"""Numbers above this are no counts."""
NUMBERS = r"\[\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*\]"
NODES = re.compile(rf"(?:[^,\[\]\s]|{NUMBERS})+", re.ASCII)
PIECE = re.compile(rf"{NUMBERS}|[^\[]+", re.ASCII)


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


class Row:
    """One record of an answer, whose values are read by key. Raises Fault where it is no object, or a value cannot be
    read or is missing though ``expected`` says what it should be."""

    def __init__(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise Fault(f"found {shown(item)}, expected an object")
        self.item = item

    def number(self, key: str, bits: int = 32) -> float | None:
        """A number of either dialect: plain, or ``{set, infinite, number}``; infinity without end, None where not set.

        ``bits``: width of Slurm's field, 16, 32 or 64, which decides what plain numbers mean "without end" and "not set".
        """
        value, is_plain = self.item.get(key), True
        if isinstance(value, dict):
            is_plain = False
            if value.get("infinite") is True:
                return math.inf
            value = None if value.get("set") is False else value.get("number")
        if value is None or (isinstance(value, str) and value in EMPTY):
            return None
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Fault(f"{key}: found {shown(value)}, expected a number")
        if is_plain and value in NO_VALUE[bits]:
            return None
        if is_plain and value in INFINITE[bits]:
            return math.inf
        if not 0 <= value < LARGEST:
            raise Fault(f"{key}: found {shown(value)}, expected a number of 0 or more")
        return value

    def count(self, key: str, default: int | None = None, bits: int = 32) -> int:
        """A whole number; ``default`` where it is not set. Without a default it has to be set."""
        found = self.number(key, bits)
        if found is None and default is not None:
            return default
        if found is None or math.isinf(found) or found != int(found):
            raise Fault(f"{key}: found {shown(self.item.get(key))}, expected a whole number")
        return int(found)

    def moment(self, key: str) -> float | None:
        """A point in time, s since 1970; None where not set (0 is not set)."""
        found = self.number(key, 64)
        return None if not found or math.isinf(found) else float(found)

    def text(self, key: str, expected: str = "") -> str:
        """A text; empty where it is absent or Slurm's word for nothing."""
        value = self.item.get(key)
        if not isinstance(value, str | None):
            raise Fault(f"{key}: found {shown(value)}, expected a text")
        return self.required("" if value is None or value.strip() in EMPTY else value.strip(), key, expected)

    def words(self, key: str, expected: str = "") -> tuple[str, ...]:
        """Words, given as a list, or as one text with commas."""
        value = self.item.get(key) or []
        value = value.split(",") if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise Fault(f"{key}: found {shown(value)}, expected words")
        return self.required(tuple(word.strip() for word in value if word.strip() not in EMPTY), key, expected)

    def required(self, found: Any, key: str, expected: str) -> Any:
        if expected and not found:
            raise Fault(f"{key}: found {shown(self.item.get(key))}, expected {expected}")
        return found


def expand(names: str, what: str = "nodes") -> tuple[str, ...]:
    """Nodes of Slurm's short form: ``a[1-3,07],b`` is a1, a2, a3, a07, b. Raises Fault where it is none.

    Between them Slurm takes blanks and tabs like commas, and any number of these.
    """
    names = names.strip()
    if names in EMPTY:
        return ()
    parts = NODES.findall(names)
    if NODES.sub("", names).strip(", \t"):
        raise Fault(f"{what}: found {shown(names)}, expected names of nodes")
    nodes: list[str] = []
    for part in parts:
        pieces = [_range(piece, what) for piece in PIECE.findall(part)]
        if len(nodes) + math.prod(map(len, pieces)) > MOST_NODES:
            raise Fault(f"{what}: {shown(names)} stands for more than {MOST_NODES} nodes")
        nodes += map("".join, itertools.product(*pieces))
    return tuple(nodes)


def compress(names: Iterable[str]) -> str:
    """The short form of nodes, sorted: the inverse of :func:`expand`."""
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name in names:
        digits = name[len(name.rstrip("0123456789")) :][-9:]
        numbers[name.removesuffix(digits), len(digits)].append(int(digits or 0))
    parts = []
    for (prefix, width), found in sorted(numbers.items()):
        if not width:
            parts.append(prefix)
            continue
        inside = ranges(found, width)
        parts.append(f"{prefix}{inside}" if len(found) == 1 else f"{prefix}[{inside}]")
    return ",".join(parts)


def ranges(numbers: Iterable[int], width: int = 0) -> str:
    """Numbers as Slurm writes them, sorted: ``1-3,7``, each with at least so many digits."""
    ordered = np.sort(list(numbers))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    ends = [dict.fromkeys((run[0], run[-1])) for run in runs]
    return ",".join("-".join(f"{number:0{width}}" for number in pair) for pair in ends)


def shown(value: Any) -> str:
    """A value as an error message shows it: short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _range(piece: str, what: str) -> list[str]:
    """Numbers of ``[1-3,07]``, with the zeros they were written with; a piece without brackets is itself."""
    values: list[str] = []
    for part in piece[1:-1].split(",") if piece[0] == "[" else ():
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not 0 < len(numbers) <= MOST_NODES - len(values):
            raise Fault(f"{what}: found {shown(piece)}, expected at most {MOST_NODES} numbers, rising")
        values += [str(number).zfill(len(first)) for number in numbers]
    return values or [piece]
