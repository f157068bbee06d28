"""The worked examples of docs/how-to/extend.md do what the page says."""

import json
import re
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group, simple

from rltune.config import CACHE, LookaheadConfig, load_trace
from rltune.config.load import load_run
from rltune.environment.example import example_workload
from rltune.placement.counts import Counts
from rltune.placement.placers import CUSTOM as CUSTOM_PLACEMENTS, placement, placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.config import ALWAYS, ASKED
from rltune.simulator.metrics import chunk_table, job_table
from rltune.traces.clean import clean_trace
from rltune.traces.fetch import obtain

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
ON = ("--trace", "tiny", "--cluster", "small")
Cli = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("forget")


@pytest.fixture
def copied(project: Any) -> Path:
    """A copy of the library's sources, in a small project."""
    shutil.copytree(ROOT / "src", project.root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return project.root


def in_copy(shell: Any, root: Path, code: str) -> Any:
    """What a program prints as JSON, run on the copied library."""
    done = shell.run(sys.executable, "-c", f"import sys; sys.path.insert(0, 'src')\n{code}", cwd=root)
    assert done.status == 0, done
    return json.loads(done.out.splitlines()[-1])


def test_every_example_is_on_the_page():
    page = (ROOT / "docs" / "how-to" / "extend.md").read_text(encoding="utf-8")
    assert {f"examples/{p.name}" for p in EXAMPLES.iterdir() if p.is_file()} == set(
        re.findall(r'--8<-- "(examples/.+)"', page)
    )


def test_a_policy(project, cli):
    shutil.copy(EXAMPLES / "policy_run.yaml", project.root / "config" / "mine.yaml")
    assert load_run("config/mine.yaml", project.root).plugins == ["config/own_policies.example.py"]
    run = ("simulate", "--config", "config/mine.yaml", *ON, "--csv")
    for policy in ("smallest", "patient_smallest"):
        outcome = cli(*run, f"{policy}.csv", "--policy", policy)
        assert outcome.status == 0, outcome
    custom, built_in = (
        pd.read_csv(f"{policy}.csv").groupby("gpus")["wait_s"].mean() for policy in ("patient_smallest", "smallest")
    )
    assert custom[8] < built_in[8], "jobs of many GPUs wait less, as they need not wait for ever"


def test_a_csv_trace(project):
    (project.root / "docs" / "examples").mkdir(parents=True)
    shutil.copy(EXAMPLES / "jobs.csv", project.root / "docs" / "examples")
    project.trace.write_text((EXAMPLES / "csv_trace.yaml").read_text())
    trace = load_trace("tiny", project.root)
    jobs = clean_trace("tiny", trace, obtain("tiny", trace, project.root / CACHE, project.root)).jobs
    columns = ["job_id", "run_s", "gpus", "submit_s", "wait_s", "status"]
    assert jobs[columns].to_numpy().tolist() == [
        ["a1", 5400.0, 4, 0.0, 300.0, "passed"],
        ["a2", 750.0, 1, 600.0, 5100.0, "failed"],
        ["a4", 14400.0, 8, 3600.0, 30.0, "passed"],
    ]


def test_a_reader(copied, shell):
    shutil.copy(EXAMPLES / "jsonlines.py", copied / "src" / "rltune" / "traces" / "readers")
    rows = [
        {"id": "x", "at": 1e9, "ran": 60, "gpus": 2, "by": "ann"},
        {"id": "y", "at": 1e9 + 30, "ran": None, "gpus": 1},
        {"id": "z", "at": 1e9 + 45, "ran": 9.5, "gpus": 1, "by": "ben"},
    ]
    (copied / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (copied / "config" / "traces" / "lines.yaml").write_text(
        "title: Lines\ndata: own\nformat: jsonlines\npath: log.jsonl\n"
    )
    found = in_copy(
        shell,
        copied,
        """
import json
from pathlib import Path
from rltune.config.load import load_trace
from rltune.traces.clean import clean_trace
from rltune.traces.fields import fields
assert len(fields(load_trace("lines", Path(".")), ["id", "at"])), "the notebook clean shows them"
made = clean_trace("lines", load_trace("lines", Path(".")), Path("log.jsonl"))
rows = made.jobs[["job_id", "gpus", "run_s", "submit_s", "user"]].values.tolist()
print(json.dumps({"jobs": rows, "out": made.audit.left_out}))
""",
    )
    assert found == {
        "jobs": [["x", 2, 60.0, 0.0, "ann"], ["z", 1, 9.5, 45.0, "ben"]],
        "out": {"cancelled before it ran": 1},
    }


def test_a_metric_to_look_at(capsys):
    names = runpy.run_path(str(EXAMPLES / "own_metric.py"))
    assert re.fullmatch(
        r"FIFO [\d,]+ s, SAF [\d,]+ s: -?[\d.]+% less \(-?[\d.]+% to -?[\d.]+%\)\n", capsys.readouterr().out
    )
    jobs, layout = example_workload()
    state = simulate(jobs, layout, np.array([256]), np.array([256]), SchedulerConfig("fifo", backfill="easy"))
    assert names["fifo"][1] == pytest.approx(np.percentile(job_table(jobs, state)["wait_s"], 95))


def test_a_metric_to_train_for(copied, shell):
    shutil.copy(EXAMPLES / "largest_wait.py", copied / "src" / "rltune" / "metrics")
    found = in_copy(
        shell,
        copied,
        """
import json
import pandas as pd
from rltune.config.metric import parse_metric
from rltune.environment.reward import rewards
from rltune.report.studies import curves_of, studies_of
base, agent = pd.DataFrame({"longest_wait_s": [100.0, 50.0]}), pd.DataFrame({"longest_wait_s": [25.0, 100.0]})
cells = pd.DataFrame({"metric": ["largest_wait"], "policy": ["fifo"]})
print(json.dumps([rewards("largest_wait", base, agent).tolist(), parse_metric("0.8*wait+0.2*largest_wait"),
                  [s.numbers for s in studies_of(cells)], list(curves_of(cells))]))
""",
    )
    assert found == [[0.75, -0.5], {"wait": 0.8, "largest_wait": 0.2}, ["largest-wait"], ["training-largest-wait"]]


def test_a_placement():
    runpy.run_path(str(EXAMPLES / "own_placement.py"))
    jobs, layout = example_workload()
    sequences = np.array([0, 256]), np.array([256, 256])
    placer = placer_of("long_apart", LookaheadConfig())
    assert placer is not None
    state = simulate(
        jobs, layout, *sequences, SchedulerConfig("saf", placement="long_apart"), placer=placer, check=True
    )
    assert 0 < placer.counts.presolved <= placer.counts.asked
    chunks = chunk_table(state)
    alone = chunks[~chunks.duplicated(["sequence", "job"], keep=False) & (chunks["gpus"] < 8)]
    long = alone["node"][jobs.estimate_s[alone["job"]] >= 3600].mean()
    assert long > alone["node"][jobs.estimate_s[alone["job"]] < 3600].mean()


def answers(answer: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement ``mine`` that always answers this."""

    class Mine:
        top, counts = 1, Counts()

        def place(self, jobs: Any, layout: Any, state: Any, asking: Any) -> None:
            for s in asking:
                state.status["place_len"][s] = len(answer)
                for i, chunk in enumerate(answer):
                    state.place[s, i] = chunk

    monkeypatch.setitem(CUSTOM_PLACEMENTS, "mine", Mine)
    monkeypatch.setitem(ASKED, "mine", ALWAYS)


TWO = (4, [(0, 99, 4), (0, 99, 1), (1, 9, 2), (2, 9, 12)])
FOUR = (8, [(0, 99, 4), (0, 99, 6), (1, 9, 4), (2, 9, 24)])
"""GPUs a node, jobs; the third, of two or four GPUs, is the first that is asked about."""
REFUSED = [
    *((TWO, "strict", answer) for answer in ([(2, 1), (3, 1)], [(1, 1)], [(2, 5)], [(0, 2)], [(9, 2)], [(-1, 2)], [])),
    (FOUR, "strict", [(2, 2), (3, 2)]),
    (FOUR, "strict", [(0, 1), (2, 1), (3, 2)]),
    (FOUR, "plus_one", [(0, 1), (2, 1), (3, 2)]),
    (FOUR, "worth_it", [(2, 2), (3, 2)]),
]


@pytest.mark.parametrize(("case", "locality", "answer"), REFUSED)
def test_a_placement_that_could_not_run_is_refused(case, locality, answer, monkeypatch):
    """Split, too few GPUs, too many, on a node in use, on none that there is, nowhere; on more nodes than the locality allows."""

    jobs, layout = simple(cluster([group(4, case[0])]), *case[1])
    answers(answer, monkeypatch)
    placer = placer_of("mine", LookaheadConfig())
    with pytest.raises(ValueError, match=r"placement 'mine': job 2: found \[.*\] \(node, GPUs\), expected its GPUs"):
        simulate(jobs, layout, [0], [4], SchedulerConfig("fifo", "none", "mine", locality), placer=placer)


@pytest.mark.parametrize("locality", ["plus_one", "any", "worth_it", "soonest_end"])
def test_a_split_that_the_locality_allows_is_taken(locality, monkeypatch):
    """Two GPUs that are free on two nodes, the second chosen first."""
    answers([(1, 1), (0, 1)], monkeypatch)
    jobs, layout = simple(cluster([group(2, 4)]), (0, 99, 3), (0, 99, 3), (1, 9, 2))
    scheduler = SchedulerConfig("fifo", "none", "mine", locality, multi_node_slowdown=1.5)
    state = simulate(jobs, layout, [0], [3], scheduler, placer=placer_of("mine", LookaheadConfig()), check=True)
    chunks = chunk_table(state).query("job == 2")
    assert chunks["node"].tolist() == [1, 0] and state.start[0, 2] == 1 and state.end[0, 2] == 14.5


def test_a_placement_from_the_command_line(project, cli):
    shutil.copy(EXAMPLES / "own_placement.py", project.root / "mine.py")
    project.change(project.run, "title: A tiny run", "title: A tiny run\nplugins: [mine.py]")
    outcome = cli("simulate", "--config", "config/tiny.yaml", *ON, "--jobs", 256, "--placement", "long_apart")
    assert outcome.status == 0 and "placement long_apart" in outcome.out, outcome


@pytest.mark.parametrize(
    ("name", "says"), [("best_fit", "built in"), ("Mine!", "lower-case"), ("mine", "found no top, counts, place")]
)
def test_a_placement_that_cannot_be_one(name, says):
    with pytest.raises(ValueError, match=says):
        placement(name)(object)
    assert name not in CUSTOM_PLACEMENTS
