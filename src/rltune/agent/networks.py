"""Actor and critic (paper §3.2, Figure 9) in TensorFlow, on ragged rows: no padding until the critic needs it."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from rltune.agent.policy_file import CRITIC_LAYERS  # noqa: E402
from rltune.environment.observation import CRITIC_WIDTH  # noqa: E402
from rltune.simulator.state import MAX_VISIBLE  # noqa: E402


def set_up(seed: int, threads: int | None = None) -> str:
    """Seed TensorFlow, ask it for determinism and for no more than ``threads`` threads; says what it runs on."""
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


class Actor:
    """An MLP whose weights every job shares: features of a job → its logit.

    ``from_zero``: the last layer starts at zero, so that every logit does. ``attention``: units of an attention over
    the queue (one head with one learned query, as in pooling by attention of Lee et al., ICML '19), whose output every
    job's row gets beside its own features; 0: a job is scored by its own row.
    """

    def __init__(self, width: int, hidden: list[int], from_zero: bool = False, attention: int = 0) -> None:
        layers = [keras.layers.Dense(n, activation="relu") for n in hidden]
        last = keras.layers.Dense(1, kernel_initializer="zeros" if from_zero else "glorot_uniform")
        self.network = keras.Sequential([keras.Input((width + attention,)), *layers, last], name="actor")
        self.looks = [keras.layers.Dense(1), keras.layers.Dense(attention, "relu")] if attention else []
        for look in self.looks:
            look.build((None, width))

    @property
    def variables(self) -> list[keras.Variable]:
        """Kernel and bias of every layer, in the order of rltune.agent.policy_file.TrainedPolicy; all are trained."""
        return [*self.network.trainable_variables, *(v for look in self.looks for v in look.trainable_variables)]

    def weights(self) -> tuple[np.ndarray, ...]:
        """Their values now."""
        return tuple(np.array(v) for v in self.variables)

    def __call__(self, obs: tf.Tensor, segment: tf.Tensor, decisions: tf.Tensor) -> tf.Tensor:
        """Logits [rows] of jobs [rows, width]; ``segment`` [rows] int32 sorted: the decision of each, of so many."""
        if self.looks:
            key, value = self.looks
            weight = tf.exp(log_softmax(key(obs)[:, 0], segment, decisions))[:, None]
            queue = tf.math.unsorted_segment_sum(weight * value(obs), segment, decisions)
            obs = tf.concat([obs, tf.gather(queue, segment)], axis=1)
        return self.network(obs)[:, 0]


def build_critic() -> keras.Model:
    """An MLP over the flattened queue, zeros behind its end: [decisions, queue · CRITIC_WIDTH] → [decisions, 1]."""
    layers = [keras.layers.Dense(n, activation="relu") for n in CRITIC_LAYERS]
    return keras.Sequential([keras.Input((MAX_VISIBLE * CRITIC_WIDTH,)), *layers, keras.layers.Dense(1)], name="critic")


def value_of(critic: keras.Model, queues: tf.Tensor) -> tf.Tensor:
    """The critic's values [decisions] of queues padded to any length, [decisions, length · CRITIC_WIDTH].

    The zeros behind a queue's end add nothing to the first layer, so that it does without the weights of the places
    behind the longest queue: the same values as of queues padded to MAX_VISIBLE.
    """
    first, *rest = critic.layers
    x = first.activation(tf.matmul(queues, first.kernel[: tf.shape(queues)[1]]) + first.bias)
    for layer in rest:
        x = layer(x)
    return x[:, 0]


def pad(critic_rows: np.ndarray, lengths: np.ndarray, to: int = MAX_VISIBLE) -> np.ndarray:
    """Ragged critic rows [rows, CRITIC_WIDTH] → zero-padded [decisions, ``to`` · CRITIC_WIDTH] float32."""
    out = np.zeros((len(lengths), to, CRITIC_WIDTH), np.float32)
    decision = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(critic_rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[decision, place] = critic_rows
    return out.reshape(len(lengths), -1)


def log_softmax(logits: tf.Tensor, segment: tf.Tensor, decisions: tf.Tensor) -> tf.Tensor:
    """Log-softmax within segments: [rows], [rows] int32 sorted, number of segments → [rows]."""
    shifted = logits - tf.stop_gradient(tf.gather(tf.math.segment_max(logits, segment), segment))
    total = tf.math.unsorted_segment_sum(tf.exp(shifted), segment, decisions)
    return shifted - tf.gather(tf.math.log(total), segment)
