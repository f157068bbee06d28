"""The paper’s own numbers, and where the software departs from the paper and its released code: two files of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from rltune.config.base import Block
from rltune.config.load import read_block


class PaperEntry(Block):
    """One printed figure."""

    value: float | None = None
    """The number; null where the paper only says it in words."""
    text: str | None = None
    """The words, where there is no number."""
    unit: str = ""
    """Unit of the number; `fraction` is a relative improvement (0.25: 25 % better)."""
    where: str = ""
    """Section, table or figure; default: the artefact's."""
    note: str = ""
    """What else one must know of it."""

    @model_validator(mode="after")
    def _number_or_words(self) -> PaperEntry:
        if (self.value is None) == (self.text is None):
            raise ValueError("give either `value` or `text`")
        if self.value is not None and not self.unit:
            raise ValueError("a value needs its `unit`")
        return self


class PaperItem(Block):
    """A table, figure or section of the paper."""

    title: str
    """What it shows."""
    where: str
    """What the paper calls it."""
    base_policies: dict[str, list[str]] = {}
    """Trace → base policies of the agents that it shows; with the metric before, where it has several: `bsld.fifo`."""


class PaperArtefact(PaperItem):
    """One that prints numbers."""

    entries: dict[str, PaperEntry] = Field(min_length=1)
    """Dotted key → printed figure."""


class PaperPicture(PaperItem):
    """One that prints none."""

    says: str = ""
    """What the paper's text says of it, in our words."""


class PaperScheduler(Block):
    """A row of the paper's Table 1: `yes`, `no` or a word between."""

    name: str
    """The scheduler."""
    decides_by: str
    """Its strategy."""
    gpu_types: str
    """Whether it knows that GPUs differ."""
    application_agnostic: str
    """Whether it does without knowing what a job computes."""
    no_profiling: str
    """Whether it does without measurements or models of jobs made beforehand."""
    adapts: str
    """Whether its policy changes with what happens."""
    preempts: str
    """Whether it stops running jobs for others."""
    elastic: str
    """Whether it changes how many GPUs a running job has."""


class Contradiction(Block):
    """Two things the paper prints that cannot both be right."""

    where: str
    """Sections and tables."""
    text: str
    """What disagrees."""


class PaperResults(Block):
    """All of it."""

    source: str
    """The paper."""
    aliases: dict[str, list[str]]
    """The paper's name of a trace → parts of names that mean it."""
    artefacts: dict[str, PaperArtefact]
    """Artefact id → its figures."""
    schedulers: list[PaperScheduler]
    """Table 1."""
    without_figures: dict[str, PaperPicture]
    """Artefact id → the artefact, where it prints no number."""
    contradictions: list[Contradiction]
    """The paper against itself."""

    @property
    def gpu_traces(self) -> list[str]:
        """The traces on whose jobs the paper trains its agents."""
        return list(self.artefacts["fig12"].base_policies)

    def find(self, artefact: str, *key: object) -> PaperEntry | None:
        """The printed figure, or None where the paper has none. Raises KeyError for an artefact that the file does not have."""
        return self.artefacts[artefact].entries.get(".".join(map(str, key)))

    def value(self, artefact: str, *key: object) -> float:
        """The printed number. Raises KeyError where there is none."""
        entry = self.find(artefact, *key)
        if entry is None or entry.value is None:
            raise KeyError(f"{artefact}.{'.'.join(map(str, key))}")
        return entry.value

    def number(self, artefact: str, *key: object) -> float:
        """The printed number, NaN where the paper has none. Raises KeyError as `find` does."""
        entry = self.find(artefact, *key)
        return float("nan") if entry is None or entry.value is None else entry.value

    def where(self, artefact: str, *key: object) -> str:
        """Section or table a figure is printed in. Raises KeyError as `find` does."""
        entry = self.find(artefact, *key)
        return (entry.where if entry else "") or self.artefacts[artefact].where

    def ref(self, artefact: str) -> str:
        """What the paper calls an artefact ("Table 2"). Raises KeyError where it has no such artefact."""
        if artefact in self.without_figures:
            return self.without_figures[artefact].where
        return self.artefacts[artefact].where

    def trace(self, name: str, data: str = "") -> str:
        """The paper's name of one of our traces (by file name or title), or "" where it has no such trace: a user's own log
        (``data``: own) is none, whatever it is called."""
        lower = name.lower()
        known = (p for p, parts in self.aliases.items() if data != "own" and any(part in lower for part in parts))
        return next(known, "")


def load_paper(path: Path | str) -> PaperResults:
    """Read the paper's numbers. Raises ConfigError naming file, line and key for every mistake in the file."""
    return read_block(Path(path), PaperResults)


class Deviation(Block):
    """One departure."""

    title: str
    """What it is about."""
    of: Literal["paper", "release", "both"]
    """What it departs from."""
    theirs: str
    """What the paper or the released code does."""
    ours: str
    """What this software does."""
    why: str
    """The reason."""
    evidence: list[str] = Field(min_length=1)
    """`#id` of an artefact of the report, a document, or `tests/….py::test_name`."""

    @property
    def artefacts(self) -> list[str]:
        """Ids of the artefacts that show it."""
        return [item[1:] for item in self.evidence if item.startswith("#")]

    @property
    def files(self) -> list[str]:
        """Documents, and tests with their names, from the project's root."""
        return [item for item in self.evidence if not item.startswith("#")]


class Deviations(Block):
    """All of them."""

    deviations: list[Deviation] = Field(min_length=1)
    """In the order of the page."""


def load_deviations(path: Path | str) -> list[Deviation]:
    """Read them. Raises ConfigError naming file, line and key for every mistake in the file."""
    return read_block(Path(path), Deviations).deviations
