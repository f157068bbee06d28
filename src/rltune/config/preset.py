"""Training budgets and PPO constants, by name."""

from __future__ import annotations

from pydantic import Field

from rltune.config.base import Block


class Preset(Block):
    """How an agent is trained. Defaults are those of `paper` (§5.2; constants of Spinning Up's PPO)."""

    epochs: int = Field(100, ge=1)
    """Policy updates."""
    trajectories: int = Field(100, ge=1)
    """Sequences drawn an epoch."""
    rollouts: int = Field(1, ge=1)
    """Rollouts of each sequence; above 1 a rollout's reward counts relative to the mean of its sequence's."""
    sequence_jobs: int = Field(256, ge=2)
    """Jobs a sequence."""
    clip: float = Field(0.2, gt=0, lt=1)
    """PPO clipping range of the probability ratio."""
    actor_lr: float = Field(3e-4, gt=0)
    """Adam step size of the actor."""
    critic_lr: float = Field(1e-3, gt=0)
    """Adam step size of the critic."""
    actor_iterations: int = Field(80, ge=1)
    """Actor gradient steps an epoch, at most (stops at 1.5 × target_kl)."""
    critic_iterations: int = Field(80, ge=1)
    """Critic gradient steps an epoch."""
    batch_decisions: int | None = Field(None, ge=64)
    """Decisions a gradient step sees, drawn anew each step; null: all of the epoch."""
    gae_lambda: float = Field(0.97, ge=0, le=1)
    """λ of generalised advantage estimation."""
    discount: float = Field(1.0, gt=0, le=1)
    """γ."""
    target_kl: float = Field(0.01, gt=0)
    """KL divergence from the epoch's behaviour policy at which actor steps stop (× 1.5)."""
    entropy: float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    validate_every: int = Field(10, ge=1)
    """Epochs between greedy validations; the best checkpoint by validation is kept."""
    validation_windows: int = Field(20, ge=1)
    """Windows of the validation part used, at most, evenly spread."""


BUILT_IN: dict[str, Preset] = {
    "paper": Preset(),
    "quick": Preset(
        epochs=20,
        trajectories=20,
        rollouts=3,
        actor_lr=2e-3,
        critic_lr=2e-3,
        actor_iterations=20,
        critic_iterations=20,
        batch_decisions=2048,
        target_kl=0.02,
        gae_lambda=1.0,
        validate_every=4,
        validation_windows=8,
    ),
}
"""`paper`: the paper's budget; `quick`: the default run's, minutes, not expected to converge."""
