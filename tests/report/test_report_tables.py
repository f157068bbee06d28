"""Tables and figures: known numbers out of generated results, empty and odd inputs, purity."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import report_fakes_traces as seen
from matplotlib.text import Text
from report_runs import INTERVALS, PAPER

from rltune.placement.agreement import SOLVED_TWICE
from rltune.report import figures, read, style, tables
from rltune.report.common import distinct_names, where
from rltune.report.studies import WAIT
from rltune.report.tables.comparison import learned_in


def test_the_strongest_heuristic_is_the_best_of_all_that_ran(made):
    frame = made.saved["fig12-numbers"].frame
    assert len(frame) == 12 * 2 and set(frame["heuristics"]) == {15}
    for _, row in frame.iterrows():
        windows = where(made.windows, cell=row["cell"], sequence_jobs=row["sequence_jobs"])
        means = where(windows, role="baseline").groupby(["policy", "backfill", "placement"])["wait_s"].mean()
        assert row["strong_mean"] == pytest.approx(means.min())
    says = where(frame, trace="pai", policy="sjf")["paper_says"]
    assert set(says) == {"only a small change"}


@pytest.mark.parametrize(
    ("presets", "expected"),
    [
        (("tuned", "quick", "quick"), ["SAF, tuned", "SAF, quick", "FIFO"]),
        (("quick",) * 3, ["SAF, best_fit, rich", "SAF, lookahead, rich", "SAF, lookahead, raw"]),
    ],
)
def test_names_say_only_what_tells_rows_apart(made, presets, expected):
    features, placement = ["rich", "rich", "raw"], ["best_fit", "lookahead", "lookahead"]
    rows = made.cells.iloc[[0, 0, 0]].assign(preset=presets, placement=placement, features=features)
    assert distinct_names(rows, [name.split(",")[0] for name in expected]) == expected


def test_an_agent_that_beats_neither_base_nor_chance_on_validation_has_not_learned(made):
    learned = where(made.histories, cell=made.cells["cell"].iloc[0])
    chance = learned.assign(validation_random=learned["validation_rl"] * 0.5)
    assert [learned_in([curve]) for curve in (learned, chance)] == ["yes", "no"]
    assert learned_in([learned.assign(kept_epoch=0)]) == "no: kept the heuristic it started from"
    assert learned_in([learned, chance]) == "1 of 2 seeds"
    assert learned_in([learned.assign(kept_epoch=0), chance]) == "no"
    _, frame = tables.comparison(made.cells, made.windows, made.histories.assign(kept_epoch=0), PAPER, WAIT, INTERVALS)
    assert set(frame["learned"]) == {"no: kept the heuristic it started from"}


def test_what_an_agent_chose_itself_is_named(made):
    before = made.saved["fig12-numbers"]
    assert before.frame["choice"].isna().all() and "choice" not in before.artefact.columns
    windows = made.windows.copy()
    ours = windows["role"] == "rltune"
    windows.loc[ours, ["policy", "backfill", "locality"]] = ["saf", "conservative", "any"]
    artefact, frame = tables.comparison(made.cells, windows, made.histories, PAPER, WAIT, INTERVALS)
    assert set(frame["choice"]) == {"from SAF + conservative, any"} and "choice" in artefact.columns
    cells = pd.concat([made.cells, made.cells.assign(cell=made.cells["cell"] + "-2", seed=2)])
    second = made.windows.assign(cell=made.windows["cell"] + "-2")
    histories = pd.concat([made.histories, made.histories.assign(cell=made.histories["cell"] + "-2")])
    _, frame = tables.comparison(cells, pd.concat([windows, second]), histories, PAPER, WAIT, INTERVALS)
    assert set(frame["choice"]) == {"from SAF + conservative, any; none"}, "the second agent kept its cell's"


def test_what_the_paper_has_and_a_run_has_not_is_said(made):
    notes = {name: " ".join(made.saved[name].artefact.notes) for name in ("placements", "fig10-numbers")}
    tried = set(made.saved["placements"].frame["placement"])
    missing = [name for name in ("algorithm1", "lookahead_4_slots", "lookahead_cvxpy") if name not in tried]
    assert missing and f"Not in this configuration: {', '.join(missing)}." in notes["placements"]
    assert "Not in this configuration: naive with whole nodes" in notes["fig10-numbers"]
    bare = made.cells.assign(placement=made.cells["placement"].replace("best_fit", "exclusive"))
    assert not any("Not in this" in note for note in tables.ablation(bare, made.windows, PAPER, INTERVALS)[0].notes)


def test_without_a_pair_there_is_no_ablation(made):
    cells = made.cells
    cells = cells[cells["features"] == "engineered"]
    artefact, frame = tables.ablation(cells, made.windows, PAPER, INTERVALS)
    assert frame.empty and artefact.columns == {}
    with pytest.raises(ValueError, match="no ablation"):
        figures.ablation(frame, PAPER)


def test_a_variant_has_one_position_whatever_the_window_length_and_its_name_beside_it():
    """The test part of Alpha is too short for long windows."""
    same = {"data": "own", "paper_trace": "", "policy": "fifo", "backfill": "none", "metric": "wait", "measure": "wait"}
    same |= {"measure_title": "mean wait", "cluster_title": "C", "locality": "strict", "estimate": "exact", "seed": "1"}
    rows = [
        {"trace_title": trace, "trace": trace, "sequence_jobs": n, "variant": variant, "improvement": gain, **same}
        | {"low": gain - 0.05, "high": gain + 0.05, "features": variant, "placement": variant, "preset": "quick"}
        for trace, n, variant, gain in (
            *(("Beta", 1024, "naive", 0.2), ("Beta", 1024, "pro", 0.3), ("Alpha", 256, "naive", -0.5)),
            *(("Alpha", 256, "pro", -0.4), ("Beta", 256, "naive", 0.2), ("Beta", 256, "pro", 0.3)),
        )
    ]
    _, _, figure = figures.ablation(pd.DataFrame(rows), PAPER)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["Beta, FIFO", "", "Alpha, FIFO", ""]
    for axis, traces in zip(figure.axes, (["Beta"], ["Beta", "Alpha"]), strict=True):
        drawn = {
            (round(float(x), 3), round(float(y), 3))
            for line in axis.lines
            if line.get_marker() == "o"
            for x, y in zip(line.get_xdata(), line.get_ydata())
        }
        where_is = {"Beta": {(0.2, 0.0), (0.3, 1.0)}, "Alpha": {(-0.5, 2.0), (-0.4, 3.0)}}
        assert drawn == set().union(*(where_is[trace] for trace in traces))


def test_other_placements_are_compared_with_the_cells_own(made):
    frame = made.saved["placements"].frame
    assert (frame["rltune_holm"].dropna() >= frame.loc[frame["rltune_holm"].notna(), "rltune_p"]).all()
    cells = {c.name: c for c in made.run.config.cells()}
    assert set(frame["cell"]) == set(cells) and len(frame) == 2 * (3 * 12 + 2 * 2)
    for (name, n), rows in frame.groupby(["cell", "sequence_jobs"]):
        own = rows.iloc[0]
        assert own["title"] == f"{cells[name].placement} ★" and not rows["title"].iloc[1:].str.contains("★").any()
        assert np.isnan(own["rltune_less"]) and np.isnan(own["base_less"])
        windows = where(made.windows, cell=name, sequence_jobs=n)
        for _, row in rows.iterrows():
            also = "" if row["title"].endswith("★") else "_also"
            for side in ("rltune", "base"):
                results = where(windows, role=side + also, placement=row["placement"], locality=row["locality"])
                assert len(results) == row["windows"]
                for column, of in (("mean", "wait_s"), ("bsld", "bsld"), ("utilisation", "utilisation_span")):
                    assert row[f"{side}_{column}"] == pytest.approx(results[of].mean())
            if also:
                factor, shows = (1.1, "worse") if row["placement"] == "best_fit" else (0.8, "better")
                ends = row[["rltune_less", "rltune_low", "base_less", "base_high"]].to_numpy(float)
                assert ends == pytest.approx(1 - factor)
                assert row["rltune_shows"] == row["base_shows"] == shows
    solved = frame.groupby("title")["milp_calls"].sum()
    assert (solved > 0).all()


def test_solver_outcomes_add_up(made):
    frame = made.saved["costs"].frame
    outcomes = ["milp_optimal", "milp_infeasible", "milp_limit", "milp_failure"]
    assert (frame[outcomes].sum(axis=1) == frame["milp_calls"]).all()
    assert (frame[["milp_presolved", "milp_cached", "milp_calls"]].sum(axis=1) == frame["milp_asked"]).all()
    assert (frame["training_s"] == 60).all()


def test_audits_say_when_rows_are_unaccounted_for(made):
    counts = read.audits(made.run, *made.audits())
    artefact, frame = tables.audits(counts)
    assert (frame["unaccounted"] == 0).all() and len(artefact.notes) == 1
    counts.loc[counts["kind"] == "kept", "rows"] -= 1
    artefact, _ = tables.audits(counts)
    assert any("neither kept nor left out" in n for n in artefact.notes)


def test_table2_leaves_a_trace_the_paper_lacks_without_paper_values():
    statistics = seen.statistics().assign(trace=lambda f: f["trace"].replace("Philly", "Mine"))
    _, frame = tables.table2(statistics, PAPER)
    assert list(frame["trace"]) == ["SDSC-SP2", "Mine", "Helios Venus", "Alibaba PAI"], "CPU traces first"
    assert list(frame["type"]) == ["CPU", "GPU", "GPU", "GPU"]
    assert np.isnan(frame["jobs_paper"][1])
    for row, trace in ((0, "SDSC-SP2"), (2, "Helios")):
        assert frame["jobs_paper"][row] == PAPER.value("table2", trace, "jobs")


def twice(frame: pd.DataFrame, cell: str, name: str, **changed: object) -> pd.DataFrame:
    """The frame, and the rows of a cell once more by another name, with other values."""
    return pd.concat([frame, frame[frame["cell"] == cell].assign(cell=name, **changed)], ignore_index=True)


def test_settings_have_boxes_of_their_own_and_seeds_share_theirs(made):
    cells, jobs = made.cells, made.jobs
    name = cells["cell"][0]
    jobs = twice(jobs, name, "other")
    jobs.loc[jobs["cell"] == "other", "wait_s"] *= 3
    own = jobs[(jobs["cell"] == name) & (jobs["sequence_jobs"] == 1024)].groupby("role")["wait_s"].agg(["mean", "size"])
    for changed, called, pooled in (
        ({"backfill": "easy"}, ["FIFO", "FIFO + EASY"], False),
        ({"estimate": "exact"}, ["FIFO, lognormal-1", "FIFO, exact"], False),
        ({"seed": 2}, ["FIFO"], True),
    ):
        artefact, frame, drawn = figures.boxes(twice(cells, name, "other", **changed), jobs, PAPER, WAIT)
        mine = frame[(frame["trace_title"] == "Philly") & (frame["base"] == "FIFO") & (frame["role"] == "rltune")]
        assert mine["setting"].tolist() == called and set(mine["seeds"]) == {2 if pooled else 1}
        wait, count = own.loc["rltune"]
        assert mine["mean"].tolist() == pytest.approx([2 * wait] if pooled else [wait, 3 * wait])
        assert mine["jobs"].tolist() == ([2 * count] if pooled else [count, count])
        assert ("Jobs of several seeds are pooled: Philly, FIFO (2)." in artefact.notes) is pooled
        ticks = [label.get_text().replace("\n", ", ") for label in drawn.axes[0].get_xticklabels()]
        assert set(called) <= set(ticks) and all(f"Philly, {label}: " in artefact.alt for label in called)


def test_inputs_are_left_as_they_were(made):
    cells, windows = made.cells, made.windows
    before = cells.copy(), windows.copy()
    tables.comparison(cells, windows, made.histories, PAPER, WAIT, INTERVALS)
    tables.ablation(cells, windows, PAPER, INTERVALS)
    tables.placements(cells, windows, INTERVALS, made.run.clusters)
    pd.testing.assert_frame_equal(cells, before[0])
    pd.testing.assert_frame_equal(windows, before[1])


def test_an_agent_that_chose_its_own_placement_is_not_compared_with_the_cells(made):
    windows, chose = made.windows, made.cells["cell"].iloc[0]
    theirs = (windows["cell"] == chose) & windows["role"].eq("rltune")
    _, frame = tables.placements(
        made.cells, windows.assign(locality=windows["locality"].mask(theirs, "any")), INTERVALS, made.run.clusters
    )
    assert set(frame["cell"]) == set(made.cells["cell"]) - {chose}


def test_without_other_placements_their_table_has_no_rows(made):
    windows = made.windows[~made.windows["role"].str.endswith("_also")]
    artefact, frame = tables.placements(made.cells, windows, INTERVALS, made.run.clusters)
    assert frame.empty and not any("CVXPY" in note for note in artefact.notes)


def test_agents_that_were_never_asked_where_to_place_leave_an_empty_table_of_solvers(made):
    """As on a cluster so large that nobody waits: of several best placements there is one, of two solvers no answer."""
    nothing = pd.DataFrame(columns=["cell", *SOLVED_TWICE])
    artefact, frame = tables.solvers(made.cells, nothing)
    assert frame.empty and "0 of 0 answers agree" in artefact.caption


def test_dollars_in_titles_are_no_mathematics():
    names = ["A $x_$ B", "GPU farm ($5 and $10 nodes)"]
    with style.styled():
        figure, axes = style.panels(names, 2, 1.5)
        style.name_rows(axes[0], names)
        style.legend(figure, [style.handle(name, style.BLUE) for name in names])
        figure.savefig(drawn := io.StringIO(), format="svg")
    texts = [text for text in figure.findobj(Text) if text.get_text() in names]
    assert len(texts) >= 6 and not any(text.get_parse_math() for text in texts) and drawn.getvalue()


def test_titles_tell_workloads_apart(made):
    config = made.run.config
    experiment = config.experiments[0].model_dump()
    experiment["workloads"].append({"trace": "philly", "cluster": "pai-140"})
    both = config.model_copy(update={"experiments": [type(config.experiments[0]).model_validate(experiment)]})
    titles = set(read.cells(replace(made.run, config=both), PAPER)["trace_title"])
    assert titles == {"Philly", "Philly · Cluster pai-140", "Helios Venus", "Alibaba PAI"}


def test_heuristics_are_above_their_lower_bound(made):
    frame = made.saved["heuristics"].frame
    for _, rows in frame.groupby(["trace_title", "sequence_jobs"]):
        assert rows["policy"].is_unique and {"fifo", "sjf"} < set(rows["policy"])
        assert rows["bound"].nunique() == 1 and (rows["best"] > rows["bound"]).all()
        assert (rows[["none", "greedy", "easy"]].min(axis=1) == rows["best"]).all()
        assert rows["over_bound"].to_numpy() == pytest.approx((rows["best"] / rows["bound"]).to_numpy())
        starred = rows["title"].str.endswith("★")
        assert starred.sum() == 1 and rows["best"][starred].item() == rows["best"].min()
    assert "Conservative backfilling" not in made.html, "this run has none"
