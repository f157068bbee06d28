"""Same seed, same bytes; another seed, others; what the test part holds never reaches training."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.agent.policy_file import load_policy

CLOCK = "seconds|choices_per_second|milp_(p50|p95|p99|max)_ms"
"""Columns that depend on the clock."""


@pytest.fixture(scope="module")
def folders(smoke_run: Any, shell: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of one cell: by the workflow, and of three variants made in another process."""
    # a cell whose test jobs do wait: on an idle cluster every policy does the same
    cell = next(c for c in smoke_run.run.config.cells() if c.trace.startswith("alibaba"))
    out = tmp_path_factory.mktemp("variants")
    script = Path(__file__).with_name("train_variants.py")
    command = [sys.executable, script, smoke_run.root, cell.name, out]
    done = subprocess.run(command, env=shell.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {name: out / name for name in ("plain", "seed", "poisoned")}
    return {"smoke": smoke_run.results / "cells" / cell.name, **made}


def table(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)
    return frame.drop(columns=frame.filter(regex=CLOCK).columns)


def windows(folder: Path) -> pd.DataFrame:
    frame = table(folder / "windows.csv")
    return frame[~frame["role"].str.startswith("baseline")].drop(columns="bound_s", errors="ignore")


def test_the_cell_has_something_to_learn(folders):
    found = windows(folders["smoke"])
    assert found.loc[found["role"] == "base", "wait_s"].mean() > 60
    assert found.loc[found["role"] == "rltune", "choices"].sum() > 0


def test_the_same_seed_gives_the_same_bytes_in_another_process(folders):
    smoke, plain = folders["smoke"], folders["plain"]
    assert (smoke / "policy.npz").read_bytes() == (plain / "policy.npz").read_bytes()
    pd.testing.assert_frame_equal(windows(smoke), windows(plain))
    pd.testing.assert_frame_equal(table(smoke / "history.csv"), table(plain / "history.csv"))
    pd.testing.assert_frame_equal(*(pd.read_parquet(f / "jobs.parquet") for f in (smoke, plain)))


def test_another_seed_gives_another_policy_on_the_same_windows(folders):
    plain, seed = folders["plain"], folders["seed"]
    one, two = (load_policy(f / "policy.npz").weights for f in (plain, seed))
    assert not all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    others = [frame[~frame["role"].str.startswith("rltune")] for frame in (windows(plain), windows(seed))]
    pd.testing.assert_frame_equal(*others)


def test_poisoned_test_rows_do_not_change_training_by_a_byte(folders):
    plain, poisoned = folders["plain"], folders["poisoned"]
    assert (plain / "policy.npz").read_bytes() == (poisoned / "policy.npz").read_bytes()
    pd.testing.assert_frame_equal(table(plain / "history.csv"), table(poisoned / "history.csv"))
    assert set(pd.read_parquet(poisoned / "jobs.parquet")["run_s"]) == {1.0, 3e7}, "the poison reached the test part"
    assert not np.allclose(windows(plain)["jct_s"], windows(poisoned)["jct_s"])
