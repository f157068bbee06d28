"""The headline numbers that a finished run should have, with tolerances, compared with a run's artefacts."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field, model_validator

from rltune.config.base import Block
from rltune.config.load import read_block
from rltune.errors import ConfigError, DataError
from rltune.evaluation.compare import where
from rltune.report.artefact import load_artefact
from rltune.report.format import MISSING, NBSP, show

FILE = "config/expected.yaml"
"""Where the expectations of the default run lie, relative to the project's root."""
Value = str | bool | int | float

FORMAT = {"fraction": "percent", "rows": "int", "jobs": "int", "s": "seconds"}
"""Unit → how a number of it is printed; others get three digits."""


class Number(Block):
    """One number of an artefact, and how far from it another run may be."""

    says: str
    """What it is, in words."""
    artefact: str
    """Id of the artefact, as in results/artefacts."""
    trace: str = ""
    """A trace in whose place a run may have another, and then it is not compared."""
    where: dict[str, Value] = {}
    """Column → value: which row of its CSV; each number is of exactly one row, or counts the rows."""
    column: str = ""
    """Which column; empty: the number of rows."""
    value: Value
    """That of the default run."""
    unit: Literal["", "fraction", "rows", "jobs", "s", "ms", "ratio"] = ""
    """A fraction is printed in per cent."""
    absolute: float = Field(default=0.0, ge=0)
    """How far another run may be from it, in its unit."""
    relative: float = Field(default=0.0, ge=0)
    """The same as a share of the value; the wider of both counts."""
    why: str = ""
    """Where the tolerance comes from, where it is not that of its group."""

    @model_validator(mode="after")
    def _only_numbers_have_tolerances(self) -> Number:
        if isinstance(self.value, str) and (self.absolute or self.relative):
            raise ValueError("a text has no tolerance")
        return self

    @property
    def tolerance(self) -> float:
        """In the value's unit; 0: exactly equal."""
        return 0.0 if isinstance(self.value, str) else max(self.absolute, self.relative * abs(float(self.value)))

    @property
    def telling(self) -> bool:
        """Whether a run with no effect would be outside: the tolerance is at most nine tenths of the value."""
        return isinstance(self.value, str) or self.tolerance <= 0.9 * abs(float(self.value))


class Reproduced(Block):
    """A table, figure or section of the paper."""

    paper: str
    """As the paper calls it."""
    title: str
    """What it shows."""
    stage: str
    """The notebook that makes it."""
    ids: list[str] = Field(min_length=1)
    """Our artefacts."""
    shrink: str = ""
    """What makes it cheaper."""
    note: str = ""
    """What a reader has to know."""
    numbers: list[Number] = Field(min_length=1, max_length=3)
    """Its headline numbers."""

    @model_validator(mode="after")
    def _numbers_of_its_artefacts(self) -> Reproduced:
        strange = [n.artefact for n in self.numbers if n.artefact not in self.ids]
        if strange:
            raise ValueError(f"numbers of {', '.join(strange)}, which are not among `ids`")
        return self


class Expectations(Block):
    """The numbers that a finished run of one configuration should have."""

    config: str
    """The run's configuration."""
    why: str
    """Where the tolerances come from."""
    reproduced: list[Reproduced] = Field(min_length=1)
    """In the paper's order."""


@dataclass(frozen=True)
class Checked:
    """An expected number, and that of a run."""

    number: Number
    found: Value | None
    """None where it has no such row, or an empty cell."""
    why: str = ""
    """Why it has none."""

    @property
    def inside(self) -> bool:
        """Whether it is within its tolerance."""
        value = self.number.value
        if self.found is None or isinstance(self.found, str) or isinstance(value, str):
            return self.found == value
        return math.isclose(float(self.found), float(value), rel_tol=1e-12, abs_tol=self.number.tolerance)


def load_expectations(path: Path, root: Path) -> Expectations:
    """Read an expectations file. Raises ConfigError naming file, line and key of every mistake."""
    return read_block(path, Expectations, root)


def check(
    config: str, artefacts: Path, expectations: Expectations, traces: Container[str], without: Sequence[str] = ()
) -> list[Checked]:
    """Compare a finished run's artefacts with what is expected of the run of ``config``, number by number, but for those of
    the stages ``without`` and of other ``traces`` than the run's.

    Raises ConfigError where the run's configuration is another, DataError where an artefact is missing.
    """
    if Path(config).name != Path(expectations.config).name:
        raise ConfigError(
            f"config: found {config}, but the expectations are those of {expectations.config}; "
            "numbers of another configuration cannot be compared with them"
        )
    stages = [part for part in expectations.reproduced if part.stage not in without]
    numbers = [number for part in stages for number in part.numbers if not number.trace or number.trace in traces]
    frames = {number.artefact: load_artefact(artefacts, number.artefact).frame for number in numbers}
    return [_found(number, frames[number.artefact]) for number in numbers]


def _found(number: Number, frame: pd.DataFrame) -> Checked:
    if unknown := [c for c in (*number.where, number.column) if c and c not in frame]:
        raise DataError(
            f"{number.artefact}.csv: found no column {', '.join(unknown)}; there are {', '.join(frame.columns)}"
        )
    rows = where(frame, **number.where)
    if not number.column:
        return Checked(number, len(rows))
    if len(rows) != 1:
        return Checked(number, None, f"{len(rows)} rows, expected 1")
    value = rows.iloc[0][number.column]
    return Checked(number, None, "no value") if pd.isna(value) else Checked(number, value)


def as_table(checked: Sequence[Checked]) -> str:
    """A line a number: what is expected, what was found, whether that is within the tolerance."""
    lines = []
    for one in checked:
        n = one.number
        outcome = "OUTSIDE" if not one.inside else "within" if n.telling else "within, which says little"
        lines.append((n.artefact, n.says, expected_text(n), one.why or show_number(one.found, n.unit), outcome))
    return pd.DataFrame(lines, columns=["artefact", "what", "expected", "found", ""]).to_string(index=False)


def expected_text(number: Number) -> str:
    """The value with its tolerance, the unit once: ``74.7 ± 20.0 %``, and a remark where almost any run would be within."""
    text = show_number(number.value, number.unit)
    if not number.tolerance:
        return text
    if number.unit == "fraction":
        tolerance = f"{show(100 * number.tolerance, 'number')}{NBSP}%"
    else:
        tolerance = show_number(number.tolerance, number.unit)
    both = f"{text.removesuffix(f'{NBSP}%').removesuffix(f' {number.unit}')} ± {tolerance}"
    return both if number.telling else f"{both}: too small a run to say"


def show_number(value: Value | None, unit: str) -> str:
    """A value with its unit."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    text = show(value, FORMAT.get(unit, "number"))
    return text if unit in ("", "fraction", "ratio") else f"{text} {unit}"
