"""Numbers as text: digits, signs and missing values, the same everywhere."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

MISSING = "–"
MINUS = "−"
NBSP = "\u00a0"
"""Keeps a number and its unit on one line."""


def is_missing(value: Any) -> bool:
    """None, not-a-number, or an empty text."""
    return bool(pd.isna(value)) or value == ""


def three_digits(value: float) -> str:
    """Three significant digits, thousands parted, no exponent between a millionth and infinity: 8,725 · 0.0223."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    rounded = float(f"{abs(value):.2e}")  # 99.96 is 100
    digits = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{value:.2e}" if abs(value) < 1e-6 else f"{value:,.{digits}f}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "text": lambda v: f"{v:.0f}" if isinstance(v, float) and v.is_integer() else str(v),
    "int": lambda v: f"{round(float(v)):,}",
    "number": lambda v: three_digits(float(v)),
    "seconds": lambda v: f"{float(v):,.0f}" if abs(float(v)) >= 100 else three_digits(float(v)),
    "percent": lambda v: f"{100 * float(v):.1f}{NBSP}%",
    "printed": lambda v: f"{float(v):g}",
    "p": lambda v: "< 0.001" if float(v) < 0.001 else f"{float(v):.3f}",
    "plain-int": lambda v: str(round(float(v))),
}
"""Format's name → text of a value that is not missing, without its unit.

`percent` takes a fraction; `printed` keeps the digits given; `p` is a p-value.
"""


def show(value: Any, format: str = "text") -> str:
    """A value as text; missing values are a dash, minus signs are true ones, and zero after rounding has none."""
    if is_missing(value):
        return MISSING
    text = FORMATS[format](value)
    if format == "text" or not text.startswith("-"):
        return text
    return text.replace("-", MINUS, 1) if any(digit in "123456789" for digit in text) else text[1:]


def listed(things: Iterable[object]) -> str:
    """`a`, `a and b`, `a, b and c`; "" of none."""
    words = list(map(str, things))
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def from_to(numbers: pd.Series) -> str:
    """`24`, or `24 to 32`, of whole numbers; "" of none."""
    found = numbers.dropna().unique()
    return " to ".join(f"{number:.0f}" for number in sorted({found.min(), found.max()})) if len(found) else ""


def show_interval(low: Any, high: Any, format: str) -> str:
    """An interval as text, the unit once: `30.2 to 39.9 %`; empty when either end is unknown."""
    if is_missing(low) or is_missing(high):
        return ""
    first = show(low, format)
    return f"{first.removesuffix(f'{NBSP}%')} to {show(high, format)}"
