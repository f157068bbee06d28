"""The words the configuration allows are those the code above it knows; the shipped files are valid."""

import json
from pathlib import Path
from typing import get_args

import pytest

from rltune.cluster.layout import build_layout
from rltune.cluster.search import RULES
from rltune.config import load_cluster, load_run, load_trace
from rltune.config.cells import PLACEMENTS, Features, OtherPlacement
from rltune.config.run import SimulationConfig
from rltune.config.schema import schema_text
from rltune.config.trace import Format
from rltune.config.trace_files import SHIPPED
from rltune.environment.features import FEATURE_SETS
from rltune.simulator.config import ASKED, SchedulerConfig
from rltune.traces.readers import READERS

ROOT = Path(__file__).resolve().parents[2]
NO_RUNS = ("paper_results.yaml", "deviations.yaml", "expected.yaml")
RUNS = sorted(p.name for p in (ROOT / "config").glob("*.yaml") if p.name not in NO_RUNS)


def test_words_and_defaults_are_those_that_the_code_knows():
    placements = get_args(OtherPlacement.model_fields["placement"].annotation)
    assert set(placements) == set(PLACEMENTS) == set(RULES) | set(ASKED)
    assert set(get_args(Features)) == set(FEATURE_SETS) and set(get_args(Format)) == set(READERS)
    assert SchedulerConfig("fifo") == SchedulerConfig("fifo", **SimulationConfig().model_dump())


def test_the_schema_is_that_of_the_code():
    written = (ROOT / "config" / "schema.json").read_text(encoding="utf-8")
    assert written == schema_text(), "config/schema.json is out of date; bring it up to date with: rltune config schema"


def test_every_field_is_described():
    """Units and meaning reach the editor through the schema."""
    for name, schema in json.loads(schema_text()).items():
        for block in [schema, *schema.get("$defs", {}).values()]:
            for key, field in block.get("properties", {}).items():
                assert field.get("description"), f"{name}: {block.get('title')}.{key} has no description"


def test_shipped_runs_are_valid_share_no_folder_and_train_on_no_balanced_cluster():
    runs = [load_run(f"config/{name}", ROOT) for name in RUNS]
    assert len({run.results for run in runs}) == len(runs) > 5
    assert not [c for run in runs for c in run.cells() if load_cluster(c.cluster, ROOT).balance]


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "config" / "traces").glob("*.yaml")))
def test_a_shipped_trace_is_valid(name):
    assert load_trace(name, ROOT).title


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "config" / "clusters").glob("*.yaml")))
def test_a_shipped_cluster_is_valid_and_can_be_built(name):
    cluster = load_cluster(name, ROOT)
    layout = build_layout(cluster)
    assert layout.gpus == cluster.gpus and len(layout.nodes.gpus) == cluster.nodes
    assert (ROOT / "config" / "clusters" / f"{name}.yaml").read_text().startswith("# Source: "), "where it comes from"


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        ("philly-full", 552, 2490),
        ("philly-vcs", 352, 2816),
        ("venus-full", 135, 1080),
        ("pai-full", 1814, 6742),
        ("deployment", 5, 13),
    ],
)
def test_full_clusters_have_the_published_sizes(name, nodes, gpus):
    cluster = load_cluster(name, ROOT)
    assert (cluster.nodes, cluster.gpus) == (nodes, gpus)


@pytest.mark.parametrize("name", ["philly-192", "venus-160"])
def test_a_balanced_cluster_is_the_same_but_for_its_arrivals(name):
    plain, balanced = load_cluster(name, ROOT), load_cluster(f"{name}-balanced", ROOT)
    assert plain.balance is None and balanced.balance == 0.9
    other = {"title", "source", "balance"}
    assert plain.model_dump(exclude=other) == balanced.model_dump(exclude=other)


def test_the_default_run_needs_no_download(tmp_path, monkeypatch):
    monkeypatch.delenv("RLTUNE_REAL_TRACES", raising=False)
    (tmp_path / "config").symlink_to(ROOT / "config")
    run = load_run("config/default.yaml", tmp_path)  # where no trace was fetched
    traces = [load_trace(name, ROOT) for name in run.traces()]
    needed = [item.url for trace in traces for item in trace.downloads or []]
    assert needed and all(url.startswith(SHIPPED) for url in needed) and not any(trace.path for trace in traces)
