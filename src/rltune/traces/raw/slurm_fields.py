"""Parse Slurm's fields, one column at a time: durations, TRES and GRES lists, amounts of memory.

A log has many jobs and few different lists, limits and amounts, so each different text is taken apart once.

Facts from Slurm's manual pages (sacct, sbatch, slurm.conf). Sizes have 1,024 as their base: 1G is 1,024 MiB.
"""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from rltune.traces.gres import gpus

WAITING = frozenset({"PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
"""States of jobs that hold no nodes and may start later."""
RUNNING = frozenset(
    {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}
)
"""States of jobs that hold nodes."""
NO_VALUE = ("", "Unknown", "None", "N/A", "(null)", "UNLIMITED", "Partition_Limit", "INVALID")
"""Texts that mean a value is not there; a limit of UNLIMITED or the partition's is no estimate of the user's."""
MIB = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "": 1.0}
"""Suffix → MiB. Slurm counts memory in MiB where it writes no suffix."""
PLAIN = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50, "": 1.0}
_DURATION = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2}(?:\.\d+)?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([nc]?)")


def each(text: pd.Series, parse: Callable[[str], float]) -> np.ndarray:
    """``parse`` of every text (float64), called with each different one once; null stays null."""
    return text.map({t: parse(t) for t in text.dropna().unique()}).to_numpy(np.float64)


def seconds(text: pd.Series) -> np.ndarray:
    """``hh:mm:ss``, ``mm:ss``, seconds or, with days, ``d-hh[:mm[:ss]]``, the last part with or without a fraction, to seconds; null
    for anything else."""

    def parse(one: str) -> float:
        match = _DURATION.fullmatch(one.strip())
        if match is None:
            return np.nan
        parts = [*map(float, match[2].split(":"))]
        hours, minutes, rest = [*parts, 0.0, 0.0][:3] if match[1] else [0.0, 0.0, *parts][-3:]
        return float(match[1] or 0) * 86_400 + hours * 3_600 + minutes * 60 + rest

    return each(text, parse)


def state(text: pd.Series) -> pd.Series:
    """States without what Slurm adds to them: who cancelled a job (``CANCELLED by 1000``), the ``+`` of a cut column."""
    return text.str.strip().str.replace(r"\s+by\s.*$|\+$", "", regex=True)


def without_placeholders(text: pd.Series) -> pd.Series:
    """The column with null in the place of Slurm's words for no value."""
    text = text.str.strip()
    return text.mask(text.isin(NO_VALUE))


def tres(text: pd.Series, name: str, units: dict[str, float]) -> np.ndarray:
    """The amount of one resource in a TRES list (``billing=8,cpu=8,gres/gpu=4,mem=64G,node=2``); null where absent."""
    entry = re.compile(rf"(?:^|,){name}=(\d+(?:\.\d+)?)([KMGTP]?)n?(?=,|$)")

    def parse(one: str) -> float:
        match = entry.search(one)
        return float(match[1]) * units[match[2]] if match else np.nan

    return each(text, parse)


def gpus_of(text: pd.Series) -> tuple[np.ndarray, pd.Series, np.ndarray, np.ndarray]:
    """Of TRES or GRES lists: GPUs (0 where a list names none, null where there is none), GPU type, whether types mix,
    and whether an entry cannot be read: GPUs are those of ``gres/gpu=`` alone then."""
    found = {one: _gpus(one) for one in text.dropna().unique()}
    count = each(text, lambda one: np.nan if (gpus := found[one]) is None else sum(gpus.values()))
    odd = np.isnan(count) & text.notna().to_numpy()
    count = np.where(odd, np.ceil(tres(text, "gres/gpu", PLAIN)), count)
    types = {one: [name for name in gpus or () if name] for one, gpus in found.items()}
    kind = text.map({one: names[0] for one, names in types.items() if len(names) == 1}).astype("str")
    return count, kind, text.isin([one for one, names in types.items() if len(names) > 1]).to_numpy(), odd


def _gpus(text: str) -> dict[str, int] | None:
    try:
        return gpus(text)
    except ValueError:
        return None


def req_mem_mib(text: pd.Series, nodes: np.ndarray, cpus: np.ndarray) -> np.ndarray:
    """ReqMem to MiB in all: ``64G`` in all; up to Slurm 21.08 ``4Gn`` per node, ``2Gc`` per CPU; null where unknown."""

    def parse(one: str) -> float:
        match = _MEMORY.fullmatch(one.strip())
        return float(match[1]) * MIB[match[2]] if match else np.nan

    per = text.str.strip().str[-1:]
    return each(text, parse) * np.where(per == "n", nodes, np.where(per == "c", cpus, 1.0))
