"""GPU numbers given to jobs: the same for the same run, no GPU twice at a time."""

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, group

from rltune.cluster.layout import Nodes, build_layout
from rltune.simulator.gantt import bars

Tables = tuple[pd.DataFrame, pd.DataFrame]


def nodes_of(*gpus: int) -> Nodes:
    """Nodes with so many GPUs each."""
    return build_layout(cluster([group(1, g) for g in gpus])).nodes


def tables(*jobs: tuple[float, float, float, dict[int, int]]) -> Tables:
    """Job and chunk table of (submit_s, start_s, end_s, node → GPUs); jobs are numbered from 10."""
    rows, chunks = [], []
    for job, (submit, start, end, where) in enumerate(jobs, start=10):
        times = {"submit_s": float(submit), "start_s": float(start), "end_s": float(end)}
        rows.append({"job": job, "gpus": sum(where.values()), **times})
        chunks += [{"job": job, "node": node, "gpus": gpus} for node, gpus in where.items()]
    return pd.DataFrame(rows), pd.DataFrame(chunks, columns=["job", "node", "gpus"])


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


def placed(frame: pd.DataFrame) -> list[tuple[int, ...]]:
    return list(frame[["job", "node", "gpu", "gpus"]].itertuples(index=False, name=None))


def test_known_answers():
    """Job 12 finds GPUs 0 and 3 free, job 13 takes over when 11 ends, job 14 is on both nodes."""
    run = tables(
        (0, 0, 4, {0: 1}), (0, 1, 9, {0: 2}), (0, 4, 20, {0: 2}), (3, 9, 12, {0: 2}), (0, 12, 15, {1: 2, 0: 1})
    )
    frame = bars(*run, nodes_of(4, 2))
    assert placed(frame) == [
        (10, 0, 0, 1),
        (11, 0, 1, 2),
        (12, 0, 0, 1),
        (12, 0, 3, 1),
        (13, 0, 1, 2),
        (14, 0, 1, 1),
        (14, 1, 0, 2),
    ]
    assert frame["start_s"].tolist() == [0, 1, 4, 4, 9, 12, 12]
    assert frame["end_s"].tolist() == [4, 9, 20, 20, 12, 15, 15]
    assert frame["submit_s"].tolist() == [0, 0, 0, 0, 3, 0, 0]


def test_jobs_that_start_together_are_served_by_number_whatever_the_order_of_the_rows():
    job_table, chunk_table = tables((0, 0, 5, {0: 1}), (0, 0, 5, {0: 2}), (0, 0, 5, {0: 1}))
    expected = [(10, 0, 0, 1), (11, 0, 1, 2), (12, 0, 3, 1)]
    assert placed(bars(job_table, chunk_table, nodes_of(4))) == expected
    assert placed(bars(job_table[::-1], chunk_table.iloc[[1, 2, 0]], nodes_of(4))) == expected


def test_a_job_without_length_blocks_no_other():
    run = tables((0, 0, 5, {0: 2}), (0, 5, 9, {0: 2}), (0, 5, 5, {0: 1}))
    assert placed(bars(*run, nodes_of(2))) == [(10, 0, 0, 2), (11, 0, 0, 2), (12, 0, 0, 1)]


@pytest.mark.parametrize("seed", range(20, 24))
def test_runs_are_as_long_and_as_low_as_they_can_be(seed):
    """Replayed GPU by GPU: the lowest that no earlier starter still has."""
    job_table, chunk_table, nodes = random_run(seed)
    merged = chunk_table.merge(job_table[["job", "start_s", "end_s"]], on="job").sort_values(["start_s", "job", "node"])
    until = [np.full(n, -np.inf) for n in nodes.gpus]
    expected = set()
    for row in merged.itertuples():
        free = np.flatnonzero(until[row.node] <= row.start_s)[: row.gpus]
        until[row.node][free] = row.end_s
        expected |= {(row.job, row.node, int(g)) for g in free}
    frame = bars(job_table, chunk_table, nodes)
    assert {(r.job, r.node, g) for r in frame.itertuples() for g in range(r.gpu, r.gpu + r.gpus)} == expected
    behind = set(zip(frame["job"], frame["node"], frame["gpu"] + frame["gpus"]))
    assert not behind & set(zip(frame["job"], frame["node"], frame["gpu"])), "neighbours belong into one row"


def test_more_than_a_node_has_is_refused():
    run = tables((0, 0, 5, {0: 2, 1: 1}), (0, 4.5, 9, {1: 2}))
    with pytest.raises(ValueError, match="node 1 has 2 GPUs, too few for job 11 at 4.5 s"):
        bars(*run, nodes_of(2, 2))


def test_tables_that_do_not_go_together_are_refused():
    job_table, chunk_table = tables((0, 0, 5, {0: 2}), (0, 5, 9, {0: 1, 1: 1}))
    nodes = nodes_of(2, 1)

    def refuses(match: str, jobs: pd.DataFrame) -> None:
        with pytest.raises(ValueError, match=match):
            bars(jobs, chunk_table, nodes)

    refuses("job 11: not submitted, started and ended", job_table.assign(start_s=[0, np.nan]))
    refuses("job 10: not submitted, started and ended", job_table.assign(submit_s=[1, 0]))
    refuses("job 11 has chunks but is not in the job table", job_table.head(1))
