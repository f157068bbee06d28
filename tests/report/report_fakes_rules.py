"""Results behind the chapter on rules, headroom, fairness and balanced clusters, and its artefacts."""

from pathlib import Path

import numpy as np
import pandas as pd
from report_runs import INTERVALS

from rltune.evaluation.studies import summaries
from rltune.evaluation.studies.scheduling_rules import STEPS
from rltune.report import figures, tables
from rltune.report.artefact import save

WINDOWS = 12
WORKLOADS = ("Philly", "Helios Venus")


def _results(names: str, values: list[tuple], seed: int, workloads: tuple[str, ...] = WORKLOADS) -> pd.DataFrame:
    """These values in every window, the last of them (a wait, s) times how hard the window is, 1 in the mean."""
    hardness = np.random.default_rng(seed).lognormal(0, 0.5, WINDOWS)
    one = pd.DataFrame(values, columns=names.split()).assign(data="synthetic", sequence_jobs=256)
    each = [
        one.assign(workload=workload, window=w, wait_s=one["wait_s"] * hard)
        for workload in workloads
        for w, hard in enumerate(hardness / hardness.mean())
    ]
    return pd.concat(each, ignore_index=True)


def rule_results() -> pd.DataFrame:
    """FIFO waits 10,000 s under (a) in a mean window, each step 4/5 of the one before, SAF half; RLTune 2,000, tuned 6,000."""
    values = [
        ("order", policy, "", "", step, rules.backfill, level * 0.8**i)
        for policy, level in (("fifo", 1e4), ("saf", 5e3))
        for i, (step, rules) in enumerate(STEPS.items())
    ]
    agents = (("fifo", "", 2e3), ("saf", "", 2.5e3), ("fifo", "tuned", 6e3))
    values += [("agent", policy, "none", other, "", "none", wait) for policy, other, wait in agents]
    return _results("who policy base_backfill other step backfill wait_s", values, 1).assign(pools=1)


def headroom_results() -> pd.DataFrame:
    """FIFO 10,000 s, SAF with EASY 1,000, with exact run times 900 and SJF 800, RLTune 1,200, the bound 400."""
    values = [
        ("given", "fifo", "none", 1e4),
        ("given", "saf", "easy", 1e3),
        ("given", "sjf", "easy", 1500.0),
        ("exact", "fifo", "none", 1e4),
        ("exact", "saf", "easy", 900.0),
        ("exact", "sjf", "easy", 800.0),
        ("agent", "fifo", "none", 1200.0),
        ("bound", "", "", 400.0),
    ]
    return _results("kind policy backfill wait_s", values, 2).assign(base_backfill="none", other="")


def jobs_by_group() -> pd.DataFrame:
    """Small jobs of many users and large ones of one, which wait longer with RLTune; Venus has no users."""
    values = [
        (scheduler, policy, f"u{i}", f"v{i % 2}", size, large if size == "over 8" else small * (i + 1))
        for scheduler, policy, small, large in (
            ("base", "fifo", 500.0, 600.0),
            ("strong", "saf", 0.0, 700.0),
            ("rltune", "fifo", 50.0, 900.0),
        )
        for i, size in enumerate(("1", "1", "2–4", "5–8", "over 8"))
    ]
    one = pd.DataFrame(values, columns="scheduler policy user vc size wait_s".split()).assign(backfill="none")
    one = one.assign(bsld=1 + one["wait_s"] / 100, data="synthetic", sequence_jobs=256)
    each = [one.assign(workload=workload, window=w) for workload in WORKLOADS for w in range(WINDOWS)]
    frame = pd.concat(each, ignore_index=True)
    return frame.assign(user=frame["user"].where(frame["workload"] == "Philly", None))


def load_results() -> pd.DataFrame:
    """Philly on a slice, and on a balanced cluster on which nobody waits but under FIFO."""
    values = [
        ("slice", 7.5, "base", "fifo", "none", 9000.0),
        ("slice", 7.5, "baseline", "fifo", "none", 9000.0),
        ("slice", 7.5, "baseline", "saf", "easy", 900.0),
        ("slice", 7.5, "rltune", "fifo", "none", 1000.0),
        ("balanced", 0.9, "base", "fifo", "none", 40.0),
        ("balanced", 0.9, "baseline", "fifo", "none", 40.0),
        ("balanced", 0.9, "baseline", "saf", "easy", 0.0),
        ("balanced", 0.9, "rltune", "fifo", "none", 20.0),
    ]
    frame = _results("load offered role policy backfill wait_s", values, 3, ("Philly",))
    return frame.assign(cluster="Cluster " + frame["load"])


def artefacts(folder: Path) -> None:
    """What the notebook of the chapter saves."""
    numbers = tables.scheduling_rules(summaries.rule_steps(rule_results(), INTERVALS))
    compared = tables.loads_compared(summaries.loads(load_results(), INTERVALS))
    found = summaries.fairness(jobs_by_group(), INTERVALS)
    for made in (
        numbers,
        compared,
        tables.fairness(found.unequal, found.without),
        tables.losers(found.losers, found.without),
        figures.scheduling_rules(numbers[1]),
        figures.headroom(summaries.headroom(headroom_results(), INTERVALS)),
        figures.fairness(found.sizes),
        figures.loads_compared(compared[1]),
    ):
        save(folder, *made)
