"""Proximal policy optimisation, whole: networks, masked softmax, advantages, clipped loss, update.

| part | source |
|---|---|
| actor and critic | RLTune's paper, §3.2 and Figure 9 |
| PPO | Schulman et al. 2017, arXiv:1707.06347; constants and stop by KL divergence of OpenAI's Spinning Up |
| generalised advantage estimation | Schulman et al. 2016, arXiv:1506.02438 |
| rewards relative to a group of rollouts | Kool et al. 2019 (leave-one-out baseline); Shao et al. 2024, arXiv:2402.03300 |
| waiting saved after a decision | Mao et al. 2019, arXiv:1807.02264 (a baseline per input sequence); the horizon is our choice |

The queue has no fixed length here. A decision is a run of rows, one a queued job; the masked softmax of the paper is a
softmax over those rows, and only the critic pads. Rewards come once, at the end of a sequence, and are not discounted.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from rltune.agent.policy_file import CRITIC_LAYERS
from rltune.agent.rollout import Batch
from rltune.cluster.fit import Jobs
from rltune.config import Preset
from rltune.environment.observation import CRITIC_WIDTH
from rltune.kernels import kernel
from rltune.simulator.metrics import BSLD_FLOOR_S
from rltune.simulator.state import MAX_VISIBLE, State

CLIP = 0.2
"""Clipping range of the probability ratio (Spinning Up)."""
KL_FACTOR = 1.5
"""Actor steps stop at this times the preset's target_kl (Spinning Up)."""
MAX_ROWS = 50_000
"""Rows that the actor sees at once; of larger batches the gradients are added up, which bounds memory and is faster."""
MAX_SLOTS = 500_000
"""Slots of padded queues that the critic sees at once, 10 MB."""
CREDITED = ("wait", "jct", "bsld")
"""Metrics that are a sum of time lost over jobs: each job's waiting can be credited to the decisions before it."""


def set_up(seed: int, threads: int | None = None) -> str:
    """Seed TensorFlow, make it deterministic, limit it to ``threads`` threads; describe what it runs on."""
    if threads:
        try:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        except RuntimeError:
            # TensorFlow fixes its threads at its first operation; a second training in one process keeps them
            threads = tf.config.threading.get_intra_op_parallelism_threads()
    keras.utils.set_random_seed(seed)
    tf.config.experimental.enable_op_determinism()
    devices = ", ".join(d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices())
    return f"TensorFlow {tf.__version__} on {devices}, {threads or 'default'} threads"


# ---- networks


def build_actor(width: int, hidden: list[int], from_zero: bool = False) -> keras.Model:
    """Build an MLP that all jobs of the queue share: a job's features [rows, width] → its logit [rows, 1].

    ``from_zero``: the last layer starts at zero, and with it every logit.
    """
    layers = [keras.layers.Dense(n, activation="relu") for n in hidden]
    last = keras.layers.Dense(1, kernel_initializer="zeros" if from_zero else "glorot_uniform")
    return keras.Sequential([keras.Input((width,)), *layers, last], name="actor")


def build_critic() -> keras.Model:
    """Build an MLP over the flattened queue, zeros behind its end: [decisions, queue · CRITIC_WIDTH] → [decisions, 1]."""
    layers = [keras.layers.Dense(n, activation="relu") for n in CRITIC_LAYERS]
    return keras.Sequential([keras.Input((MAX_VISIBLE * CRITIC_WIDTH,)), *layers, keras.layers.Dense(1)], name="critic")


def critic_values(critic: keras.Model, queues: tf.Tensor) -> tf.Tensor:
    """The critic's values [decisions] of queues padded to any length, [decisions, length · CRITIC_WIDTH].

    The zeros behind a queue's end add nothing to the first layer, so its weights for the slots behind the longest
    queue are left out: the same values as of queues padded to MAX_VISIBLE.
    """
    first, *rest = critic.layers
    x = first.activation(tf.matmul(queues, first.kernel[: tf.shape(queues)[1]]) + first.bias)
    for layer in rest:
        x = layer(x)
    return x[:, 0]


def pad(critic_rows: np.ndarray, lengths: np.ndarray, to: int) -> np.ndarray:
    """Ragged critic rows [rows, CRITIC_WIDTH] → zero-padded [decisions, ``to`` · CRITIC_WIDTH] float32."""
    out = np.zeros((len(lengths), to, CRITIC_WIDTH), np.float32)
    decision = np.repeat(np.arange(len(lengths)), lengths)
    slot = np.arange(len(critic_rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[decision, slot] = critic_rows
    return out.reshape(len(lengths), -1)


def log_softmax(logits: tf.Tensor, segment: tf.Tensor, decisions: tf.Tensor) -> tf.Tensor:
    """Log-softmax within each decision: logits [rows], ``segment`` [rows] int32 sorted, how many decisions → [rows]."""
    shifted = logits - tf.stop_gradient(tf.gather(tf.math.segment_max(logits, segment), segment))
    total = tf.math.unsorted_segment_sum(tf.exp(shifted), segment, decisions)
    return shifted - tf.gather(tf.math.log(total), segment)


# ---- advantages


class Advantages(NamedTuple):
    """How much better each of D decisions was than expected."""

    advantage: np.ndarray  # [D], as estimated; normalised in the update
    returns: np.ndarray  # [D], what the critic learns
    values: np.ndarray  # [D], what it expected; zeros without a critic


def relative(reward: np.ndarray, rollouts: int) -> np.ndarray:
    """Rewards [S] less the mean of their sequence's consecutive ``rollouts``; of one rollout, as they are."""
    groups = reward.reshape(-1, rollouts)
    return reward if rollouts == 1 else (groups - groups.mean(axis=1, keepdims=True)).ravel()


def gae(values: np.ndarray, sequence: np.ndarray, reward: np.ndarray, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns [D] under a reward at the end of each sequence (arXiv:1506.02438, equation 16, γ = 1).

        δ_t = r_t + V_{t+1} − V_t        A_t = δ_t + λ · A_{t+1}

    A sequence ends when its last job has started: termination, not truncation, so nothing follows to bootstrap from.
    ``values`` [D], ``sequence`` [D] sorted, ``reward`` [sequences].
    """
    advantage = np.zeros(len(values))
    _gae(values.astype(float), sequence, reward.astype(float), lam, advantage)
    return advantage, reward.astype(float)[sequence]


@kernel
def _gae(values, sequence, reward, lam, advantage):
    next_value = following = 0.0
    for i in range(values.shape[0] - 1, -1, -1):
        if i + 1 == values.shape[0] or sequence[i + 1] != sequence[i]:
            following = reward[sequence[i]] - values[i]
        else:
            following = next_value - values[i] + lam * following
        advantage[i], next_value = following, values[i]


def waiting_saved(metric: str, state: State, jobs: Jobs, batch: Batch, rollouts: int, horizon_s: float) -> np.ndarray:
    """Advantage [D] float32 of decisions: weighted seconds of waiting saved after them, against the mean rollout.

        A_t = mean over rollouts of W(t) − W(t),    W(t) = Σ_jobs w ∫_t^start exp(−(s − t) / horizon) ds

    A decision changes only what comes after it, and rollouts of one sequence have the same arrivals, so what the others
    still wait from then on is what to expect. Waiting long after a decision has little to do with it and counts less.
    What a job loses while it runs, on more nodes or next to others, counts as waiting before its end, but not for
    metric ``wait``.

    Args:
        metric: one of CREDITED; w is 1 over the run time for ``bsld``, else 1.
        state: of S sequences that have ended, each group of ``rollouts`` consecutive ones the same jobs.
        jobs: all jobs of the workload.
        batch: the decisions.
        rollouts: 2 or more.
        horizon_s: waiting this much later counts 1/e.
    """
    run_s, start = jobs.run_s, state.start
    weight = 1.0 / np.maximum(run_s, BSLD_FLOOR_S) if metric == "bsld" else np.ones(len(run_s))
    if metric != "wait":  # the same where nothing is slowed down
        start = np.full_like(state.start, np.nan)
        for s, (first, n) in enumerate(zip(state.first, state.n, strict=True)):
            start[s, :n] = np.maximum(state.end[s, :n] - run_s[first : first + n], state.start[s, :n])
    out = np.empty(len(batch.now_s), np.float32)
    sequences = state.first, state.n, start
    _waiting_saved(*sequences, jobs.submit_s, weight, batch.now_s, batch.sequence, rollouts, horizon_s, out)
    return out


@kernel
def _waiting_saved(first, n, start, submit_s, weight, now_s, sequence, rollouts, horizon_s, out):
    for d in range(now_s.shape[0]):
        s, now = sequence[d], now_s[d]
        if d > 0 and s == sequence[d - 1] and now == now_s[d - 1]:  # several decisions at one time
            out[d] = out[d - 1]
            continue
        group = s - s % rollouts
        total = here = 0.0
        for other in range(group, group + rollouts):
            later = 0.0
            for i in range(n[other]):
                begun = start[other, i]
                if begun <= now:
                    continue
                j = first[other] + i
                since = max(submit_s[j] - now, 0.0)
                if since > 8.0 * horizon_s:
                    break  # jobs are in the order of submission
                discount = np.exp(-since / horizon_s) if since > 0.0 else 1.0
                later += weight[j] * (discount - np.exp(-(begun - now) / horizon_s))
            total += later
            if other == s:
                here = later
        out[d] = horizon_s * (total / rollouts - here)


# ---- the update


@dataclass(frozen=True)
class UpdateLog:
    """What one update did; each figure as it was before its last gradient step, NaN where it is not known."""

    kl: float = math.nan
    entropy: float = math.nan
    clip_fraction: float = math.nan
    actor_iterations: int = 0
    value_loss: float = math.nan
    explained_variance: float = math.nan


class PPO:
    """Actor, critic, their optimisers, and one update from a batch."""

    def __init__(self, preset: Preset, rng: np.random.Generator, width: int) -> None:
        self.preset, self.rng = preset, rng
        self.actor = build_actor(width, preset.actor_layers, preset.base_policy_bias > 0)
        self.critic = build_critic()
        self.actor_optimiser = keras.optimizers.Adam(preset.actor_lr)
        self.critic_optimiser = keras.optimizers.Adam(preset.critic_lr)
        self.actor_optimiser.build(self.actor.trainable_variables)
        self.critic_optimiser.build(self.critic.trainable_variables)
        flat, one, whole = tf.TensorSpec([None]), tf.TensorSpec([]), tf.TensorSpec([None], tf.int32)
        rows, queues = tf.TensorSpec([None, width]), tf.TensorSpec([None, None])
        self._values = tf.function(lambda x: critic_values(self.critic, x), input_signature=[queues])
        self._actor_gradient = tf.function(
            self._gradient_of_actor, input_signature=[rows, flat, whole, whole, flat, flat, one]
        )
        self._critic_gradient = tf.function(self._gradient_of_critic, input_signature=[queues, flat, one])
        self._actor_step, self._critic_step = map(
            tf.function, (self.actor_optimiser.apply, self.critic_optimiser.apply)
        )

    def weights(self) -> tuple[np.ndarray, ...]:
        """The actor's: kernel and bias of every layer (rltune.agent.policy_file.TrainedPolicy)."""
        return tuple(np.array(v) for v in self.actor.trainable_variables)

    def variables(self) -> list[tf.Variable]:
        """Everything that an update changes."""
        optimisers = [*self.actor_optimiser.variables, *self.critic_optimiser.variables]
        return [*self.actor.variables, *self.critic.variables, *optimisers]

    def values(self, batch: Batch) -> np.ndarray:
        """The critic's value of every decision of a batch [D]; zeros where the preset has no critic."""
        out = np.zeros(len(batch.length), np.float32)
        if self.preset.has_critic and len(out):
            for part, queues in self._padded(batch, np.arange(len(out))):
                out[part] = self._values(queues).numpy()
        return out

    def update(self, batch: Batch, advantages: Advantages, done: float = 0.0) -> UpdateLog:
        """Improve actor and critic from one epoch's decisions, after a share ``done`` of the training.

        Where training starts from the base policy, step sizes fall to nothing along half a cosine. Without any
        decision nothing changes.
        """
        preset, count = self.preset, len(batch.length)
        if not count:
            return UpdateLog()
        factor = 0.5 * (1.0 + math.cos(math.pi * done)) if preset.base_policy_bias else 1.0
        self.actor_optimiser.learning_rate.assign(preset.actor_lr * factor)
        self.critic_optimiser.learning_rate.assign(preset.critic_lr * factor)
        advantage, returns, values = advantages
        advantage = ((advantage - advantage.mean()) / (advantage.std() + 1e-8)).astype(np.float32)
        size = min(preset.batch_decisions or count, count)
        facts, iterations, loss, parts = np.zeros(3), 0, 0.0, []
        for iterations in range(1, preset.iterations + 1):
            if not parts or size < count:  # the whole epoch is prepared once
                parts = list(self._ragged(batch, self._draw(count, size), advantage))
            facts = self._improve(self._actor_gradient, self._actor_step, parts, 1 / size)
            if facts[0] > KL_FACTOR * preset.target_kl:
                break
        kl, entropy, clip_fraction = map(float, facts)
        if not preset.has_critic:
            return UpdateLog(kl, entropy, clip_fraction, iterations)
        parts, targets = [], returns.astype(np.float32)
        for _ in range(preset.iterations):
            if not parts or size < count:
                parts = [(queues, targets[part]) for part, queues in self._padded(batch, self._draw(count, size))]
            loss = self._improve(self._critic_gradient, self._critic_step, parts, 1 / size)[0]
        variance = returns.var()
        explained = 1.0 - float((returns - values).var() / variance) if variance > 0 else math.nan
        return UpdateLog(kl, entropy, clip_fraction, iterations, float(loss), explained)

    def _draw(self, count: int, size: int) -> np.ndarray:
        """Decisions of one gradient step, in order."""
        return np.arange(count) if size == count else np.sort(self.rng.choice(count, size, False))

    def _ragged(self, batch: Batch, pick: np.ndarray, advantage: np.ndarray) -> Iterator[tuple[tf.Tensor, ...]]:
        """What the actor's gradient needs of these decisions, part by part."""
        for part in batch.parts(pick, MAX_ROWS):
            rows, segment, action = batch.rows_of(part)
            arrays = batch.obs[rows], batch.prior[rows], segment, action, batch.log_prob[part], advantage[part]
            yield tuple(map(tf.constant, arrays))

    def _padded(self, batch: Batch, pick: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(Decisions, their padded queues), part by part."""
        for part, to in batch.by_length(pick, MAX_SLOTS):
            yield part, pad(batch.critic[batch.rows_of(part)[0]], batch.length[part], to)

    @staticmethod
    def _improve(gradient_of: Callable, step: Callable, parts: list[tuple], share: float) -> np.ndarray:
        """Take one gradient step; what is logged of it, as it was before: sums over the parts."""
        sums, facts = None, np.zeros(3)
        for part in parts:
            gradient, found = gradient_of(*part, share)
            sums = gradient if sums is None else [a + b for a, b in zip(sums, gradient, strict=True)]
            facts += found.numpy()
        step(sums)
        return facts

    def _gradient_of_actor(self, obs, prior, segment, action, log_prob_old, advantage, share):
        """Gradient of the clipped loss (arXiv:1707.06347, equation 7), and what is logged; a decision counts ``share``.

        maximise Σ min(ρ A, clip(ρ, 1 ± CLIP) A) + entropy bonus,    ρ = π(action) / π_old(action)
        """
        with tf.GradientTape() as tape:
            log_probs = log_softmax(self.actor(obs)[:, 0] + prior, segment, tf.shape(action)[0])
            log_prob = tf.gather(log_probs, action)
            ratio = tf.exp(log_prob - log_prob_old)
            limit = tf.where(advantage > 0, 1.0 + CLIP, 1.0 - CLIP)
            gain = tf.reduce_sum(tf.minimum(ratio * advantage, limit * advantage)) * share
            entropy = -tf.reduce_sum(tf.exp(log_probs) * log_probs) * share
            loss = -gain - self.preset.entropy * entropy
        clipped = tf.reduce_sum(tf.cast(tf.abs(ratio - 1.0) > CLIP, tf.float32)) * share
        kl = tf.reduce_sum(log_prob_old - log_prob) * share
        return tape.gradient(loss, self.actor.trainable_variables), tf.stack([kl, entropy, clipped])

    def _gradient_of_critic(self, queues, returns, share):
        """Gradient of the squared error, and the error; each decision counts ``share``."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(critic_values(self.critic, queues) - returns)) * share
        return tape.gradient(loss, self.critic.trainable_variables), loss
