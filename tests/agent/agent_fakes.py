"""A small made-up workload for tests of the agent and the evaluation."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from workload_cases import cluster, group, simple, with_rows

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.task import TrainingTask
from rltune.agent.trainer import fit as train, make_trainer
from rltune.cluster.fit import Jobs, fit
from rltune.cluster.layout import Layout
from rltune.cluster.workload import Workload, make_workload
from rltune.config import Cell, Preset, RunConfig, SimulationConfig
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import sequence_table
from rltune.traces.columns import TraceMeta, empty_columns
from rltune.traces.split import Split, split_points

CLUSTER = cluster([group(2, 8, "A", 32, 128), group(2, 2, "A", 8, 32)], gpu_types="ignore")
SMALLEST = TrainedPolicy((-np.eye(8)[:, 1:2], np.zeros(1)), {"agent": "rltune", "features": "unsampled"})
"""An agent that orders by the smallest area first: its logit is minus the job size."""


def jobs_frame(n: int, seed: int, load: float = 3.0) -> pd.DataFrame:
    """``n`` jobs that ask for about ``load`` times the 20 GPUs there are."""
    rng = np.random.default_rng(seed)
    frame = empty_columns(n)
    gpus = rng.choice([1, 1, 1, 2, 4, 8], size=n)
    run = np.exp(rng.normal(5.5, 1.2, size=n))
    gap = (gpus * run).mean() / (20 * load)
    return frame.assign(
        job_id=pd.Series([f"j{i:05d}" for i in range(n)], dtype="str"),
        gpus=gpus.astype(np.int64),
        run_s=run,
        submit_s=np.cumsum(rng.exponential(gap, size=n)),
    )


def workload(n: int = 600, seed: int = 1, load: float = 3.0) -> tuple[Jobs, Layout]:
    """The jobs and nodes of :func:`whole_workload`."""
    whole = whole_workload(n, seed, load)
    return whole.jobs, whole.layout


def whole_workload(n: int = 600, seed: int = 1, load: float = 3.0) -> Workload:
    """The jobs fitted to the cluster, with estimates that err by a factor of about two, split as by default, with users "u0"
    to "u4"."""
    fitted, _ = fit(jobs_frame(n, seed, load), CLUSTER)
    fitted = fitted.assign(user=[f"u{i % 5}" for i in range(len(fitted))])
    noise = np.exp(np.random.default_rng(seed + 1).normal(0, 0.7, size=len(fitted)))
    estimates = pd.DataFrame({"estimate_s": fitted["run_s"].to_numpy() * noise})
    return make_workload(
        fitted, TraceMeta("t", "T", "own", "csv", "2020-01-01", "UTC", "test"), estimates, CLUSTER, 0.9
    )


def run_config(simulation: SimulationConfig | None = None, **evaluation: object) -> RunConfig:
    """A run with this block ``evaluation``."""
    experiment = {"workloads": [{"trace": "t", "cluster": "c"}], "policy": ["fifo"]}
    blocks = {"title": "Test", "experiments": [experiment], "evaluation": evaluation}
    return RunConfig.model_validate(blocks).model_copy(update={"simulation": simulation or SimulationConfig()})


def task_of(
    cell: Cell,
    preset: Preset,
    case: tuple[Jobs, Layout],
    split: Split | None = None,
    calibrated: Jobs | None = None,
    **more: Any,
) -> TrainingTask:
    """The training task of a made-up workload."""
    jobs, layout = case
    meta = SimpleNamespace(t0="2020-01-01T00:00:00+00:00")
    split = split or split_points(len(jobs.row))
    work = SimpleNamespace(jobs=jobs, layout=layout, split=split, calibrated=calibrated, meta=meta, slowdowns={})
    return TrainingTask(cell, preset, work, **more)


def trained(
    task: TrainingTask, progress: Any = lambda row: None, folder: Any = None
) -> tuple[TrainedPolicy, pd.DataFrame]:
    """(The policy, the history) of a whole training on one thread."""
    trainer = make_trainer(task, folder, 1)
    return train(trainer, progress), trainer.history


def poisoned(jobs: Jobs) -> Jobs:
    """The jobs with others in the test part, which no training may see."""
    tested = np.arange(len(jobs.row)) >= split_points(len(jobs.row)).test[0]
    return with_rows(jobs, run_s=np.where(tested, 1e7, jobs.run_s), estimate_s=np.where(tested, 1.0, jobs.estimate_s))


def mean_wait_s(
    case: tuple[Jobs, Layout], first: Any, length: int, config: SchedulerConfig, ranker: Any = None
) -> float:
    """Mean wait of sequences of ``length`` jobs from each of ``first``."""
    state = simulate(case[0], case[1], np.asarray(first), np.full(len(first), length), config, ranker)
    return sequence_table(case[0], state, case[1].gpus)["wait_s"].mean()


TOY_JOBS, TOY_LENGTH = 600, 12
"""Jobs of a toy workload, and of its sequences."""


def toy(run_s: np.ndarray, submit_s: np.ndarray) -> tuple[Jobs, Layout]:
    """Jobs of one GPU on one GPU, with exact estimates."""
    return simple(cluster([group(1, 1)]), *((submit, run, 1) for submit, run in zip(submit_s, run_s)))


def toy_queue() -> tuple[Jobs, Layout]:
    """Jobs that are all there at once: the best order is known, the shortest first (Smith 1956)."""
    return toy(np.exp(np.random.default_rng(1).normal(6, 1.5, size=TOY_JOBS)), np.zeros(TOY_JOBS))


TOY_PRESET = Preset(
    epochs=20,
    trajectories=12,
    sequence_jobs=TOY_LENGTH,
    actor_layers=[16],
    actor_lr=1e-2,
    iterations=15,
    target_kl=0.1,
    gae_lambda=1.0,
    validate_every=5,
    validation_windows=4,
)
TOY_TEST = np.arange(TOY_JOBS - 60, TOY_JOBS - TOY_LENGTH + 1, TOY_LENGTH)
"""First jobs of the test windows of a toy workload."""
TOY_CELL = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "unsampled", "exact", "toy", 8)
"""Its seed makes a network that begins with the longest first; some make one that has nothing to learn."""
