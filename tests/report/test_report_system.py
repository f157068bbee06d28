"""The system's chapter: tables that follow the registries, drawings whose text lies in their boxes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from report_fakes import SOURCE

from rltune.agent.policy_file import CRITIC_LAYERS, shapes_of
from rltune.config import Workspace
from rltune.config.cells import Policy
from rltune.config.preset import BUILT_IN
from rltune.environment.features import CRITIC, FEATURE_SETS, FEATURES
from rltune.evaluation.studies import system
from rltune.evaluation.studies.example_schedules import JOBS, Schedules, schedules, simulated
from rltune.policies import OWN, policy
from rltune.report.figures.diagrams import SYSTEM, SYSTEM_ARROWS, TRAINING, TRAINING_ARROWS, fig7, fig8
from rltune.report.figures.flowchart import ACROSS, KINDS, Arrow, Box, draw, frame_of, path
from rltune.report.figures.gantt import gantt
from rltune.report.figures.example_schedules import schedule
from rltune.report.figures.networks import fig9, weights
from rltune.report.paper import load_paper
from rltune.report.tables.example_schedules import example_schedules as numbers, how_made
from rltune.report.tables.design import OURS, table1, table3, table5

PAPER = load_paper(SOURCE)
SMOKE = Workspace.open("config/smoke.yaml", str(SOURCE)).config
NETWORKS = {
    "of-the-run": system.network(SMOKE),
    "paper": {**system.describe_network("engineered", BUILT_IN["paper"]), "others": []},
    "tuned": {**system.describe_network("rich", BUILT_IN["tuned"]), "others": ["another"]},
    "deep": {
        **system.describe_network("raw", BUILT_IN["paper"].model_copy(update={"actor_layers": [64, 32, 16, 8]})),
        "others": [],
    },
}


def drawn() -> dict[str, Figure]:
    found = {"fig7": fig7(PAPER)[2], "fig8": fig8(PAPER)[2]}
    return {**found, **{f"fig9-{name}": fig9(**network, paper=PAPER)[2] for name, network in NETWORKS.items()}}


DRAWN = drawn()


def test_table1_is_the_papers_and_a_row_of_ours() -> None:
    artefact, frame = table1(PAPER)
    assert list(frame["name"][:-1]) == [
        "Slurm",
        "QSSF",
        "Gavel",
        "Pollux",
        "Sia",
        "SchedInspector",
        "RLScheduler",
        "RLTune",
    ]
    assert list(frame["row"]) == ["paper"] * 8 + ["ours"] and frame["name"].iloc[-1] == OURS.name
    paper = frame.set_index("name")
    assert paper.loc["Slurm", "preempts"] == "configurable" and paper.loc["Sia", "elastic"] == "yes"
    assert paper.loc["QSSF", "no_profiling"] == "no" and paper.loc["Gavel", "application_agnostic"] == "no"
    words = set(frame[list(artefact.columns)[3:]].to_numpy().ravel())
    assert words == {"yes", "no", "limited", "configurable", "no: CPU jobs"}


def test_table3_has_every_feature_and_every_set_of_the_code() -> None:
    _, frame = table3(system.features(), PAPER)
    assert sorted(frame["feature"]) == sorted(FEATURES)
    listed = {
        name: set(frame.loc[[name in s.split(", ") for s in frame["sets"]], "feature"])
        for name in (*FEATURE_SETS, "critic")
    }
    for name, columns in {**FEATURE_SETS, "critic": CRITIC}.items():
        assert listed[name] == {f for column in columns for f in column.names}, name
    assert {s for sets in frame["sets"] for s in sets.split(", ") if s} == {*FEATURE_SETS, "critic"}
    assert frame.set_index("feature").loc["future_availability", "range"].split() == ["−1", "…", "1"]
    assert list(dict.fromkeys(frame["category"])) == ["visible job", "cluster", "engineered"]


def test_table5_has_every_policy_of_the_configuration() -> None:
    artefact, frame = table5(system.policies(SMOKE), system.SYMBOLS, PAPER)
    assert list(frame["policy"]) == list(get_args(Policy))
    told = frame.set_index("policy")
    assert told.loc["f1", "characteristics"] == "submission, estimated run time, GPUs"
    assert told.loc["wfp3", "ranked"] == "at every decision" and told.loc["f1", "ranked"] == "once"
    assert list(told.index[told["in_table5"]]) == ["fifo", "sjf", "f1", "wfp3", "unicep"]
    assert told.loc["fifo", "role"] == "base policy, baseline" and told.loc["multifactor_size", "role"] == ""
    assert "EASY" in " ".join(artefact.notes) and "conservative" in " ".join(artefact.notes)
    for letters in system.policies(SMOKE)["letters"]:
        assert set(letters.split(", ")) <= set(system.SYMBOLS)


def test_a_policy_of_ones_own_stands_in_table5() -> None:
    policy("of_mine")(lambda queue, now: queue.submit_s)
    try:
        _, frame = table5(system.policies(SMOKE), system.SYMBOLS, PAPER)
    finally:
        del OWN["of_mine"]
    own = frame.iloc[-1]
    assert (own["policy"], own["formula"], own["characteristics"]) == ("of_mine", "", "")
    assert "user’s own" in own["source"]


def test_the_network_is_the_one_that_is_trained() -> None:
    found = NETWORKS["of-the-run"]
    assert [found["queue"], len(found["columns"])] == shapes_of(found["features"])["actor"]
    assert [found["queue"], len(found["critic_columns"])] == shapes_of(found["features"])["critic"]
    assert found["actor"] == [32, 16, 8, 1] and found["critic"] == [*CRITIC_LAYERS, 1]
    assert found["others"] == ["feature set raw, actor 32-16-8-1, a critic"]
    assert NETWORKS["tuned"]["critic"] == [] and NETWORKS["tuned"]["base_policy_bias"]


def test_weights_are_counted_as_keras_counts_them() -> None:
    from rltune.agent.ppo import build_actor, build_critic

    assert weights(8, [32, 16, 8, 1]) == build_actor(8, [32, 16, 8]).count_params() == 961
    assert weights(256 * 5, [*CRITIC_LAYERS, 1]) == build_critic().count_params()
    _, frame, _ = fig9(**NETWORKS["paper"], paper=PAPER)
    boxes = frame[frame["kind"] == "learning"]
    counted = [int(re.search(r"([\d,]+) weights", text)[1].replace(",", "")) for text in boxes["text"]]
    assert sum(counted) == 961 + weights(1280, [32, 16, 8, 1])


@pytest.mark.parametrize("name", DRAWN)
def test_every_text_lies_within_its_box_and_no_label_on_one(name: str) -> None:
    figure = DRAWN[name]
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    boxes = [p.get_window_extent() for p in axes.patches if isinstance(p, FancyBboxPatch)]
    texts = [(t.get_text(), t.get_window_extent()) for t in axes.texts]
    edge = axes.get_window_extent()
    for text, at in texts:
        inside = [b for b in boxes if b.x0 < (at.x0 + at.x1) / 2 < b.x1 and b.y0 < (at.y0 + at.y1) / 2 < b.y1]
        if inside:
            assert inside[0].x0 + 1 < at.x0 and at.x1 < inside[0].x1 - 1, text
            assert inside[0].y0 < at.y0 and at.y1 < inside[0].y1, text
        else:
            assert not any(at.overlaps(b) for b in boxes) and at.x0 >= edge.x0 and at.x1 <= edge.x1, text
    for a, b in combinations(texts, 2):
        overlap = min(a[1].y1, b[1].y1) - max(a[1].y0, b[1].y0)
        assert not (a[1].overlaps(b[1]) and overlap > 3), (a[0], b[0])


@pytest.mark.parametrize(("boxes", "arrows"), [(SYSTEM, SYSTEM_ARROWS), (TRAINING, TRAINING_ARROWS)])
def test_boxes_do_not_touch_and_arrows_cross_none(boxes: tuple[Box, ...], arrows: tuple[Arrow, ...]) -> None:
    for a, b in combinations(boxes, 2):
        assert a.x + a.width < b.x or b.x + b.width < a.x or a.y + a.height < b.y or b.y + b.height < a.y
    assert all(b.x >= 0 and b.x + b.width <= ACROSS and b.kind in KINDS for b in boxes)
    joined = {end for arrow in arrows for end in (arrow.tail, arrow.head)}
    assert joined == {b.name for b in boxes} and len({b.name for b in boxes}) == len(boxes)
    for arrow in arrows:
        corners = path(arrow, boxes)
        for (x0, y0), (x1, y1) in zip(corners, corners[1:]):
            assert x0 == x1 or y0 == y1, arrow
            for t in np.linspace(0.01, 0.99, 50):
                x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
                assert not any(b.x < x < b.x + b.width and b.y < y < b.y + b.height for b in boxes), arrow


def test_the_frame_lists_boxes_and_arrows() -> None:
    _, frame, _ = fig7(PAPER)
    assert list(frame["what"].value_counts()[["box", "arrow"]]) == [len(SYSTEM), len(SYSTEM_ARROWS)]
    row = frame[frame["name"] == "cluster → state"].iloc[0]
    assert len(row["path"].split()) == 3 and "\n" not in "".join(frame["text"].dropna())
    with pytest.raises(ValueError, match="no box 'nowhere'; there are traces"):
        frame_of(SYSTEM, [Arrow("traces", "nowhere")])
    with pytest.raises(ValueError, match="no box 'nowhere'"):
        draw(SYSTEM, [Arrow("nowhere", "traces")], {})


LACKS = {"by": "simulator", "asked": True, "lacks": ["slurmctld", "slurmdbd"]}
REAL = {"by": "slurm", "asked": True, "lacks": [], "slurm": "22.05.8", "speed": 600.0}


def on_slurm() -> Schedules:
    """Schedules as Slurm might have made them: as the simulator's, with all that takes time taking 2 % more."""
    twin = simulated()
    slow = twin.assign(start_s=1.02 * twin["start_s"], end_s=1.02 * twin["end_s"])
    return schedules(slow, REAL)


@pytest.mark.parametrize("made", [schedules, on_slurm])
def test_the_schedules_say_what_was_computed(made: Callable[[], Schedules]) -> None:
    found = made()
    for _, row in found.facts.iterrows():
        artefact, frame, figure = schedule(found.bars[row["figure"]], row, found.node_gpus, found.source, PAPER)
        jobs = frame.drop_duplicates("job")
        makespan, wait = frame["end_s"].max() / 60, (jobs["start_s"] - jobs["submit_s"]).sum() / 60
        assert artefact.caption.startswith(f"Makespan {makespan:.0f} min, total wait {wait:.0f} min.")
        assert artefact.caption.endswith(how_made(found.source))
        assert artefact.paper_ref == f"Figure {artefact.id[3:]}"
        assert figure.axes[0].get_title(loc="left") == artefact.title
        assert f"makespan {makespan:.0f} min" in "".join(t.get_text() for t in figure.axes[0].texts)


def test_how_the_schedules_were_made_is_said() -> None:
    real, lacking, unasked = (how_made(how) for how in (REAL, LACKS, schedules().source))
    assert "Slurm 22.05.8" in real and "600 times as fast" in real and "imulated" not in real
    for word in ("Simulated", "slurmctld, slurmdbd", "make slurm-deps"):
        assert word in lacking
    assert unasked.startswith("Simulated") and "example_schedules" in unasked and "make" not in unasked


def test_without_slurms_packages_the_schedules_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "program", lambda name: None if name == "slurmdbd" else f"/bin/{name}")
    found = schedules(*run_schedules(lambda line: None))
    assert {key: found.source[key] for key in ("by", "asked")} == {"by": "simulator", "asked": True}
    assert found.source["lacks"] == ["slurmdbd", "mariadb-server"]
    assert found.facts.equals(schedules().facts)
    artefact, frame = numbers(found.facts, found.source, PAPER)
    assert "make slurm-deps" in artefact.caption and "simulated_makespan_min" not in artefact.columns
    assert set(frame["by"]) == {"simulator"}


def test_the_numbers_of_the_schedules() -> None:
    found = on_slurm()
    artefact, frame = numbers(found.facts, found.source, PAPER)
    told = frame.set_index("figure")
    assert told["makespan_s_change"].isna().tolist() == [True, False, True, False]
    for after, before in (("fig2", "fig1"), ("fig4", "fig3")):
        for column in ("makespan_s", "total_wait_s", "utilisation"):
            expected = told.loc[after, column] / told.loc[before, column] - 1
            assert told.loc[after, f"{column}_change"] == pytest.approx(expected)
        assert told.loc[after, "paper_says"] == PAPER.without_figures[after].says != ""
    np.testing.assert_allclose(told["wait_min"] * 7, told["total_wait_min"])
    np.testing.assert_allclose(told["makespan_off"], 0.02)
    np.testing.assert_allclose(told["start_off_min"], [0.02 * m for m in (120, 110, 100, 90)])
    over_s = 0.02 * 60 * np.mean([run for _, run, _ in JOBS])
    np.testing.assert_allclose(told["over_s"], over_s)
    assert set(artefact.columns) <= set(frame.columns)
    assert f"{over_s:.1f} s longer" in " ".join(artefact.notes) and f"{over_s / 0.6:.1f} ms" in " ".join(artefact.notes)


def test_waits_of_less_than_the_least_are_not_drawn() -> None:
    twin = simulated()
    runs = twin[twin["figure"] == "fig1"].assign(gpu=0)
    runs["start_s"] += 5.0
    for least_s, waiting in ((0.0, 7), (60.0, 5)):
        figure = gantt(runs, [4, 4], least_wait_s=least_s)
        assert f"{waiting} of them had to wait" in "".join(t.get_text() for t in figure.axes[0].texts)
        assert len(figure.axes[1].get_yticklabels()) == waiting
