"""The chapter on rules, headroom, fairness and balanced clusters: what its tables and figures say."""

import pandas as pd
import pytest
from report_fakes_rules import headroom_results, jobs_by_group, load_results, rule_results
from report_runs import INTERVALS

from rltune.evaluation.intervals import FEWEST, holm
from rltune.evaluation.studies import summaries
from rltune.report import figures, tables
from rltune.report.common import where


def test_each_step_next_to_the_one_before_and_its_share_of_the_gain(made):
    saved = made.saved["scheduling-rules-numbers"]
    frame = where(saved.frame, workload="Philly")
    fifo = where(frame, who="order", policy="fifo")
    assert fifo["less"].tolist()[1:] == pytest.approx([0.2] * 5) and fifo["rules"].iloc[0].startswith("a: ")
    reranked = fifo[fifo["step"] == "reranked"].iloc[0]
    assert reranked[["wait_s", "share", "share_low"]].tolist() == pytest.approx([6400, 0.45, 0.45])
    assert frame[frame["best"]]["title"].tolist() == ["SAF ★"]
    tested = saved.frame[saved.frame["less_p"].notna() & (saved.frame["windows"] >= FEWEST)]
    assert len(tested) and tested["less_holm"].to_numpy() == pytest.approx(holm(tested["less_p"]))
    agents = where(frame, who="agent")["title"].tolist()
    assert agents == ["RLTune on FIFO", "RLTune on SAF", "RLTune on FIFO, tuned"]
    note = saved.artefact.notes[0].replace("\u00a0", " ")
    assert "FIFO waits 10,000 s under (a), RLTune 2,000 s." in note and "has 45.0 %" in note
    assert "SAF in step f waits 1,638 s" in note


def test_a_share_by_the_agents_own_rule_is_given_where_its_seeds_chose_one_rule(made):
    frame = summaries.rule_steps(rule_results(), INTERVALS)
    of_agent = frame["who"] == "agent"
    had = "FIFO in step e, with RLTune’s own backfill rule, has 73.8 % (73.8 to 73.8 %) of that gain"
    for chosen, remark in (("easy", had), ("none or easy", "")):
        artefact, _ = tables.scheduling_rules(frame.assign(backfill=frame["backfill"].mask(of_agent, chosen)))
        note = artefact.notes[0].replace("\u00a0", " ")
        assert remark in note and ("own backfill rule" in note) is bool(remark) and "Without any learning" in note


def test_an_agent_whose_base_policy_uses_fair_shares_is_compared_with_fifo():
    """Also where the workload's first agent has another base policy: SAF waits 5,000 s under (a), FIFO 10,000."""
    rows = where(rule_results(), workload="Philly")
    agents = rows[rows["who"] == "agent"]
    saf = where(agents, policy="saf")
    rows = pd.concat([where(rows, who="order"), saf, saf.assign(policy="multifactor")], ignore_index=True)
    frame = summaries.rule_steps(rows, INTERVALS)
    before = where(frame, who="agent").set_index("policy")["before_s"]
    assert before.to_dict() == pytest.approx({"saf": 5e3, "multifactor": 1e4})
    artefact, _, figure = figures.scheduling_rules(tables.scheduling_rules(frame)[1])
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "FIFO where that uses fair shares" in artefact.caption and "base policy or FIFO, (a)" in legend
    rows = pd.concat([where(rows, who="order"), saf.assign(policy="multifactor")], ignore_index=True)
    numbers = tables.scheduling_rules(summaries.rule_steps(rows, INTERVALS))[1]
    legend = [text.get_text() for text in figures.scheduling_rules(numbers)[2].legends[0].get_texts()]
    assert "SAF" in legend and "Slurm multifactor" not in legend, "an order that is not drawn"


def test_sizes_are_not_called_gpus_alone():
    artefact, _, figure = figures.fairness(summaries.fairness(jobs_by_group(), INTERVALS).sizes)
    assert {axis.get_xlabel() for axis in figure.axes} == {"GPUs (CPUs) of a job"}
    assert "in GPUs, for CPU traces CPUs" in artefact.alt and "1 GPUs" not in artefact.alt


def test_where_the_agent_gains_nothing_there_is_no_share():
    rows = rule_results()
    rows.loc[rows["who"] == "agent", "wait_s"] *= 10
    assert summaries.rule_steps(rows, INTERVALS)["share"].isna().all()


def test_headroom_says_what_perfect_prediction_gains(made):
    saved = made.saved["headroom"]
    frame = saved.frame[saved.frame["workload"] == "Philly"].set_index("what")
    assert frame["wait_s"].to_dict() == pytest.approx(
        {"basic": 1e4, "strong": 1e3, "agent": 1200, "same_exact": 900, "strong_exact": 800, "bound": 400}
    )
    assert frame.loc["same_exact", "less"] == pytest.approx(0.1) and frame.loc["strong", "title"] == "SAF + EASY"
    note = saved.artefact.notes[0].replace("\u00a0", " ")
    assert "RLTune −20.0 %" in note and "(2.50 times lower)" in note


def test_a_bound_of_nothing_is_said_but_not_drawn():
    results = headroom_results()
    results.loc[results["kind"] == "bound", "wait_s"] = 0.0
    artefact, frame, figure = figures.headroom(summaries.headroom(results, INTERVALS))
    assert frame.loc[frame["what"] == "bound", "wait_s"].eq(0).all() and frame["over_bound"].isna().all()
    assert "bound 0 s; 12 windows" in artefact.notes[0]
    assert "|" not in [line.get_marker() for line in figure.axes[0].lines]


def test_traces_without_users_are_named(made):
    for name in ("fairness-numbers", "fairness-losers"):
        assert any(
            "Not grouped by user, unknown or the same for all jobs: Helios Venus" in note
            for note in made.saved[name].artefact.notes
        )
    assert made.saved["fairness"].frame["group"].drop_duplicates().tolist() == ["1", "2–4", "5–8", "over 8"]
    alike = summaries.fairness(jobs_by_group().assign(size="1"), INTERVALS)
    assert set(alike.sizes["group"]) == {"1"}
    frame = made.saved["fairness-numbers"].frame
    assert set(frame[frame["workload"] == "Helios Venus"]["grouping"]) == {"virtual cluster", "job size"}
    assert frame["title"].drop_duplicates().tolist() == ["Base: FIFO", "Best heuristic: SAF", "RLTune"]


def test_slice_and_balanced_cluster_side_by_side(made):
    frame = made.saved["loads-compared-numbers"].frame.set_index("title")
    assert list(frame.index) == ["FIFO", "SAF + EASY ★ ☆", "RLTune, trained on the slice"]
    assert frame["slice_less"].tolist() == pytest.approx([0, 0.9, 8 / 9])
    assert frame["balanced_less"].tolist() == pytest.approx([0, 1, 0.5])
    assert frame["balanced_wait_s"].tolist() == pytest.approx([40, 0, 20])


def test_where_nobody_waits_there_is_nothing_to_gain():
    results = load_results()
    results.loc[results["load"] == "balanced", "wait_s"] = 0.0
    artefact, frame = tables.loads_compared(summaries.loads(results, INTERVALS))
    assert frame["balanced_less"].isna().all() and not frame["balanced_best"].any()
    assert "Balanced cluster: no job waits" in artefact.notes[0]
    assert "balanced 0 s" in figures.loads_compared(frame)[0].alt
