"""Proximal policy optimisation (Schulman et al. 2017) with the constants of Spinning Up, on ragged decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from rltune.agent.decisions import Batch, advantages
from rltune.agent.networks import Actor, build_critic, log_softmax, pad, value_of
from rltune.config import Preset

MOST_ROWS = 50_000
"""Rows of queues that the actor sees at once; of larger batches the gradients are added up: that bounds
the memory, and is quicker."""
MOST_SLOTS = 500_000
"""Slots of padded queues that the critic sees at once, 10 MB."""


@dataclass(frozen=True)
class UpdateLog:
    """What one update did; each figure as it was before its last gradient step, NaN where it is not known."""

    kl: float
    entropy: float
    clip_fraction: float
    actor_iterations: int
    value_loss: float
    explained_variance: float


class PPO:
    """Actor, critic, their optimisers, and one update from a batch."""

    def __init__(self, preset: Preset, rng: np.random.Generator, width: int) -> None:
        self.preset, self.rng = preset, rng
        self.actor = Actor(width, preset.actor_layers, preset.base_policy_bias > 0, preset.attention)
        self.critic = build_critic()
        self.actor_optimiser = keras.optimizers.Adam(preset.actor_lr)
        self.critic_optimiser = keras.optimizers.Adam(preset.critic_lr)
        self.actor_optimiser.build(self.actor.variables)
        self.critic_optimiser.build(self.critic.trainable_variables)
        self.averages = [tf.Variable(w, trainable=False) for w in self.actor.variables]
        flat, one = tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32)
        whole = tf.TensorSpec([None], tf.int32)
        rows, queues = tf.TensorSpec([None, width], tf.float32), tf.TensorSpec([None, None], tf.float32)
        self._values = tf.function(lambda x: value_of(self.critic, x), input_signature=[queues])
        self._actor_gradient = tf.function(
            self._actor_gradient, input_signature=[rows, flat, whole, whole, flat, flat, one]
        )
        self._critic_gradient = tf.function(self._critic_gradient, input_signature=[queues, flat, one])
        self._actor_step, self._critic_step = tf.function(self._actor_step), tf.function(self._critic_step)

    @property
    def facts(self) -> dict[str, float]:
        """What has to be known of the actor besides its weights."""
        return {"base_policy_bias": self.preset.base_policy_bias, "attention": self.preset.attention}

    def weights(self) -> tuple[np.ndarray, ...]:
        """The actor's as they are now: what acts in training."""
        return self.actor.weights()

    def kept_weights(self) -> tuple[np.ndarray, ...]:
        """Their moving average, where the preset wants one: what is validated and kept."""
        return tuple(w.numpy() for w in self.averages) if self.preset.average else self.weights()

    def state(self) -> list[tf.Variable]:
        """Everything that an update changes."""
        return [
            *self.actor.variables,
            *self.critic.variables,
            *self.averages,
            *self.actor_optimiser.variables,
            *self.critic_optimiser.variables,
        ]

    def schedule(self, done: float) -> None:
        """Set the step sizes after a share ``done`` of the training."""
        factor = 0.5 * (1.0 + math.cos(math.pi * done)) if self.preset.lr_schedule == "cosine" else 1.0
        self.actor_optimiser.learning_rate.assign(self.preset.actor_lr * factor)
        self.critic_optimiser.learning_rate.assign(self.preset.critic_lr * factor)

    def values(self, batch: Batch) -> np.ndarray:
        """The critic's value of every decision of a batch [D]."""
        out = np.empty(len(batch.length), np.float32)
        for part, queues in self._padded(batch, np.arange(len(out))):
            out[part] = self._values(queues).numpy()
        return out

    def update(self, batch: Batch, credit: np.ndarray | None = None) -> UpdateLog:
        """Improve actor and critic from one epoch's decisions; without any, nothing changes.

        ``credit`` [D]: advantages in the place of those made of the rewards.
        """
        preset, unknown = self.preset, float("nan")
        if not len(batch.length):
            return UpdateLog(unknown, unknown, unknown, 0, unknown, unknown)
        values = self.values(batch) if preset.critic_iterations else np.zeros(len(batch.length), np.float32)
        advantage, returns = advantages(values, batch.sequence, batch.reward, preset.discount, preset.gae_lambda)
        advantage = advantage if credit is None else credit
        advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).astype(np.float32)
        variance = returns.var() if preset.critic_iterations else 0.0
        explained = 1.0 - float((returns - values).var() / variance) if variance > 0 else unknown
        facts = np.zeros(3)
        iterations, loss = 0, 0.0
        whole = None
        for iterations in range(1, preset.actor_iterations + 1):
            pick = self._draw(batch)
            if whole is None or len(pick) < len(batch.length):
                whole = list(self._ragged(batch, pick, advantage))  # of a whole epoch once
            facts = self._improve_actor(whole, 1 / len(pick))
            if facts[0] > 1.5 * preset.target_kl:
                break
        whole = None
        for _ in range(preset.critic_iterations):
            pick = self._draw(batch)
            if whole is None or len(pick) < len(batch.length):
                whole = list(self._padded(batch, pick))
            loss = self._improve_critic(whole, returns.astype(np.float32), 1 / len(pick))
        return UpdateLog(*map(float, facts), iterations, loss, explained)

    def _draw(self, batch: Batch) -> np.ndarray:
        """Decisions of one gradient step, in order."""
        count, size = len(batch.length), self.preset.batch_decisions
        return np.arange(count) if size is None or size >= count else np.sort(self.rng.choice(count, size, False))

    def _ragged(self, batch: Batch, pick: np.ndarray, advantage: np.ndarray) -> Iterator[tuple[tf.Tensor, ...]]:
        """What the actor's gradient wants of these decisions, part by part."""
        for part in batch.parts(pick, MOST_ROWS):
            rows, segment, action = batch.rows_of(part)
            arrays = batch.obs[rows], batch.prior[rows], segment, action, batch.log_prob[part], advantage[part]
            yield tuple(map(tf.constant, arrays))

    def _improve_actor(self, parts: list[tuple[tf.Tensor, ...]], share: float) -> np.ndarray:
        """One gradient step; (approximate KL, entropy, clipped share) before it."""
        sums, facts = None, np.zeros(3)
        for part in parts:
            gradient, found = self._actor_gradient(*part, share)
            sums = gradient if sums is None else [a + b for a, b in zip(sums, gradient, strict=True)]
            facts += found.numpy()
        self._actor_step(sums)
        return facts

    def _padded(self, batch: Batch, pick: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(Decisions, their padded queues), part by part."""
        for part, to in batch.by_length(pick, MOST_SLOTS):
            yield part, pad(batch.critic[batch.rows_of(part)[0]], batch.length[part], to)

    def _improve_critic(self, parts: list[tuple[np.ndarray, np.ndarray]], returns: np.ndarray, share: float) -> float:
        """One gradient step; the mean squared error before it."""
        sums, loss = None, 0.0
        for part, queues in parts:
            gradient, found = self._critic_gradient(queues, returns[part], share)
            sums = gradient if sums is None else [a + b for a, b in zip(sums, gradient, strict=True)]
            loss += float(found)
        self._critic_step(sums)
        return loss

    def _actor_gradient(self, obs, prior, segment, action, log_prob_old, advantage, share):
        """Gradient of the clipped surrogate's loss, and what is told of it; each decision counts ``share``."""
        preset = self.preset
        with tf.GradientTape() as tape:
            decisions = tf.shape(action)[0]
            log_probs = log_softmax(self.actor(obs, segment, decisions) + prior, segment, decisions)
            log_prob = tf.gather(log_probs, action)
            ratio = tf.exp(log_prob - log_prob_old)
            limit = tf.where(advantage > 0, 1.0 + preset.clip, 1.0 - preset.clip)
            gain = tf.reduce_sum(tf.minimum(ratio * advantage, limit * advantage)) * share
            entropy = -tf.reduce_sum(tf.exp(log_probs) * log_probs) * share
            loss = -gain - preset.entropy * entropy
        clipped = tf.reduce_sum(tf.cast(tf.abs(ratio - 1.0) > preset.clip, tf.float32)) * share
        kl = tf.reduce_sum(log_prob_old - log_prob) * share
        return tape.gradient(loss, self.actor.variables), tf.stack([kl, entropy, clipped])

    def _critic_gradient(self, queues, returns, share):
        """Gradient of the squared error, and the error; each decision counts ``share``."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(value_of(self.critic, queues) - returns)) * share
        return tape.gradient(loss, self.critic.trainable_variables), loss

    def _actor_step(self, gradient):
        weights = self.actor.variables
        self.actor_optimiser.apply_gradients(zip(gradient, weights, strict=True))
        if self.preset.average:
            for average, weight in zip(self.averages, weights, strict=True):
                average.assign(self.preset.average * average + (1.0 - self.preset.average) * weight)

    def _critic_step(self, gradient):
        self.critic_optimiser.apply_gradients(zip(gradient, self.critic.trainable_variables, strict=True))
