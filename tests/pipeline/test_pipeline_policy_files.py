"""A policy file that is missing, broken or of another kind is named, and never taken for a trained one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy
from rltune.config import Workspace
from rltune.errors import DataError
from rltune.pipeline.cells import ensure_policy, threads


@pytest.fixture
def policy() -> TrainedPolicy:
    rng = np.random.default_rng(3)
    sizes = [(8, 4), (4,), (4, 1), (1,)]
    return TrainedPolicy(tuple(rng.normal(size=s).astype(np.float32) for s in sizes), {"features": "raw", "note": "é"})


@pytest.fixture
def path(project: Any) -> Path:
    workspace = Workspace.open("config/tiny.yaml")
    where = workspace.policy(workspace.config.cells()[0])
    where.parent.mkdir(parents=True)
    return where


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def noise(data: bytes) -> bytes:
    return np.random.default_rng(1).bytes(len(data))


def text(data: bytes) -> bytes:
    return b"not a policy\n" * 20


def without_facts(data: bytes) -> bytes:
    return archive(w0=np.zeros(3))


def other_format(data: bytes) -> bytes:
    return archive(facts=np.array(json.dumps({"format": 99})))


def not_json(data: bytes) -> bytes:
    return archive(facts=np.array("{"))


def archive(**arrays: np.ndarray) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("damage", [cut, noise, text, without_facts, other_format, not_json])
def test_a_broken_policy_is_named(damage: Callable[[bytes], bytes], path: Path, policy: TrainedPolicy) -> None:
    save_policy(path, policy)
    path.write_bytes(damage(path.read_bytes()))
    workspace = Workspace.open("config/tiny.yaml")
    with pytest.raises(DataError) as caught:
        ensure_policy(workspace, workspace.config.cells()[0], workload=None)  # type: ignore[arg-type]
    assert str(path) in str(caught.value) and "train the cell again" in str(caught.value)


def test_a_missing_policy_is_named(path: Path) -> None:
    with pytest.raises(DataError, match="no trained policy here") as caught:
        load_policy(path)
    assert str(path) in str(caught.value)


def test_a_policy_survives_the_disk(path: Path, policy: TrainedPolicy) -> None:
    save_policy(path, policy)
    back = load_policy(path)
    rows = np.random.default_rng(5).normal(size=(11, 8)).astype(np.float32)
    assert back.facts["note"] == "é" and np.array_equal(back.logits(rows), policy.logits(rows))
    first = path.read_bytes()
    save_policy(path, policy)
    assert path.read_bytes() == first and [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("value", "found"), [("4", 4), ("", None), ("0", None), ("-2", None), ("two", None)])
def test_threads_are_what_the_workflow_says(value: str, found: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLTUNE_THREADS", value)
    assert threads() == found
