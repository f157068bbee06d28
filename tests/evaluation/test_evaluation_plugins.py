"""Custom policies: loaded from a file, compared with like the built-in ones, explained where they fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.workload import build_workload
from rltune.config.context import Run
from rltune.errors import ConfigError
from rltune.evaluation.evaluate import evaluate_baselines
from rltune.evaluation.plugins import load_plugin, load_plugins, naming_plugins
from rltune.policies import CUSTOM, Queue

ROOT = Path(__file__).resolve().parents[2]
OWN_SJF = """\
from rltune.policies import policy

@policy("my_sjf")
def shortest(queue, now):
    return queue.estimate_s
"""
OWN_PLACEMENT = """\
from rltune.placement.placers import placement

@placement("my_place")
class Placer:
    top, counts, place = 0, None, None

"""
RUN = ("config/tiny.yaml",)
Cli = Callable[..., Any]
Plug = Callable[..., None]


pytestmark = pytest.mark.usefixtures("forget")


@pytest.fixture
def plug(project: Any) -> Plug:
    """Gives the tiny project a plugin file of this text, with these baselines."""

    def write(text: str, names: str = "sjf, my_sjf") -> None:
        (project.root / "mine.py").write_text(text)
        project.change(project.run, "bootstrap: 200}", f"bootstrap: 200, baseline_policies: [{names}]}}")
        project.change(project.run, "title: A tiny run", "title: A tiny run\nplugins: [mine.py]")

    return write


BAD_ANSWERS = {
    "queue.estimate_s[:1]": ["policy 'my_sjf': expected", "numbers, one a queued job; found shape (1,)"],
    "queue.estimate_s * float('nan')": ["policy 'my_sjf': expected", "not a number (NaN)"],
    "queue.nothing": ["mine.py:5: AttributeError", "nothing"],
}


@pytest.mark.parametrize("answer", BAD_ANSWERS)
def test_what_it_answers_wrongly_is_explained(answer, plug, cli):
    plug(OWN_SJF.replace("queue.estimate_s", answer))
    simulate = ("simulate", "--trace", "tiny", "--cluster", "small", "--config", "config/tiny.yaml")
    cli(*simulate, "--policy", "my_sjf").explains(*BAD_ANSWERS[answer])


def baselines() -> pd.DataFrame:
    """The heuristics on the tiny workload, as the workflow's script runs them."""
    run = Run.open("config/tiny.yaml")
    load_plugins(run)
    return evaluate_baselines(build_workload(run, "tiny", "small", "lognormal-1"), run.config)


def test_it_is_a_baseline_with_the_results_of_the_built_in_one(plug):
    plug(OWN_SJF)
    waits = baselines().pivot_table(index=["role", "backfill", "first_job"], columns="policy", values="wait_s")
    assert list(waits.columns) == ["my_sjf", "sjf"] and waits["sjf"].sum() > 0
    np.testing.assert_array_equal(waits["my_sjf"], waits["sjf"])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("import numpy\nx = 1 +\n", ["mine.py:2", "SyntaxError"]),
        ("import nowhere_to_be_found\n", ["mine.py:1", "ModuleNotFoundError", "nowhere_to_be_found"]),
        ("def f():\n    return 1 / 0\n\nf()\n", ["mine.py:2", "ZeroDivisionError"]),
        ("raise SystemExit(3)\n", ["mine.py:1", "SystemExit"]),
        ("x = 1\n", ["mine.py", "registers no policy", "@rltune.policies.policy"]),
        (OWN_SJF.replace("my_sjf", "fifo"), ["mine.py:3", "'fifo' is built in"]),
        (OWN_SJF.replace("my_sjf", "My SJF"), ["mine.py:3", "'My SJF'", "lower-case"]),
        (
            OWN_SJF.replace("my_sjf", "other"),
            ["config/tiny.yaml", "evaluation.baseline_policies", "found my_sjf", "wfp3", "other"],
        ),
    ],
)
def test_a_file_that_does_not_do_is_explained(text, parts, plug, cli, project):
    plug(text)
    cli("config", "check", *RUN).explains(*parts)
    assert not (project.root / "results").exists()


def test_a_policy_that_ends_the_program_is_named():
    with (
        pytest.raises(ConfigError, match=r"plugins: .*test_evaluation_plugins.py:\d+: SystemExit: 0"),
        naming_plugins([Path(__file__)]),
    ):
        raise SystemExit(0)


def test_a_name_belongs_to_one_file(plug, cli, project):
    plug(OWN_SJF)
    (project.root / "more.py").write_text(OWN_SJF)
    project.change(project.run, "[mine.py]", "[mine.py, more.py]")
    cli("config", "check", *RUN).explains("more.py", "'my_sjf' is registered by", "mine.py", "rename")
    for name in ("mine", "more"):
        (project.root / f"{name}.py").write_text(OWN_PLACEMENT + (OWN_SJF if name == "mine" else ""))
    cli("config", "check", *RUN).explains("more.py", "placement 'my_place' is registered by", "mine.py", "rename")


def test_the_example_file_does_what_it_says():
    assert load_plugin(ROOT / "config" / "own_policies.example.py") == [("policy", "patient_smallest")]
    wait = np.array([0.0, 7 * 3600.0, 100.0, 9 * 3600.0])
    queue = Queue(10 * 3600.0 - wait, np.full(4, 60.0), np.array([4, 64, 1, 128]), wait, np.zeros(4, int), np.arange(4))
    assert np.argsort(CUSTOM["patient_smallest"](queue, 10 * 3600.0)).tolist() == [3, 1, 2, 0]
