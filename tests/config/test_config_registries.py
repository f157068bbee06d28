"""The words the configuration allows are those the code above it knows; the shipped files are valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from rltune.cluster.layout import build_layout
from rltune.cluster.search import LOCALITIES, RULES
from rltune.config import Workspace, load_cluster, load_run, load_trace
from rltune.config.cells import BACKFILLS, PLACEMENTS, POLICIES, Backfill, Features, Judged, Locality, Placement, Policy
from rltune.config.metric import METRICS
from rltune.config.preset import BUILT_IN
from rltune.config.run import EvaluationConfig, Overrun, SimulationConfig
from rltune.config.schema import MEND, schema_text
from rltune.config.trace import Format, Status
from rltune.environment.features import FEATURE_SETS
from rltune.environment.reward import METRIC_COLUMN, REWARD_FLOOR
from rltune.policies import IDS, TITLES
from rltune.report.style import POLICY_TITLE
from rltune.simulator.config import ASKED, OVERRUNS, SchedulerConfig
from rltune.simulator.config import BACKFILLS as SIMULATED
from rltune.traces.columns import STATUSES
from rltune.traces.readers import READERS

ROOT = Path(__file__).resolve().parents[2]
NO_RUNS = ("paper_results.yaml", "deviations.yaml", "expected.yaml")
RUNS = sorted(p.name for p in (ROOT / "config").glob("*.yaml") if p.name not in NO_RUNS)


def test_policies() -> None:
    assert set(get_args(Policy)) == set(POLICIES) == set(IDS) == set(TITLES)
    assert sorted(IDS.values()) == list(range(len(IDS)))


def test_the_report_calls_policies_what_they_call_themselves() -> None:
    assert POLICY_TITLE == TITLES


def test_default_baselines() -> None:
    evaluation = EvaluationConfig()
    assert set(evaluation.baseline_policies) == set(POLICIES) - {"multifactor_size"}
    assert evaluation.baseline_backfills == ["none", "greedy", "easy"]


def test_backfills() -> None:
    assert set(get_args(Backfill)) == set(BACKFILLS) == set(SIMULATED)


def test_placements() -> None:
    assert set(get_args(Placement)) == set(RULES) | {"lookahead"}
    assert set(PLACEMENTS) == set(RULES) | set(ASKED)
    assert set(get_args(Judged.model_fields["placement"].annotation)) == set(PLACEMENTS)


def test_localities() -> None:
    assert set(get_args(Locality)) == set(LOCALITIES)


def test_the_rules_of_a_simulation_are_those_of_a_setting() -> None:
    assert set(get_args(Overrun)) == set(OVERRUNS)
    assert SchedulerConfig("fifo") == SchedulerConfig("fifo", **SimulationConfig().model_dump())


def test_feature_sets() -> None:
    assert set(get_args(Features)) == set(FEATURE_SETS)


def test_metrics() -> None:
    assert set(METRICS) == set(METRIC_COLUMN) == set(REWARD_FLOOR)


def test_trace_formats_and_statuses() -> None:
    assert set(get_args(Format)) == set(READERS)
    assert set(get_args(Status)) == set(STATUSES)


def test_the_schema_is_that_of_the_code() -> None:
    written = (ROOT / "config" / "schema.json").read_text(encoding="utf-8")
    assert written == schema_text(), f"config/schema.json is out of date; bring it up to date with: {MEND}"


def test_every_field_is_described() -> None:
    """Units and meaning reach the editor through the schema."""
    for name, schema in json.loads(schema_text()).items():
        for block in [schema, *schema.get("$defs", {}).values()]:
            for key, field in block.get("properties", {}).items():
                assert field.get("description"), f"{name}: {block.get('title')}.{key} has no description"


def test_there_are_runs_traces_and_clusters() -> None:
    assert {"default.yaml", "smoke.yaml", "paper.yaml", "csv.yaml"} <= set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_shipped_run_is_valid(name: str) -> None:
    run = load_run(f"config/{name}", ROOT)
    cells = run.cells()
    assert cells and len({c.name for c in cells}) == len(cells)
    assert all(run.preset(c.preset) for c in cells)


def test_shipped_runs_do_not_share_a_folder() -> None:
    folders = [load_run(f"config/{name}", ROOT).results for name in RUNS]
    assert len(set(folders)) == len(folders)


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "config" / "traces").glob("*.yaml")))
def test_a_shipped_trace_is_valid(name: str) -> None:
    assert load_trace(name, ROOT).title


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "config" / "clusters").glob("*.yaml")))
def test_a_shipped_cluster_is_valid_and_can_be_built(name: str) -> None:
    cluster = load_cluster(name, ROOT)
    layout = build_layout(cluster)
    assert layout.gpus == cluster.gpus and len(layout.nodes.gpus) == cluster.nodes
    assert cluster.source, "where the layout comes from"


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [("philly-full", 552, 2490), ("venus-full", 135, 1080), ("pai-full", 1814, 6742), ("deployment", 5, 13)],
)
def test_full_clusters_have_the_published_sizes(name: str, nodes: int, gpus: int) -> None:
    cluster = load_cluster(name, ROOT)
    assert (cluster.nodes, cluster.gpus) == (nodes, gpus)


@pytest.mark.parametrize("name", ["philly-192", "venus-160", "pai-140"])
def test_a_balanced_cluster_is_the_same_but_for_its_arrivals(name: str) -> None:
    plain, balanced = load_cluster(name, ROOT), load_cluster(f"{name}-balanced", ROOT)
    assert plain.balance is None and balanced.balance is not None and balanced.balance.load == 0.9
    same = ("title", "source", "balance")
    assert plain.model_dump(exclude=set(same)) == balanced.model_dump(exclude=set(same))


def test_balanced_workloads_are_not_trained_on() -> None:
    for name in RUNS:
        assert not [c for c in load_run(f"config/{name}", ROOT).cells() if load_cluster(c.cluster, ROOT).balance]


def test_the_default_run_needs_no_download() -> None:
    run = load_run("config/default.yaml", ROOT)
    assert all(load_trace(t, ROOT).synthetic is not None for t in run.traces())
    paper = BUILT_IN["paper"]
    assert paper.epochs * paper.trajectories == 10_000 and len(run.cells()) <= 13
    for preset in {c.preset for c in run.cells()}:
        quick = run.preset(preset)
        assert preset.startswith("quick") and quick.epochs * quick.trajectories * quick.rollouts <= 1200


def test_a_workspace_keeps_every_file_below_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    workspace = Workspace.open("config/smoke.yaml", tmp_path)
    cell = workspace.config.cells()[0]
    places = [
        workspace.cache,
        workspace.jobs("t"),
        workspace.clean_audit("t"),
        workspace.fitted("t", "c"),
        workspace.fit_audit("t", "c"),
        workspace.estimates("t", "c", "exact"),
        workspace.policy(cell),
        workspace.history(cell),
        workspace.windows(cell),
        workspace.test_jobs(cell),
        workspace.artefacts,
        workspace.notebook("train", cell.name),
        workspace.page("train", cell.name),
        workspace.notebook("figures"),
    ]
    assert all(place.is_relative_to(tmp_path) for place in places) and len(set(places)) == len(places)
    assert workspace.root == ROOT and workspace.policy(cell).parent.name == cell.name


def test_the_simulator_is_described_in_full() -> None:
    """Every name that a configuration can give is explained."""
    text = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    names = [name for words in (Policy, Backfill, Placement, Locality, Overrun) for name in get_args(words)]
    missing = [n for n in names if f"`{n}`" not in text and f": {n}`" not in text]
    assert not missing
    assert not [n for n in SimulationConfig.model_fields if n not in text]
