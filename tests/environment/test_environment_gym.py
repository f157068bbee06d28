"""The Gymnasium environment: its checker, rewards, endings, one seed twice, and the same runs as the simulator's."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from agent_fakes import workload
from gymnasium.utils.env_checker import check_env

from rltune.environment.gym_env import SchedulingEnv
from rltune.environment.registration import ID
from rltune.environment.reward import reward
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table

AREA = 1  # column of the job size in feature set unsampled


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """Arguments of a small environment."""
    jobs, layout = workload(600, seed=8)
    return {"jobs": jobs, "layout": layout, "sequence_jobs": 60, "features": "unsampled"}


def smallest(observation: dict[str, np.ndarray]) -> int:
    rows = observation["queue"][: observation["action_mask"].sum()]
    return int(rows[:, AREA].argmin())


def play(env: gymnasium.Env, act: Any, **reset: Any) -> tuple[list[float], dict[str, Any]]:
    """(rewards, last info) of an episode."""
    observation, info = env.reset(**reset)
    rewards, over = [], False
    while not over:
        observation, value, over, truncated, info = env.step(act(observation))
        assert not truncated
        rewards.append(value)
    assert not observation["queue"].any() and not observation["action_mask"].any()
    return rewards, info


@pytest.mark.parametrize(
    "options", [{}, {"features": "raw"}, {"features": "rich", "scheduler": SchedulerConfig("wfp3", "easy")}]
)
def test_gymnasiums_checker_has_nothing_to_say(small, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID, **{**small, **options}).unwrapped)


def test_it_is_made_by_name_anywhere_and_names_itself_cheaply():
    code = f"""
import sys, gymnasium, rltune.environment.registration
assert not {{"numba", "pandas", "tensorflow"}} & set(sys.modules)
assert "{ID}" in gymnasium.registry"""
    subprocess.run([sys.executable, "-c", code], check=True)
    env = gymnasium.make(f"rltune.environment.registration:{ID}", features="unsampled")  # its example workload
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space and info["n"] == 256 and env.spec.id == ID
    rewards, info = play(env, smallest, seed=1)
    assert info["agent"] < info["base"] and 0 < rewards[-1] <= 1


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_acting_like_a_policy_gives_its_run(small, backfill):
    """Without backfill only the pick matters; else the others follow in the base policy's order, so it has to agree."""
    env = SchedulingEnv(
        **small, scheduler=SchedulerConfig("fifo" if backfill == "none" else "saf", backfill), check=True
    )
    rewards, info = play(env, smallest, options={"first": 40, "n": 120})
    jobs, layout = small["jobs"], small["layout"]
    saf, base = (
        simulate(jobs, layout, [40], [120], s) for s in (SchedulerConfig("saf", backfill), env._many.scheduler)
    )
    np.testing.assert_array_equal(env._many.state.start, saf.start)
    means = [sequence_table(jobs, state, layout.gpus)["wait_s"][0] for state in (saf, base)]
    assert [info["agent"], info["base"]] == means
    assert not any(rewards[:-1]) and rewards[-1] == reward(means[1], means[0], 1.0)
    assert (rewards[-1] > 0) == (backfill == "none")


def test_the_base_policys_choice_is_action_0_and_worth_nothing(small):
    env = SchedulingEnv(**small, scheduler=SchedulerConfig("wfp3", "easy"))
    rewards, _ = play(env, lambda observation: 0, seed=2)
    assert rewards[-1] == 0


def test_one_seed_gives_one_trajectory(small):
    a, b = SchedulingEnv(**small), SchedulingEnv(**small)
    a.action_space.seed(5), b.action_space.seed(5)
    seen: list[tuple] = [env.reset(seed=9) for env in (a, b)]
    firsts = set()
    for _ in range(400):
        np.testing.assert_equal(*seen)
        actions = [env.action_space.sample() for env in (a, b)]
        assert actions[0] == actions[1]
        seen = [env.step(action) for env, action in zip((a, b), actions)]
        if seen[0][2]:
            np.testing.assert_equal(*seen)
            firsts.add(seen[0][-1]["first"])
            seen = [env.reset() for env in (a, b)]
    assert len(firsts) > 1
    state = np.random.get_state()[1].copy()
    a.reset()
    assert (np.random.get_state()[1] == state).all(), "it draws from its own generator only"


def test_rows_and_options_say_where_sequences_begin(small):
    env = SchedulingEnv(**small, rows=(200, 300))
    begins = [env.reset(seed=0 if i == 0 else None)[1]["first"] for i in range(40)]
    assert min(begins) >= 200 and max(begins) <= 240 and len(set(begins)) > 10
    assert env.reset(options={"n": 100})[1]["first"] == 200
    info = env.reset(options={"first": 5})[1]
    assert (info["first"], info["n"]) == (5, 60)


def test_masks_agree_and_samples_are_legal(small):
    env = SchedulingEnv(**small, visible=8)
    observation, info = env.reset(seed=3)
    most = 0
    for _ in range(60):
        mask = observation["action_mask"]
        assert (mask == info["action_mask"]).all() and (mask == env.action_masks()).all() and mask.dtype == np.int8
        assert observation in env.observation_space and (np.diff(mask) <= 0).all() and mask.sum() >= 2
        assert not observation["queue"][mask == 0].any()
        most = max(most, int(mask.sum()))
        observation, _, over, _, info = env.step(env.action_space.sample())
        if over:
            observation, info = env.reset()
    assert most == 8, "the queue is longer than what is seen"


def test_wrong_calls_are_refused(small):
    env = SchedulingEnv(**small)
    with pytest.raises(ValueError, match="has not begun: call reset first"):
        env.step(0)
    observation, _ = env.reset(seed=4)
    ranks = observation["action_mask"].sum()
    for action, message in (
        (ranks, f"found {ranks}, expected 0 … {ranks - 1}, a rank in its visible queue"),
        (-1, "found -1"),
        (0.0, "action: found 0.0, expected one whole number"),
        ([0], r"action: found \[0\]"),
        (None, "found None"),
    ):
        with pytest.raises(ValueError, match=message):
            env.step(action)
    for options, message in (
        ({"length": 5}, "options: found length, expected first, n or none"),
        ({"n": 1}, "options: found n 1"),
        ({"n": 601}, "options: found n 601, expected 2 … 600"),
        ({"first": 599}, "found 60 jobs from job 599"),
        ({"first": 3, "n": 1}, "never two jobs in a queue"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)
    play(env, smallest, seed=4)
    with pytest.raises(ValueError, match="expected a call of reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": None}, "found jobs alone"),
        ({"scheduler": "saf"}, "scheduler: found 'saf', expected a SchedulerConfig"),
        ({"metric": "x"}, "metric: found 'x', expected one of wait"),
        ({"render_mode": "human"}, "nothing to render"),
        ({"rows": (5, 601)}, "rows: found 5 … 601, expected a part of 0 … 600"),
        ({"rows": (0, 59)}, "sequence_jobs: found 60"),
        ({"rows": ()}, "not enough values"),
        ({"sequence_jobs": 1}, "sequence_jobs: found 1, expected 2"),
        ({"visible": 0}, "visible: found 0"),
    ],
)
def test_wrong_arguments_are_refused(small, options, message):
    with pytest.raises(ValueError, match=message):
        SchedulingEnv(**{**small, **options})


def test_a_workload_that_never_queues_says_so():
    jobs, layout = workload(40, seed=1, load=1e-6)
    with pytest.raises(ValueError, match="none of 1000 sequences of 10 jobs has two jobs in a queue"):
        SchedulingEnv(jobs, layout, sequence_jobs=10).reset(seed=0)
