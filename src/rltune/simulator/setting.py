"""How a run is scheduled, by name: what both sides of a comparison share."""

from __future__ import annotations

from dataclasses import dataclass

from rltune.cluster.search import EXTRA, LOCALITIES, QUIET_FIT, RULES, WORTH_IT
from rltune.policies import IDS, OWN
from rltune.simulator.how import ALWAYS, AMONG_OTHERS, BACKFILLS, COMMITS, EASY, EXTERNAL, NEVER, OVERRUNS, How

ASKED = {"lookahead": AMONG_OTHERS, "algorithm1": ALWAYS}
"""Placements asked of a placer, and when."""

MOST = 100
"""Largest factor on a run time: beyond it, it is a mistake."""


@dataclass(frozen=True)
class Setting:
    """Names of the rules of rltune.simulator.engine. Raises ValueError for one that does not exist.

    ``policy``: a base policy, built in or the user's own; ``backfill``: what may start while the first job does not
    fit; ``placement``: a rule of rltune.cluster.search, or ``lookahead`` or ``algorithm1``, asked of a placer
    (reservations and backfilling then go by best_fit, or by quiet_fit where company has a cost); ``locality``: how many
    nodes a job may be spread over; ``overrun``: when a job past its estimate is expected to end; ``commit``: until when
    the first job of a ranking stays first; ``multi_node_slowdown``: run time of a job on more nodes than the fewest that hold it,
    over its run time; ``interference_slowdown``: the same of a job of several GPUs while another such job is on one of its nodes
    (rltune.simulator.contention); ``worth``: with locality ``worth_it`` or ``soonest_end``, the seconds of waiting that
    a split has to save for every second it makes the job run longer.
    """

    policy: str
    backfill: str = "none"
    placement: str = "best_fit"
    locality: str = "strict"
    overrun: str = "double"
    commit: str = "decision"
    multi_node_slowdown: float = 1.0
    interference_slowdown: float = 1.0
    worth: float = 1.0

    def __post_init__(self) -> None:
        for field, known in (
            ("policy", (*IDS, *OWN)),
            ("backfill", BACKFILLS),
            ("placement", (*RULES, *ASKED)),
            ("locality", LOCALITIES),
            ("overrun", OVERRUNS),
            ("commit", COMMITS),
        ):
            if getattr(self, field) not in known:
                raise ValueError(f"{field}: found {getattr(self, field)!r}, expected one of {', '.join(known)}")
        for field in ("multi_node_slowdown", "interference_slowdown"):
            if not 1 <= getattr(self, field) <= MOST:
                raise ValueError(f"{field}: found {getattr(self, field)}, expected 1 to {MOST}")
        if not 0 <= self.worth <= MOST:
            raise ValueError(f"worth: found {self.worth}, expected 0 to {MOST}")
        if self.placement == "algorithm1" and self.locality != "strict":
            raise ValueError(f"placement {self.placement}: found locality {self.locality!r}, expected strict")

    def how(
        self, external: bool = False, visible: int = 0, track: bool = False, check: bool = False, alone: bool = False
    ) -> How:
        """The same in numbers; ``external``: rankings are asked of the driver, of the first ``visible`` jobs, and if
        ``alone`` of a single one too."""
        base = IDS.get(self.policy, 0)
        asked = ASKED.get(self.placement, NEVER)
        rule = RULES[self.placement if not asked else "best_fit" if self.interference_slowdown == 1.0 else "quiet_fit"]
        locality, backfill = LOCALITIES[self.locality], BACKFILLS[self.backfill]
        worth_it, slows = locality >= WORTH_IT, self.interference_slowdown != 1.0
        track = track or backfill >= EASY or worth_it or asked == AMONG_OTHERS or slows
        return How(
            EXTERNAL if external else base,
            base,
            visible,
            backfill,
            rule,
            locality,
            int(EXTRA[locality]),
            OVERRUNS[self.overrun],
            COMMITS[self.commit],
            asked,
            float(self.multi_node_slowdown),
            float(self.interference_slowdown),
            float(self.worth),
            slows or rule == QUIET_FIT,
            bool(EXTRA[locality] > 0 or worth_it),
            track,
            check,
            alone,
        )
