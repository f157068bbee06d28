"""What tables and figures over cells share: which cells, which windows, which settings differ, how gains are shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from rltune.config.cells import AXES
from rltune.config.run import RunConfig
from rltune.evaluation.compare import where as where
from rltune.evaluation.intervals import CONFIDENCE, FEWEST, holm
from rltune.report.artefact import Column
from rltune.report.style import policy_title, scheduler_title
from rltune.report.templates import fill

PRO = {"features": "engineered", "placement": "lookahead"}
NAIVE = {"features": "raw", "placement": "best_fit"}
"""The paper's two variants (Section 5.1), with best-fit in place of whole nodes."""
NAIVE_PAPER = {"features": "raw", "placement": "exclusive"}
"""The paper's naive variant as printed: every job has its nodes to itself."""

SETTING_TITLE = {
    "cluster_title": "cluster",
    "backfill": "backfilling",
    "placement": "placement",
    "locality": "locality",
    "features": "features",
    "metric": "trained for",
    "estimate": "run-time estimates",
    "preset": "training preset",
    "seed": "seed",
}
SETTINGS = tuple(SETTING_TITLE)

ABLATION_SETTING = [a for a in AXES if a not in (*PRO, "seed")]
"""Axes in which the variants of an ablation agree."""
ABOUT = ("trace_title", "trace", "paper_trace", "data", "policy", *SETTING_TITLE, "cell")
NAN = float("nan")


def about(cells: pd.DataFrame | pd.Series) -> dict[str, Any]:
    """The columns that say which cell a row is of, and its base policy's title as `base`; of cells that differ by seed
    those of the first, and all seeds."""
    if isinstance(cells, pd.DataFrame):
        return about(cells.iloc[0]) | {"seed": ", ".join(map(str, cells["seed"]))}
    return {**{k: cells[k] for k in ABOUT if k in cells}, "base": policy_title(cells["policy"])}


def planned_cells(config: RunConfig) -> pd.DataFrame:
    """A row per cell of a configuration: its name as `cell`, every axis, and its `agent`."""
    return pd.DataFrame([{"cell": c.name, **asdict(c), "agent": config.preset(c.preset).agent} for c in config.cells()])


def scheduler_titles(rows: pd.DataFrame) -> pd.Series:
    """`SAF + EASY`, `FIFO`: a name for each row's policy and backfill rule."""
    return pd.Series(list(map(scheduler_title, rows["policy"], rows["backfill"])), rows.index, dtype=object)


def gain(name: str, found: Any, value: str = "improvement", prefix: str = "") -> dict[str, float]:
    """An improvement with interval and p-value as columns: ``name``, and `low`, `high`, `p` behind ``prefix``."""
    return {name: getattr(found, value), **{f"{prefix}{k}": getattr(found, k) for k in ("low", "high", "p")}}


def setting_columns(cells: pd.DataFrame, without: Iterable[str] = ()) -> dict[str, Column]:
    """A column for each setting in which the cells differ."""
    return {
        c: Column(SETTING_TITLE[c].capitalize(), format="plain-int" if c == "seed" else "text")
        for c in varying(cells)
        if c not in set(without)
    }


def with_holm(frame: pd.DataFrame, tested: Mapping[str, str]) -> pd.DataFrame:
    """The frame with Holm's correction of its p-values: all columns of ``tested`` (p → corrected) are one family.

    Rows with fewer than FEWEST windows have no verdict, so they are not tested: NaN.
    """
    present = [p for p in tested if p in frame]
    if not present:
        return frame
    values = frame[present].where(frame["windows"] >= FEWEST).to_numpy(float)
    corrected = holm(values.ravel()).reshape(values.shape)
    return frame.assign(**{tested[p]: corrected[:, i] for i, p in enumerate(present)})


def holm_note(frame: pd.DataFrame, tested: Mapping[str, str], what: str, bootstrap: int | None = None) -> str:
    """How many of a table's differences stay significant after Holm's correction; "" where none was tested.

    ``bootstrap``: number of resamples, to warn where it is too small for that many tests.
    """
    corrected = frame[[c for c in tested.values() if c in frame]]
    level = round(1 - CONFIDENCE, 9)
    count, below = int(corrected.notna().sum().sum()), int((corrected < level).sum().sum())
    return fill("holm.j2", count=count, below=below, level=level, what=what, bootstrap=bootstrap)


def with_variants(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the settings that have RLTune proper and at least one other variant of the ablation, naive first."""
    features = (PRO["features"], NAIVE["features"])
    chosen = cells[(cells["agent"] == "rltune") & cells["features"].isin(features)]
    parts = [
        group.sort_values([*PRO, "seed"], ascending=[False, True, True])
        for _, group in chosen.groupby(ABLATION_SETTING, sort=False)
        if len(where(group, **PRO)) and len(group[list(PRO)].drop_duplicates()) > 1
    ]
    return pd.concat(parts, ignore_index=True) if parts else chosen[:0]


def without_variants(cells: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The cells of RLTune proper, and a sentence on those left out ("" where none is).

    An agent with other features or placement is left out only where the same setting has an agent of RLTune proper,
    another learner only where it has one of RLTune.
    """
    if not len(cells):
        return cells, ""
    ours = cells["agent"] == "rltune"
    pro = ours & (cells[list(PRO)] == list(PRO.values())).all(axis=1)

    def in_setting(agents: pd.Series, axes: list[str]) -> pd.Series:
        """Whether any of these agents is in the cell's setting, which ``axes`` make up."""
        return agents.groupby([cells[a] for a in axes]).transform("any")

    variants = ours & ~pro & in_setting(pro, ABLATION_SETTING)
    peers = ~ours & in_setting(ours, [a for a in ABLATION_SETTING if a != "preset"])
    if not (variants | peers).any():
        return cells, ""
    titles = cells["features"] + " features with " + cells["placement"] + " placement"
    names = pd.concat([titles[variants], cells.loc[peers, "agent"]])
    left = ", ".join(f"{name} ({count})" for name, count in names.groupby(names, sort=False).size().items())
    note = (
        f"Not shown here, because an agent of RLTune proper has the same setting: {len(names)} of "
        f"{len(cells)} agents, {left}."
    )
    return cells[~(variants | peers)], note


def varying(cells: pd.DataFrame, among: Iterable[str] = SETTINGS) -> list[str]:
    """Settings in which the cells differ beyond what the trace decides.

    A cluster that always goes with the same trace is no setting of its own.
    """
    return [
        c
        for c in among
        if cells[c].nunique() > 1 and not (c == "cluster_title" and cells.groupby("trace")[c].nunique().max() == 1)
    ]


def distinct_names(rows: pd.DataFrame, names: Sequence[str], without: Iterable[str] = ("seed",)) -> list[str]:
    """A name for each row; where rows of several settings share one, it ends with what distinguishes these: a single
    setting if one suffices, preferably the preset, else all in which they differ.

    ``without``: settings that need not be distinguished.
    """
    among = [c for c in SETTINGS if c not in set(without)]
    rows = rows.reset_index(drop=True)
    found = pd.Series(list(names), dtype=object)
    for _, same in rows.groupby(found, sort=False):
        differ = varying(same, among)
        settings = len(same[differ].drop_duplicates())
        alone = [column for column in differ if same[column].nunique() == settings]
        for column in alone[-1:] or differ:
            found[same.index] += ", " + same[column].astype(str)
    return found.tolist()


def constant_settings(cells: pd.DataFrame, without: Iterable[str] = ()) -> str:
    """The settings all cells share, as a sentence; "" where all differ. ``without``: settings not to name."""
    named = {c: title for c, title in SETTING_TITLE.items() if c not in set(without)}
    parts = [
        str(cells[c].iloc[0]) if c == "cluster_title" else f"{title} {cells[c].iloc[0]}"
        for c, title in named.items()
        if len(cells) and cells[c].nunique() == 1
    ]
    return f"All rows: {', '.join(parts)}." if parts else ""


def best_measured(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the window length with the most windows, where intervals are narrowest; the index stays."""
    if not len(frame):
        return frame
    most = frame.groupby("sequence_jobs")["windows"].sum().idxmax()
    return frame[frame["sequence_jobs"] == most]


def lengths(windows: pd.DataFrame) -> list[int]:
    """Window lengths, longest first."""
    return sorted((int(n) for n in windows["sequence_jobs"].unique()), reverse=True)
