"""A cell of the experiment matrix: one value that gives its name, folder, hash and configuration."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from rltune import policies
from rltune.config.base import Block, Name, checked_by_context, parsed_by
from rltune.config.metric import Metric
from rltune.errors import ConfigError

POLICIES: tuple[str, ...] = tuple(policies.POLICIES)
Policy = Literal[POLICIES]  # type: ignore[valid-type]
ANY_ESTIMATE: tuple[str, ...] = tuple(name for name, p in policies.POLICIES.items() if not p.predicted)
"""Policies that work with any estimate."""
AnyEstimate = Literal[ANY_ESTIMATE]  # type: ignore[valid-type]
Backfill = Literal["none", "greedy", "easy", "conservative"]
TypeRule = Literal["auto", "any", "fastest_free", "fastest_only", "least", "allox", "joint"]
Placement = Literal["first_fit", "best_fit", "isolating_best_fit", "spread", "exclusive", "lookahead"]
Locality = Literal["strict", "plus_one", "any", "worth_it", "soonest_end"]
Features = Literal["raw", "engineered", "engineered7", "engineered9", "unsampled", "rlscheduler", "rich"]

_KINDS = Path(__file__).parents[1] / "traces" / "estimates" / "kinds"
ESTIMATE_KINDS = tuple(sorted(p.stem.replace("_", "-") for p in _KINDS.glob("[a-z]*.py")))
"""Kinds of run-time estimates: one file each in rltune.traces.estimates.kinds."""
_SIGMA = re.compile(r"lognormal-([0-9](?:\.[0-9]*[1-9])?)")


def parse_estimate(name: str) -> tuple[str, float]:
    """(kind, sigma) of an estimate's name: ``lognormal-1`` → ("lognormal", 1.0); the others → (name, 0.0).

    Raises ConfigError for a name that is none; each estimate has one name only.
    """
    if match := _SIGMA.fullmatch(name):
        return "lognormal", float(match[1])
    plain = [kind for kind in ESTIMATE_KINDS if kind != "lognormal"]
    if name not in plain:
        raise ConfigError(
            f"found {name!r}, expected lognormal-SIGMA (lognormal-1, lognormal-0.5, …) or one of {', '.join(plain)}"
        )
    return name, 0.0


HISTORY = ("history-lightgbm", "history-rolling", "published")
"""Estimates made of earlier jobs alone: what QSSF orders by (Hu et al., SC '21)."""


def check_estimate(policy: str, estimate: str) -> None:
    """Raises ConfigError for a policy that needs predicted run times, with other estimates."""
    known = policies.POLICIES.get(policy)
    if known is not None and known.predicted and estimate not in HISTORY:
        raise ConfigError(f"policy {policy} needs one of the estimates {', '.join(HISTORY)}; found {estimate}")


Estimate = Annotated[str, parsed_by(parse_estimate)]

BACKFILLS: tuple[str, ...] = get_args(Backfill)
TYPES: tuple[str, ...] = get_args(TypeRule)
PLANNED_TYPES = ("least", "allox", "joint")
"""Those under which a job may wait for a type while another is free."""
Untrained = Literal["lookahead_4_slots", "lookahead_cvxpy", "algorithm1"]
UNTRAINED: tuple[str, ...] = get_args(Untrained)
"""Placements with which no agent is trained."""
PLACEMENTS: tuple[str, ...] = (*get_args(Placement), *UNTRAINED)
LOCALITIES: tuple[str, ...] = get_args(Locality)


class OtherPlacement(Block):
    """Another placement and locality under which agents and their base policies are also evaluated."""

    placement: Literal[Placement, Untrained]
    """How a job's nodes are chosen; with three no agent is trained: `lookahead_4_slots`, the placement model with four time slots;
    `lookahead_cvxpy`, the same in CVXPY; `algorithm1`, the paper's listing."""
    locality: Locality = "strict"
    """How many nodes a job may be spread over."""

    @model_validator(mode="after")
    def _algorithm1_is_strict(self) -> OtherPlacement:
        if self.placement == "algorithm1" and self.locality != "strict":
            raise ValueError(f"placement algorithm1 knows locality strict only; found {self.locality}")
        return self

    def __str__(self) -> str:
        return f"placement {self.placement}, locality {self.locality}"


@dataclass(frozen=True, order=True)
class Cell:
    """One trained agent and the rules it is trained and evaluated under.

    ``policy`` is the base policy the agent is rewarded against and compared with; both get the same
    ``backfill``, ``placement``, ``locality`` and run-time ``estimate``.
    """

    trace: str
    cluster: str
    policy: str
    metric: str
    backfill: str
    placement: str
    locality: str
    features: str
    estimate: str
    preset: str
    seed: int

    @property
    def name(self) -> str:
        """Readable and unique: the axes joined by two underscores; also the name of its folder.

        A mix of metrics stands there without its asterisks, which a shell would take for something else.
        """
        return "__".join(f"s{v}" if k == "seed" else str(v).replace("*", "") for k, v in asdict(self).items())

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that change when any axis does."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    def but(self, **changes: str | int) -> Cell:
        """The cell that differs in these axes only."""
        return replace(self, **changes)


AXES: tuple[str, ...] = tuple(f.name for f in fields(Cell))


TraceName = Annotated[Name, checked_by_context("trace")]


def _one_of_several(value: Any, info: ValidationInfo) -> Any:
    """Of a list of traces the one to read, as pydantic's context says (rltune.config.load)."""
    if not isinstance(value, list) or not value or info.context is None:
        return value
    return info.context["first trace"]([*map(str, value)])


class Workload(Block):
    """A trace on a cluster."""

    trace: Annotated[TraceName, BeforeValidator(_one_of_several, json_schema_input_type=Name | list[Name])]
    """Name of a file in config/traces; of a list, the first whose files are here: generated, shipped, given by `path`,
    fetched, or in the folder RLTUNE_TRACE_FILES."""
    cluster: Annotated[Name, checked_by_context("cluster")]
    """Name of a file in config/clusters."""


class Experiment(Block):
    """A block of the matrix: every combination of its lists is a cell."""

    workloads: list[Workload] = Field(min_length=1)
    """Traces on clusters."""
    policy: list[Policy] = Field(min_length=1)
    """Base policies (paper Table 5; saf: smallest area first; smallest: fewest GPUs first; qssf: saf on run times predicted
    from earlier jobs)."""
    metric: list[Metric] = Field(["wait"], min_length=1)
    """What the reward measures: wait, jct, bsld, utilisation, or a mix such as 0.7*wait+0.3*utilisation."""
    backfill: list[Backfill] = Field(["none"], min_length=1)
    """What may start while the first job of the queue does not fit."""
    placement: list[Placement] = Field(["lookahead"], min_length=1)
    """How a job's nodes are chosen; `lookahead`: by the placement model."""
    locality: list[Locality] = Field(["strict"], min_length=1)
    """How many nodes a job may be spread over: the fewest, one more, any, or more only where that beats waiting."""
    features: list[Features] = Field(["engineered"], min_length=1)
    """What the agent sees of a queued job."""
    estimate: list[Estimate] = Field(["lognormal-1"], min_length=1)
    """Run-time estimates that every policy gets: `exact`; `lognormal-SIGMA`, with random errors; `requested`, the
    users' limits; `history-rolling` or `history-lightgbm`, from earlier jobs alone; `published`, from the trace's
    `predictions`."""
    preset: list[Annotated[Name, checked_by_context("preset")]] = Field(["quick"], min_length=1)
    """Training preset."""
    seed: list[Annotated[int, Field(ge=0)]] = Field([1], min_length=1)
    """Seeds of training."""

    @model_validator(mode="after")
    def _estimates_for_policies(self) -> Experiment:
        for policy, estimate in itertools.product(self.policy, self.estimate):
            check_estimate(policy, estimate)
        return self

    def cells(self) -> list[Cell]:
        """Its cells, in the order of its lists."""
        axes = [getattr(self, a) for a in AXES[2:]]
        return [Cell(w.trace, w.cluster, *rest) for w in self.workloads for rest in itertools.product(*axes)]
