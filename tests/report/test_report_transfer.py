"""Tables and figure of agents on other traces, base policies and estimates: known numbers out of generated results."""

import numpy as np
import pandas as pd
import pytest
import report_fakes_cells as ran
from matplotlib.colors import to_hex
from report_fakes import Project
from report_runs import INTERVALS, PAPER

from rltune.report import artefacts, figures, style, tables
from rltune.report.common import where
from rltune.report.tables import policies_of
from rltune.report.transferred import less, transferred


@pytest.fixture(scope="module")
def matrix(made: Project) -> pd.DataFrame:
    return transferred(made.cells)


def test_less_wait_is_paired_over_windows_and_seeds_and_needs_the_same_windows():
    theirs = pd.DataFrame({"": [4.0, 8.0, 2.0]}, index=[0, 64, 128])
    assert less(theirs / 4, theirs, INTERVALS)[:3] == pytest.approx((0.75, 0.75, 0.75))
    assert np.isnan(less(theirs, theirs * 0, INTERVALS)).all()
    assert np.isnan(less(theirs.head(0), theirs, INTERVALS)).all()
    seeds = pd.DataFrame({"a": theirs[""] / 4, "b": theirs[""] / 2})
    two = less(seeds, theirs, INTERVALS)
    assert two.gain == pytest.approx(0.625) and two.low < 0.5 and two.high > 0.75, "what another seed would do is open"
    assert less(seeds, seeds, INTERVALS).gain == 0, "seeds are paired where both have them"
    with pytest.raises(ValueError, match="different windows"):
        less(theirs, theirs.rename(index={0: 1}), INTERVALS)


def test_table7_compares_every_agent_with_every_base_policy(made, matrix):
    frame = made.saved["table7"].frame
    windows = where(made.windows, sequence_jobs=min(ran.WINDOWS))
    mean = windows.groupby(["cell", "role"])["wait_s"].mean()
    assert len(frame) == 12 and set(frame["windows"]) == {24}
    for _, row in frame.iterrows():
        group = matrix[matrix["trace"] == row["trace"]].set_index("policy")["cell"]
        for policy in policies_of(PAPER):
            agent = mean[group[row["policy"]], "rltune"] * (1 if policy == row["policy"] else 1.1)
            assert row[f"{policy}_agent"] == pytest.approx(agent)
            assert row[policy] == pytest.approx(1 - agent / mean[group[policy], "base"])
            assert row[f"{policy}_low"] <= row[policy] <= row[f"{policy}_high"]
            assert row[f"{policy}_mean"] == pytest.approx(mean[group[policy], "base"])
            assert row[f"{policy}_holm"] >= row[f"{policy}_p"]
    printed = frame[frame["fifo_paper"].notna()]
    assert set(printed["trace"]) == {"venus"} and len(printed) == 4
    assert printed.set_index("policy")["sjf_paper"].to_dict() == {
        p: PAPER.value("table7", "Helios", p, "sjf", "wait") for p in policies_of(PAPER)
    }
    assert frame.loc[frame["trace"] != "venus", "fifo_verdict"].isna().all()
    assert printed["fifo_verdict"].notna().all()


def test_table7_pools_seeds_and_leaves_a_policy_that_was_not_run_empty(made, matrix):
    runs = ran.bases(matrix, made.windows)
    one = matrix[(matrix["trace"] == "venus") & (matrix["policy"] == "fifo")]
    twin = runs[runs["cell"] == one["cell"].iloc[0]].assign(cell="twin")
    twin["wait_s"] *= 3
    both = pd.concat([one, one.assign(cell="twin", seed=2)])
    alone = tables.table7(one, runs, PAPER, INTERVALS)[1]
    artefact, frame = tables.table7(both, pd.concat([runs, twin]).query("policy != 'f1'"), PAPER, INTERVALS)
    assert len(frame) == 1 and frame["seeds"].item() == 2 and frame["seed"].item() == "1, 2"
    for column in ("fifo_agent", "sjf_agent"):
        assert frame[column].item() == pytest.approx(2 * alone[column].item())
    assert np.isnan(frame["f1"].item()) and frame["f1_verdict"].item() == ""
    assert any("2 seeds" in note for note in artefact.notes)


def test_the_papers_figures_are_not_compared_with_another_setting(made, matrix):
    easy, runs = matrix.assign(backfill="easy"), ran.bases(matrix, made.windows).assign(backfill="easy")
    artefact, frame = tables.table7(easy, runs, PAPER, INTERVALS)
    assert frame["fifo_paper"].isna().all() and "fifo_verdict" not in artefact.columns


def test_transfer_has_a_row_an_agent_and_foreign_workload(made):
    frame = made.saved["transfer"].frame
    assert len(frame) == 12 * 2 and (frame["trained"] != frame["tested"]).all()
    expected = {"less": 0.1, "there": 0.2, "over_there": 1 - 0.9 / 0.8}
    for column, value in expected.items():
        assert frame[column].to_numpy() == pytest.approx(value)
    assert set(frame["shows"]) == {"better"} and set(frame["windows"]) == {24}
    fifo = frame[frame["policy"] == "fifo"]
    assert fifo["over_random"].to_numpy() == pytest.approx(1 - 0.9 / (4 / 3))
    assert "This run has no such agent." in " ".join(made.saved["transfer"].artefact.notes)


def test_what_agents_from_cpu_traces_do_on_gpu_traces_is_reported(made, matrix):
    cpu = matrix.assign(machine=np.where(matrix["trace"] == "venus", "CPU", "GPU"))
    artefact, _ = tables.transfer(cpu, ran.away(matrix), PAPER, INTERVALS)
    notes = " ".join(artefact.notes)
    said = next(note for note in artefact.notes if "of 8 agents trained on CPU jobs and evaluated on GPU jobs" in note)
    assert "against the base policy there: better in 8." in said
    assert PAPER.without_figures["cpu-transfer"].title in notes
    assert artefact.paper_ref == "Section 2"


def test_robustness_knows_level_and_slope(made):
    frame = made.saved["robustness"].frame
    assert len(frame) == 3 * (2 + 4) * 3
    for _, row in frame.iterrows():
        slope = {"FIFO": 0.0, "SAF": 0.1}.get(row["scheduler"], 0.2)
        level = {"FIFO": 1.0, "SAF": 0.2}.get(row["scheduler"], 0.3)
        for value, expected in (("share", level * (1 + slope * row["sigma"])), ("more", slope * row["sigma"])):
            assert row[[value, f"{value}_low", f"{value}_high"]].to_numpy(float) == pytest.approx(expected)
    agents = frame.loc[frame["kind"] == "agent", "scheduler"].unique()
    assert list(agents) == [f"RLTune, trained on {p}" for p in ("FIFO", "SJF", "F1", "WFP3")]


def test_the_random_orders_placement_is_said_next_to_equal_rules(empty):
    artefact, _ = tables.transfer(transferred(empty.cells), ran.away(empty.cells), PAPER, INTERVALS)
    (note,) = (note for note in artefact.notes if "nodes, estimates and rules" in note)
    assert (
        "random order, which is always best-fit" in note and "random order with best-fit placement" in artefact.caption
    )
    (note,) = (note for note in artefacts.entry_of("fig12-numbers").notes if note.startswith("The random order"))
    assert "always with best-fit placement" in note


def test_the_estimates_named_with_robustness_are_those_of_agents_that_are_drawn(empty):
    cells, runs = transferred(empty.cells), ran.noise(empty.cells)
    left_out = cells.head(1).assign(cell="another", estimate="requested")
    artefact, _, _ = figures.robustness(pd.concat([cells, left_out]), runs, INTERVALS)
    assert any("from a cell with lognormal-1 estimates" in note for note in artefact.notes)


def test_many_agents_are_told_apart_by_colour_and_marker(empty):
    cells, runs = transferred(empty.cells), ran.noise(empty.cells)
    first = cells.iloc[:1]
    copies = [first.assign(cell=f"agent {i}", preset=f"preset {i}") for i in range(15)]
    theirs = [runs[runs["cell"] == first["cell"].item()].assign(cell=one["cell"].item()) for one in copies]
    heuristics = runs[(runs["cell"] == "") & (runs["trace"] == first["trace"].item())]
    _, _, figure = figures.robustness(pd.concat(copies), pd.concat([*theirs, heuristics]), INTERVALS)
    agents = [line for line in figure.legends[0].legend_handles if line.get_label().startswith("RLTune")]
    looks = {(to_hex(line.get_color()), str(line.get_marker())) for line in agents}
    assert len(agents) == len(looks) == 15 and {colour for colour, _ in looks} >= {style.BLUE, style.SKY}
