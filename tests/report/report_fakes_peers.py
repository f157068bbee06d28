"""Generated results of the stage that compares RLTune with QSSF and other learners."""

import numpy as np
import pandas as pd

TIMES = ((128, 0.4), (256, 0.6), (10_000, 0.9))
FACTOR = {"rltune": 0.7, "qssf": 1.0, "qssf_best_fit": 1.1, "fifo_easy": 2.0, "saf_lognormal": 0.5, "fifo": 3.0}
FACTOR |= {"schedinspector": 2.5, "rlscheduler": 1.2, "linear": 0.8, "strong": 0.75}
"""Wait of each scheduler, over QSSF's."""


def windows_of(who: str, count: int, n: int) -> pd.DataFrame:
    """A row a window of one scheduler; the windows are equally hard for all."""
    wait = 1000 * FACTOR[who] * (1 + np.arange(count) % 4) / 2.5
    window, used = np.arange(count), 0.5 / (1 + FACTOR[who])
    about = {"who": who, "window": window, "first_job": window * n, "sequence_jobs": n, "seconds": 0.05}
    measures = {"wait_s": wait, "jct_s": wait + 9000, "bsld": 1 + wait / 400, "utilisation": used}
    return pd.DataFrame({**about, **measures, "utilisation_span": 0.6})


def qssf_windows(names: list[str], count: int = 12, best_fit: bool = True) -> pd.DataFrame:
    """The opponents of these cells, as rltune.evaluation.studies.learners.qssf_windows has them."""
    who = [w for w in ("rltune", "qssf", "fifo_easy", "qssf_best_fit", "saf_lognormal") if best_fit or "best" not in w]
    frames = [windows_of(w, count, 256).assign(cell=name) for name in names for w in who]
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(backfill=np.where(frame["who"] == "rltune", "conservative", "easy"))


def batches(cells: pd.DataFrame, agents: tuple[str, ...] = ("rlscheduler", "rltune"), count: int = 10) -> pd.DataFrame:
    """Batches of each trace of `cells`, as rltune.evaluation.studies.learners.batches has them; one agent, the first, twice."""
    frames = []
    for _, cell in cells.drop_duplicates(["trace", "cluster"]).iterrows():
        home = {axis: cell[axis] for axis in ("trace", "cluster", "estimate", "locality")}
        for who in ("fifo", "strong", *agents):
            ran = {"policy": "fifo", "backfill": "none"} if who != "strong" else {"policy": "saf", "backfill": "easy"}
            agent = (cell["cell"], "quick", "fifo") if who in agents else ("", "", "")
            of = dict(zip(("cell", "preset", "base"), agent))
            frames.append(
                windows_of(who, count, 256).assign(**of, **ran, **home, placement="best_fit", unlearned=False)
            )
    return pd.concat(frames, ignore_index=True)


def decisions() -> pd.DataFrame:
    """Decisions in queues of 128 and 256; the second takes half as long again."""
    frame = pd.concat(
        [pd.DataFrame({"queue": q, "decision_s": ms / 1000 * np.linspace(0.9, 1.1, 21)}) for q, ms in TIMES]
    )
    return frame.assign(inference_s=frame["decision_s"] / 2, placement_s=frame["decision_s"] / 4)
