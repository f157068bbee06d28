"""What Slurm writes into single fields: durations, TRES and GRES lists, amounts of memory. One column at a time.

A log has many jobs and few different lists, limits and amounts, so each different text is taken apart once.

Facts from Slurm's manual pages (sacct, sbatch, slurm.conf). Sizes have 1,024 as their base: 1G is 1,024 MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd

from rltune.traces.gres import gpus

NOT_GIVEN = ("", "Unknown", "None", "N/A", "(null)", "UNLIMITED", "Partition_Limit", "INVALID")
"""Texts that mean a value is not there; a limit of UNLIMITED or the partition's is no estimate of the user's."""
MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "": 1.0}
"""Suffix → MiB. Slurm counts memory in MiB where it writes no suffix."""
PLAIN = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50, "": 1.0}
_DURATION = r"^(?:(?P<d>\d+)-)?(?:(?:(?P<h>\d+):)?(?P<m>\d+):)?(?P<s>\d+(?:\.\d+)?)$"


def _once_a_text(parse: Callable[..., Any]) -> Callable[..., Any]:
    """``parse`` of a column, called with each of its different texts once; the results go back to their rows."""

    @wraps(parse)
    def whole(text: pd.Series, *args: Any) -> Any:
        codes, different = pd.factorize(text, use_na_sentinel=False)
        found = parse(pd.Series(different, dtype="str"), *args)

        def back(values: Any) -> Any:
            if isinstance(values, pd.Series):
                return pd.Series(values.array.take(codes), index=text.index)
            return values[codes]

        return tuple(map(back, found)) if isinstance(found, tuple) else back(found)

    return whole


@_once_a_text
def seconds(text: pd.Series) -> np.ndarray:
    """``[d-]hh:mm:ss``, ``mm:ss`` or seconds, each with or without a fraction, to seconds; null for anything else."""
    parts = text.str.strip().str.extract(_DURATION).astype("float64").fillna({"d": 0.0, "h": 0.0, "m": 0.0})
    return (parts["d"] * 86_400 + parts["h"] * 3_600 + parts["m"] * 60 + parts["s"]).to_numpy("float64")


def state(text: pd.Series) -> pd.Series:
    """States without what Slurm adds to them: who cancelled a job (``CANCELLED by 1000``), the ``+`` of a cut column."""
    return text.str.strip().str.replace(r"\s+by\s.*$|\+$", "", regex=True)


def given(text: pd.Series) -> pd.Series:
    """The column with null wherever Slurm says that there is no value."""
    text = text.str.strip()
    return text.mask(text.isin(NOT_GIVEN))


@_once_a_text
def tres(text: pd.Series, name: str, units: dict[str, float]) -> np.ndarray:
    """The amount of one resource in a TRES list (``billing=8,cpu=8,gres/gpu=4,mem=64G,node=2``); null where absent."""
    parts = text.str.extract(rf"(?:^|,){name}=(?P<count>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)n?(?=,|$)")
    return _amount(parts, units)


@_once_a_text
def gpus_of(text: pd.Series) -> tuple[np.ndarray, pd.Series, np.ndarray, np.ndarray]:
    """Of TRES or GRES lists: GPUs (0 where a list names none, null where there is none), GPU type, whether types mix,
    and whether an entry cannot be read: GPUs are those of ``gres/gpu=`` alone then."""
    found = [_gpus(one) if isinstance(one, str) else None for one in text]
    count = np.array([np.nan if one is None else float(sum(one.values())) for one in found])
    odd = np.isnan(count) & text.notna().to_numpy()
    count = np.where(odd, np.ceil(tres(text, "gres/gpu", PLAIN)), count)
    named = [[name for name in one or () if name] for one in found]
    kind = pd.Series([names[0] if len(names) == 1 else None for names in named], index=text.index, dtype="str")
    return count, kind, np.array([len(names) > 1 for names in named], bool), odd


def _gpus(text: str) -> dict[str, int] | None:
    try:
        return gpus(text)
    except ValueError:
        return None


def req_mem_mib(text: pd.Series, nodes: np.ndarray, cpus: np.ndarray) -> np.ndarray:
    """ReqMem to MiB in all: ``64G`` in all; up to Slurm 21.08 ``4Gn`` per node, ``2Gc`` per CPU; null where unknown."""
    amount, per = _per_node_or_cpu(text)
    return amount * np.where(per == "n", nodes, np.where(per == "c", cpus, 1.0))


@_once_a_text
def _per_node_or_cpu(text: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    parts = text.str.strip().str.extract(r"^(?P<count>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)$")
    return _amount(parts, MIB), parts["per"].to_numpy(object)


def _amount(parts: pd.DataFrame, units: dict[str, float]) -> np.ndarray:
    return parts["count"].astype("float64").to_numpy() * parts["unit"].map(units).to_numpy("float64", na_value=np.nan)
