"""Same seed, same bytes; another seed, others; what the test part holds never reaches training."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.agent.policy_file import load_policy
from rltune.config import Cell, Workspace

ROOT = Path(__file__).resolve().parents[2]
CLOCK = ["seconds"]
HISTORY_CLOCK = [
    "rollout_seconds",
    "update_seconds",
    "choices_per_second",
    "milp_seconds",
    "milp_p50_ms",
    "milp_p95_ms",
    "milp_p99_ms",
    "milp_max_ms",
]


class Trained:
    """The same cell trained by the workflow, and thrice more in another process."""

    def __init__(self, smoke: Workspace, base: Path) -> None:
        self.smoke = smoke
        self.plain, self.poisoned = (replace(smoke, base=base / name) for name in ("plain", "poisoned"))
        # a cell whose test jobs do wait: with an idle cluster every policy does the same
        self.cell = next(c for c in smoke.config.cells() if c.trace.startswith("alibaba"))
        self.other = self.cell.but(seed=self.cell.seed + 1)


@pytest.fixture(scope="module")
def trained(smoke_run: Any, shell: Any, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    base = tmp_path_factory.mktemp("determinism")
    made = Trained(smoke_run.workspace, base)
    for folder in ("traces", "workloads"):
        shutil.copytree(made.smoke.results / folder, made.plain.results / folder)
    script = Path(__file__).with_name("train_variants.py")
    done = subprocess.run(
        [sys.executable, script, base, made.cell.name],
        cwd=ROOT,
        env=shell.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def table(path: Path, without: list[str]) -> pd.DataFrame:
    return pd.read_csv(path).drop(columns=without)


def windows(workspace: Workspace, cell: Cell) -> pd.DataFrame:
    return table(workspace.windows(cell), CLOCK)


def test_the_cell_has_something_to_learn(trained: Trained) -> None:
    found = windows(trained.smoke, trained.cell)
    assert found.loc[found["role"] == "base", "wait_s"].mean() > 60
    assert found.loc[found["role"] == "rltune", "choices"].sum() > 0


def test_the_same_seed_gives_the_same_bytes_in_another_process(trained: Trained) -> None:
    first, second = (w.policy(trained.cell).read_bytes() for w in (trained.smoke, trained.plain))
    assert first == second
    pd.testing.assert_frame_equal(windows(trained.smoke, trained.cell), windows(trained.plain, trained.cell))
    curves = (table(w.history(trained.cell), HISTORY_CLOCK) for w in (trained.smoke, trained.plain))
    pd.testing.assert_frame_equal(*curves)
    jobs = (pd.read_parquet(w.test_jobs(trained.cell)) for w in (trained.smoke, trained.plain))
    pd.testing.assert_frame_equal(*jobs)


def test_another_seed_gives_another_policy(trained: Trained) -> None:
    one, two = (load_policy(trained.plain.policy(c)) for c in (trained.cell, trained.other))
    assert not all(np.array_equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    curves = [pd.read_csv(trained.plain.history(c))["reward"] for c in (trained.cell, trained.other)]
    assert not np.array_equal(*curves)


def test_the_seed_changes_neither_the_windows_nor_the_opponents(trained: Trained) -> None:
    """Only the agent differs: base policy and baselines see the same jobs and the same estimates."""
    one, two = (windows(trained.plain, c) for c in (trained.cell, trained.other))
    fixed = [frame[~frame["role"].str.startswith("rltune")].reset_index(drop=True) for frame in (one, two)]
    pd.testing.assert_frame_equal(*fixed)


def test_poisoned_test_rows_do_not_change_training_by_a_byte(trained: Trained) -> None:
    assert trained.poisoned.policy(trained.cell).read_bytes() == trained.plain.policy(trained.cell).read_bytes()
    curves = (table(w.history(trained.cell), HISTORY_CLOCK) for w in (trained.poisoned, trained.plain))
    pd.testing.assert_frame_equal(*curves)


def test_the_poison_did_reach_the_test_part(trained: Trained) -> None:
    clean, poisoned = (windows(w, trained.cell) for w in (trained.plain, trained.poisoned))
    assert not np.allclose(clean["jct_s"], poisoned["jct_s"])
    jobs = pd.read_parquet(trained.poisoned.test_jobs(trained.cell))
    assert set(jobs["run_s"]) == {1.0, 3e7}
