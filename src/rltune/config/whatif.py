"""The block ``whatif`` of a run: other rules on the end of a cluster's own log, next to its current one."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from rltune.config.base import Block
from rltune.config.cells import AnyEstimate, Backfill

QSSF_ESTIMATE = "history-lightgbm"
"""Run times that QSSF goes by: predicted from earlier jobs alone."""
WARM_UP = 0.1
"""Share of the log's jobs that are replayed before the measured part, so that the cluster is as busy as it was."""
BLOCK_H = 24.0
"""Hours of arrivals that are resampled together."""
MIN_WAIT_S = 60.0
"""Mean wait below which nothing is recommended, s."""


class Rule(Block):
    """An order of the queue, and what may start while its first job does not fit."""

    policy: AnyEstimate
    """Order of the queue."""
    backfill: Backfill = "easy"
    """What may start while the first job of the queue does not fit."""

    @property
    def id(self) -> str:
        """`saf-easy`: its name in tables."""
        return f"{self.policy}-{self.backfill}"


class WhatIf(Block):
    """Replays the last part of the log under the cluster's current rule, other rules, QSSF and the run's first
    agent."""

    current: Rule = Rule(policy="multifactor_size", backfill="easy")
    """The simulator's rule that is nearest to the cluster's current one; `multifactor_size` is Slurm's priority."""
    others: list[Rule] = Field(
        [*(Rule(policy=p) for p in ("fifo", "sjf", "saf")), Rule(policy="saf", backfill="conservative")], min_length=1
    )
    """Rules to compare it with; none of them learns. One should use `conservative` backfilling, because the agent may
    choose it."""
    min_saving: ClassVar[float] = 0.05
    """Share of the hours waited that a change must save to be recommended."""

    @model_validator(mode="after")
    def _something_to_compare(self) -> Self:
        if not self.rules():
            raise ValueError(
                f"others: found {', '.join(rule.id for rule in self.others)} only, which is the current rule "
                "(whatif.current); expected at least one other rule, such as {policy: saf, backfill: easy}"
            )
        return self

    def rules(self) -> list[Rule]:
        """The rules other than the current one, each once."""
        return [rule for rule in dict.fromkeys(self.others) if rule != self.current]
