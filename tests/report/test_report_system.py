"""The system's chapter: tables that follow the registries, and diagrams."""

from typing import get_args

import numpy as np
import pytest
from report_runs import PAPER, SOURCE

from rltune.agent.policy_file import CRITIC_LAYERS, shapes_of
from rltune.config import load_run
from rltune.config.cells import Policy
from rltune.config.preset import BUILT_IN
from rltune.environment.features import CRITIC, FEATURE_SETS, FEATURES
from rltune.evaluation.studies import system
from rltune.evaluation.studies.example_schedules import JOBS, Schedules, schedules, simulated
from rltune.policies import CUSTOM, policy
from rltune.report.figures.diagrams import diagram, fig9
from rltune.report.figures.example_schedules import schedule
from rltune.report.tables.design import table3, table5
from rltune.report.tables.example_schedules import example_schedules as numbers, how_made

SMOKE = load_run("config/smoke.yaml", SOURCE)
DEEP = BUILT_IN["paper"].model_copy(update={"actor_layers": [64, 32, 16, 8]})
NETWORKS = {
    "of-the-run": system.network(SMOKE),
    "paper": {**system.describe_network("engineered", BUILT_IN["paper"]), "others": []},
    "tuned": {**system.describe_network("rich", BUILT_IN["tuned"]), "others": ["another"]},
    "deep": {**system.describe_network("raw", DEEP), "others": []},
}


def test_table3_has_every_feature_and_every_set_of_the_code():
    _, frame = table3(system.features(), PAPER)
    assert sorted(frame["feature"]) == sorted(FEATURES)
    sets = {**FEATURE_SETS, "critic": CRITIC}
    for name, columns in sets.items():
        listed = set(frame.loc[[name in s.split(", ") for s in frame["sets"]], "feature"])
        assert listed == {f for column in columns for f in column.names}, name
    assert {s for names in frame["sets"] for s in names.split(", ") if s} == set(sets)


def test_table5_has_every_policy_of_the_configuration_and_the_users_own():
    policy("of_mine")(lambda queue, now: queue.submit_s)
    try:
        policies = system.policies(SMOKE)
        _, frame = table5(policies, system.SYMBOLS, PAPER)
    finally:
        del CUSTOM["of_mine"]
    assert list(frame["policy"]) == [*get_args(Policy), "of_mine"]
    by_key = frame.set_index("policy")
    assert by_key.loc["f1", "characteristics"] == "submission, estimated run time, GPUs"
    assert by_key.loc["fifo", "role"] == "base policy, baseline" and by_key.loc["multifactor_size", "role"] == ""
    assert "user’s own" in by_key.loc["of_mine", "source"] and by_key.loc["of_mine", "characteristics"] == ""
    assert {letter for of in policies["letters"] for letter in of.split(", ") if letter} <= set(system.SYMBOLS)


def test_the_network_is_the_one_that_is_trained():
    found = NETWORKS["of-the-run"]
    assert [found["queue"], len(found["columns"])] == shapes_of(found["features"])["actor"]
    assert [found["queue"], len(found["critic_columns"])] == shapes_of(found["features"])["critic"]
    assert found["critic"] == [*CRITIC_LAYERS, 1] and NETWORKS["tuned"]["critic"] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_the_diagram_shows_every_layer(name):
    network = NETWORKS[name]
    artefact, frame, svg = fig9(network, PAPER)
    layers = [*network["actor"], *network["critic"]]
    assert list(frame["units"]) == layers and svg.count("Dense ") == len(layers)
    assert ("Critic" in svg) == bool(network["critic"]) and network["features"] in svg
    assert all(other in " ".join(artefact.notes) for other in network["others"])


def test_weights_are_counted_as_keras_counts_them_and_a_committed_diagram_has_its_words_as_data():
    from rltune.agent.ppo import build_actor, build_critic

    _, frame, _ = fig9(NETWORKS["paper"], PAPER)
    counts = frame.groupby("network")["weights"].sum().to_dict()
    assert counts["Actor"] == build_actor(8, [32, 16, 8]).count_params() == 961
    assert counts["Critic"] == build_critic().count_params()
    _, frame, svg = diagram("fig7", PAPER)
    assert {"Traces", "PPO"} <= set(frame["text"]) and svg.startswith("<svg")


def on_slurm() -> Schedules:
    """Schedules as Slurm might have made them: as the simulator's, with all that takes time taking 2 % more."""
    twin = simulated()
    slow = twin.assign(start_s=1.02 * twin["start_s"], end_s=1.02 * twin["end_s"])
    return schedules(slow, {"by": "slurm", "asked": True, "lacks": [], "slurm": "22.05.8", "speed": 600.0})


@pytest.mark.parametrize("made", [schedules, on_slurm])
def test_the_schedules_say_what_was_computed(made):
    found = made()
    for _, row in found.facts.iterrows():
        artefact, frame, figure = schedule(found.bars[row["figure"]], row, found.node_gpus, found.source, PAPER)
        jobs = frame.drop_duplicates("job")
        makespan, wait = frame["end_s"].max() / 60, (jobs["start_s"] - jobs["submit_s"]).sum() / 60
        assert artefact.caption.startswith(f"Makespan {makespan:.0f} min, total wait {wait:.0f} min.")
        assert artefact.caption.endswith(how_made(found.source))
        assert artefact.paper_ref == f"Figure {artefact.id[3:]}" and figure.get_suptitle() == artefact.title
        assert f"makespan {makespan:.0f} min" in figure.axes[0].get_title(loc="left")


def test_the_numbers_of_the_schedules():
    found = on_slurm()
    artefact, frame = numbers(found.facts, found.source, PAPER)
    by_key = frame.set_index("figure")
    assert by_key["makespan_s_change"].isna().tolist() == [True, False, True, False]
    for after, before in (("fig2", "fig1"), ("fig4", "fig3")):
        for column in ("makespan_s", "total_wait_s", "utilisation"):
            expected = by_key.loc[after, column] / by_key.loc[before, column] - 1
            assert by_key.loc[after, f"{column}_change"] == pytest.approx(expected)
        assert by_key.loc[after, "paper_says"] == PAPER.without_figures[after].says != ""
    np.testing.assert_allclose(by_key["wait_min"] * 7, by_key["total_wait_min"])
    np.testing.assert_allclose(by_key["makespan_off"], 0.02)
    np.testing.assert_allclose(by_key["start_off_min"], [0.02 * m for m in (120, 110, 100, 90)])
    over_s = 0.02 * 60 * np.mean([run for _, run, _ in JOBS])
    np.testing.assert_allclose(by_key["over_s"], over_s)
    assert f"{over_s:.1f} s longer" in " ".join(artefact.notes) and f"{over_s / 0.6:.1f} ms" in " ".join(artefact.notes)
