"""Generated results of the stage that sets RLTune beside QSSF and other learners."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rltune.evaluation.intervals import Intervals

JUDGE = Intervals(200)
FACTOR = {
    "rltune": 0.7,
    "qssf": 1.0,
    "qssf_best_fit": 1.1,
    "fifo_easy": 2.0,
    "saf_lognormal": 0.5,
    "fifo": 3.0,
    "schedinspector": 2.5,
    "rlscheduler": 1.2,
    "linear": 0.8,
    "strong": 0.75,
}
"""Wait of each scheduler, over QSSF's."""


def judged(who: str, count: int, n: int) -> pd.DataFrame:
    """A row a window of one scheduler; the windows are equally hard for all."""
    wait = 1000 * FACTOR[who] * (1 + np.arange(count) % 4) / 2.5
    return pd.DataFrame(
        {
            "who": who,
            "window": np.arange(count),
            "first_job": np.arange(count) * n,
            "sequence_jobs": n,
            "wait_s": wait,
            "jct_s": wait + 9000,
            "bsld": 1 + wait / 400,
            "utilisation": 0.5 / (1 + FACTOR[who]),
            "utilisation_span": 0.6,
            "seconds": 0.05,
        }
    )


def qssf_windows(names: list[str], count: int = 12, best_fit: bool = True) -> pd.DataFrame:
    """The opponents of these cells, as rltune.evaluation.studies.learners.qssf_windows has them."""
    who = [w for w in ("rltune", "qssf", "fifo_easy", "qssf_best_fit", "saf_lognormal") if best_fit or "best" not in w]
    return pd.concat(
        [
            judged(w, count, 256).assign(cell=name, backfill="conservative" if w == "rltune" else "easy")
            for name in names
            for w in who
        ],
        ignore_index=True,
    )


def batches(cells: pd.DataFrame, agents: tuple[str, ...] = ("rlscheduler", "rltune"), count: int = 10) -> pd.DataFrame:
    """Batches of each trace of `cells`, as rltune.evaluation.studies.learners.batches has them; one agent, the first, twice."""
    frames = []
    for _, cell in cells.drop_duplicates(["trace", "cluster"]).iterrows():
        for who in ("fifo", "strong", *agents):
            agent = who in agents
            frames.append(
                judged(who, count, 256).assign(
                    cell=cell["cell"] if agent else "",
                    preset="quick" if agent else "",
                    policy="saf" if who == "strong" else "fifo",
                    backfill="easy" if who == "strong" else "none",
                    placement="best_fit",
                    base="fifo" if agent else "",
                    **{axis: cell[axis] for axis in ("trace", "cluster", "estimate", "locality")},
                )
            )
    return pd.concat(frames, ignore_index=True)


def decisions() -> pd.DataFrame:
    """Decisions in queues of 128 and 256; the second takes half as long again."""
    spread = np.linspace(0.9, 1.1, 21)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "queue": queue,
                    "inference_s": ms * spread / 2000,
                    "placement_s": ms * spread / 4000,
                    "decision_s": ms * spread / 1000,
                }
            )
            for queue, ms in ((128, 0.4), (256, 0.6), (10_000, 0.9))
        ],
        ignore_index=True,
    )
