"""RLTune next to QSSF and other learners: known numbers out of generated results."""

import numpy as np
import pandas as pd
import pytest
import report_fakes_peers as fakes
from report_fakes import Project
from report_runs import INTERVALS, PAPER

from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.studies.learners import compare_long
from rltune.report import figures, tables
from rltune.report.common import where
from rltune.report.tables.peers import IN_PAPER


@pytest.fixture(scope="module")
def cells(made: Project) -> pd.DataFrame:
    return made.cells


def philly(cells: pd.DataFrame, **axes: str) -> pd.DataFrame:
    """One cell of Philly's and one of Venus', with the settings of a comparison with QSSF."""
    some = cells[cells["policy"] == "fifo"].drop_duplicates("trace").head(2)
    return some.assign(**{"backfill": "easy", "estimate": "history-rolling", **axes})


def test_table8_has_a_row_an_opponent_and_metric_with_the_papers_figures_for_philly_alone(cells):
    some = philly(cells)
    artefact, frame = tables.table8(some, fakes.qssf_windows(list(some["cell"])), PAPER, INTERVALS)
    assert len(frame) == 2 * 4 * 4 and artefact.paper_ref == "Table 8"
    first = frame[(frame["trace"] == "philly") & (frame["against"] == "QSSF")].set_index("measure")
    assert list(first.index) == ["Wait, s", "Bounded slowdown", "JCT, s", "Utilisation, share"]
    means = first.loc["Wait, s", ["theirs_mean", "ours_mean", "improvement"]]
    assert means.to_list() == pytest.approx([1000, 700, 0.3])
    assert first.loc["Utilisation, share", "improvement"] == pytest.approx(2 / 1.7 - 1), "more is better"
    assert first.loc["Wait, s", ["paper_theirs", "paper_ours"]].to_list() == [3748.14, 2830.01]
    assert first.loc["Bounded slowdown", "paper_improvement"] == pytest.approx(1 - 20.11 / 28.17)
    assert first.loc["Utilisation, share", "paper_ours"] == pytest.approx(0.0497)
    assert first.loc["Wait, s", "verdict"] == "holds"
    rest = frame[(frame["trace"] != "philly") | (frame["against"] != "QSSF")]
    assert rest["paper_improvement"].isna().all() and (rest["verdict"] == "").all()
    assert set(frame["reserves"]) == {"conservative"}, "what the agent chose"
    assert frame.groupby("against")["improvement"].first()["SAF + EASY, lognormal-1"] < 0
    _, claimed = tables.claims({"table8": frame}, pd.DataFrame(), PAPER)
    ours = where(claimed, artefact="table8").set_index("key")["ours"]
    assert ours.to_dict() == {"table8: Philly.qssf.wait": pytest.approx(0.3)}, "of agents trained for the metric"


def test_table8_shows_the_agent_of_each_metric_where_there_is_one(cells):
    pair = cells[(cells["trace"] == "philly") & (cells["features"] == "engineered")].head(2)
    pair = pair.assign(policy="saf", backfill="easy", estimate="published", metric=["wait", "bsld"])
    _, frame = tables.table8(pair, fakes.qssf_windows(list(pair["cell"]), best_fit=False), PAPER, INTERVALS)
    shown = dict(zip(frame["measure"], frame["metric"]))
    assert shown == {"Wait, s": "wait", "Bounded slowdown": "bsld", "JCT, s": "wait", "Utilisation, share": "wait"}
    assert "QSSF, best-fit" not in set(frame["against"])


def test_table8_has_seeds_as_one_row_and_corrects_for_their_number(cells):
    one = philly(cells).head(1)
    two = pd.concat([one, one.assign(cell="other", seed=2)], ignore_index=True)
    met = fakes.qssf_windows(list(two["cell"]))
    met.loc[(met["cell"] == "other") & (met["who"] == "rltune"), "wait_s"] *= 1.1
    artefact, frame = tables.table8(two, met, PAPER, INTERVALS)
    assert len(frame) == 4 * 4 and set(frame["seeds"]) == {2} and "seed" not in artefact.columns
    row = frame[(frame["against"] == "QSSF") & (frame["measure"] == "Wait, s")].iloc[0]
    assert row["improvement"] == pytest.approx(1 - 0.7 * 1.05) and row["low"] < 0.23 < 0.3 < row["high"]
    assert (frame["holm"] >= frame["p"]).all() and (frame["holm"] > frame["p"]).any()
    assert any("16 improvements" in note for note in artefact.notes) and "holm" in artefact.columns


def long_runs(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(2)
    frames, compared = [], []
    for name in cells["cell"]:
        qssf = rng.lognormal(8, 2, 3000)
        ours = 0.5 * qssf
        frames += [pd.DataFrame({"cell": name, "who": w, "jct_s": x}) for w, x in (("rltune", ours), ("qssf", qssf))]
        compared.append({"cell": name, **compare_long(ours, qssf, INTERVALS)})
    return pd.concat(frames, ignore_index=True), pd.DataFrame(compared)


def test_fig17_draws_its_frame_and_its_numbers_are_next_to_the_papers(cells):
    some = philly(cells)
    jobs, compared = long_runs(some)
    artefact, frame, drawn = figures.fig17(some, jobs, compared, PAPER)
    for (title, who), curve in frame.groupby(["trace_title", "who"]):
        jct_s = where(jobs, cell=where(some, trace_title=title)["cell"].item(), who=who)["jct_s"]
        assert curve["jct_s"].is_monotonic_increasing
        assert (curve["jct_s"].iloc[0], curve["jct_s"].iloc[-1]) == (jct_s.min(), jct_s.max())
        assert curve["mean_s"].unique() == pytest.approx([jct_s.mean()]) and set(curve["jobs"]) == {3000}
    assert len(drawn.axes) == 2 and "50.0\u00a0% less with RLTune" in artefact.alt
    artefact, numbers = tables.fig17_numbers(some, compared, PAPER)
    assert numbers["improvement"].to_list() == pytest.approx([0.5, 0.5])
    assert numbers["paper_improvement"][0] == pytest.approx(0.4843) and np.isnan(numbers["paper_improvement"][1])
    assert numbers["verdict"].to_list() == ["holds", ""]
    whole, _ = tables.fig17_numbers(some.assign(cluster="philly-full"), compared, PAPER)
    assert ["Philly’s whole cluster" in " ".join(each.notes) for each in (artefact, whole)] == [True, False]


def test_table9_marks_who_is_missing_and_has_the_papers_rows(made):
    frame = made.saved["table9"].frame
    assert list(frame["trace_title"].unique()) == ["Philly", "Helios Venus", "Alibaba PAI"]
    for trace, rows in frame.groupby("trace_title"):
        assert list(rows[rows["row"] == "missing"]["title"]) == ["SchedInspector", "Linear score"]
        assert (rows[rows["row"] == "missing"]["remark"] == "not in this configuration").all()
        ours = rows[rows["row"] == "ours"].set_index("title")
        assert list(ours.index) == ["FIFO", "RLScheduler", "RLTune", "Best heuristic: SAF + EASY"]
        assert ours["time_s"].to_list() == pytest.approx([0.5] * 4), "of ten batches"
        assert ours.loc["FIFO", "wait_s"] / ours.loc["RLTune", "wait_s"] == pytest.approx(3 / 0.7)
        printed = rows[rows["row"] == "paper"]
        assert len(printed) == len(IN_PAPER)
        name = PAPER.trace(str(trace))
        assert printed["jct_s"].to_list() == [PAPER.value("table9", name, kind, "jct_s") for kind in IN_PAPER]
        percent = PAPER.value("table9", name, "fifo", "utilisation_pct")
        assert printed["utilisation"].iloc[0] == pytest.approx(percent / 100)
        assert printed["time_s"].iloc[-1] == 102.38


def test_table9_says_whose_training_kept_nothing(made):
    cells = made.cells[made.cells["paper_trace"] == "Philly"]
    runs = fakes.batches(cells)
    _, frame = tables.table9(cells, runs.assign(unlearned=runs["who"] == "rlscheduler"), PAPER)
    ours = frame.loc[frame["row"] == "ours", "title"]
    assert list(ours) == ["FIFO", "RLScheduler, learned nothing", "RLTune", "Best heuristic: SAF + EASY"]


def test_table9_numbers_set_rltune_against_each_with_the_papers_difference(made):
    frame = made.saved["table9-numbers"].frame
    assert len(frame) == 3 * 3 * 4
    first = frame[frame["trace_title"] == "Philly"].set_index(["against", "measure"])
    assert first.loc[("RLScheduler", "Wait, s"), "improvement"] == pytest.approx(1 - 0.7 / 1.2)
    assert first.loc[("RLScheduler", "Wait, s"), "paper_improvement"] == pytest.approx(1 - 34199.93 / 86512.85)
    assert set(first["windows"]) == {10} and FEWEST <= 10
    assert np.isnan(first.loc[("Best heuristic: SAF + EASY", "Wait, s"), "paper_improvement"])


def test_table9_numbers_say_which_of_several_agents_rltune_is(empty):
    cells = empty.cells[empty.cells["paper_trace"] == "Philly"]
    one = fakes.batches(cells)
    two = pd.concat([one, one[one["who"] == "rltune"].assign(preset="tuned")], ignore_index=True)
    shown = [tables.table9_numbers(cells, batches, PAPER, INTERVALS) for batches in (one, two)]
    assert "agent" not in shown[0][0].columns and shown[1][0].columns["agent"].heading == "RLTune"
    assert set(shown[1][1]["agent"]) == {"RLTune, quick"}


def test_growth_is_over_half_the_queue_and_next_to_the_papers(made):
    frame = made.saved["latency"].frame.set_index("queue")
    assert frame.loc[256, "growth"] == pytest.approx(1.5) and np.isnan(frame.loc[[128, 10_000], "growth"]).all()
    assert frame.loc[256, "paper_growth"] == pytest.approx(9.8 / 7.8)
    assert frame.loc[128, "paper_s"] == 7.8 and np.isnan(frame.loc[10_000, "paper_s"])
    assert frame.loc[128, "decision_median_ms"] == pytest.approx(0.4)
    assert frame.loc[128, "inference_p95_ms"] == pytest.approx(0.2 * 1.09)


def test_waiting_saved_a_day_and_when_training_breaks_even(made, cells):
    frame = made.saved["break-even"].frame
    windows = made.windows
    assert set(frame["sequence_jobs"]) == {256}
    for _, row in frame.iterrows():
        waits = where(windows, cell=row["cell"], sequence_jobs=256).groupby("role")["wait_s"].mean()
        saved = (waits["base"] - waits["rltune"]) * 1440 / 3600
        assert row["saved_h"] == pytest.approx(saved) and row["saved_low"] < saved < row["saved_high"]
        assert row["deciding_s"] == pytest.approx(0.05 / 256 * 1440) and row["training_s"] == 60
        if saved > 0:
            assert row["break_even_min"] * saved / (24 * 60) == pytest.approx(60 / 3600), "hours saved by then"
        else:
            assert np.isnan(row["break_even_min"])
    assert (frame["saved_h"] < 0).any() and (frame["over_strong_h"] < 0).any()


def test_feature_sets_are_in_the_order_of_their_width_and_compared_with_the_eight(made, cells):
    pair = cells[(cells["trace"] == "philly") & (cells["policy"] == "fifo")]
    names = [[*pair["cell"]]]
    windows, widths = made.windows, {"raw": 7, "engineered": 8}
    artefact, frame, drawn = figures.sensitivity(cells, windows, names, widths, PAPER, INTERVALS)
    assert list(frame["count"]) == [7, 8] and list(frame["features"]) == ["raw", "engineered"]
    for _, row in frame.iterrows():
        sums = where(windows, cell=row["cell"], sequence_jobs=256).groupby("role")["wait_s"].sum()
        assert row["improvement"] == pytest.approx(1 - sums["rltune"] / sums["base"])
    agents = where(windows, role="rltune", sequence_jobs=256).groupby("cell")["wait_s"].sum()
    assert frame["eight_over"][0] == pytest.approx(1 - agents[frame["cell"][1]] / agents[frame["cell"][0]])
    assert np.isnan(frame["eight_over"][1]) and len(drawn.axes) == 1
    assert any("8 features consistently" in note for note in artefact.notes)
