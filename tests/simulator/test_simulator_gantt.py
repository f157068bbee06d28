"""GPU numbers given to jobs: the same for the same run, no GPU twice at a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_simulator_timeline import nodes_of, random_run, tables

from rltune.simulator.gantt import bars


def placed(frame: pd.DataFrame) -> list[tuple[int, ...]]:
    return list(frame[["job", "node", "gpu", "gpus"]].itertuples(index=False, name=None))


def test_known_answers() -> None:
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


def test_jobs_that_start_together_are_served_by_number_whatever_the_order_of_the_rows() -> None:
    job_table, chunk_table = tables((0, 0, 5, {0: 1}), (0, 0, 5, {0: 2}), (0, 0, 5, {0: 1}))
    expected = [(10, 0, 0, 1), (11, 0, 1, 2), (12, 0, 3, 1)]
    assert placed(bars(job_table, chunk_table, nodes_of(4))) == expected
    assert placed(bars(job_table[::-1], chunk_table.iloc[[1, 2, 0]], nodes_of(4))) == expected


def test_a_job_without_length_blocks_no_other() -> None:
    run = tables((0, 0, 5, {0: 2}), (0, 5, 9, {0: 2}), (0, 5, 5, {0: 1}))
    assert placed(bars(*run, nodes_of(2))) == [(10, 0, 0, 2), (11, 0, 0, 2), (12, 0, 0, 1)]


@pytest.mark.parametrize("seed", range(20, 24))
def test_runs_are_as_long_and_as_low_as_they_can_be(seed: int) -> None:
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


def test_more_than_a_node_has_is_refused() -> None:
    run = tables((0, 0, 5, {0: 2, 1: 1}), (0, 4.5, 9, {1: 2}))
    with pytest.raises(ValueError, match="node 1 has 2 GPUs, too few for job 11 at 4.5 s"):
        bars(*run, nodes_of(2, 2))
    with pytest.raises(ValueError, match="expected one sequence"):
        bars(pd.concat([run[0], run[0].assign(sequence=1)]), run[1], nodes_of(2, 2))
