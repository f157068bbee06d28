"""An artefact: one table or figure of the report, with its data, caption and provenance, as files.

``<id>.csv`` holds the data, ``<id>.svg`` and ``<id>.png`` the picture of a figure, ``<id>.json`` everything
one must know to show it. The JSON is written last: without it the artefact does not exist.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from rltune.errors import DataError
from rltune.files import atomic_write, read_json, write_json, write_text
from rltune.report.format import FORMATS
from rltune.report.style import styled

ID = re.compile(r"[a-z][a-z0-9-]*")
PNG_DPI = 200


@dataclass(frozen=True)
class Column:
    """How one column of an artefact's frame is shown."""

    heading: str
    """What stands above it."""
    unit: str = ""
    """Unit, shown beside the heading."""
    format: str = "text"
    """One of `rltune.report.format.FORMATS`."""
    group: str = ""
    """Heading over this and its neighbours of the same group."""
    low: str = ""
    """Column with the lower end of this one's interval; shown in the same cell."""
    high: str = ""
    """Column with its upper end."""
    help: str = ""
    """One sentence on what it is."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"column {self.heading!r}: format {self.format!r}, expected one of {', '.join(FORMATS)}")


@dataclass(frozen=True)
class Artefact:
    """A table or figure of the report."""

    id: str
    """Its name in files, links and on the page: `table2`, `fig11`."""
    kind: Literal["table", "figure"]
    """What it is."""
    title: str
    """Its heading."""
    caption: str
    """What one sees."""
    paper_ref: str = ""
    """The paper's artefact it corresponds to ("Table 2"); empty when it is ours alone."""
    data: tuple[str, ...] = ()
    """What rows it shows: synthetic, sample, full, own."""
    source: str = ""
    """Name of the executed notebook's page it was made in ("figures")."""
    columns: dict[str, Column] = field(default_factory=dict)
    """Column of the frame → how it is shown; columns without an entry are in the CSV only."""
    notes: tuple[str, ...] = ()
    """What one must know before relying on it."""
    alt: str = ""
    """A figure in words, for those who cannot see it."""

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ValueError(f"artefact id {self.id!r}: expected lower-case letters, digits and hyphens")
        if self.kind == "figure" and not self.alt:
            raise ValueError(f"figure {self.id}: needs an alternative text")

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Artefact:
        """Inverse of `to_json`. Raises TypeError on unknown or missing keys, ValueError on wrong values."""
        columns = {k: Column(**v) for k, v in value.get("columns", {}).items()}
        lists = {k: tuple(value.get(k, ())) for k in ("data", "notes")}
        return cls(**{**value, **lists, "columns": columns})


@dataclass(frozen=True)
class Saved:
    """An artefact read back."""

    artefact: Artefact
    frame: pd.DataFrame
    svg: str = ""
    """Text of the picture; empty for a table."""


def save_table(folder: Path, artefact: Artefact, frame: pd.DataFrame) -> None:
    """Write the table's CSV, then its JSON.

    Raises ValueError when a shown column is not in the frame.
    """
    _check(artefact, frame, "table")
    _discard(folder, artefact.id)
    _save_data(folder, artefact, frame)
    write_json(folder / f"{artefact.id}.json", artefact.to_json())


def save_figure(folder: Path, artefact: Artefact, figure: Figure, frame: pd.DataFrame) -> None:
    """Write the figure's SVG, PNG and CSV, then its JSON; the same figure gives the same bytes.

    Raises ValueError when a shown column is not in the frame.
    """
    _check(artefact, frame, "figure")
    _discard(folder, artefact.id)
    # a salt instead of a random one names the SVG's ids; no date, no version: nothing but the drawing decides the bytes
    with styled(), matplotlib.rc_context({"svg.hashsalt": artefact.id, "svg.fonttype": "none"}):
        with atomic_write(folder / f"{artefact.id}.svg") as path:
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        with atomic_write(folder / f"{artefact.id}.png") as path:
            figure.savefig(path, format="png", dpi=PNG_DPI, metadata={"Software": None})
    _save_data(folder, artefact, frame)
    write_json(folder / f"{artefact.id}.json", artefact.to_json())


def save_drawing(folder: Path, artefact: Artefact, svg: str, frame: pd.DataFrame) -> None:
    """Write a figure that is an SVG already, its CSV, then its JSON."""
    _check(artefact, frame, "figure")
    _discard(folder, artefact.id)
    write_text(folder / f"{artefact.id}.svg", svg)
    _save_data(folder, artefact, frame)
    write_json(folder / f"{artefact.id}.json", artefact.to_json())


def load_artefact(folder: Path, name: str) -> Saved:
    """Read one artefact back. Raises DataError naming the file that is missing or wrong."""
    path = folder / f"{name}.json"
    try:
        artefact = Artefact.from_json(read_json(path))
        frame = pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""])
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8") if artefact.kind == "figure" else ""
    except FileNotFoundError as error:
        raise DataError(f"artefact {name}: {error.filename} is missing; run its stage again") from None
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: not an artefact: {error}; run its stage again") from None
    return Saved(artefact, frame, svg)


def load_artefacts(folder: Path) -> dict[str, Saved]:
    """Every complete artefact of a folder, by id; an absent folder holds none. Raises DataError as `load_artefact`."""
    names = sorted(p.stem for p in Path(folder).glob("*.json") if not p.name.startswith("."))
    return {name: load_artefact(folder, name) for name in names}


def _check(artefact: Artefact, frame: pd.DataFrame, kind: str) -> None:
    if artefact.kind != kind:
        raise ValueError(f"{artefact.id} is a {artefact.kind}, not a {kind}")
    named = [c for k, v in artefact.columns.items() for c in (k, v.low, v.high) if c]
    unknown = [c for c in named if c not in frame.columns]
    if unknown:
        there = ", ".join(frame.columns)
        raise ValueError(f"{artefact.id}: columns {', '.join(unknown)} are not in its frame ({there})")


def _discard(folder: Path, name: str) -> None:
    """Take back the mark of completeness before anything of the artefact changes."""
    (folder / f"{name}.json").unlink(missing_ok=True)


def _save_data(folder: Path, artefact: Artefact, frame: pd.DataFrame) -> None:
    with atomic_write(folder / f"{artefact.id}.csv") as path:
        frame.to_csv(path, index=False, lineterminator="\n")
