"""A queue whose best order is known: one GPU, jobs that are all there at once, shortest first (Smith 1956)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rltune.agent.exercise import Exercise
from rltune.agent.learners import Training, ranker_of, train
from rltune.cluster.fit import Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import Cell, ClusterConfig, LookaheadConfig, Preset
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.columns import empty_columns
from rltune.traces.split import split_points

N, LENGTH = 600, 12
CLUSTER = ClusterConfig.model_validate(
    {
        "title": "one GPU",
        "gpu_types": "ignore",
        "pools": [{"name": "all", "groups": [{"gpu_type": "A", "nodes": 1, "gpus": 1, "cpus": 8, "mem_gb": 32}]}],
    }
)


def queue() -> tuple[Jobs, Layout]:
    """Jobs submitted together whose run times are known."""
    rng = np.random.default_rng(1)
    frame = empty_columns(N).assign(
        job_id=pd.Series([f"j{i:03d}" for i in range(N)], dtype="str"),
        gpus=np.ones(N, np.int64),
        run_s=np.exp(rng.normal(6, 1.5, size=N)),
        submit_s=np.zeros(N),
    )
    fitted, _ = fit(frame, CLUSTER)
    return compile_jobs(fitted, fitted["run_s"].to_numpy(), CLUSTER), build_layout(CLUSTER)


CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "unsampled", "exact", "toy", 8)
"""Its seed makes a network that begins with the longest first; some make one that has nothing to learn."""
ROLLOUTS = dict(trajectories=12, rollouts=4, critic_iterations=0, gae_lambda=1.0)
JUDGED = {
    "against other rollouts": ROLLOUTS,
    "by a critic": dict(trajectories=48, rollouts=1, critic_iterations=15, critic_lr=1e-2, gae_lambda=0.5),
    "decision by decision": {**ROLLOUTS, "credit_horizon_s": 3000.0},
}
"""What tells the agent whether a decision was good, with as many rollouts each; of λ = 0.5 only a good critic makes much."""


@pytest.mark.parametrize("base_policy_bias", [0.0, 0.3])
@pytest.mark.parametrize("judged", JUDGED)
def test_the_best_order_is_learned_from_a_policy_that_knows_nothing(
    judged: str, base_policy_bias: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, layout = queue()
    if judged == "decision by decision":  # rewards say nothing then
        monkeypatch.setattr(Exercise, "reward", lambda self, base, agent: np.zeros(len(agent)))
    preset = Preset(
        epochs=30,
        sequence_jobs=LENGTH,
        base_policy_bias=base_policy_bias,
        actor_layers=[16],
        actor_lr=1e-2,
        lr_schedule="cosine",
        actor_iterations=15,
        target_kl=0.1,
        validate_every=5,
        validation_windows=4,
        **JUDGED[judged],
    )

    def trained(preset: Preset) -> Training:
        return train(Exercise(CELL, preset, LookaheadConfig(), jobs, layout, split_points(N)), 1)

    first = np.arange(N - 60, N - LENGTH + 1, LENGTH)

    def mean_wait_s(ranker) -> float:
        state = simulate(jobs, layout, first, np.full(len(first), LENGTH), SchedulerConfig("fifo"), ranker)
        return sequence_table(jobs, state, layout.gpus)["wait_s"].mean()

    run_s = np.sort(jobs.run_s[first[0] : first[-1] + LENGTH].reshape(-1, LENGTH), axis=1)
    best = (np.cumsum(run_s, axis=1) - run_s).mean()
    untrained = trained(preset.model_copy(update={"epochs": 1, "actor_lr": 1e-12})).policy
    assert min(mean_wait_s(None), mean_wait_s(ranker_of(untrained, jobs, layout))) > 1.5 * best
    result = trained(preset)
    assert mean_wait_s(ranker_of(result.policy, jobs, layout)) == pytest.approx(best, rel=0.01)
    assert result.policy.facts["learned"]
    if preset.critic_iterations:
        assert result.history["explained_variance"].iloc[-1] > 0.3
