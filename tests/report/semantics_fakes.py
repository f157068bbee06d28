"""Results behind the chapter on rules, room, fairness and balanced clusters, and its artefacts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies import summaries
from rltune.evaluation.studies.scheduling_rules import STEPS
from rltune.report import figures, tables
from rltune.report.artefact import save_figure, save_table

JUDGE = Intervals(200)
WINDOWS = 12
WORKLOADS = ("Philly", "Helios Venus")


def _about(workload: str, window: int) -> dict[str, object]:
    return {"workload": workload, "data": "synthetic", "sequence_jobs": 256, "window": window}


def _hardness(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0, 0.5, WINDOWS)


def ladders() -> pd.DataFrame:
    """FIFO waits 10,000 s under (a) in a mean window, each step 4/5 of the one before, SAF half; RLTune 2,000."""
    rows = []
    for workload in WORKLOADS:
        for w, hard in enumerate(_hardness(1) / _hardness(1).mean()):
            about = {**_about(workload, w), "pools": 1}
            for policy, level in (("fifo", 1e4), ("saf", 5e3)):
                rows += [
                    {
                        **about,
                        "who": "order",
                        "policy": policy,
                        "step": step,
                        "backfill": rules.backfill,
                        "wait_s": level * hard * 0.8**i,
                    }
                    for i, (step, rules) in enumerate(STEPS.items())
                ]
            for policy, wait in (("fifo", 2e3), ("saf", 2.5e3)):
                rows.append(
                    {
                        **about,
                        "who": "agent",
                        "policy": policy,
                        "base_backfill": "none",
                        "other": "",
                        "step": "",
                        "backfill": "none",
                        "wait_s": wait * hard,
                    }
                )
    return pd.DataFrame(rows)


def rooms() -> pd.DataFrame:
    """FIFO 10,000 s, SAF with EASY 1,000, with exact run times 900, RLTune 1,200, the bound 400."""
    told = {
        ("given", "fifo", "none"): 1e4,
        ("given", "saf", "easy"): 1e3,
        ("exact", "fifo", "none"): 1e4,
        ("exact", "saf", "easy"): 900.0,
        ("agent", "fifo", "none"): 1200.0,
        ("bound", "", ""): 400.0,
    }
    return pd.DataFrame(
        [
            {
                **_about(workload, w),
                "kind": kind,
                "policy": policy,
                "base_backfill": "none",
                "other": "",
                "backfill": backfill,
                "wait_s": wait * hard,
            }
            for workload in WORKLOADS
            for w, hard in enumerate(_hardness(2) / _hardness(2).mean())
            for (kind, policy, backfill), wait in told.items()
        ]
    )


def payers() -> pd.DataFrame:
    """Small jobs of many users and large ones of one, which wait longer with RLTune; Venus has no users."""
    rows = []
    for workload in WORKLOADS:
        for w in range(WINDOWS):
            for scheduler, policy, small, large in (
                ("base", "fifo", 500.0, 600.0),
                ("strong", "saf", 0.0, 700.0),
                ("rltune", "fifo", 50.0, 900.0),
            ):
                for i, size in enumerate(("1", "1", "2–4", "5–8", "over 8")):
                    wait = large if size == "over 8" else small * (i + 1)
                    rows.append(
                        {
                            **_about(workload, w),
                            "scheduler": scheduler,
                            "policy": policy,
                            "backfill": "none",
                            "user": f"u{i}" if workload == "Philly" else None,
                            "vc": f"v{i % 2}",
                            "size": size,
                            "wait_s": wait,
                            "bsld": 1 + wait / 100,
                        }
                    )
    return pd.DataFrame(rows)


def loads() -> pd.DataFrame:
    """Philly on a slice, and on a balanced cluster on which nobody waits but under FIFO."""
    told = (
        ("base", "fifo", "none", 9000.0, 40.0),
        ("baseline", "fifo", "none", 9000.0, 40.0),
        ("baseline", "saf", "easy", 900.0, 0.0),
        ("rltune", "fifo", "none", 1000.0, 20.0),
    )
    return pd.DataFrame(
        [
            {
                **_about("Philly", w),
                "load": load,
                "cluster": f"Cluster {load}",
                "offered": offered,
                "role": role,
                "policy": policy,
                "backfill": backfill,
                "wait_s": waits[at] * hard,
            }
            for at, (load, offered) in enumerate((("slice", 7.5), ("balanced", 0.9)))
            for role, policy, backfill, *waits in told
            for w, hard in enumerate(_hardness(3) / _hardness(3).mean())
        ]
    )


def artefacts(folder: Path) -> None:
    """What the notebook of the chapter saves."""
    numbers = tables.scheduling_rules(summaries.rule_steps(ladders(), JUDGE), 0.95)
    compared = tables.loads_compared(summaries.loads(loads(), JUDGE), 0.95)
    found = summaries.fairness(payers(), JUDGE)
    for artefact, frame in (
        numbers,
        compared,
        tables.fairness(found.unequal, found.without, 0.95),
        tables.losers(found.losers, found.without),
    ):
        save_table(folder, artefact, frame)
    for artefact, frame, figure in (
        figures.scheduling_rules(numbers[1]),
        figures.headroom(summaries.headroom(rooms(), JUDGE), 0.95),
        figures.fairness(found.sizes),
        figures.loads_compared(compared[1]),
    ):
        save_figure(folder, artefact, figure, frame)
