"""The words the configuration allows are those the code above it knows; the shipped files are valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from rltune.cluster.layout import build_layout
from rltune.cluster.search import RULES
from rltune.config import load_cluster, load_run, load_trace
from rltune.config.cells import PLACEMENTS, POLICIES, Features, OtherPlacement
from rltune.config.preset import BUILT_IN
from rltune.config.run import EvaluationConfig, SimulationConfig
from rltune.config.schema import MEND, schema_text
from rltune.config.trace import Format, Status
from rltune.environment.features import FEATURE_SETS
from rltune.simulator.config import ASKED, SchedulerConfig
from rltune.traces.columns import STATUSES
from rltune.traces.readers import READERS

ROOT = Path(__file__).resolve().parents[2]
NO_RUNS = ("paper_results.yaml", "deviations.yaml", "expected.yaml")
RUNS = sorted(p.name for p in (ROOT / "config").glob("*.yaml") if p.name not in NO_RUNS)


def test_default_baselines() -> None:
    evaluation = EvaluationConfig()
    assert set(evaluation.baseline_policies) == set(POLICIES) - {"multifactor_size"}
    assert evaluation.baseline_backfills == ["none", "greedy", "easy"]


def test_placements() -> None:
    assert set(PLACEMENTS) == set(RULES) | set(ASKED)
    assert set(get_args(OtherPlacement.model_fields["placement"].annotation)) == set(PLACEMENTS)


def test_a_simulation_has_the_defaults_of_a_scheduler() -> None:
    assert SchedulerConfig("fifo") == SchedulerConfig("fifo", **SimulationConfig().model_dump())


def test_feature_sets() -> None:
    assert set(get_args(Features)) == set(FEATURE_SETS)


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
    assert (ROOT / "config" / "clusters" / f"{name}.yaml").read_text().startswith("# Source: "), "where it comes from"


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
    assert plain.balance is None and balanced.balance == 0.9
    same = ("title", "source", "balance")
    assert plain.model_dump(exclude=set(same)) == balanced.model_dump(exclude=set(same))


def test_balanced_workloads_are_not_trained_on() -> None:
    for name in RUNS:
        assert not [c for c in load_run(f"config/{name}", ROOT).cells() if load_cluster(c.cluster, ROOT).balance]


def test_the_default_run_needs_no_download() -> None:
    run = load_run("config/default.yaml", ROOT)
    traces = [load_trace(name, ROOT) for name in run.traces()]
    assert all(t.synthetic or str(t.path).startswith("${RLTUNE_DATA}/") for t in traces), [t.path for t in traces]
    paper = BUILT_IN["paper"]
    assert paper.epochs * paper.trajectories == 10_000 and len(run.cells()) <= 17
    whole = sorted(c.trace for c in run.cells() if c.preset == "tuned")
    assert whole == ["alibaba-synthetic", "philly-rows", "venus-rows"], "one fully trained agent a trace of the paper's"
    for preset in {c.preset for c in run.cells()} - {"tuned"}:
        quick = run.preset(preset)
        assert preset.startswith("quick") and quick.epochs * quick.trajectories * quick.rollouts <= 1200
