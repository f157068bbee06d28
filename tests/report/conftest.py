"""A fake project with every result and artefact, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_fakes import Made, artefacts, project, results
from report_runs import METRICS

from rltune.config import Workspace
from rltune.report.artefact import load_artefacts
from rltune.report.page import build


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    workspace = project(tmp_path_factory.mktemp("project"))
    results(workspace)
    artefacts(workspace)
    return Made(workspace, load_artefacts(workspace.artefacts), build(workspace))


@pytest.fixture(scope="session")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A run of agents trained for everything but wait, some with several seeds."""
    workspace = project(tmp_path_factory.mktemp("metrics"), METRICS)
    results(workspace)
    artefacts(workspace, of_traces=False)
    return Made(workspace, load_artefacts(workspace.artefacts), build(workspace))


@pytest.fixture
def empty(tmp_path: Path) -> Workspace:
    """A project in which nothing has run."""
    return project(tmp_path)
