"""Proximal policy optimisation (Schulman et al. 2017) with the constants of Spinning Up, on ragged decisions."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from rltune.agent.decisions import Batch
from rltune.agent.networks import build_actor, build_critic, log_softmax, pad
from rltune.agent.policy_file import TrainedPolicy
from rltune.config import Preset
from rltune.environment.observation import WIDTH


@dataclass(frozen=True)
class UpdateLog:
    """What one update did."""

    kl: float
    entropy: float
    clip_fraction: float
    actor_iterations: int
    value_loss: float
    explained_variance: float


def advantages(
    values: np.ndarray, sequence: np.ndarray, reward: np.ndarray, discount: float, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generalised advantage estimates and returns of decisions under a reward at the end of each sequence.

    A sequence ends when its last job has started (termination, not truncation: nothing follows to bootstrap).
    ``values`` [D], ``sequence`` [D] sorted, ``reward`` [sequences] → two arrays [D].
    """
    advantage, returns = np.zeros_like(values), np.zeros_like(values)
    next_value = carried = future = 0.0
    for i in range(len(values) - 1, -1, -1):
        last = i + 1 == len(values) or sequence[i + 1] != sequence[i]
        if last:
            delta = reward[sequence[i]] - values[i]
            carried, future = delta, float(reward[sequence[i]])
        else:
            delta = discount * next_value - values[i]
            carried = delta + discount * gae_lambda * carried
            future = discount * future
        advantage[i], returns[i], next_value = carried, future, values[i]
    return advantage, returns


class PPO:
    """Actor, critic, their optimisers, and one update from a batch."""

    def __init__(self, preset: Preset, rng: np.random.Generator) -> None:
        self.preset = preset
        self.rng = rng
        self.actor, self.critic = build_actor(), build_critic()
        self.actor_optimiser = keras.optimizers.Adam(preset.actor_lr)
        self.critic_optimiser = keras.optimizers.Adam(preset.critic_lr)
        self.actor_optimiser.build(self.actor.trainable_variables)
        self.critic_optimiser.build(self.critic.trainable_variables)
        flat, whole = tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)
        rows = tf.TensorSpec([None, WIDTH], tf.float32)
        queues = tf.TensorSpec([None, self.critic.input_shape[1]], tf.float32)
        self._values = tf.function(lambda x: self.critic(x)[:, 0], input_signature=[queues])
        self._actor_step = tf.function(self._actor_step, input_signature=[rows, whole, whole, flat, flat])
        self._critic_step = tf.function(self._critic_step, input_signature=[queues, flat])

    def snapshot(self) -> TrainedPolicy:
        """The actor as it is now, to act with: a numpy forward pass, ten times quicker than TensorFlow on a queue."""
        return TrainedPolicy(tuple(np.array(w) for w in self.actor.get_weights()), {})

    def values(self, batch: Batch, at_once: int = 8192) -> np.ndarray:
        """The critic's value of every decision of a batch [D]."""
        out = np.empty(len(batch.length), np.float32)
        ends = np.cumsum(batch.length)
        for lo in range(0, len(out), at_once):
            hi = min(lo + at_once, len(out))
            rows = slice(ends[lo] - batch.length[lo], ends[hi - 1])
            out[lo:hi] = self._values(pad(batch.critic[rows], batch.length[lo:hi])).numpy()
        return out

    def update(self, batch: Batch) -> UpdateLog:
        """Improve actor and critic from one epoch's decisions."""
        preset = self.preset
        values = self.values(batch)
        advantage, returns = advantages(
            values, batch.sequence, batch.reward, preset.discount, preset.gae_lambda
        )
        advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).astype(np.float32)
        variance = returns.var()
        explained = 1.0 - float((returns - values).var() / variance) if variance > 0 else 0.0
        kl = entropy = clipped = 0.0
        iterations = 0
        for iterations in range(1, preset.actor_iterations + 1):
            pick, rows, segment, action = self._draw(batch)
            kl, entropy, clipped = (
                float(x)
                for x in self._actor_step(batch.obs[rows], segment, action, batch.log_prob[pick], advantage[pick])
            )
            if kl > 1.5 * preset.target_kl:
                break
        loss = 0.0
        for _ in range(preset.critic_iterations):
            pick, rows, _, _ = self._draw(batch)
            loss = float(self._critic_step(pad(batch.critic[rows], batch.length[pick]), returns[pick]))
        return UpdateLog(kl, entropy, clipped, iterations, loss, explained)

    def _draw(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Decisions of one gradient step: (decisions, their rows, segment of each row, row of each action)."""
        count, size = len(batch.length), self.preset.batch_decisions
        pick = np.arange(count) if size is None or size >= count else np.sort(self.rng.choice(count, size, False))
        length = batch.length[pick]
        begins = np.cumsum(length) - length
        rows = np.arange(length.sum()) + np.repeat((np.cumsum(batch.length) - batch.length)[pick] - begins, length)
        segment = np.repeat(np.arange(len(pick), dtype=np.int32), length)
        return pick, rows, segment, (begins + batch.action[pick]).astype(np.int32)

    def _actor_step(self, obs, segment, action, log_prob_old, advantage):
        """One clipped-surrogate step; (approximate KL, entropy, clipped share), before the step."""
        preset = self.preset
        with tf.GradientTape() as tape:
            log_probs = log_softmax(self.actor(obs)[:, 0], segment, tf.shape(action)[0])
            log_prob = tf.gather(log_probs, action)
            ratio = tf.exp(log_prob - log_prob_old)
            limit = tf.where(advantage > 0, 1.0 + preset.clip, 1.0 - preset.clip)
            gain = tf.minimum(ratio * advantage, limit * advantage)
            entropy = -tf.reduce_sum(tf.exp(log_probs) * log_probs) / tf.cast(tf.shape(action)[0], tf.float32)
            loss = -tf.reduce_mean(gain) - preset.entropy * entropy
        weights = self.actor.trainable_variables
        self.actor_optimiser.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        clipped = tf.reduce_mean(tf.cast(tf.abs(ratio - 1.0) > preset.clip, tf.float32))
        return tf.reduce_mean(log_prob_old - log_prob), entropy, clipped

    def _critic_step(self, queues, returns):
        """One mean-squared-error step; the loss before it."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.critic(queues)[:, 0] - returns))
        weights = self.critic.trainable_variables
        self.critic_optimiser.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss


