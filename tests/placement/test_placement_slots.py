"""Look-ahead over several time slots: both models against enumeration on questions met in runs, and by hand."""

from __future__ import annotations

import pytest
from placement_compare import compared
from placement_enumeration import weighted
from workload_cases import cluster, group, simple

from rltune.config import LookaheadConfig
from rltune.placement.lookahead import Lookahead
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.metrics import chunk_table


@pytest.mark.parametrize("overrun", ["double", "now"])
@pytest.mark.parametrize(("slots", "slot_s"), [(2, 30.0), (3, 60.0)])
def test_both_models_equal_enumeration_in_runs(slots: int, slot_s: float, overrun: str) -> None:
    config = weighted({"rank_decay": 0.7, "whole_node": 0.05}, jobs=3, slots=slots, slot_s=slot_s)
    scheduler = SchedulerConfig("saf", "easy", "lookahead", overrun=overrun)
    count = compared(config, lambda seed: scheduler, range(200), n=25, enough=60)
    assert count["asked"] > 60 and count["later"] > 20 and count["presolved"] > 3


def test_it_looks_at_what_ends_soon() -> None:
    """Two nodes of four: three GPUs run for 60 s on the first, one for long on the second. A job of one GPU: best_fit
    takes the first node's last GPU, and then no node is whole when the next job, of four, could start; with a slot
    a minute from now it goes to the second node."""
    config = cluster([group(2, 4)])
    rows = [(0, 60, 3), (0, 10_000, 2), (1, 5000, 1), (1, 100, 4)]
    now = LookaheadConfig(jobs=4)
    soon = LookaheadConfig(jobs=4, slots=2, slot_s=60.0)
    starts = []
    for lookahead in (now, soon):
        jobs, layout = simple(config, *rows)
        placer = Lookahead(lookahead)
        state = simulate(jobs, layout, [0], [4], SchedulerConfig("fifo", "none", "lookahead"), placer=placer)
        starts.append(state.start[0].tolist())
        table = chunk_table(state).set_index("job")["node"]
        assert table[2] == (0 if lookahead is now else 1)
    assert starts == [[0, 0, 1, 5001], [0, 0, 1, 60]]
