"""What-if: sums, shares and groups against plain Python, and a made-up case of every recommendation."""

import numpy as np
import pandas as pd
import pytest

from rltune.evaluation.groups import by_group
from rltune.evaluation.intervals import FEWEST, Intervals
from rltune.evaluation.studies.hours_waited import (
    Advice,
    against_recorded,
    recommend,
    steps,
    totals,
    user_groups,
    with_longer,
)

INTERVALS = Intervals(bootstrap=500)
SAME = dict.fromkeys(("fifo-easy", "saf-easy", "qssf", "rltune"), 1.0)


def made(
    factors: dict[str, float], blocks: int = 20, wait_s: float = 3600.0, noise: float = 0.02, seeds: int = 1
) -> pd.DataFrame:
    """Ten jobs a block; under each scheduler they wait as under the current rule times its factor, more or less."""
    rng = np.random.default_rng(3)
    block = np.repeat(np.arange(blocks), 10)
    base = wait_s * rng.uniform(0.5, 1.5, len(block))
    jobs = pd.DataFrame(
        {"block": block, "job_id": [f"j{i}" for i in range(len(block))], "gpus": 1 + np.arange(len(block)) % 4}
    )
    frames = []
    for scheduler in ("current", *factors):
        kind = "rule" if scheduler.endswith("-easy") else scheduler
        for seed in range(1, 1 + seeds) if kind == "rltune" else [0]:
            factor = 1.0 if scheduler == "current" else factors[scheduler] * rng.normal(1, noise, len(block))
            wait = base * factor
            frames.append(jobs.assign(scheduler=scheduler, kind=kind, seed=seed, wait_s=wait, bsld=1 + wait / 100))
    return pd.concat(frames, ignore_index=True)


def advised(jobs: pd.DataFrame) -> Advice:
    return recommend(totals(jobs, INTERVALS), steps(jobs, INTERVALS), 0.05)


@pytest.mark.parametrize(
    ("factors", "outcome", "chosen", "reached"),
    [
        ({}, "keep", "current", "current"),
        ({"saf-easy": 0.97}, "keep", "current", "current"),
        ({"saf-easy": 0.7}, "rule", "saf-easy", "saf-easy"),
        ({"saf-easy": 0.7, "rltune": 0.69}, "rule", "saf-easy", "saf-easy"),
        ({"saf-easy": 0.7, "qssf": 0.6}, "qssf", "qssf", "qssf"),
        ({"qssf": 0.6}, "qssf", "qssf", "qssf"),
        ({"saf-easy": 0.7, "qssf": 0.75, "rltune": 0.5}, "rltune", "rltune", "saf-easy"),
        ({"saf-easy": 0.7, "qssf": 0.6, "rltune": 0.65}, "qssf", "qssf", "qssf"),
        ({"rltune": 0.5}, "rltune", "rltune", "current"),
        ({"fifo-easy": 1.4, "saf-easy": 1.3, "qssf": 1.2, "rltune": 1.1}, "keep", "current", "current"),
        # RLTune has to beat its own configuration
        ({"saf-easy": 0.7, "configuration": 0.5, "rltune": 0.5}, "configuration", "configuration", "configuration"),
        ({"saf-easy": 0.7, "configuration": 0.6, "rltune": 0.4}, "rltune", "rltune", "configuration"),
        ({"saf-easy": 0.7, "configuration": 0.7, "rltune": 0.5}, "rltune", "rltune", "saf-easy"),
    ],
)
def test_the_recommendation(factors, outcome, chosen, reached):
    jobs = made(SAME | factors)
    assert advised(jobs) == Advice(outcome, chosen, reached, 20)  # type: ignore[arg-type]


def test_of_two_rules_that_wait_as_long_in_all_one_is_the_best_everywhere():
    """Sums by the day and over all days round differently."""
    rng = np.random.default_rng(0)
    jobs = made({"fifo-easy": 0.6, "saf-easy": 0.6, "rltune": 0.3}).astype({"wait_s": int})
    for _ in range(40):
        waits = jobs.loc[jobs["scheduler"] == "fifo-easy", "wait_s"].to_numpy()
        jobs.loc[jobs["scheduler"] == "saf-easy", "wait_s"] = rng.permutation(waits)
        assert advised(jobs).outcome == "rltune"


def test_too_few_days_give_no_verdict_however_large_the_gain():
    few = advised(made(SAME | {"rltune": 0.1}, blocks=FEWEST - 1))
    assert few == Advice("too few days", "current", "current", FEWEST - 1)
    assert advised(made(SAME | {"rltune": 0.1}, blocks=FEWEST)).outcome == "rltune"


def test_a_day_on_which_all_the_waiting_was_shows_nothing():
    jobs = made(SAME | {"saf-easy": 0.5})
    jobs.loc[jobs["block"] != 5, "wait_s"] = 0.0
    assert advised(jobs) == Advice("open", "current", "current", 20)


def test_totals_are_plain_sums():
    jobs = made(SAME | {"saf-easy": 0.7}, seeds=2)
    found = totals(jobs, INTERVALS).set_index("scheduler")
    assert list(found.index) == ["current", *SAME]
    for scheduler in found.index:
        rows = [r for r in jobs.to_dict("records") if r["scheduler"] == scheduler]
        seeds = len({r["seed"] for r in rows})
        row = found.loc[scheduler]
        assert row["seeds"] == seeds and row["jobs"] == len(rows) // seeds == 200 and row["windows"] == 20
        assert row["wait_h"] == pytest.approx(sum(r["wait_s"] for r in rows) / 3600 / seeds)
        assert row["gpu_h"] == pytest.approx(sum(r["wait_s"] * r["gpus"] for r in rows) / 3600 / seeds)
        assert row["bsld"] == pytest.approx(sum(r["bsld"] for r in rows) / len(rows))
        ordered = sorted(r["wait_s"] for r in rows)
        assert ordered[len(rows) // 2 - 1] <= row["wait_median_s"] <= ordered[len(rows) // 2]
    today = found.loc["current", "wait_h"]
    assert found.loc["saf-easy", "less_wait"] == pytest.approx(1 - found.loc["saf-easy", "wait_h"] / today)
    assert np.isnan(found.loc["current", "less_wait"])


def test_the_comparisons_are_one_family():
    jobs = made(SAME | {"saf-easy": 0.7})
    frame = steps(jobs, INTERVALS)
    others = ["fifo-easy", "saf-easy", "qssf", "rltune"]
    pairs = [(name, "current") for name in others] + [("qssf", "saf-easy"), ("rltune", "saf-easy"), ("rltune", "qssf")]
    assert list(zip(frame["ours"], frame["theirs"])) == pairs
    least = frame["p"].idxmin()
    assert frame.loc[least, "p_holm"] == pytest.approx(min(1.0, 7 * frame.loc[least, "p"]))
    assert (frame["p_holm"] >= frame["p"]).all() and set(frame["shows"]) <= {"fewer", "more", "open"}
    with_configuration = steps(jobs, INTERVALS, "fifo-easy")
    assert ("rltune", "fifo-easy") in set(zip(with_configuration["ours"], with_configuration["theirs"]))


def test_users_are_grouped_by_what_they_used_before():
    before = pd.DataFrame({"who": [f"u{i}" for i in range(10)] * 2, "gpus": 1, "run_s": list(range(1, 11)) * 2})
    of = pd.Series([*(f"u{i}" for i in range(10)), "stranger", None], dtype=object)
    found = user_groups(before, of)
    assert list(found[:10]) == ["light"] * 5 + ["middle"] * 4 + ["heavy"]
    assert found[10] == "new" and pd.isna(found[11])


def test_the_simulated_current_rule_is_compared_with_recorded_waits():
    jobs = pd.DataFrame({"scheduler": "current", "job_id": list("abcd"), "wait_s": [0.0, 3600.0, 7200.0, 100.0]})
    log = pd.DataFrame({"job_id": list("cdba"), "wait_s": [3600.0, np.nan, 1800.0, 0.0]})
    found = against_recorded(jobs, log)
    assert (found.jobs, found.recorded_h, found.simulated_h, found.ratio) == (3, 1.5, 3.0, 2.0)
    assert found.rank == pytest.approx(1.0)
    nothing = against_recorded(jobs, log.assign(wait_s=np.nan))
    assert nothing.jobs == 0 and np.isnan(nothing.ratio)


def test_a_group_that_did_not_wait_today_can_be_shown_to_wait_longer():
    """Its share has nothing to be a share of; its seconds have an interval, over all seeds."""
    jobs = made(SAME | {"saf-easy": 0.7}, seeds=2).assign(user=lambda f: np.where(f["gpus"] == 1, "small", "large"))
    small = jobs["user"] == "small"
    jobs.loc[small, "wait_s"] = 0.0
    noise = np.random.default_rng(1).normal(0, 300, len(jobs))
    hit = small & (jobs["scheduler"].isin(["saf-easy", "rltune"]))
    jobs.loc[hit, "wait_s"] = 3600.0 + noise[hit] + 600.0 * (jobs.loc[hit, "seed"] == 2)
    groups = by_group(jobs.assign(window=jobs["block"], group=jobs["user"]), "current", INTERVALS, longer=True)
    rows = with_longer(groups).set_index(["group", "scheduler"])
    found = rows.loc[("small", "saf-easy")]
    assert np.isnan(found["less_wait"]) and found["shows"] == "longer"
    assert found["more_s"] == pytest.approx(found["wait_s"]) and found["wait_s"] == pytest.approx(3600, rel=0.05)
    assert 3000 < found["more_s_low"] < found["more_s"] < found["more_s_high"]
    assert rows.loc[("large", "saf-easy"), "shows"] == "shorter" and rows.loc[("small", "qssf"), "shows"] == "open"
    both = rows.loc[("small", "rltune")]
    assert both["more_s"] == pytest.approx(3900, rel=0.05) and both["jobs"] == found["jobs"], "the mean of both seeds"


def test_many_groups_are_one_family_of_a_scheduler():
    rows = pd.DataFrame(
        {"scheduler": ["a"] * 3 + ["b"], "more_s_p": [0.02, 0.5, 0.6, 0.02], "more_s_low": 1.0, "more_s_high": 2.0}
    )
    found = with_longer(rows)
    assert list(found["shows"]) == ["open", "open", "open", "longer"] and found["more_s_holm"][0] == pytest.approx(0.06)
