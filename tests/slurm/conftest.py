"""Emulated clusters for the tests; without Slurm's packages, these tests are skipped and name what is missing."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_workload import DEPLOYMENT, need, wait_behind

from rltune.slurm.emulate import Emulation

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))  # operator_cases


@pytest.fixture(scope="session")
def slurm_packages() -> None:
    """Skips where Slurm's daemons are absent."""
    need()


@pytest.fixture(scope="module")
def slurm(slurm_packages: None, request: pytest.FixtureRequest) -> Iterator[Emulation]:
    """The cluster of paper §5.6, one a module, with the module's SETTINGS; a test leaves it without jobs."""
    with Emulation(DEPLOYMENT, settings=getattr(request.module, "SETTINGS", None)) as emulation:
        yield emulation


@pytest.fixture
def idle(slurm: Emulation) -> Iterator[Emulation]:
    """The module's cluster, without jobs before and after."""
    yield slurm
    slurm.run("scancel", "--quiet", f"--user={slurm.user}")


@pytest.fixture
def waiting(idle: Emulation) -> list[int]:
    """Twelve jobs that wait, behind jobs that take every GPU."""
    return wait_behind(idle)
