"""A fake project with every result and artefact, made once."""

from pathlib import Path

import pytest
from report_fakes import PAGES, Project, artefacts, project, results

from rltune.files import write_text
from rltune.report import artefact


def _made(made: Project, of_traces: bool) -> Project:
    results(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artefact, "PNG_DPI", 30)  # nobody looks at these
        artefacts(made, of_traces)
    for page in PAGES:
        write_text(made.results / "report" / "notebooks" / f"{page}.html", "<!doctype html><title>notebook</title>")
    made.build()
    return made


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return _made(project(tmp_path_factory.mktemp("project")), True)


@pytest.fixture(scope="session")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of agents trained for everything but wait, some with several seeds."""
    return _made(project(tmp_path_factory.mktemp("metrics"), "run_of_metrics.yaml"), False)


@pytest.fixture
def empty(tmp_path: Path) -> Project:
    """A project in which nothing has run."""
    return project(tmp_path)
