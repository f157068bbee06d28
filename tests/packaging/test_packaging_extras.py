"""Each extra in a bare virtual environment does its main thing. It needs the package index."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rltune.agent.policy_file import TrainedPolicy, save_policy, shapes_of

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "slurm" / "recorded" / "22.05"
MOST_MB = 400
UV = Path(sys.executable).with_name("uv")
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(1800)]
ENVIRONMENT = """
import gymnasium
env = gymnasium.make("rltune.environment.registration:rltune/Scheduling-v0", sequence_jobs=32)
env.reset(seed=1)
done = False
while not done:
    _, reward, done, _, _ = env.step(0)
assert reward == 0.0
"""
TRAINING = """
import sys
sys.path[:0] = sys.argv[1:]
from agent_fakes import task_of, trained, workload
from rltune.config import Cell, Preset
cell = Cell("t", "c", "fifo", "wait", "none", "best_fit", "strict", "engineered", "exact", "quick", 1)
preset = Preset(epochs=2, trajectories=2, sequence_jobs=48, iterations=2, validate_every=2, validation_windows=1)
policy, history = trained(task_of(cell, preset, workload(2000, seed=9)))
assert policy.agent == "rltune" and len(history) == 2
"""
ROWS = """
import sys
from pathlib import Path
from rltune.config.trace import TraceConfig
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain
item = {"url": "shipped://venus.parquet", "file": "venus.parquet", "sha256": sys.argv[1]}
trace = TraceConfig(title="Helios", data="sample", format="rows", downloads=[item])
assert len(clean_trace("venus", trace, obtain("venus", trace, Path("cache"), Path())).jobs) == 125_303
"""
CHAPTER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from report_fakes_rules import artefacts
artefacts(Path("made"))
assert any(Path("made").glob("*.svg"))
"""
COMMANDS = {
    "squeue": f'#!/bin/sh\ncat "{RECORDED}/squeue.json"\n',
    "sinfo": f'#!/bin/sh\ncat "{RECORDED}/sinfo.json"\n',
    "scontrol": '#!/bin/sh\n[ "$*" = "show config" ] && echo "MinJobAge = 300 sec"\ncat > /dev/null\n',
}

Installed = Callable[[str], Callable[..., str]]


def call(*command: object, **options: object) -> str:
    """What a command printed; fails with what it said."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Installed:
    """Makes a virtual environment with an extra of the wheel; runs programs of it in an empty folder."""

    def install(extra: str) -> Callable[..., str]:
        folder, name = tmp_path / "venv", f"rltune{extra} @ {wheel.as_uri()}"
        call(UV, "venv", "-q", "--python", sys.executable, folder)
        call(UV, "pip", "install", "-q", "--python", folder / "bin" / "python", name)
        work = tmp_path / "work"
        work.mkdir()
        path = os.pathsep.join([str(tmp_path / "bin"), str(folder / "bin"), os.environ["PATH"]])
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RLTUNE_ROOT")} | {"PATH": path}
        return lambda program, *args: call(folder / "bin" / program, *args, cwd=work, env=env)

    return install


def test_the_core_has_the_environment(installed):
    installed("")("python", "-c", ENVIRONMENT)


def test_the_controller_on_a_head_node(installed, tmp_path):
    run = installed("[slurm]")
    files = [path for path in (tmp_path / "venv").rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MOST_MB * 1e6
    assert "--live" in run("rltune", "slurm", "run", "--help")
    (tmp_path / "bin").mkdir()
    for name, text in COMMANDS.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    widths = [shapes_of("engineered")["actor"][1], 16, 1]
    weights = [np.zeros(shape, np.float32) for a, b in pairwise(widths) for shape in ((a, b), (b,))]
    save_policy(tmp_path / "policy.npz", TrainedPolicy(tuple(weights), {"features": "engineered", "agent": "rltune"}))
    config = tmp_path / "mine.yaml"
    config.write_text(
        f"policy: {tmp_path}/policy.npz\neligible: {{partitions: [all]}}\nstate_directory: {tmp_path}/state\n"
    )
    assert " ranked=" in run("rltune", "slurm", "run", "--config", config, "--once")


def test_the_rows_that_ship_are_read(installed):
    digest = hashlib.sha256((ROOT / "src" / "rltune" / "data" / "venus.parquet").read_bytes()).hexdigest()
    installed("[traces]")("python", "-c", ROWS, digest)


def test_tables_and_figures_need_no_tensorflow(installed):
    run = installed("[report]")
    run("python", "-c", CHAPTER, ROOT / "tests" / "report")
    with pytest.raises(AssertionError, match="No module named 'tensorflow'"):
        run("python", "-c", "import tensorflow")


def test_training_has_tensorflow_and_no_jupyter(installed):
    run = installed("[train]")
    run("python", "-c", TRAINING, ROOT / "tests" / "agent", ROOT / "tests" / "cluster")
    with pytest.raises(AssertionError, match="No module named 'snakemake'"):
        run("python", "-c", "import snakemake")
