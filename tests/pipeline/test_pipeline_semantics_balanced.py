"""Balanced clusters on which too few jobs are left for a window."""

from __future__ import annotations

from typing import Any

import pytest

from rltune.config import Workspace
from rltune.errors import ConfigError
from rltune.pipeline.semantics import Study, balanced, too_short


def study(project: Any, load: float) -> Study:
    text = project.cluster.read_text()
    thinned = project.cluster.with_name("small-balanced.yaml")
    thinned.write_text(f"{text}balance: {{load: {load}}}\n")
    project.change(project.run, "experiments:\n", "workloads: [{trace: tiny, cluster: small-balanced}]\nexperiments:\n")
    workspace = Workspace.open("config/tiny.yaml")
    return Study(workspace, "Tiny", "own", (workspace.config.cells()[0],))


def test_what_is_too_short_is_named_and_nothing_but_that_is_an_error(project: Any) -> None:
    one = study(project, 0.01)
    (told,) = too_short([one])
    assert told.startswith("Tiny (") and told.endswith(" test jobs)")
    with pytest.raises(ConfigError, match=r"balanced clusters.* test parts have: Tiny \(\d+ test jobs\)"):
        balanced([one])


def test_what_is_long_enough_is_not_named(project: Any) -> None:
    assert too_short([study(project, 1000.0)]) == []
