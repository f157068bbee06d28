"""Training budgets and PPO constants, by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from rltune.config.base import Block, parsed_by
from rltune.config.cells import parse_estimate

BuiltIn = Literal["paper", "tuned", "quick", "linear", "rlscheduler", "schedinspector"]
START_S, DECISION_S, STEP_S, SAMPLE_S = 30.0, 2e-5, 0.009, 2e-6
"""Seconds of one core to start and validate an agent, for a simulated decision, a gradient step, and each decision in a step:
rounded from what agents of config/real-rows.yaml and benchmarks/quality.py took on two cores."""


def _parse(estimates: str) -> None:
    """Raises ConfigError for what is neither `given` nor the name of an estimate."""
    if estimates != "given":
        parse_estimate(estimates)


class Preset(Block):
    """How an agent is trained. Defaults are those of `paper` (§5.2; constants of Spinning Up's PPO), but for `estimates`."""

    like: BuiltIn | None = Field(None, exclude=True)
    """The built-in preset that has what is left out here; null: `paper`, with the cell's estimates."""
    agent: Literal["rltune", "rlscheduler", "schedinspector", "linear"] = "rltune"
    """Which learner is trained: `rltune` or one that it is compared with."""
    estimates: Annotated[str, parsed_by(_parse)] = "given"
    """Run-time estimates in training: `given`, those of the cell, by which agents are always evaluated; or others: `exact`, the
    true run times, as in the paper (§4.1), `lognormal-SIGMA`, …"""
    epochs: int = Field(100, ge=1)
    """Policy updates."""
    trajectories: int = Field(100, ge=1)
    """Sequences drawn per epoch."""
    rollouts: int = Field(1, ge=1)
    """Rollouts of each sequence; if there are several, a rollout's reward is relative to their mean."""
    sequence_jobs: int = Field(256, ge=2)
    """Jobs per sequence."""
    contended: float = Field(0.0, ge=0, le=1)
    """Share of the sequences drawn from the more contended half of the training part, where jobs wait longer than the
    median under the base policy; the others start anywhere."""
    actor_layers: list[Annotated[int, Field(ge=1)]] = Field([32, 16, 8])
    """Widths of the actor's hidden layers."""
    tunes: Literal["nothing", "reservations", "scheduler"] = "nothing"
    """What the agent chooses before it learns an order, on as many windows of the training part as training draws sequences,
    at most 300. `reservations`: the policy it
    starts from, whether nodes are reserved for more jobs than the cell's backfill does, and whether it uses calibrated
    run-time estimates; `scheduler`: also placement and locality. Base policies keep the cell's scheduler."""
    base_policy_bias: float = Field(0.0, ge=0)
    """Subtracted from a job's logit for every rank in the order of the base policy. The network's last layer starts at
    zero, so that training starts from the base policy, and step sizes fall to zero along half a cosine. 0: training
    starts from random weights, with constant step sizes."""
    actor_lr: float = Field(3e-4, gt=0)
    """Adam step size of the actor."""
    critic_lr: float = Field(1e-3, gt=0)
    """Adam step size of the critic."""
    iterations: int = Field(80, ge=1)
    """Gradient steps per epoch, for the actor at most these (it stops at 1.5 × target_kl)."""
    batch_decisions: int | None = Field(None, ge=64)
    """Minibatch: decisions per gradient step, drawn again for each; null: all of the epoch."""
    gae_lambda: float = Field(0.97, ge=0, le=1)
    """λ of generalised advantage estimation; rewards are not discounted (γ = 1)."""
    credit_horizon_s: float | None = Field(None, gt=0)
    """With several rollouts: each decision is credited with the waiting after it, relative to the mean of the
    rollouts of its sequence; waiting this many seconds later has weight 1/e, and there is no critic. null: reward at the end, and a
    critic."""
    target_kl: float = Field(0.01, gt=0)
    """KL divergence from the epoch's behaviour policy at which actor steps stop (× 1.5)."""
    entropy: float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    validate_every: int = Field(10, ge=1)
    """Epochs between validations (without sampling); the best checkpoint is kept."""
    validation_windows: int = Field(20, ge=1)
    """At most this many windows of the validation part, evenly spread."""
    margin: float = Field(0.0, ge=0)
    """Weights are kept only if they beat those at the start by this many standard errors over the validation windows;
    with a `base_policy_bias` only."""

    @property
    def has_critic(self) -> bool:
        """Whether a critic is trained; else rollouts of a sequence are compared with one another."""
        return self.credit_horizon_s is None

    @property
    def sequences(self) -> int:
        """Sequences that training draws."""
        return self.epochs * self.trajectories

    def core_hours(self) -> float:
        """About how long training takes one core, within a factor of two; much longer where GPU types differ in speed."""
        decisions = self.trajectories * self.rollouts * self.sequence_jobs
        steps = 0 if self.agent == "linear" else self.iterations * (1 + self.has_critic)
        step_s = STEP_S + SAMPLE_S * min(self.batch_decisions or decisions, decisions)
        return (START_S + self.epochs * (decisions * DECISION_S + steps * step_s)) / 3600

    @model_validator(mode="before")
    @classmethod
    def _is_like(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("like") not in get_args(BuiltIn):
            return given
        return BUILT_IN[given["like"]].model_dump() | {key: given[key] for key in given if key != "like"}

    @model_validator(mode="after")
    def _goes_together(self) -> Preset:
        if self.credit_horizon_s is not None and self.rollouts == 1:
            raise ValueError(
                "credit_horizon_s: found with one rollout, expected more rollouts to compare with, or null"
            )
        if self.margin > 0 and (self.base_policy_bias == 0 or self.validation_windows == 1):
            raise ValueError(
                "margin: found above 0, expected a base_policy_bias above 0 and two validation windows or more"
            )
        if self.agent == "rlscheduler" and self.base_policy_bias:
            raise ValueError(
                f"agent rlscheduler: base_policy_bias: found {self.base_policy_bias:g}, expected 0: it starts from nothing"
            )
        if self.agent == "schedinspector" and not self.base_policy_bias:  # it would reject half of all choices
            raise ValueError(
                "agent schedinspector: base_policy_bias: found 0, expected more (3: one in twenty rejected)"
            )
        return self


BUILT_IN: dict[BuiltIn, Preset] = {
    "paper": Preset(estimates="exact"),
    "tuned": Preset(
        epochs=60,
        trajectories=12,
        rollouts=8,
        contended=1.0,
        actor_layers=[32, 32],
        tunes="reservations",
        base_policy_bias=0.5,
        actor_lr=5e-3,
        iterations=40,
        batch_decisions=2048,
        gae_lambda=1.0,
        credit_horizon_s=4 * 3600.0,
        target_kl=0.02,
        entropy=0.001,
        validate_every=10,
        validation_windows=40,
        margin=1.0,
    ),
    "quick": Preset(
        epochs=8,
        trajectories=20,
        rollouts=3,
        actor_lr=2e-3,
        critic_lr=2e-3,
        iterations=20,
        batch_decisions=2048,
        target_kl=0.02,
        gae_lambda=1.0,
        validate_every=2,
        validation_windows=8,
    ),
    "linear": Preset(
        agent="linear", epochs=70, trajectories=48, contended=0.5, validate_every=5, validation_windows=40
    ),
    "rlscheduler": Preset(
        agent="rlscheduler",
        estimates="exact",
        contended=0.5,
        batch_decisions=2048,
        validate_every=5,
        validation_windows=40,
    ),
    "schedinspector": Preset(
        agent="schedinspector",
        estimates="exact",
        trajectories=12,
        rollouts=8,
        contended=1.0,
        base_policy_bias=3.0,
        actor_lr=1e-3,
        iterations=40,
        credit_horizon_s=3600.0,
        batch_decisions=2048,
        target_kl=0.02,
        entropy=0.01,
        gae_lambda=1.0,
        validate_every=5,
        validation_windows=40,
    ),
}
"""`paper`: the paper's budget; `tuned`: starts from a heuristic and learns corrections of it; `quick`: for the default
run, takes minutes and is not expected to converge. The others train what RLTune is compared with. `linear`: generations
of CMA-ES on 48 sequences; `rlscheduler`: RLScheduler's constants, which are those of `paper`; `schedinspector`: about
as many rollouts as `tuned`, rejecting one choice in twenty at first."""
