"""How jobs are scheduled: by name (SchedulerConfig), and as the numbers that the compiled engine reads (Options)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, get_args

from rltune.cluster.fit import Jobs
from rltune.cluster.search import AS_MANY, EXTRA, ISOLATING_BEST_FIT, LOCALITIES, RULES, WORTH_IT
from rltune.cluster.types import MATCHED, PLANNED, differ
from rltune.config.cells import PLANNED_TYPES, TYPES, UNTRAINED, Backfill
from rltune.config.run import Overrun
from rltune.policies import CUSTOM, FIRST_DYNAMIC, IDS

EXTERNAL = -1  # the order is asked of the driver

NONE, GREEDY, EASY, CONSERVATIVE = range(4)
BACKFILLS = dict(zip(get_args(Backfill), range(4), strict=True))
DOUBLE, NOW = range(2)
OVERRUNS = dict(zip(get_args(Overrun), range(2), strict=True))
NEVER, AMONG_OTHERS, ALWAYS = range(3)
ASKED = {name: ALWAYS if name == "algorithm1" else AMONG_OTHERS for name in ("lookahead", *UNTRAINED)}
"""Placements asked of a placer, and when."""

LEAST = {"multi_node_slowdown": 1, "interference_slowdown": 1, "split_worth": 0, "gpu_price": 0}
MOST = 100
"""Least and largest value of what multiplies a time: beyond them, it is a mistake."""


@dataclass(frozen=True)
class SchedulerConfig:
    """The rules of rltune.simulator.engine, by name. Raises ValueError for a name that does not exist."""

    policy: str
    """Order of the queue: a policy, built in or custom."""
    backfill: str = "none"
    """What may start while the first job does not fit."""
    placement: str = "best_fit"
    """A rule of rltune.cluster.search, or one asked of a placer (ASKED): reservations and
    backfilling then use best_fit, or isolating_best_fit where co-located jobs slow each other down."""
    locality: str = "strict"
    """How many nodes a job may be split over."""
    overrun: str = "double"
    """When a job past its estimate is expected to end."""
    sticky_head: bool = False
    """Whether the first job of a ranking stays first until it starts, with one queue for all pools."""
    multi_node_slowdown: float = 1.0
    """Run time of a job on more nodes than the fewest that hold it, over its run time."""
    interference_slowdown: float = 1.0
    """Run time of a job of several GPUs while another such job is on one of its nodes, over its run time."""
    types: str = "auto"
    """Which GPU type of several a job gets (rltune.cluster.types); PLANNED_TYPES go with conservative backfilling. ``auto``: see
    :meth:`on`."""
    gpu_price: float = 0.0
    """With types of PLANNED_TYPES: seconds of completion that a GPU-second counts as."""
    split_worth: float = 1.0
    """With locality ``worth_it`` or ``soonest_end``, or types that plan: seconds of waiting that a split has to save for every
    second that it prolongs the job."""
    max_wait_h: Mapping[int, float] = field(default_factory=dict, hash=False)
    """Most GPUs of a job → hours after which it goes before all others but those under an agreement (rltune.config.run)."""

    def __post_init__(self) -> None:
        for name, known in (
            ("policy", (*IDS, *CUSTOM)),
            ("backfill", BACKFILLS),
            ("placement", (*RULES, *ASKED)),
            ("locality", LOCALITIES),
            ("overrun", OVERRUNS),
            ("sticky_head", (False, True)),
            ("types", TYPES),
        ):
            if getattr(self, name) not in known:
                expected = ", ".join(map(str, known))
                raise ValueError(f"{name}: found {getattr(self, name)!r}, expected one of {expected}")
        for name, least in LEAST.items():
            if not least <= getattr(self, name) <= MOST:
                raise ValueError(f"{name}: found {getattr(self, name)}, expected {least} to {MOST}")
        if wrong := {n: h for n, h in self.max_wait_h.items() if not (n >= 1 and 0 < h < float("inf"))}:
            raise ValueError(f"max_wait_h: found {wrong}, expected sizes of 1 or more and finite hours above 0")
        if self.types not in ("auto", "any") and self.placement in ASKED:
            raise ValueError(f"types {self.types}: found placement {self.placement!r}, which ignores speeds")
        if self.types in PLANNED_TYPES and (self.backfill != "conservative" or self.sticky_head):
            raise ValueError(f"types {self.types}: goes with backfill conservative, without sticky_head")
        if self.types == "allox" and self.locality != "strict":
            raise ValueError(f"types {self.types}: found locality {self.locality!r}, expected strict")
        if self.placement == "algorithm1" and self.locality != "strict":
            raise ValueError(f"placement {self.placement}: found locality {self.locality!r}, expected strict")

    @classmethod
    def of(cls, *parts: object, **changes: object) -> SchedulerConfig:
        """The rules that the parts have: a cell, a block of the configuration, another SchedulerConfig; the last counts."""
        known = {f.name: getattr(part, f.name) for part in parts for f in fields(cls) if hasattr(part, f.name)}
        return cls(**{**known, **changes})

    def on(self, jobs: Jobs) -> SchedulerConfig:
        """The same with the rule for the GPU type that ``auto`` is for these jobs.

        ``any`` where types are equally fast, and with placements that are asked, which ignore speeds; else ``least`` under
        conservative backfilling without sticky_head, and ``fastest_free`` under other rules.
        """
        if self.types != "auto":
            return self
        if self.placement in ASKED or not differ(jobs):
            return replace(self, types="any")
        plans = self.backfill == "conservative" and not self.sticky_head
        return replace(self, types="least" if plans else "fastest_free")

    def options(
        self, external: bool = False, visible: int = 0, check: bool = False, alone: bool = False, silent: bool = False
    ) -> Options:
        """The same as numbers, for a rule other than ``auto``.

        ``external``: rankings are asked of the driver, of the first ``visible`` jobs, and if ``alone`` of a single one
        too, and if ``silent`` not while a job is past its maximum wait. Raises ValueError for a custom policy without a driver.
        """
        if self.policy in CUSTOM and not (external and visible == 0):
            raise ValueError(f"policy {self.policy}: a custom policy orders only in rltune.simulator.batch.simulate")
        base = IDS.get(self.policy, 0)
        asked = ASKED.get(self.placement, NEVER)
        interferes = self.interference_slowdown != 1.0
        rule = RULES[self.placement if not asked else "isolating_best_fit" if interferes else "best_fit"]
        locality, backfill = LOCALITIES[self.locality], BACKFILLS[self.backfill]
        worth_it, plans = locality >= WORTH_IT, self.types in PLANNED_TYPES
        return Options(
            order=EXTERNAL if external else base,
            base=base,
            visible=visible,
            backfill=backfill,
            rule=rule,
            locality=locality,
            extra=AS_MANY if worth_it and plans else int(EXTRA[locality]),
            overrun=OVERRUNS[self.overrun],
            sticky_head=bool(self.sticky_head),
            silent=silent and visible > 0 and bool(self.max_wait_h),
            reranks=base >= FIRST_DYNAMIC or bool(self.max_wait_h),
            asks_place=asked,
            multi_node_slowdown=float(self.multi_node_slowdown),
            interference_slowdown=float(self.interference_slowdown),
            split_worth=float(self.split_worth),
            counts_colocated=interferes or rule == ISOLATING_BEST_FIT,
            splits=bool(EXTRA[locality] > 0 or worth_it),
            resources=3,
            tracks=external or backfill >= EASY or worth_it or asked == AMONG_OTHERS or interferes,
            check=check,
            alone=alone,
            least=plans,
            whole=False,
            together={"joint": PLANNED, "allox": MATCHED}.get(self.types, 0),
        )


class Options(NamedTuple):
    """The numbers of a SchedulerConfig, and what its driver asks for."""

    order: int
    """Number of a compiled policy, or EXTERNAL."""
    base: int
    """Policy that orders what an external ranking does not cover."""
    visible: int
    """Jobs an external ranking covers at most; 0: all."""
    backfill: int
    rule: int
    locality: int
    extra: int
    """Nodes more than strict that any job may have, with types that plan where it completes sooner then."""
    overrun: int
    sticky_head: bool
    silent: bool
    """Do not ask for a ranking while a job is past its maximum wait, which starts whatever the answer."""
    reranks: bool
    """Whether a queue's order changes with time."""
    asks_place: int
    """Ask PLACE where the chosen job has several candidate placements: NEVER, AMONG_OTHERS (others wait), ALWAYS."""
    multi_node_slowdown: float
    interference_slowdown: float
    split_worth: float
    counts_colocated: bool
    """Count the jobs of several GPUs on every node."""
    splits: bool
    """Whether a job may have more nodes than strict."""
    resources: int
    """That can keep a job from a node: 3, or 1 where CPUs and memory never do before GPUs."""
    tracks: bool
    """Keep running jobs in order of their expected ends: reservations need it, and observations."""
    check: bool
    """Assert the invariants at every event time."""
    alone: bool
    """Ask for the ranking of a single job too, which may be held back."""

    least: bool
    """Plan every queue; a job whose type is not planned together with others has that of its least expected completion."""
    together: int
    """How many of a ranking's first jobs have order, GPU types and spread planned together; MATCHED: as AlloX does; 0: none."""
    whole: bool
    """Reserve for every job of a queue, also where no further one could start now."""
