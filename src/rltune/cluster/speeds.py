"""How fast jobs run on each GPU type: a measured profile, or one ratio a type, and which model a job trains.

A profile is a CSV file: ``model``, ``gpus``, ``gpu_type``, ``consolidated_steps_per_s`` (on as few nodes as possible) and
``unconsolidated_steps_per_s`` (spread over more; empty: not measured, taken to be the same). 0: the model does not run
there, for example because of its memory. The
profile that ships, ``gavel``, was measured by Narayanan et al. (OSDI 2020) on K80, P100 and V100.

A job whose trace does not name its model is given one by its id, each model measured at its number of GPUs that runs on a
type it may use with the same chance, as Gavel's generator of jobs does where every model runs on every type. That is an assumption, not data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.errors import DataError
from rltune.traces.columns import job_uniform
from rltune.traces.raw.archive import BROKEN

GAVEL = Path(__file__).parents[1] / "data" / "gavel_throughputs.csv"
STEPS = ["consolidated_steps_per_s", "unconsolidated_steps_per_s"]
COLUMNS = ["model", "gpus", "gpu_type", *STEPS]
MOST_GPUS = 1_000_000
"""Of one job: more is a mistake in the file."""


@dataclass(frozen=True)
class Profile:
    """Steps per second of models on numbers of GPUs of each type."""

    path: str
    models: tuple[str, ...]
    gpus: np.ndarray
    """[G] int64, ascending."""
    types: tuple[str, ...]
    """In lower case."""
    steps: np.ndarray
    """[models, G, types, 2] float64: consolidated, spread; NaN where not measured, 0 where the model does not run."""

    def at(self, model: str, gpus: int, types: Sequence[str]) -> np.ndarray:
        """Steps per second of a model on these types [T, 2], measured with ``gpus`` GPUs or the next fewer; 0 where it does not
        run or was not measured."""
        size = max(int(np.searchsorted(self.gpus, gpus, side="right")) - 1, 0)
        return np.nan_to_num(self.steps[self.models.index(model), size, self.numbers(types)], nan=0.0)

    def mean_speed(self, types: Sequence[str]) -> np.ndarray:
        """[T] float64, of all models and numbers of GPUs, each relative to its fastest of these types."""
        there = np.nan_to_num(self.steps[:, :, self.numbers(types), 0], nan=0.0)
        measured = there[(there > 0).any(axis=2)]
        return (measured / measured.max(axis=1, keepdims=True)).mean(axis=0)

    def numbers(self, types: Sequence[str]) -> list[int]:
        """Of these types among the profile's."""
        return [self.types.index(kind.lower()) for kind in types]


@dataclass(frozen=True)
class Slowdowns:
    """How many times as long each job runs on each type of a cluster as where it was recorded; ∞ where it does not run."""

    consolidated: np.ndarray
    """[J, T] float64, on as few nodes as possible."""
    spread: np.ndarray
    """[J, T] float64, on more nodes."""
    model: np.ndarray
    """[J] object, names; empty where all models have one speed."""
    mean_speed: np.ndarray
    """[T] float64, of the models of the profile, each relative to its fastest type."""

    def fastest(self, able: np.ndarray) -> np.ndarray:
        """The least of the slowdowns of each job [J], on the types where it is ``able`` [J, T] to run."""
        return np.where(able, np.minimum(self.consolidated, self.spread), np.inf).min(axis=1)


def profile_of(name: str, root: Path = Path()) -> Path:
    """The file that ``speeds`` name; a relative path starts from ``root``."""
    return GAVEL if name == "gavel" else root / name


def read_profile(path: Path) -> Profile:
    """Read a profile.

    Raises:
        DataError: naming file, model and type: a column that is missing, a value that is no number or negative, a row
            twice, a model that was measured nowhere.
    """
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError, *BROKEN) as error:
        raise DataError(f"{path}: not a profile of speeds: {error}") from None
    if missing := [name for name in COLUMNS if name not in table]:
        raise DataError(f"{path}: no column {', '.join(missing)}; found {', '.join(map(str, table.columns))}")
    if table.empty:
        raise DataError(f"{path}: found a header only, expected a row for each model, number of GPUs and GPU type")
    table = table.assign(model=table["model"].astype(str), gpu_type=table["gpu_type"].astype(str).str.lower())
    numbers = table[["gpus", *STEPS]].apply(pd.to_numeric, errors="coerce")
    empty = table[STEPS[1]].isna()
    numbers.loc[empty, STEPS[1]] = numbers.loc[empty, STEPS[0]]
    wrong = ~np.isfinite(numbers).all(axis=1) | (numbers < 0).any(axis=1)
    wrong |= ~numbers["gpus"].between(1, MOST_GPUS) | (numbers["gpus"] % 1 > 0)
    wrong |= (numbers[STEPS[0]] > 0) != (numbers[STEPS[1]] > 0)
    wrong |= table[["model", "gpu_type"]].isna().any(axis=1)
    if wrong.any():
        row = table[wrong].iloc[0]
        found = ", ".join(f"{name} {row[name]}" for name in ["gpus", *STEPS])
        raise DataError(
            f"{path}: model {row['model']!r} on {row['gpu_type']}: found {found}, expected both names, numbers of 0 or more, whole gpus "
            f"from 1 to {MOST_GPUS:,}, and speeds that are both 0 or neither"
        )
    table[["gpus", *STEPS]] = numbers
    if (twice := table.duplicated(["model", "gpus", "gpu_type"])).any():
        row = table[twice].iloc[0]
        raise DataError(f"{path}: model {row['model']!r} with {row['gpus']:g} GPUs on {row['gpu_type']}: found twice")
    models, gpus, types = (tuple(sorted(table[name].unique())) for name in ("model", "gpus", "gpu_type"))
    steps = np.full((len(models), len(gpus), len(types), 2), np.nan)
    at = (table["model"].map(models.index), table["gpus"].map(gpus.index), table["gpu_type"].map(types.index))
    steps[tuple(np.asarray(a, np.int64) for a in at)] = table[STEPS].to_numpy(np.float64)
    for m, name in enumerate(models):
        if not (steps[m] > 0).any():
            raise DataError(f"{path}: model {name!r}: found 0 everywhere, expected a type on which it runs")
    return Profile(str(path), models, np.array(gpus, np.int64), types, steps)


def ratios(speeds: Mapping[str, float], where: str) -> Profile:
    """One speed a type, in any unit, whatever a job trains; ``where`` they stand, for messages."""
    steps = np.tile(np.array(list(speeds.values()), np.float64)[:, None], (1, 1, 1, 2))
    return Profile(where, ("",), np.array([1]), tuple(kind.lower() for kind in speeds), steps)


def read_speeds(speeds: str | Mapping[str, float], types: Iterable[str], where: str) -> Profile:
    """What a key ``speeds`` names; ``where`` it stands, for messages. Raises DataError where one of ``types`` has no speed."""
    read = read_profile(profile_of(speeds)) if isinstance(speeds, str) else ratios(speeds, where)
    if missing := dict.fromkeys(kind for kind in types if kind.lower() not in read.types):
        raise DataError(f"{read.path}: no speed on GPU type {', '.join(missing)}; found {', '.join(read.types)}")
    return read


def slowdowns(
    jobs: pd.DataFrame, profile: Profile, types: tuple[str, ...], recorded_on: str, usable: np.ndarray | None = None
) -> Slowdowns:
    """The slowdowns of jobs on a cluster's ``types``.

    Args:
        jobs: job_id, gpus, ``model`` and ``gpu_type``, which is the type on which a job was recorded where it is one with a
            speed.
        profile: the speeds.
        types: GPU types of the cluster, which all have speeds.
        recorded_on: the type on which the other jobs were recorded, which has a speed too.
        usable: which of ``types`` each job may use [J, T] bool, default all: a model that is drawn runs on one of them, if any does.

    Raises:
        DataError: a model that the profile does not have, or not at the job's number of GPUs (or the next
            fewer) where it was recorded.
    """
    number = {t: i for i, t in enumerate(profile.types)}
    recorded = jobs["gpu_type"].str.lower().map(number).fillna(number[recorded_on.lower()]).to_numpy(np.int64)
    at_types = profile.numbers(types)
    size = np.maximum(np.searchsorted(profile.gpus, jobs["gpus"].to_numpy(np.int64), side="right") - 1, 0)
    # [models, G, types of the profile] measured where the job was recorded, and running on a type of the cluster
    able = (profile.steps[..., 0] > 0) & (profile.steps[:, :, at_types, 0] > 0).any(axis=2, keepdims=True)
    for g, r in sorted(set(zip(size.tolist(), recorded.tolist()))):
        if not able[:, g, r].any():
            raise DataError(f"{profile.path}: no model runs with {profile.gpus[g]} GPUs on {profile.types[r]}")
    model = np.full(len(jobs), -1, np.int64)
    if profile.models != ("",):
        named = jobs["model"].notna().to_numpy()
        number = jobs["model"].map({m: i for i, m in enumerate(profile.models)}).to_numpy(np.float64)
        if (unknown := named & np.isnan(number)).any():
            found = jobs["model"][unknown].iloc[0]
            raise DataError(
                f"{profile.path}: no model {found!r}, which the trace names; found {', '.join(profile.models)}"
            )
        model[named] = number[named].astype(np.int64)
        able_there = able[model[named], size[named], recorded[named]]
        if not able_there.all():
            at = int(np.flatnonzero(named)[np.flatnonzero(~able_there)[0]])
            raise DataError(
                f"{profile.path}: model {profile.models[model[at]]!r} with {profile.gpus[size[at]]} GPUs: not measured on "
                f"{profile.types[recorded[at]]}, or on no type of the cluster"
            )
    drawn = np.flatnonzero(model < 0)
    u = job_uniform(jobs["job_id"].to_numpy(), "model")
    usable = np.ones((len(jobs), len(types)), bool) if usable is None else usable
    alike, group = np.unique(np.column_stack([size, recorded, usable])[drawn], axis=0, return_inverse=True)
    for k, (g, r, *kinds) in enumerate(alike.tolist()):
        some, fits = drawn[group.reshape(-1) == k], (profile.steps[:, g, at_types, 0] > 0) & np.array(kinds, bool)
        of = np.flatnonzero(able[:, g, r] & (fits.any(axis=1) | ~fits[able[:, g, r]].any()))
        model[some] = of[np.minimum((u[some] * len(of)).astype(np.int64), len(of) - 1)]
    there = np.nan_to_num(profile.steps[:, :, at_types], nan=0.0)  # [models, G, T, 2]
    with np.errstate(divide="ignore"):
        slow = profile.steps[model, size, recorded, :1][:, None] / there[model, size]
    names = np.array(profile.models, object)[model]
    return Slowdowns(slow[:, :, 0], slow[:, :, 1], names, profile.mean_speed(types))
