"""Results of agents trained for any metric: right numbers, the paper's figures where they belong, nothing dropped."""

import numpy as np
import pandas as pd
import pytest
from report_runs import PAPER

from rltune.config import Cell
from rltune.evaluation.intervals import holm
from rltune.report import tables
from rltune.report.common import where, without_variants
from rltune.report.studies import SLURM, STUDIES, UTILISATION
from rltune.report.tables.comparison import TESTED
from rltune.report.tables.peers import UNLEARNED
from rltune.report.verdict import ABSENT, FAILS, HOLDS, verdict

PRINTED = {
    "fig12-numbers": set(),
    "fig14-numbers": {("Helios", "f1", 0.0528)},
    "fig15-numbers": {("Philly", "fifo", 0.7068), ("Alibaba", "f1", -0.013)},
    "table6": {
        (trace, policy, PAPER.value("table6", trace, policy, "utilisation"))
        for trace in ("Philly", "Helios", "Alibaba")
        for policy in ("fifo", "f1")
    },
    "fig16-numbers": {("Philly", "multifactor", 0.7154), ("Helios", "multifactor", 0.8118)},
}


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.numbers)
def test_means_and_improvements_are_those_of_the_metric(metrics, study):
    frame, windows = metrics.saved[study.numbers].frame, metrics.windows
    cells = metrics.cells
    assert len(frame) and set(frame["measure"]) == {study.metric}
    for _, row in frame.iterrows():
        names = where(cells, **row[["trace", "policy", "metric"]].to_dict(), features="engineered")["cell"]
        results = windows[windows["cell"].isin(names) & (windows["sequence_jobs"] == row["sequence_jobs"])]
        mean = results.groupby("role")[study.column].mean()
        assert row["seeds"] == len(names) == (3 if study == SLURM else 1)
        assert (row["rltune_mean"], row["base_mean"]) == pytest.approx((mean["rltune"], mean["base"]))
        less = mean["rltune"] / mean["base"]
        assert row["improvement"] == pytest.approx(less - 1 if study == UTILISATION else 1 - less)
        assert row["low"] <= row["improvement"] <= row["high"]
        assert row["seed_low"] <= row["improvement"] <= row["seed_high"]


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_figures_stand_where_it_prints_them(metrics, name):
    saved = metrics.saved[name]
    printed = saved.frame[saved.frame["paper"].notna()]
    assert set(printed[["paper_trace", "policy", "paper"]].itertuples(index=False, name=None)) == PRINTED[name]
    for _, row in printed.iterrows():
        assert row["verdict"] == verdict(row["paper"], row["low"], row["high"], row["windows"])


def test_several_seeds_are_one_row_that_says_so(metrics):
    saved = metrics.saved["fig16-numbers"]
    assert set(saved.frame["seed"]) == {"1, 2, 3"} and {"seeds", "seed_low"} < set(saved.artefact.columns)
    assert any("resamples seeds" in note for note in saved.artefact.notes)
    alone = metrics.saved["fig14-numbers"].artefact
    assert "seeds" not in alone.columns and any("One training seed per row" in note for note in alone.notes)


def test_holm_corrects_over_the_whole_table(metrics):
    frame = metrics.saved["fig14-numbers"].frame
    tested = {p: corrected for p, corrected in TESTED.items() if p in frame}
    assert {"p", "over_strong_p", "over_random_p"} <= set(tested)
    family = holm(np.concatenate([frame[p] for p in tested]))
    assert np.concatenate([frame[c] for c in tested.values()]) == pytest.approx(family, nan_ok=True)
    assert (frame["holm"] >= frame["p"]).all()


def test_utilisation_is_shown_over_makespan_and_over_the_span(metrics):
    saved = metrics.saved["table6"]
    frame = saved.frame
    assert (frame["span_rltune"] > 5 * frame["rltune_mean"]).all() and "over_span" in saved.artefact.columns
    assert frame["over_span"].to_numpy() == pytest.approx((frame["span_rltune"] / frame["span_mean"] - 1).to_numpy())


def test_boxes_and_curves_have_the_numbers_they_draw(metrics):
    jobs, cells = metrics.jobs, metrics.cells
    box, row = metrics.saved["fig14"].frame.iloc[0], metrics.saved["fig14-numbers"].frame.iloc[0]
    names = where(cells, **row[["trace", "policy", "metric", "features"]].to_dict())["cell"]
    bsld = where(jobs[jobs["cell"].isin(names)], role="base", sequence_jobs=1024)["bsld"]
    assert (box["mean"], box["p95"]) == pytest.approx((bsld.mean(), bsld.quantile(0.95)))
    curves = metrics.saved["fig13"].frame
    assert set(curves["metric"]) == {"bsld", "jct"}
    assert set(metrics.saved["fig16-training"].frame["seed"]) == {1, 2, 3}
    last = metrics.saved["training-utilisation"].frame.groupby("policy")["training"].last()
    assert last["fifo"] > 0.5 and abs(last["f1"]) < 0.2, "above zero is better, of utilisation too"


def test_figure_10_is_the_papers_only_in_its_own_setting(metrics, made):
    own, other = metrics.saved["fig10-numbers"], made.saved["fig10-numbers"]
    assert own.artefact.paper_ref == metrics.saved["fig10"].artefact.paper_ref == "Figure 10"
    assert other.artefact.paper_ref == made.saved["fig10"].artefact.paper_ref == ""
    assert other.frame["paper"].isna().all()
    assert set(own.frame["measure"]) == {"bsld"}
    naive = own.frame[own.frame["variant"] == "naive, whole nodes"]
    assert set(naive["paper"]) == {0.5259} and own.frame.loc[own.frame["variant"] == "pro", "paper"].isna().all()
    windows = metrics.windows
    row = naive.iloc[0]
    pro = metrics.run.config.cell(row["cell"]).but(features="engineered", placement="lookahead").name
    ours, theirs = (
        where(windows, cell=name, role="rltune", sequence_jobs=row["sequence_jobs"])["bsld"]
        for name in (pro, row["cell"])
    )
    assert row["pro_over"] == pytest.approx(1 - ours.sum() / theirs.sum()), "of the seed that both have"
    curves = metrics.saved["fig10-training"]
    assert curves.artefact.paper_ref == "Figure 10" and set(curves.frame["metric"]) == {"bsld"}
    assert set(curves.frame["line"]) == set(own.frame["variant"]), "a line a variant"
    assert set(own.frame["cell"]) <= set(curves.frame["cell"])


def test_claims_have_every_printed_improvement_at_least_once(metrics):
    frame = metrics.saved["claims"].frame
    printed = {
        f"{name}: {key}"
        for name, a in PAPER.artefacts.items()
        for key, e in a.entries.items()
        if e.value is not None and e.unit == "fraction"
    }
    assert set(frame["key"]) == printed
    compared = frame[frame["verdict"] != ABSENT]
    found = ["abstract: jct", "abstract: utilisation", "fig14: Helios.f1.bsld", "fig15: Alibaba.f1.jct"]
    found += ["fig10: Philly.slurm-multifactor.bsld.pro_over_naive", "fig16: Helios.slurm-multifactor.bsld"]
    assert {*found, "table6: Philly.f1.utilisation"} <= set(compared["key"])
    assert compared["cluster_title"].notna().all()
    for _, row in compared.iterrows():
        source = metrics.saved[row["artefact"]].frame.loc[int(row["row"])]
        assert row["ours"] == source["pro_over" if row["artefact"] == "fig10-numbers" else "improvement"]
        assert row["verdict"] == verdict(row["paper"], row["low"], row["high"], row["windows"])
    absent = frame[frame["verdict"] == ABSENT]
    assert absent[["ours", "low", "windows", "data"]].isna().all().all()
    assert "fig12: Philly.fifo.wait" in set(absent["key"]), "a mix is not what the paper trains for"


def test_without_table_7_its_diagonal_is_the_comparison_with_the_agents_base_policy(made):
    numbers = {"fig12-numbers": made.saved["fig12-numbers"].frame}
    _, frame = tables.claims(numbers, pd.DataFrame(), PAPER)
    found = frame[(frame["verdict"] != ABSENT) & frame["key"].str.startswith("table7")]
    assert set(found["key"]) == {f"table7: Helios.{p}.{p}.wait" for p in ("fifo", "sjf", "f1", "wfp3")}
    assert set(found["artefact"]) == {"fig12-numbers"}


def test_against_other_rl_schedulers_the_best_of_table_9_counts_and_fifo_does_not(made):
    rows = [("FIFO", "Wait, s", 0.9), ("RLScheduler (quick)", "Wait, s", 0.3), ("SchedInspector", "Wait, s", 0.5)]
    rows += [("RLScheduler (quick)", "JCT, s", -0.1), (f"SchedInspector{UNLEARNED}", "Wait, s", 0.8)]
    rows = [(*row, "none") for row in rows] + [("RLScheduler (quick)", "Wait, s", 0.7, "easy")]
    numbers = pd.DataFrame(rows, columns=["against", "measure", "improvement", "backfill"])
    ends = {"low": numbers["improvement"] - 0.1, "high": numbers["improvement"] + 0.1}
    of_philly = {"trace_title": "Philly", "paper_trace": "Philly", "data": "sample"}
    numbers = numbers.assign(**ends, **of_philly, windows=40, verdict="", cell="a")
    given = made.saved["fig12-numbers"].frame.assign(cell="a", learned="no: kept its heuristic", choice="EASY")
    _, frame = tables.claims({"table9-numbers": numbers, "fig12-numbers": given}, pd.DataFrame(), PAPER)
    found = frame[frame["key"].str.startswith("section7")].set_index("key")
    assert found.loc["section7: wait", ["ours", "row", "verdict"]].tolist() == [0.5, 2, HOLDS]
    assert found.loc["section7: jct", ["ours", "verdict"]].tolist() == [-0.1, FAILS]
    assert found.loc["section7: utilisation", "verdict"] == ABSENT
    assert found["against"].tolist() == ["RLScheduler (quick)", "SchedInspector", ""]
    helios = numbers.assign(trace_title="Helios", paper_trace="Helios")
    _, claimed = tables.claims({"table9-numbers": helios, "fig12-numbers": given}, pd.DataFrame(), PAPER)
    one = where(claimed, key="table9: Helios.rlscheduler.wait").iloc[0]
    assert one["claim"] == "Less wait than RLScheduler on Helios" and one[["ours", "row"]].tolist() == [0.3, 1]
    assert set(found["learned"]) == {"no: kept its heuristic", ""}, "from another table of the same agent"
    for changed in ({"learned": "1 of 3 seeds"}, {"choice": "; EASY"}, {"learned": np.nan, "choice": np.nan}):
        seeds = {"table9-numbers": numbers, "fig12-numbers": given.assign(**changed)}
        _, frame = tables.claims(seeds, pd.DataFrame(), PAPER)
        assert set(frame.loc[frame["key"].str.startswith("section7"), "learned"]) == {""}, "not the same for all seeds"
    own = {"table9-numbers": numbers.assign(paper_trace=""), "fig12-numbers": given}
    _, frame = tables.claims(own, pd.DataFrame(), PAPER)
    assert set(frame.loc[frame["key"].str.startswith("section7"), "verdict"]) == {ABSENT}, "another trace"


def test_who_learned_nothing_is_counted_among_those_of_whom_it_is_known():
    gains = {"low": 0.2, "high": 0.8, "windows": 40, "verdict": "", "data": "own"}
    slurm = pd.DataFrame(
        [{"ours": "rltune", "theirs": "slurm", "measure": "wait", "gain": 0.4, "learned": "no", **gains}]
    )
    variant = {"paper_trace": "Philly", "policy": "multifactor", "metric": "bsld", "paper": 0.5, "choice": "from SAF"}
    variant |= {"pro_over": 0.5, "pro_over_low": 0.2, "pro_over_high": 0.8, "windows": 40, "data": "own"}
    artefact, frame = tables.claims({"deployment-numbers": slurm}, pd.DataFrame([variant]), PAPER)
    assert set(frame["artefact"]) == {"deployment-numbers", "fig10-numbers", ""}
    note = (
        "Of 1 that hold or match and have an entry under “Learned”, 1 come from agents that learned nothing, and 0 from"
    )
    assert any(note in text for text in artefact.notes)


def test_headlines_are_of_the_papers_gpu_traces(made):
    numbers = made.saved["fig12-numbers"].frame
    cpu = numbers.assign(paper_trace="SDSC-SP2", improvement=0.99, low=0.98, high=0.995)
    _, frame = tables.claims({"fig12-numbers": pd.concat([cpu, numbers], ignore_index=True)}, pd.DataFrame(), PAPER)
    best = frame[frame["key"] == "abstract: wait"]
    assert len(best) and set(best["ours"]) <= set(numbers["improvement"])


def test_traces_that_the_paper_does_not_have_are_no_claims(made):
    """A table without a name of the paper's has an empty column, which is read back as NaN."""
    names = ("table7", "fig12-numbers")
    numbers = {name: made.saved[name].frame.assign(paper_trace=np.nan, paper=np.nan) for name in names}
    _, frame = tables.claims(numbers, pd.DataFrame(), PAPER)
    assert set(frame["verdict"]) == {ABSENT}


def test_only_variants_next_to_their_agent_are_left_out_and_a_note_counts_them():
    cell = Cell("t", "c", "fifo", "wait", "none", "lookahead", "strict", "engineered", "exact", "quick", 1)
    lone = cell.but(policy="sjf", features="raw", placement="best_fit")
    cells = [cell, cell.but(features="raw", placement="best_fit"), cell.but(seed=2, features="raw"), lone]
    cells += [cell.but(preset="linear"), lone.but(preset="linear", policy="f1")]
    table = pd.DataFrame([vars(c) | {"cell": c.name} for c in cells])
    table["agent"] = table["preset"].where(table["preset"] == "linear", "rltune")
    chosen, note = without_variants(table)
    assert list(chosen["cell"]) == [cells[0].name, cells[3].name, cells[5].name]
    assert "3 of 6 agents" in note
    for left in ("raw features with best_fit placement (1)", "raw features with lookahead placement (1)", "linear (1)"):
        assert left in note
    assert without_variants(table.iloc[[0, 3]])[1] == ""
