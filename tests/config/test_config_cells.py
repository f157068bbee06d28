"""A cell's name and hash identify it, and the matrix holds each cell once."""

import itertools
import re
import shutil

import pytest
from config_texts import TRACE
from hypothesis import given, strategies as st
from pydantic import ValidationError

from rltune.config import Cell, RunConfig, load_run, parse_estimate, project_root
from rltune.config.cells import ANY_ESTIMATE, AXES, BACKFILLS, HISTORY
from rltune.config.preset import BUILT_IN, Preset
from rltune.errors import ConfigError

REST = ("wait", "none", "lookahead", "strict", "engineered", "lognormal-1")
CELL = Cell("philly", "philly-192", "fifo", *REST, "paper", 1)
NAME = "philly__philly-192__fifo__wait__none__lookahead__strict__engineered__lognormal-1__paper__s1"


def run(*experiments: dict, **more) -> RunConfig:
    workloads = [{"trace": "philly", "cluster": "philly-192"}]
    return RunConfig(title="T", experiments=[{"workloads": workloads, **e} for e in experiments], **more)


def test_every_axis_tells_cells_apart_by_a_name_fit_for_a_folder_and_a_wildcard():
    """Folders of earlier runs stay valid: a change of name or hash is a change of format."""
    assert (CELL.name, CELL.hash) == (NAME, "046f9ef10a6d")
    others = {**dict.fromkeys(AXES, "other"), "metric": "0.7*wait+0.3*jct", "seed": 2}
    cells = [CELL, *(CELL.but(**{axis: value}) for axis, value in others.items())]
    assert len({c.name for c in cells}) == len({c.hash for c in cells}) == len(AXES) + 1
    assert all(re.fullmatch(r"[\w.+-]+", c.name) for c in cells)


@given(st.data())
def test_expansion_is_the_product_of_the_lists(data):
    policy = data.draw(st.lists(st.sampled_from(ANY_ESTIMATE), min_size=1, unique=True))
    backfill = data.draw(st.lists(st.sampled_from(BACKFILLS), min_size=1, unique=True))
    seed = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
    cells = run({"policy": policy, "backfill": backfill, "seed": seed}).cells()
    assert len(cells) == len(policy) * len(backfill) * len(seed) == len({c.name for c in cells})
    assert {(c.policy, c.backfill, c.seed) for c in cells} == set(itertools.product(policy, backfill, seed))


def test_a_cell_that_two_experiments_name_is_there_once():
    raw = {"policy": ["saf"], "features": ["raw"]}
    config = run({"policy": ["fifo", "sjf", "fifo"]}, {"policy": ["sjf", "saf"]}, raw)
    assert [(c.policy, c.features) for c in config.cells()] == [
        ("fifo", "engineered"),
        ("sjf", "engineered"),
        ("saf", "engineered"),
        ("saf", "raw"),
    ]


@pytest.mark.parametrize("estimate", ["exact", "lognormal-1", "requested", *HISTORY])
def test_qssf_goes_by_run_times_predicted_from_earlier_jobs(estimate):
    asked = {"policy": ["saf", "qssf"], "estimate": ["history-rolling", estimate]}
    if estimate in HISTORY:
        assert {cell.policy for cell in run(asked).cells()} == {"saf", "qssf"}
    else:
        with pytest.raises(ValidationError, match=f"policy qssf needs one of the estimates .*; found {estimate}"):
            run(asked)


def test_a_cell_is_found_by_its_name():
    config = run({"policy": ["fifo", "sjf"]})
    second = config.cells()[1]
    assert config.cell(second.name) == second and config.cell("") == config.cells()[0]
    with pytest.raises(ConfigError, match="found .nope.; the run has: .*sjf"):
        config.cell("nope")


def test_a_preset_is_like_a_built_in_one_but_for_what_it_gives():
    made = run({"policy": ["fifo"]}, presets={"mine": {"like": "tuned", "epochs": 8}, "plain": {"epochs": 8}}).presets
    assert made["mine"] == BUILT_IN["tuned"].model_copy(update={"epochs": 8})
    assert made["plain"] == Preset(epochs=8)


def test_hours_of_training_follow_its_budget():
    paper = BUILT_IN["paper"]
    hours = [paper.model_copy(update={"epochs": n}).core_hours() for n in (1, 2, 3)]
    assert hours[2] - hours[1] == pytest.approx(hours[1] - hours[0]) and hours[1] > hours[0] > 0
    for smaller in ({"batch_decisions": 2048}, {"rollouts": 2, "credit_horizon_s": 60.0, "trajectories": 50}):
        assert paper.model_copy(update=smaller).core_hours() < paper.core_hours()
    assert 0.1 < paper.core_hours() < 1  # 12 to 28 minutes where it was measured


def test_other_traces_follow_those_of_the_matrix_once():
    extra = [{"trace": t, "cluster": "philly-192"} for t in ("helios", "philly", "helios")]
    config = run({"policy": ["fifo"]}, workloads=extra, characterise=["cpu", "philly"])
    assert [w.trace for w in config.all_workloads()] == ["philly", "helios"]
    assert config.traces() == ["philly", "helios", "cpu"]


def test_estimates_are_parsed():
    assert parse_estimate("exact") == ("exact", 0.0)
    assert parse_estimate("lognormal-0.5") == ("lognormal", 0.5)
    for name in ("requested", "history-rolling", "history-lightgbm", "published"):
        assert parse_estimate(name) == (name, 0.0)
    for name in ("history", "history-", "requested-1", "lognormal-", "lognormal-1.0", "exact "):
        with pytest.raises(ConfigError, match="exact, history-lightgbm, history-rolling, published, requested"):
            parse_estimate(name)


def test_a_workload_knows_the_localities_of_its_cells():
    config = run(
        {"policy": ["fifo"]},
        {"policy": ["fifo", "sjf"], "placement": ["best_fit"], "locality": ["any", "strict"]},
        {"policy": ["fifo"], "placement": ["best_fit"], "locality": ["plus_one"], "estimate": ["exact"]},
    )
    assert config.localities("philly", "philly-192", "lognormal-1") == ["strict", "any"]
    assert config.localities("philly", "philly-192", "exact") == ["plus_one"]
    assert config.localities("philly", "venus-160", "exact") == ["strict"]


def test_a_workload_knows_whether_its_agents_choose_a_scheduler():
    config = run({"policy": ["fifo"]}, {"policy": ["saf"], "estimate": ["exact"], "preset": ["tuned"]})
    found = [config.tuned_on("philly", "philly-192", estimate) for estimate in ("lognormal-1", "exact", "requested")]
    assert found == [False, True, False]


def test_of_a_list_of_traces_the_first_whose_files_are_here(tmp_path, monkeypatch):
    (root := tmp_path / "project").mkdir()
    (root / "config").symlink_to(project_root() / "config")

    def traces() -> set[str]:
        return {cell.trace for cell in load_run("config/default.yaml", root).cells()} & {
            "pai-csv",
            "alibaba",
            generated,
        }

    generated = "alibaba-synthetic"
    monkeypatch.delenv("RLTUNE_REAL_TRACES", raising=False)
    assert traces() == {generated}
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(tmp_path))
    assert traces() == {generated}
    (tmp_path / "alibaba2020").mkdir()
    (tmp_path / "alibaba2020" / "pai_gpu_tasks_sample.csv.gz").touch()
    assert traces() == {"pai-csv"}
    fetched = root / ".cache" / "traces" / "raw" / "alibaba"
    fetched.mkdir(parents=True)
    (fetched / "pai_job_table.tar.gz").touch()
    assert traces() == {"pai-csv"}  # one of two files
    (fetched / "pai_task_table.tar.gz").touch()
    assert traces() == {"alibaba"}
    (fetched / "pai_task_table.tar.gz").unlink()
    for name in ("pai_job_table.tar.gz", "pai_task_table.tar.gz"):
        (tmp_path / name).touch()
    monkeypatch.setenv("RLTUNE_TRACE_FILES", str(tmp_path))
    assert traces() == {"alibaba"}, "in the user's folder"
    monkeypatch.delenv("RLTUNE_TRACE_FILES")
    (root / "config").unlink()
    shutil.copytree(project_root() / "config", root / "config")
    (root / "config" / "traces" / "pai-csv.yaml").write_text(TRACE.replace("path: jobs.csv", "path: ~/here.csv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert traces() == {generated}
    (tmp_path / "here.csv").touch()
    assert traces() == {"pai-csv"}
