"""What all readers share: the raw frame, CSV text read with its faults counted, numbers, and reasons."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.columns import DTYPES
from rltune.traces.raw.csv_text import read_csv_text

__all__ = [
    "map_values",
    "missing_column",
    "numbers",
    "parse_numbers",
    "raw_frame",
    "read_csv_text",
    "reasons",
    "refuse_mostly_bad",
]


def raw_frame(columns: dict[str, Any], rows: int) -> pd.DataFrame:
    """A frame of raw columns: those given, the rest at 'not known'.

    ``gpus`` stays float here (null where the source has none); ``unusable`` is a str column of reasons.
    """
    index = pd.RangeIndex(rows)
    plain: dict[str, Any] = {"run_clamped": False, "sla": False, "resource": "gpu", "status": "unknown"}
    dtypes = {**DTYPES, "gpus": "float64", "unusable": "str", "submit_unix_s": "float64"}
    del dtypes["submit_s"]
    unknown = set(columns) - set(dtypes)
    if unknown:
        raise AssertionError(f"not raw columns: {sorted(unknown)}")
    frame = {}
    for name, dtype in dtypes.items():
        value = columns.get(name, plain.get(name))
        if isinstance(value, pd.Series):
            value = value.array  # by position, whatever the index
        if isinstance(value, pd.Categorical):
            value = np.asarray(value)
        if value is None:
            frame[name] = pd.Series(np.nan, index=index, dtype=object if dtype == "str" else dtype).astype(dtype)
        elif dtype == "str" and isinstance(value, str):
            frame[name] = pd.Series(pd.array([value], dtype="str").take(np.zeros(rows, dtype=np.intp)), index=index)
        else:
            frame[name] = pd.Series(value, index=index).astype(dtype)
    return pd.DataFrame(frame, copy=False)


def reasons(rows: int, *cases: tuple[str, Any]) -> np.ndarray:
    """First reason that holds for each row, or None. Each case is (reason, boolean mask)."""
    result = np.full(rows, None, dtype=object)
    for reason, mask in reversed(cases):
        result[np.asarray(mask, dtype=bool)] = reason
    return result


def numbers(values: pd.Series, what: str, audit: Audit, where: str | None = None) -> np.ndarray:
    """Text to float64; text that is not a finite number becomes null and is counted.

    Where ``where`` names the file, a column that holds text and mostly no numbers is an error.
    """
    parsed = parse_numbers(values)
    parsed = np.where(np.isfinite(parsed), parsed, np.nan)
    bad = np.isnan(parsed) & values.notna().to_numpy()
    if bad.any():
        bad[bad] = (values[bad].astype("str").str.strip() != "").to_numpy()
        audit.note(f"{what} not a number", bad.sum())
        if where is not None:
            refuse_mostly_bad(values, bad, f"{where}: {what}", "a number")
    return parsed


def parse_numbers(values: pd.Series) -> np.ndarray:
    """Text to float64, null where it is no number; infinities stay."""
    if isinstance(values.dtype, pd.StringDtype):
        try:
            return pc.cast(pa.array(values), pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # text in it, or numbers in a way pyarrow does not take
            pass
    return pd.to_numeric(values, errors="coerce").to_numpy("float64", na_value=np.nan)


def map_values(values: pd.Series, change: Any) -> pd.Series:
    """``change`` of every value, called once for each different one; null stays null."""
    codes, different = pd.factorize(values)
    changed = pd.array([change(v) for v in different], dtype="str")
    return pd.Series(changed.take(codes, allow_fill=True), index=values.index)


def refuse_mostly_bad(values: pd.Series, bad: np.ndarray, what: str, expected: str) -> None:
    """Raise DataError if more than half of the values given are not what is expected, with an example.

    A few such values are rows to count; if most are, the column is read in a wrong way.
    """
    given = int(values.notna().sum())
    if bad.sum() * 2 > given:
        example = str(values[bad].iloc[0])[:60]
        raise DataError(
            f"{what}: {bad.sum()} of {given} values are not {expected} (first: {example!r}). Correct the column's name "
            "in the trace's configuration, or the file."
        )


def missing_column(where: str, column: str, purpose: str, available: list[str]) -> DataError:
    """The error for a column a file does not have, naming the nearest it has."""
    lower = {c.lower(): c for c in available}
    near = [lower[c] for c in difflib.get_close_matches(column.lower(), list(lower), n=3, cutoff=0.4)]
    hint = f"nearest: {', '.join(near)}; " if near else ""
    listed = ", ".join(available[:30]) + (", …" if len(available) > 30 else "")
    return DataError(
        f"{where}: column {column!r} ({purpose}) is not in the file; {hint}its columns are: {listed}. "
        "Correct the column's name in the trace's configuration, or the file."
    )
