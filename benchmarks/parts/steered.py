"""Plans steered from the state: prices of GPU time by type, and how many jobs are planned together, learned in three ways.

At every decision an *action* has a number for each GPU type and one more. The price of a type is multiplied by the exponential of its
number, and how many of the first jobs of the ranking are planned together, MORE at most, by that of the last; the others are planned
one by one. An action of zeros is the scheduler that training starts from: its constant price (one of 0 stays 0), and PLANNED jobs
together under ``joint``, one by one under ``least``. Learners see the same features, lower the mean of a metric, and simulate as many
windows of the training rows:

=========  ==================================================================================================
evolution  actions linear in the features; weights by an evolution strategy with recombination, (μ/μ, λ), and steps that get smaller
ppo        a network's actions with Gaussian noise, PPO's clipped loss, advantages relative to other runs of the same jobs
critic     the same network and noise; it follows the gradient of a second one that predicts these advantages from features
           and action
=========  ==================================================================================================
"""

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from parts.heldout import BY, Task, loaded, trained
from parts.sampled import LENGTH, MORE, PLAN, windows_behind

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import pandas as pd
import tensorflow as tf

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import CLIP, set_up, waiting_saved
from rltune.agent.rollout import ranker_of
from rltune.cluster.fit import Jobs
from rltune.cluster.workload import Workload
from rltune.config.cells import PLANNED_TYPES
from rltune.environment.supply import _sums
from rltune.kernels import ZERO, kernel
from rltune.simulator.batch import Simulation, simulate
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.conservative import reserve_all
from rltune.simulator.metrics import sequence_table
from rltune.simulator.state import DONE, MAX_VISIBLE, RESERVE, sequence_of
from rltune.traces.split import disjoint_windows

FEATURES = ("one", "free", "back", "demand", "backlog", "queue")
"""Of each type: 1; shares of its GPUs that are free, and expected back within an hour; queued GPU-hours, per GPU, of jobs that are
fastest on it; those of all types; jobs queued. The last three as logarithms."""
FARTHEST = 3.0
"""Largest factor of a price, up or down, as its logarithm."""
STEPS, WINDOWS, RUNS = 20, 10, 10
"""Steps of training, windows that each draws, and how often it simulates each, by other weights or with other noise."""
SIZE, SMALLER = 0.5, 0.95
"""Standard deviation of the first weights that evolution draws, and its factor from one step to the next."""
HORIZON_S = 4 * 3600.0
"""Waiting, or what else is lowered, so much later counts 1/e as much for an action."""
NOISE = 0.3
"""Standard deviation of a network's actions."""
GRADIENTS, RATE = 20, 3e-3
"""Gradient steps of a network on a batch, and Adam's learning rate."""

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Features [K, T, FEATURES] of sequences [K] → actions [K, T + 1]."""


class Steered(Simulation):
    """Sequences of jobs of their own on one pool under ``joint`` or ``least``, steered; keeps (sequences, times, features, actions) in
    ``steps``."""

    def __init__(self, *args: Any, visible: int | None, act: Act) -> None:
        super().__init__(*args, visible=visible)
        types = self.jobs.cut.shape[1]
        self.act, self.price = act, self.jobs.cut["price"].copy()
        self.together = max(self.state.options.together, 1)
        self.seen = np.zeros((len(self.state.n), types, len(FEATURES)))
        self.gpus = np.zeros((3, types))
        self.steps: list[tuple[np.ndarray, ...]] = []

    def reserve(self) -> None:
        """Ask for actions, then reserve."""
        state, nodes = self.state, self.layout.nodes
        asking = np.flatnonzero(state.phase == RESERVE)
        describe(nodes, self.jobs, state, self.gpus, self.seen)
        action = self.act(self.seen[asking], asking)
        self.steps.append((asking, state.now[asking], self.seen[asking].astype(np.float32), action))
        rows = state.first[asking, None] + np.arange(state.run.shape[1])
        factor = np.exp(np.clip(action[:, None, :-1], -FARTHEST, FARTHEST))
        self.jobs.cut["price"][rows] = self.price[rows] * factor
        together = np.minimum(np.rint(self.together * np.exp(np.minimum(action[:, -1], FARTHEST))), MORE).astype(int)
        together[together == 1] = 0
        state.phase[asking] = DONE  # not touched
        for k in np.unique(together):
            state.phase[asking[together == k]] = RESERVE
            reserve_all(nodes, self.jobs, state._replace(options=state.options._replace(together=int(k))))


@kernel
def describe(nodes, jobs, st, gpus, out):
    """Write the features of the sequences with RESERVE, on one pool, to ``out`` [S, T, FEATURES]."""
    for s in range(st.status.shape[0]):
        if st.status[s].phase == RESERVE:
            seq = sequence_of(st, s)
            _sums(nodes, seq, st.options, ZERO, True, gpus)
            queue, all_s = seq.queue[0], 0.0
            out[s, :, 3] = 0.0
            for i in range(queue.len):
                j = seq.status.first + seq.waiting[queue.at + i]
                best = ZERO
                for kind in range(gpus.shape[1]):
                    if jobs.cut[j, kind].full >= 0 and (
                        jobs.cut[j, best].full < 0 or jobs.cut[j, kind].slow < jobs.cut[j, best].slow
                    ):
                        best = kind
                work_s = jobs.row[j].gpus * jobs.row[j].estimate_s * jobs.cut[j, best].slow
                out[s, best, 3] += work_s
                all_s += work_s
            for kind in range(gpus.shape[1]):
                out[s, kind, 0] = 1.0
                out[s, kind, 1], out[s, kind, 2] = gpus[0, kind] / gpus[2, kind], gpus[1, kind] / gpus[2, kind]
                out[s, kind, 3] = np.log1p(out[s, kind, 3] / (3600.0 * gpus[2, kind]))
                out[s, kind, 4] = np.log1p(all_s / (3600.0 * nodes.pool[0].gpus))
                out[s, kind, 5] = np.log2(1.0 + queue.len) / 8.0


class Played(NamedTuple):
    """Windows that were simulated with actions."""

    run: Steered
    jobs: Jobs
    table: pd.DataFrame
    """A row per window."""


class Trial(NamedTuple):
    """What is learned on: plans at a constant price, windows of the training rows and the metric to lower."""

    load: Workload
    known: Jobs
    """The jobs with the estimates that are planned on."""
    scheduler: SchedulerConfig
    metric: str
    policy: TrainedPolicy | None = None
    """An agent that ranks the jobs; None: in the scheduler's order."""

    @property
    def windows(self) -> np.ndarray:
        """First jobs."""
        return disjoint_windows(*self.load.split.train, LENGTH)

    @property
    def types(self) -> int:
        """GPU types."""
        return self.known.cut.shape[1]

    def play(self, first: np.ndarray, act: Act) -> Played:
        """Simulate windows from jobs ``first`` [S], some more than once."""
        known, rows = self.known, (first[:, None] + np.arange(LENGTH)).ravel()
        jobs, layout = Jobs(known.row[rows], known.cut[rows]), self.load.layout
        n, ranker = np.full(len(first), LENGTH), ranker_of(self.policy, jobs, layout) if self.policy else None
        visible = MAX_VISIBLE if ranker else None
        run = Steered(jobs, layout, np.arange(len(first)) * LENGTH, n, self.scheduler, visible=visible, act=act)
        while ranker and len(asking := run.advance()):
            ranker(run.state, asking)
        run.advance()
        return Played(run, jobs, sequence_table(jobs, run.state, layout.gpus))

    def cost(self, played: Played) -> np.ndarray:
        """The metric of windows [S]."""
        return played.table[BY[self.metric]].to_numpy()


def constant(features: np.ndarray, sequences: np.ndarray) -> np.ndarray:
    """The constant price, and the whole plan."""
    return np.zeros((len(features), features.shape[1] + 1))


def linear(weights: np.ndarray) -> Act:
    """Actions of weights [S, 2 · FEATURES]: of the prices, the same for each type, and of the plan, on the mean over types."""
    prices, plan = np.split(weights, 2, axis=1)

    def act(features: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        by_type = (features * prices[sequences, None]).sum(axis=2)
        return np.column_stack([by_type, (features.mean(axis=1) * plan[sequences]).sum(axis=1)])

    return act


def evolution(trial: Trial, rng: np.random.Generator) -> Act:
    """Weights of :func:`linear`: each step, the mean of the better half of RUNS draws is the next mean. The last half of these, averaged."""
    mean, means = np.zeros(2 * len(FEATURES)), []
    for step in range(STEPS):
        first = rng.choice(trial.windows, WINDOWS, replace=False)
        drawn = mean + SIZE * SMALLER**step * rng.standard_normal((RUNS, len(mean)))
        cost = trial.cost(trial.play(np.tile(first, RUNS), linear(np.repeat(drawn, WINDOWS, axis=0))))
        mean = drawn[np.argsort(cost.reshape(RUNS, WINDOWS).mean(axis=1))[: RUNS // 2]].mean(axis=0)
        means.append(mean)
        progress("evolution", trial, step, cost)
    weights = np.mean(means[STEPS // 2 :], axis=0)
    return lambda features, sequences: linear(np.tile(weights, (len(features), 1)))(features, np.arange(len(features)))


def ppo(trial: Trial, rng: np.random.Generator) -> Act:
    """A network's actions by PPO."""
    actor, adam = network(trial.types), keras.optimizers.Adam(RATE)

    @tf.function
    def update(x, action, mean, advantage):
        with tf.GradientTape() as tape:
            squares = tf.reduce_sum((action - actor(x)) ** 2 - (action - mean) ** 2, axis=1)
            ratio = tf.exp(-squares / (2 * NOISE**2))
            clipped = tf.clip_by_value(ratio, 1 - CLIP, 1 + CLIP)
            loss = -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))
        adam.apply(tape.gradient(loss, actor.trainable_variables), actor.trainable_variables)

    return improved("ppo", trial, actor, rng, update)


def critic(trial: Trial, rng: np.random.Generator) -> Act:
    """A network's actions by the gradient of a critic, which sees how far they are from those before the noise."""
    actor, adam = network(trial.types), keras.optimizers.Adam(RATE)
    flat_size = trial.types * len(FEATURES)
    judge = keras.Sequential([keras.Input((flat_size + trial.types + 1,)), *hidden(), keras.layers.Dense(1)])
    judging = keras.optimizers.Adam(RATE)

    def judged(x, action, mean):
        return judge(tf.concat([tf.reshape(x, (-1, flat_size)), (action - mean) / NOISE], axis=1))[:, 0]

    @tf.function
    def update_judge(x, action, mean, advantage):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((judged(x, action, mean) - advantage) ** 2)
        judging.apply(tape.gradient(loss, judge.trainable_variables), judge.trainable_variables)

    @tf.function
    def update_actor(x, action, mean, advantage):
        with tf.GradientTape() as tape:
            near = mean + NOISE * tf.tanh((actor(x) - mean) / NOISE)  # it knows nothing beyond the noise
            loss = -tf.reduce_mean(judged(x, near, mean))
        adam.apply(tape.gradient(loss, actor.trainable_variables), actor.trainable_variables)

    return improved("critic", trial, actor, rng, update_judge, update_actor)


def improved(
    name: str, trial: Trial, actor: keras.Model, rng: np.random.Generator, *updates: Callable[..., None]
) -> Act:
    """The network's actions after STEPS, each of GRADIENTS of every update in turn, of features, actions, those before the noise, and
    advantages."""
    for step in range(STEPS):
        x, action, advantage, cost = explored(trial, actor, rng)
        mean = actor(x)
        for update in updates:
            for _ in range(GRADIENTS):
                update(x, action, mean, advantage)
        progress(name, trial, step, cost)
    return lambda features, sequences: actor(features.astype(np.float32)).numpy()


LEARNERS = {"evolution": evolution, "ppo": ppo, "critic": critic}


def hidden() -> list[keras.layers.Layer]:
    """Hidden layers of every network here."""
    return [keras.layers.Dense(32, activation="tanh") for _ in range(2)]


def network(types: int) -> keras.Model:
    """Features [K, T, FEATURES] → actions [K, T + 1], zeros at first; one network for the prices of all types, one for the plan."""
    x = keras.Input((types, len(FEATURES)))
    last = {"kernel_initializer": "zeros"}
    price = keras.Sequential([*hidden(), keras.layers.Dense(1, **last), keras.layers.Flatten()])(x)
    plan = keras.Sequential([*hidden(), keras.layers.Dense(1, **last)])(keras.layers.GlobalAveragePooling1D()(x))
    return keras.Model(x, keras.layers.Concatenate()([price, plan]))


def explored(
    trial: Trial, actor: keras.Model, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Features, actions, advantages relative to the other runs of the same window, costs) of WINDOWS windows, RUNS times each."""
    means = tf.function(actor, input_signature=[tf.TensorSpec([None, *actor.input_shape[1:]])])

    def act(features: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        mean = means(features.astype(np.float32)).numpy()
        return mean + NOISE * rng.standard_normal(mean.shape).astype(np.float32)

    played = trial.play(np.repeat(rng.choice(trial.windows, WINDOWS, replace=False), RUNS), act)
    run, jobs, _ = played
    sequence, now_s, x, action = (np.concatenate(part) for part in zip(*run.steps))
    turn = np.argsort(sequence, kind="stable")
    batch = SimpleNamespace(now_s=now_s[turn], sequence=sequence[turn])
    advantage = waiting_saved(trial.metric, run.state, jobs, batch, RUNS, HORIZON_S)
    return x[turn], action[turn], advantage / max(float(advantage.std()), 1e-9), trial.cost(played)


def progress(name: str, trial: Trial, step: int, cost: np.ndarray) -> None:
    """Print how far it is, now and then."""
    if (step + 1) % 5 == 0:
        print(f"  {name}: step {step + 1} of {STEPS}, {BY[trial.metric]} {cost.mean():.3g}", flush=True)


def learned_on(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window behind the training rows under what the task's learner learned on the rows before them."""
    load = loaded(task)
    trial = Trial(load, load.calibrated, replace(PLAN, **dict(task.changes)), task.metric)
    return learned(task, task.learner, trial)


def learned(task: Task, learner: str, trial: Trial) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window behind the training rows under what a learner learned; its mean actions."""
    set_up(task.seed, threads=1)
    some, ranked = trial.windows[:8], ranker_of(trial.policy, trial.known, trial.load.layout) if trial.policy else None
    unsteered = simulate(trial.known, trial.load.layout, some, np.full(len(some), LENGTH), trial.scheduler, ranked)
    excess_s = sequence_table(trial.known, unsteered, trial.load.layout.gpus)["excess_s"]
    assert np.array_equal(trial.play(some, constant).table["excess_s"], excess_s), "actions of zeros: another schedule"
    act = LEARNERS[learner](trial, np.random.default_rng(task.seed))
    run, table = behind(task, learner, trial, act)
    actions = np.concatenate([step[-1] for step in run.steps]).mean(axis=0)
    facts = {"actions": [round(float(mean), 3) for mean in actions], "trained_on": STEPS * WINDOWS * RUNS}
    return table, facts


def behind(task: Task, plan: str, trial: Trial, act: Act) -> tuple[Steered, pd.DataFrame]:
    """Windows behind the training rows, simulated with actions: the run, and a row per window."""
    first = windows_behind(trial.load)
    run, _, table = trial.play(first, act)
    named = {"metric": task.metric, "plan": plan, "trace": task.trace, "origin": task.origin, "seed": task.seed}
    return run, table.assign(first_job=first, **named)


def learned_by_agents(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window behind the training rows, its validation windows among them, under an agent that was trained on the rows before
    and, where jobs wait for GPU types under its scheduler, with what evolution then learned in its order, or, where it has learned
    none, in its scheduler's."""
    load = loaded(task)
    policy, training, _ = trained(replace(task, learner="tuned"), load)
    chosen, has_learned = training.agent_scheduler.config, policy.facts["learned"]
    known = load.calibrated if training.agent_scheduler.uses_calibrated else load.jobs
    trial = Trial(load, known, chosen, task.metric, policy if has_learned else None)
    facts = {"scheduler": policy.facts["scheduler"], "learned": has_learned}
    if chosen.types not in PLANNED_TYPES:
        return pd.DataFrame(), facts
    _, alone = behind(task, "agent", trial, constant)
    table, more = learned(task, "evolution", trial)
    return pd.concat([alone, table]), facts | more
