"""The deployment in numbers (paper §5.6): each run on the Slurm cluster, and comparisons of runs.

Frames of jobs have one row per scheduler × repetition × job: ``scheduler``, ``repetition``, ``index`` (position in the order
of submission; the same job under every scheduler), ``asked_gpus``, ``at_s`` (planned submission), ``submit_s``, ``start_s``,
``end_s`` (s since the run began; NaN if it did not happen or the accounts lack it), ``run_s`` (asked for), ``state``; those on
Slurm also ``qos`` and ``partition``.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from rltune.cluster.layout import Nodes
from rltune.config.deployment import LEARNED, QOS
from rltune.evaluation.intervals import Improvement, Intervals
from rltune.simulator.gantt import bars as number_gpus
from rltune.simulator.metrics import BSLD_FLOOR_S

COMPLETED = "COMPLETED"
JOB, RUN = ["repetition", "index"], ["scheduler", "repetition"]
COLUMN = {"makespan": "makespan_s", "utilisation": "utilisation", "wait": "wait_s", "jct": "jct_s", "bsld": "bsld"}
"""Measure → column of :func:`per_run`."""
QOS_ORDER = {name: k for k, name in enumerate(QOS)}
CLASSES = ("qos", "partition", "asked_gpus")
"""Columns by which jobs are grouped."""
BY_BLOCK = ("wait", "jct", "bsld")
"""Measures that are means over jobs, and can also be resampled by blocks of submissions."""


def with_measures(jobs: pd.DataFrame) -> pd.DataFrame:
    """The jobs with a start and an end, with wait_s, jct_s (both from the submission as Slurm has it) and bsld."""
    ran = jobs[jobs["start_s"].notna() & jobs["end_s"].notna()]
    jct = ran["end_s"] - ran["submit_s"]
    bsld = np.maximum(1.0, jct / np.maximum(ran["run_s"], BSLD_FLOOR_S))
    return ran.assign(wait_s=np.maximum(ran["start_s"] - ran["submit_s"], 0.0), jct_s=jct, bsld=bsld)


def sizes_of(jobs: pd.DataFrame) -> dict[int, str]:
    """GPUs that jobs ask for → column of :func:`per_run` with their mean wait."""
    return {int(gpus): f"wait_{int(gpus)}_gpus_s" for gpus in sorted(jobs["asked_gpus"].unique())} if len(jobs) else {}


def per_run(jobs: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """One row per scheduler × repetition, and × ``backfill`` where jobs have it. Empty without jobs.

    jobs, ``others`` (that ended otherwise than COMPLETED), ``untimed`` (without a start or an end in the accounts: no
    measure has them), makespan_s (first submission to last end), utilisation (GPU-seconds over GPUs × makespan), wait_s and
    wait_median_s, wait_p95_s, wait_max_s, a column per size of :func:`sizes_of`, last_gpus and last_wait_s (of the job that
    ended last), jct_s, bsld.
    """
    by = [name for name in ("backfill", "scheduler", "repetition") if name in jobs]
    rows, sizes = [], sizes_of(jobs)
    for key, submitted in jobs.groupby(by, sort=False) if len(jobs) else ():
        ran = with_measures(submitted)
        wait, last = ran["wait_s"], ran.loc[ran["end_s"].idxmax()]
        by_size = ran.groupby("asked_gpus")["wait_s"].mean()
        makespan = float(ran["end_s"].max() - submitted["submit_s"].min())
        area = float((ran["asked_gpus"] * (ran["end_s"] - ran["start_s"])).sum())
        rows.append(
            {
                **dict(zip(by, key, strict=True)),
                "jobs": len(submitted),
                "others": int((submitted["state"] != COMPLETED).sum()),
                "untimed": len(submitted) - len(ran),
                "makespan_s": makespan,
                "utilisation": area / (gpus * makespan),
                "wait_s": wait.mean(),
                "wait_median_s": wait.median(),
                "wait_p95_s": wait.quantile(0.95),
                "wait_max_s": wait.max(),
                **{column: by_size.get(size, np.nan) for size, column in sizes.items()},
                "last_gpus": int(last["asked_gpus"]),
                "last_wait_s": float(last["wait_s"]),
                "jct_s": ran["jct_s"].mean(),
                "bsld": ran["bsld"].mean(),
            }
        )
    return pd.DataFrame(rows)


def by_class(jobs: pd.DataFrame) -> pd.DataFrame:
    """One row per class of jobs of CLASSES: ``by`` (the column), ``name``, jobs (of all repetitions, under the scheduler that has most),
    and a column ``wait_<scheduler>_s`` and ``jct_<scheduler>_s`` each, means over the jobs."""
    ran, frames = with_measures(jobs), []
    for column in CLASSES:
        found = ran.groupby([column, "scheduler"], sort=False)
        means, counts = found[["wait_s", "jct_s"]].mean().unstack(), found.size().unstack().max(axis=1)
        means.columns = [f"{name.removesuffix('_s')}_{scheduler}_s" for name, scheduler in means.columns]
        frame = means.assign(jobs=counts).sort_index(key=lambda names: [QOS_ORDER.get(name, name) for name in names])
        frames.append(frame.rename_axis("name").reset_index().assign(by=column))
    return pd.concat(frames, ignore_index=True)


Sides = tuple[pd.DataFrame, pd.DataFrame]
"""The same jobs under two schedulers: those with a start and an end under both, in the repetitions that both have, by repetition
and index."""


def sides_of(jobs: pd.DataFrame, ours: str, theirs: str) -> tuple[Sides, int]:
    """Two schedulers' jobs, and how many submissions of the repetitions that both have are not among them."""
    asked = [jobs[jobs["scheduler"] == name].set_index(JOB) for name in (ours, theirs)]
    sides = [with_measures(side) for side in asked]
    common = sides[0].index.intersection(sides[1].index).sort_values()
    submitted = asked[0].index.union(asked[1].index).get_level_values("repetition")
    shared = set.intersection(*(set(side.index.get_level_values("repetition")) for side in asked))
    first, second = (side.loc[common].reset_index() for side in sides)
    return (first, second), int(submitted.isin(shared).sum()) - len(common)


def pairs_of(jobs: pd.DataFrame) -> list[tuple[str, str]]:
    """RLTune against each of the other schedulers that ran, also where it decides types, then each of those against Slurm."""
    ran = list(dict.fromkeys(jobs["scheduler"])) if len(jobs) else []
    others = [name for name in ran if name not in LEARNED]
    ours = [name for name in reversed(LEARNED) if name in ran]
    pairs = [(name, other) for name in ours for other in others] + [LEARNED[::-1]]
    pairs += [(name, "slurm") for name in others if name != "slurm"]
    return [pair for pair in pairs if set(pair) <= set(ran)]


def paired(jobs: pd.DataFrame) -> Iterator[tuple[dict[str, str], Sides, int]]:
    """The pairs of schedulers under which the same jobs ran: names as ours and theirs, and :func:`sides_of` them."""
    for ours, theirs in pairs_of(jobs):
        sides, dropped = sides_of(jobs, ours, theirs)
        if len(sides[0]):
            yield {"ours": ours, "theirs": theirs}, sides, dropped


def paired_runs(jobs: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """:func:`per_run` of the jobs that ran under both schedulers of a pair, one row per pair × side × repetition: ours, theirs,
    ``side`` (ours or theirs) and its columns. Empty if no two schedulers share a repetition."""
    frames = [pd.DataFrame()]
    for names, sides, _ in paired(jobs):
        for side, of_side in zip(("ours", "theirs"), sides, strict=True):
            frames.append(per_run(of_side, gpus).assign(**names, side=side))
    return pd.concat(frames, ignore_index=True)


def compare(jobs: pd.DataFrame, gpus: int, block_jobs: int, intervals: Intervals) -> pd.DataFrame:
    """One row per pair of schedulers × measure: ours, theirs, measure, ours_mean, theirs_mean (of the repetitions, in the unit
    of :func:`per_run`), windows, gain (fraction better: less, of utilisation more), low, high, p, blocks, block_low,
    block_high, dropped.

    Of the jobs that ran under both; ``dropped`` have not. A window is a repetition. Of wait, jct and bsld there is a second
    interval, of ``blocks`` of ``block_jobs`` consecutive submissions, resampled within the repetitions: it knows nothing of
    what another repetition would change, and neighbouring blocks share a queue. It is for no verdict.
    """
    rows = []
    for names, sides, dropped in paired(jobs):
        runs = [per_run(side, gpus) for side in sides]
        for measure, column in COLUMN.items():
            x, y = (side[column].to_numpy(float) for side in runs)
            found = intervals.less(x, y)
            if measure == "utilisation":
                found = Improvement(-found.gain, -found.high, -found.low, found.p)
            rows.append(
                {
                    **names,
                    "measure": measure,
                    "ours_mean": x.mean(),
                    "theirs_mean": y.mean(),
                    "windows": len(x),
                    **found._asdict(),
                    **(_within(sides, column, block_jobs, intervals) if measure in BY_BLOCK else {}),
                    "dropped": dropped,
                }
            )
    return pd.DataFrame(rows)


def _within(sides: Sides, column: str, block_jobs: int, intervals: Intervals) -> dict[str, float]:
    """The interval by blocks of submissions within the repetitions."""
    keys = [sides[0]["repetition"], (sides[0]["index"] // block_jobs).rename("block")]
    x, y = (side.groupby(keys)[column].sum() for side in sides)
    found = intervals.less(x.to_numpy(float), y.to_numpy(float), list(x.groupby(level="repetition").size()))
    return {"blocks": len(x), "block_low": found.low, "block_high": found.high}


def in_use(jobs: pd.DataFrame, gpus: int, step_s: float) -> pd.DataFrame:
    """Utilisation over time: scheduler, repetition, hour (middle of the step, since the first submission), utilisation (mean
    share of the GPUs in use during the step, until the last end of any scheduler's run of the repetition), waiting (mean
    number of jobs that wait)."""
    frames = []
    for repetition, all_of_it in jobs.groupby("repetition", sort=True):
        edges = np.arange(0.0, float(all_of_it["end_s"].max()) + step_s, step_s)
        for scheduler, ran in with_measures(all_of_it).groupby("scheduler", sort=False):
            used = _area(edges, ran["start_s"], ran["end_s"], ran["asked_gpus"])
            queued = _area(edges, ran["submit_s"], ran["start_s"], pd.Series(1.0, ran.index))
            about = {"scheduler": scheduler, "repetition": repetition, "hour": (edges[:-1] + step_s / 2) / 3600}
            frames.append(pd.DataFrame({**about, "utilisation": used / (gpus * step_s), "waiting": queued / step_s}))
    return pd.concat(frames, ignore_index=True)


def in_use_by_type(jobs: pd.DataFrame, gpus_of: Mapping[str, int], step_s: float) -> pd.DataFrame:
    """:func:`in_use` of each GPU type: also ``gpu_type``; ``gpus_of``: type → GPUs. Nodes are named by type and number."""
    kinds = jobs["node_list"].str.extract(r"^([^,]*)-\d+", expand=False)
    frames = []
    for kind, gpus in gpus_of.items():
        used = in_use(jobs.assign(asked_gpus=jobs["asked_gpus"].where(kinds == kind, 0)), gpus, step_s)
        frames.append(used.drop(columns="waiting").assign(gpu_type=kind))
    return pd.concat(frames, ignore_index=True)


def bars(jobs: pd.DataFrame, nodes: Nodes, numbers: Mapping[str, int]) -> pd.DataFrame:
    """What :func:`rltune.simulator.gantt.bars` gives, of the jobs of one run; ``numbers``: name of a node → its number.

    Without jobs whose GPUs do not divide by their nodes: how many are on which is not recorded.
    """
    ran = with_measures(jobs).reset_index(drop=True)
    names = ran["node_list"].str.split(",")
    ran = ran[ran["asked_gpus"] % names.str.len() == 0]
    names = names[ran.index]
    on = ran.assign(job=ran["index"], gpus=ran["asked_gpus"] // names.str.len(), node=names).explode("node")
    # a node may have its next job in the second in which the accounting lets the last one end
    start = np.maximum(ran["start_s"], ran["submit_s"])
    times = ran.assign(job=ran["index"], start_s=start, end_s=np.maximum(ran["end_s"] - 1.0, start))
    return number_gpus(times, on.assign(node=on["node"].map(numbers)), nodes)


def _area(edges: np.ndarray, begin: pd.Series, end: pd.Series, weight: pd.Series) -> np.ndarray:
    """Weight × time of intervals inside each step between ``edges``."""
    inside = np.minimum(end.to_numpy()[:, None], edges[None, 1:]) - np.maximum(
        begin.to_numpy()[:, None], edges[None, :-1]
    )
    return (np.maximum(inside, 0.0) * weight.to_numpy()[:, None]).sum(axis=0)
