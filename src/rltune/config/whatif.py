"""The block ``whatif`` of a run: today's order of a cluster against others, on the end of its own log."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from rltune.config.base import Block
from rltune.config.cells import Backfill, Policy


class Rule(Block):
    """An order of the queue, and what may start while its first job does not fit."""

    policy: Policy
    """Order of the queue."""
    backfill: Backfill = "easy"
    """What may start while the first job of the queue does not fit."""

    @property
    def id(self) -> str:
        """`saf-easy`: its name in tables."""
        return f"{self.policy}-{self.backfill}"


class WhatIf(Block):
    """Today's order against others, on a replay of the log's last part, for the run's first agent and its workload."""

    current: Rule = Rule(policy="multifactor", backfill="easy")
    """How the cluster is scheduled today, as near as the simulator has it; `multifactor` is Slurm's priority."""
    others: list[Rule] = Field(
        [*(Rule(policy=p) for p in ("fifo", "sjf", "saf")), Rule(policy="saf", backfill="conservative")], min_length=1
    )
    """Rules to compare it with, at least one of them other than today's; none of them learns. The agent may choose to
    reserve nodes for every queued job (`conservative`), so one of the rules does so too."""
    predicted: Literal["history-lightgbm", "history-rolling"] = "history-lightgbm"
    """What QSSF goes by: run times predicted from earlier jobs alone."""
    warm_up: float = Field(0.1, ge=0, lt=1)
    """Share of the log's jobs, those just before the last part, that are replayed first and not measured, so that the
    cluster is as busy as it was when the measured part begins."""
    block_h: float = Field(24.0, gt=0)
    """Hours of arrivals that are resampled together."""
    worth: float = Field(0.05, ge=0, lt=1)
    """Share of the hours waited that a change has to save to be recommended."""
    least_wait_s: float = Field(60.0, ge=0)
    """Mean wait below which nothing is recommended, s."""

    @model_validator(mode="after")
    def _something_to_compare(self) -> Self:
        if not self.rules():
            raise ValueError(
                f"others: found {', '.join(rule.id for rule in self.others)} alone, which is today's order "
                "(whatif.current); expected at least one other rule, such as {policy: saf, backfill: easy}"
            )
        return self

    def rules(self) -> list[Rule]:
        """The rules other than today's, each once."""
        return [rule for rule in dict.fromkeys(self.others) if rule != self.current]
