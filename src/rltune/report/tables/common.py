"""What the tables over cells share: which cells, which windows, which settings differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from rltune.config.cells import AXES

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

OVER_WINDOWS = "The intervals are over windows alone: what another seed of training would do they do not say."
MEAN_OF_SEEDS = f"Of an agent trained with several seeds the mean is shown. {OVER_WINDOWS}"
FIRST_SEED = "RLTune is the first agent of a workload, with its first seed."


def where(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Rows whose columns have these values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def proper(cells: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The cells of RLTune proper, and a sentence on those left out ("" where none is).

    Left out are other features or placements only where RLTune proper stands beside them in the same setting, and
    other learners only where RLTune does; what stands alone stays.
    """
    if not len(cells):
        return cells, ""
    ours = cells["agent"] == "rltune"
    pro = ours & (cells[list(PRO)] == list(PRO.values())).all(axis=1)
    beside = [a for a in AXES if a not in (*PRO, "seed")]

    def there(which: pd.Series, axes: list[str]) -> pd.Series:
        """Whether any of the cells alike in these axes is one of these."""
        return which.groupby([cells[a] for a in axes]).transform("any")

    variants = ours & ~pro & there(pro, beside)
    peers = ~ours & there(ours, [a for a in beside if a != "preset"])
    named = [
        f"{features} features with {placement} placement"
        for features, placement in cells.loc[variants, list(PRO)].itertuples(index=False, name=None)
    ]
    named += list(cells.loc[peers, "agent"])
    left = ", ".join(f"{name} ({named.count(name)})" for name in dict.fromkeys(named))
    note = (
        f"Not shown here, because RLTune proper stands beside them in the same setting: {len(named)} of "
        f"{len(cells)} agents, {left}."
        if named
        else ""
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


def told_apart(rows: pd.DataFrame, names: Sequence[str], without: Iterable[str] = ("seed",)) -> list[str]:
    """A name a row; behind those that rows of several settings share stand the values of what these differ in.

    ``without``: settings that need not be told apart.
    """
    among = [c for c in SETTINGS if c not in set(without)]
    rows = rows.reset_index(drop=True)
    told = pd.Series(list(names), dtype=object)
    for _, same in rows.groupby(told, sort=False):
        for column in varying(same, among):
            told[same.index] += ", " + same[column].astype(str)
    return told.tolist()


def constant_settings(cells: pd.DataFrame, without: Iterable[str] = ()) -> str:
    """The settings all cells share, as a sentence; "" where all differ. ``without``: settings not to name."""
    named = {c: title for c, title in SETTING_TITLE.items() if c not in set(without)}
    parts = [
        str(cells[c].iloc[0]) if c == "cluster_title" else f"{title} {cells[c].iloc[0]}"
        for c, title in named.items()
        if len(cells) and cells[c].nunique() == 1
    ]
    return f"All rows: {', '.join(parts)}." if parts else ""


def data_labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """What data the rows show, each label once."""
    return tuple(sorted(set(frame["data"]))) if len(frame) else ()


def best_measured(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the window length with the most windows, where intervals are narrowest; the index stays."""
    if not len(frame):
        return frame
    most = frame.groupby("sequence_jobs")["windows"].sum().idxmax()
    return frame[frame["sequence_jobs"] == most]


def lengths(windows: pd.DataFrame) -> list[int]:
    """Window lengths there are, longest first."""
    return sorted((int(n) for n in windows["sequence_jobs"].unique()), reverse=True)
