"""Helpers of all readers: the raw frame, numbers, reasons why a row is no job, and whole GPUs."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rltune.config.trace import GpuShare
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.columns import DTYPES

RAW = {name: dtype for name, dtype in DTYPES.items() if name != "submit_s"}
RAW |= {"submit_unix_s": "float64", "gpus": "float64", "unusable": "str"}
"""Raw columns and their types: ``gpus`` is null where the source has none, ``status`` where it has none in any row;
``unusable`` is a reason."""
_PLAIN = {"run_clamped": False, "sla": False, "resource": "gpu"}


def raw_frame(columns: dict[str, Any], rows: int) -> pd.DataFrame:
    """A frame of raw columns: those given, the rest at 'not known'."""
    if unknown := set(columns) - set(RAW):
        raise AssertionError(f"not raw columns: {sorted(unknown)}")
    index, frame = pd.RangeIndex(rows), {}
    for name, dtype in RAW.items():
        value = columns.get(name)
        value = _PLAIN.get(name, np.nan) if value is None else value
        value = value.array if isinstance(value, pd.Series) else value  # by position, whatever the index
        frame[name] = pd.Series(value, index=index).astype(dtype)
    if columns.get("status") is not None:
        frame["status"] = frame["status"].fillna("unknown")
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
        comma = values[bad].astype("str").str.fullmatch(r"\s*-?\d+(,\d+)+(\.\d*)?\s*")
        audit.note(f"{what} not a number", bad.sum() - comma.sum())
        audit.note(f"{what} not a number, for its comma", comma.sum())
        if where is not None:
            refuse_mostly_bad(values, bad, f"{where}: {what}", "a number")
    return parsed


def parse_numbers(values: pd.Series) -> np.ndarray:
    """Text to float64, null where it is no number; infinities stay."""
    try:  # several times as fast as pandas
        return pc.cast(pa.array(values), pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # text in it, or numbers in a way pyarrow does not take
        return pd.to_numeric(values, errors="coerce").to_numpy("float64", na_value=np.nan)


def refuse_mostly_bad(values: pd.Series, bad: np.ndarray, what: str, expected: str) -> None:
    """Raise DataError if more than half of the values given are not what is expected, with an example.

    A few such values are rows to count; if most are, the column is read in a wrong way.
    """
    given = int(values.notna().sum())
    if bad.sum() * 2 > given:
        example = str(values[bad].iloc[0])[:60]
        raise DataError(f"{what}: {bad.sum()} of {given} values are not {expected} (first: {example!r}).")


LEFT_OUT = "asks for a share of a GPU (gpu_share: leave_out)"
_SLACK = 1e-9
"""Keeps a sum of hundredths such as 3.0000000000000004 from becoming 4."""


def whole_gpus(gpus: np.ndarray, rule: GpuShare, audit: Audit) -> tuple[np.ndarray, np.ndarray]:
    """Whole GPUs of each job (float64; null where unknown), and which jobs are to be left out for their share.

    The simulator allocates whole GPUs, so a job that asked for 0.46 of one, or for three instances of half of one each,
    gets whole ones (``round_up``: 1 and 2, the total rounded up), or is left out (``leave_out``).

    Args:
        gpus: GPUs of the job, perhaps with a share (PAI: instances × plan_gpu / 100).
        rule: ``TraceConfig.gpu_share``.
        audit: gets the number of shares rounded; jobs left out are the caller's to give a reason (:data:`LEFT_OUT`).
    """
    parted = np.abs(gpus - np.round(gpus)) > _SLACK
    if rule == "leave_out":
        return np.where(parted, np.nan, np.round(gpus)), parted
    audit.note("share of a GPU rounded up to whole GPUs", parted.sum())
    return np.ceil(gpus - _SLACK), np.zeros(len(gpus), dtype=bool)
