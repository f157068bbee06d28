"""The timeline of a run: known answers, and against every event time counted out on random runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group

from rltune.cluster.layout import Nodes, build_layout
from rltune.simulator.timeline import time_average, timeline

Tables = tuple[pd.DataFrame, pd.DataFrame]


def nodes_of(*gpus: int) -> Nodes:
    """Nodes with so many GPUs each."""
    return build_layout(cluster([group(1, g) for g in gpus])).nodes


def tables(*jobs: tuple[float, float, float, dict[int, int]], sequence: int = 0) -> Tables:
    """Job and chunk table of (submit_s, start_s, end_s, node → GPUs); jobs are numbered from 10."""
    rows, chunks = [], []
    for job, (submit, start, end, where) in enumerate(jobs, start=10):
        times = {"submit_s": float(submit), "start_s": float(start), "end_s": float(end)}
        rows.append({"sequence": sequence, "job": job, "gpus": sum(where.values()), **times})
        chunks += [{"sequence": sequence, "job": job, "node": node, "gpus": gpus} for node, gpus in where.items()]
    return pd.DataFrame(rows), pd.DataFrame(chunks, columns=["sequence", "job", "node", "gpus"])


def random_run(seed: int, tries: int = 120, until: int = 60) -> tuple[pd.DataFrame, pd.DataFrame, Nodes]:
    """Jobs on whole seconds wherever the nodes have room for them: many at one time, some on several nodes."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 4, 8], rng.integers(1, 6))
    used, jobs = np.zeros((len(sizes), until + 20), int), []
    for _ in range(tries):
        start, run, gpus = int(rng.integers(until)), int(rng.integers(1, 20)), int(rng.choice([1, 1, 2, 3, 4, 8, 12]))
        free = sizes - used[:, start : start + run].max(axis=1)
        where: dict[int, int] = {}
        for node in rng.permutation(len(sizes)):
            taken = min(int(free[node]), gpus - sum(where.values()))
            if taken > 0:
                where[int(node)] = taken
        if sum(where.values()) == gpus:
            for node, taken in where.items():
                used[node, start : start + run] += taken
            jobs.append((start - int(rng.choice([0, 0, 1, 7, 30])), start, start + run, where))
    job_table, chunk_table = tables(*jobs)
    return job_table.sample(frac=1, random_state=seed), chunk_table.sample(frac=1, random_state=seed), nodes_of(*sizes)


def test_known_answers() -> None:
    """Two nodes of four and two GPUs.

    The first job has three of the first node from 0 to 10; the second wants it whole at 2 and gets it at 10; the third
    has the second node from 5 to 10; the fourth comes at 4, waits until 10, and has a GPU of the second node until 12.
    """
    run = tables((0, 0, 10, {0: 3}), (2, 10, 20, {0: 4}), (5, 5, 10, {1: 2}), (4, 10, 12, {1: 1}))
    frame = timeline(*run, nodes_of(4, 2))
    assert frame["time_s"].tolist() == [0, 2, 4, 5, 10, 12, 20]
    assert frame["used_gpus"].tolist() == [3, 3, 3, 5, 5, 4, 0]
    assert frame["free_gpus"].tolist() == [3, 3, 3, 1, 1, 2, 6]
    assert frame["queued"].tolist() == [0, 1, 2, 2, 0, 0, 0]
    assert frame["queued_gpus"].tolist() == [0, 4, 5, 5, 0, 0, 0]
    assert frame["running"].tolist() == [1, 1, 1, 2, 2, 1, 0]
    assert frame["largest_wait_s"].tolist() == [0, 0, 2, 3, 0, 0, 0]
    # free (1, 2): 1 − (1 + 4) / (4 + 4); then (1, 0): 1 − 1/4; then (0, 1): 1 − 1/2; then a node or two empty
    assert frame["fragmentation"].tolist() == [0.375, 0.375, 0.375, 0.75, 0.5, 0, 0]


def test_a_time_average_weighs_each_state_by_how_long_it_holds() -> None:
    frame = timeline(*tables((0, 0, 10, {0: 2}), (5, 10, 20, {0: 1})), nodes_of(2))
    assert time_average(frame, "used_gpus", 5) == 2
    assert time_average(frame, "used_gpus", 15) == pytest.approx((2 * 10 + 1 * 5) / 15)
    assert time_average(frame, "used_gpus", 40) == pytest.approx((2 * 10 + 1 * 10) / 40)
    assert time_average(frame, "free_gpus", 40) == pytest.approx((1 * 10 + 2 * 20) / 40)
    assert np.isnan(time_average(frame, "used_gpus", 0))


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_what_counting_gives(seed: int) -> None:
    job_table, chunk_table, nodes = random_run(seed)
    frame = timeline(job_table, chunk_table, nodes)
    assert frame["time_s"].tolist() == sorted({*job_table["submit_s"], *job_table["start_s"], *job_table["end_s"]})
    for row in frame.to_dict("records"):
        t = row["time_s"]
        queued = job_table[(job_table["submit_s"] <= t) & (t < job_table["start_s"])]
        running = job_table[(job_table["start_s"] <= t) & (t < job_table["end_s"])]
        free = nodes.gpus.copy()
        for _, chunk in chunk_table[chunk_table["job"].isin(running["job"])].iterrows():
            free[chunk["node"]] -= chunk["gpus"]
        squares, weights = (free**2).sum(), (nodes.gpus * free).sum()
        assert row == {
            "time_s": t,
            "used_gpus": running["gpus"].sum(),
            "free_gpus": free.sum(),
            "queued": len(queued),
            "queued_gpus": queued["gpus"].sum(),
            "running": len(running),
            "largest_wait_s": (t - queued["submit_s"]).max() if len(queued) else 0.0,
            "fragmentation": pytest.approx(1 - squares / weights if weights else 0.0),
        }


def test_tables_that_do_not_go_together_are_refused() -> None:
    job_table, chunk_table = tables((0, 0, 5, {0: 2}), (0, 5, 9, {0: 1, 1: 1}))
    nodes = nodes_of(2, 1)

    def refuses(match: str, jobs: pd.DataFrame = job_table, chunks: pd.DataFrame = chunk_table) -> None:
        with pytest.raises(ValueError, match=match):
            timeline(jobs, chunks, nodes)

    other = tables((0, 0, 5, {0: 2}), sequence=1)
    refuses("expected one sequence, got 2: 0, 1", pd.concat([job_table, other[0]]), pd.concat([chunk_table, other[1]]))
    refuses("job 11: not submitted, started and ended", job_table.assign(start_s=[0, np.nan]))
    refuses("job 10: not submitted, started and ended", job_table.assign(submit_s=[1, 0]))
    refuses("job 11 has chunks but is not in the job table", job_table.head(1))
    refuses("node 0 has 2 GPUs, 3 are in use at 4.0 s", job_table.assign(start_s=[0.0, 4.0]))
