"""Holm's correction in tables: all improvements that a table tests are one family."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rltune.evaluation.intervals import FEWEST, holm


def with_holm(frame: pd.DataFrame, tested: Mapping[str, str]) -> pd.DataFrame:
    """The frame with Holm's correction of its p-values: all columns of ``tested`` (p → corrected) are one family.

    Rows of fewer than FEWEST windows have no verdict, hence are not tested: NaN.
    """
    there = [p for p in tested if p in frame]
    if not there:
        return frame
    values = frame[there].where(frame["windows"] >= FEWEST).to_numpy(float)
    corrected = holm(values.ravel()).reshape(values.shape)
    return frame.assign(**{tested[p]: corrected[:, i] for i, p in enumerate(there)})


def holm_note(
    frame: pd.DataFrame, tested: Mapping[str, str], what: str, confidence: float, bootstrap: int | None = None
) -> str:
    """How many of a table's differences Holm's correction leaves; "" where none was tested.

    ``bootstrap``: resamples that the p-values come from, where too few of them are to be told of.
    """
    corrected = frame[[c for c in tested.values() if c in frame]]
    count, level = int(corrected.notna().sum().sum()), round(1 - confidence, 9)
    if not count:
        return ""
    return (
        f"Holm p: two-sided bootstrap p-values of the {count} improvements {what} in this table, corrected for "
        f"their number; {int((corrected < level).sum().sum())} are below {level:g}."
        + (
            " None could be: for so many, evaluation.bootstrap has too few resamples."
            if bootstrap and count / (bootstrap + 1) >= level
            else ""
        )
    )
