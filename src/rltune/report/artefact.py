"""An artefact: one table or figure of the report, with its data, caption and provenance, as files.

``<id>.csv`` holds the data, ``<id>.svg`` and ``<id>.png`` the picture of a figure, ``<id>.json`` everything
needed to show it. The JSON is written last: without it the artefact does not exist.
"""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Annotated, Literal

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from rltune.config.messages import first_error
from rltune.errors import DataError
from rltune.files import atomic_write, read_json, write_json, write_text
from rltune.report.format import FORMATS
from rltune.report.style import styled

PNG_DPI = 200


def _format(name: str) -> str:
    if name not in FORMATS:
        raise ValueError(f"format {name!r}, expected one of {', '.join(FORMATS)}")
    return name


@dataclass(frozen=True, config={"extra": "forbid"})
class Column:
    """How one column of an artefact's frame is shown."""

    heading: str
    """Its heading."""
    unit: str = ""
    """Unit, shown next to the heading."""
    format: Annotated[str, AfterValidator(_format)] = "text"
    """One of `rltune.report.format.FORMATS`."""
    group: str = ""
    """Heading over this and its neighbours of the same group."""
    low: str = ""
    """Column with the lower end of this one's interval; shown in the same cell."""
    high: str = ""
    """Column with its upper end."""
    help: str = ""
    """One sentence that explains it."""


@dataclass(frozen=True, config={"extra": "forbid"})
class Artefact:
    """A table or figure of the report."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    """Its name in files, links and on the page: `table2`, `fig11`."""
    kind: Literal["table", "figure"]
    """What it is."""
    title: str
    """Its heading."""
    caption: str
    """Its caption."""
    paper_ref: str = ""
    """The paper's artefact it corresponds to ("Table 2"); empty when it is ours alone."""
    data: tuple[str, ...] = ()
    """What rows it shows: synthetic, sample, full, own."""
    source: str = ""
    """Name of the executed notebook's page it was made in ("figures")."""
    columns: dict[str, Column] = Field(default_factory=dict)
    """Column of the frame → how it is shown; columns without an entry are in the CSV only."""
    notes: tuple[str, ...] = ()
    """Remarks that a reader needs before relying on it."""
    alt: str = ""
    """A figure's alternative text."""

    @model_validator(mode="after")
    def _figures_have_words(self) -> Artefact:
        if self.kind == "figure" and not self.alt:
            raise ValueError(f"figure {self.id}: needs an alternative text")
        return self


Table = tuple[Artefact, pd.DataFrame]
"""The result of a function that makes a table."""
Drawing = tuple[Artefact, pd.DataFrame, Figure | str]
"""The result of a function that makes a figure; a str is an SVG."""


@dataclasses.dataclass(frozen=True)
class Saved:
    """An artefact read back."""

    artefact: Artefact
    frame: pd.DataFrame
    svg: str = ""
    """Text of the picture; empty for a table."""


def save(folder: Path, artefact: Artefact, frame: pd.DataFrame, picture: Figure | str | None = None) -> None:
    """Write an artefact's CSV, of a figure its picture (SVG and PNG; or the SVG that it is), then its JSON.

    The same figure gives the same bytes. Raises ValueError when a shown column is not in the frame.
    """
    named = [c for k, v in artefact.columns.items() for c in (k, v.low, v.high) if c]
    if unknown := [c for c in named if c not in frame.columns]:
        known = ", ".join(frame.columns)
        raise ValueError(f"{artefact.id}: columns {', '.join(unknown)} are not in its frame ({known})")
    description = folder / f"{artefact.id}.json"
    description.unlink(missing_ok=True)  # without it the artefact is incomplete until all is written
    if isinstance(picture, Figure):
        for kind in ("svg", "png"):
            save_picture(folder / f"{artefact.id}.{kind}", picture, artefact.id)
    elif picture is not None:
        write_text(folder / f"{artefact.id}.svg", picture)
    with atomic_write(folder / f"{artefact.id}.csv") as path:
        frame.to_csv(path, index=False, lineterminator="\n")
    write_json(description, dataclasses.asdict(artefact))


def save_picture(path: Path, figure: Figure, salt: str) -> None:
    """Write a figure as .svg or .png. No date, no version, and ids of the SVG by ``salt``: only the drawing decides the
    bytes."""
    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    with (
        styled(),
        matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}),
        atomic_write(path) as temporary,
    ):
        figure.savefig(temporary, format=path.suffix[1:], dpi=PNG_DPI, metadata=metadata)


def load_artefact(folder: Path, name: str) -> Saved:
    """Read one artefact back. Raises DataError naming the file that is missing or wrong."""
    path = folder / f"{name}.json"
    try:
        artefact = TypeAdapter(Artefact).validate_python(read_json(path))
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")  # without a row there may be no column
        frame = (
            pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""]) if text.strip() else pd.DataFrame()
        )
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8") if artefact.kind == "figure" else ""
    except FileNotFoundError as error:
        raise DataError(f"artefact {name}: {error.filename} is missing; run its stage again") from None
    except ValueError as error:
        wrong = first_error(error) if isinstance(error, ValidationError) else error
        raise DataError(f"{path}: not an artefact: {wrong}; run its stage again") from None
    return Saved(artefact, frame, svg)
