"""Placement questions at random, on a cluster partly in use by nobody."""

from __future__ import annotations

import numpy as np
from placement_enumeration import Enumeration
from workload_cases import compiled, random_cluster, random_rows

from rltune.cluster.fit import Jobs
from rltune.cluster.free import Free as Index, change
from rltune.cluster.layout import Layout
from rltune.config import LookaheadConfig
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.state import State, new_state

SCHEDULER = SchedulerConfig("fifo", "none", "lookahead")


def empty_state(jobs: Jobs, layout: Layout, top: int) -> State:
    """One sequence of all the jobs on an idle cluster."""
    return new_state(jobs, layout.nodes, [0], [len(jobs.row)], SCHEDULER.options(), top=top)


def leave_free(state: State, layout: Layout, gpus: np.ndarray, cpu: np.ndarray, mem: np.ndarray) -> None:
    """Take from every node what is more than this."""
    free = Index(*(column[0] for column in state.free))
    for m, wanted in enumerate(zip(gpus, cpu, mem, strict=True)):
        change(layout.nodes, free, m, *(int(w) - int(f) for w, f in zip(wanted, list(free.row[m])[:3], strict=True)))


def question(
    seed: int, config: LookaheadConfig, nodes: int = 5, n: int = 12, types: int | None = None
) -> tuple[Jobs, Layout, State] | None:
    """A pool of at most ``nodes`` nodes, partly in use, a chosen job with two candidate placements or more, and others.

    None where no job has two: the simulator asks nothing then.
    """
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, pools=1, types=types or int(rng.integers(1, 3)))
    if cluster.nodes > nodes:
        return None
    rows = random_rows(rng, cluster, n)
    rows[0] = {"submit_s": 0.0, "gpus": 1}
    jobs, layout = compiled(cluster, rows)
    return ask(jobs, layout, config, rng)


def ask(jobs: Jobs, layout: Layout, config: LookaheadConfig, rng: np.random.Generator) -> tuple | None:
    """The same on a given cluster with given jobs."""
    n = len(jobs.gpus)
    if n < 3:
        return None
    state, node = empty_state(jobs, layout, config.jobs), layout.nodes.row
    share = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0], len(node))
    gpus = np.ceil(node["gpus"] * share)
    cpu = np.floor(node["cpu_milli"] * share * rng.choice([0.7, 1, 1], len(share)))
    mem = np.floor(node["mem_mb"] * share * rng.choice([0.7, 1, 1], len(share)))
    whole = share == 1
    cpu[whole], mem[whole] = node["cpu_milli"][whole], node["mem_mb"][whole]
    leave_free(state, layout, gpus, cpu, mem)
    order = rng.permutation(n)
    oracle = Enumeration(jobs, layout, state, config, SCHEDULER)
    able = [r for r in order if len({oracle.alike(w, *oracle.free) for w in oracle.whole(int(r), oracle.free[0])}) > 1]
    if not able:
        return None
    ranking = [able[0], *(r for r in order if r != able[0])][: config.jobs]
    state.status["chosen"][0] = able[0]
    state.top[0, : len(ranking)] = ranking
    return jobs, layout, state
