"""How fast the simulator is.

All rows of Philly that ship with the package, and synthetic jobs on 10,000 nodes. Everything on one core, compiled
beforehand, best of several runs. The last line is one JSON object.
"""

import multiprocessing
import resource
import time
from collections.abc import Callable

import parts.one_core  # noqa: F401

# isort: split
import numpy as np
from parts.output import parser_of, report

from rltune.cluster.fit import CUT, JOB, Jobs, compile_jobs, fit
from rltune.cluster.layout import Layout, build_layout
from rltune.config import CACHE, ClusterConfig, load_cluster, load_trace, project_root
from rltune.environment.vector import VectorEnvironment
from rltune.reference import twin
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.state import State
from rltune.traces.clean import clean_trace
from rltune.traces.estimates import estimate_jobs
from rltune.traces.fetch import obtain
from rltune.traces.split import disjoint_windows

LENGTH = 256


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    args = parser_of(__doc__).parse_args()
    slice_jobs, slice_layout = philly("philly-192")
    figures = reported(windows(slice_jobs, slice_layout))
    figures |= reported(whole_trace(*philly("philly-full")))
    figures |= reported(environment(slice_jobs, slice_layout))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures |= reported(pool.apply(million))
    report(figures, args.write)


def reported(figures: dict[str, float]) -> dict[str, float]:
    """The figures, printed."""
    for name, value in figures.items():
        print(f"{name}: {value:,}", flush=True)
    return figures


def philly(cluster: str) -> tuple[Jobs, Layout]:
    """All of Philly's jobs, estimates lognormal(1), on a cluster."""
    root = project_root()
    nodes, trace = load_cluster(cluster, root), load_trace("philly-rows", root).model_copy(update={"start": None})
    cleaned = clean_trace("philly-rows", trace, obtain("philly-rows", trace, root / CACHE, root))
    fitted, _ = fit(cleaned.jobs, nodes)
    estimate_s = estimate_jobs(fitted, cleaned.meta, "lognormal-1", 1)["estimate_s"].to_numpy()
    return compile_jobs(fitted, estimate_s, nodes), build_layout(nodes)


def synthetic(n: int, layout: Layout, load: float, longest_s: float) -> Jobs:
    """Poisson arrivals at an offered load, heavy-tailed run times, mostly small jobs; one pool, one GPU type."""
    rng = np.random.default_rng(1)
    sizes = np.array([1, 2, 4, 8, 16, 32, 64])
    row = np.zeros(n, JOB)
    row["gpus"] = rng.choice(sizes, n, p=[0.7, 0.1, 0.08, 0.08, 0.02, 0.01, 0.01])
    row["run_s"] = np.clip(rng.lognormal(6.5, 2.0, n), 1, longest_s)
    row["estimate_s"] = row["run_s"] * np.exp(rng.normal(size=n))
    gap = (row["gpus"] * row["run_s"]).mean() / (layout.gpus * load)
    row["submit_s"] = np.cumsum(rng.exponential(gap, n))
    row["cpu_milli"] = row["mem_mb"] = -1
    row["shape"] = np.searchsorted(sizes, row["gpus"])
    size = int(layout.nodes.gpus.max())
    cut = np.zeros((n, 1), CUT)
    cut["size"], cut["slow"], cut["spread"] = size, 1.0, 1.0
    cut["full"][:, 0], cut["rem"][:, 0] = np.divmod(row["gpus"], size)
    return Jobs(row, cut)


def nodes_of(n: int) -> Layout:
    """A cluster of one pool of equal nodes."""
    group = {"gpu_type": "V100", "nodes": n, "gpus": 8, "cpus": 64, "mem_gb": 512}
    return build_layout(ClusterConfig.model_validate({"title": "C", "pools": [{"name": "all", "groups": [group]}]}))


def best_of(times: int, run: Callable[[], State]) -> tuple[float, State]:
    """(Seconds of the fastest of some runs, its state)."""
    best, state = float("inf"), None
    for _ in range(times):
        began = time.perf_counter()
        state = run()
        best = min(best, time.perf_counter() - began)
    assert state is not None
    return best, state


def windows(jobs: Jobs, layout: Layout) -> dict[str, float]:
    """Disjoint windows of 256 from an idle cluster, next to the plain-Python twin."""
    first = disjoint_windows(0, len(jobs.row), LENGTH)
    n = np.full(len(first), LENGTH)
    out = {}
    runs = (("fifo", "none"), ("fifo", "easy"), ("saf", "easy"), ("wfp3", "easy"), ("multifactor", "none"))
    for policy, backfill in runs:
        scheduler = SchedulerConfig(policy, backfill)
        simulate(jobs, layout, first[:1], n[:1], scheduler)
        took, _ = best_of(7, lambda scheduler=scheduler: simulate(jobs, layout, first, n, scheduler))
        out[f"window_{policy}_{backfill}_jobs_per_s"] = round(n.sum() / took)
    some = first[:: max(1, len(first) // 8)]
    began = time.perf_counter()
    starts = [twin.run(jobs, layout, int(f), LENGTH, SchedulerConfig("fifo")) for f in some]
    rate = len(some) * LENGTH / (time.perf_counter() - began)
    same = simulate(jobs, layout, some, np.full(len(some), LENGTH), SchedulerConfig("fifo")).start
    assert all(np.array_equal(a, b) for a, b in zip(starts, same, strict=True)), "engine and twin differ"
    out["twin_window_fifo_jobs_per_s"] = round(rate)
    out["engine_over_twin"] = round(out["window_fifo_none_jobs_per_s"] / rate)
    return out


def whole_trace(jobs: Jobs, layout: Layout) -> dict[str, float]:
    """All jobs in one sequence on the full cluster."""
    n = len(jobs.row)
    out = {}
    for policy, backfill in (("fifo", "none"), ("fifo", "greedy"), ("fifo", "easy"), ("saf", "easy"), ("wfp3", "easy")):
        took, _ = best_of(5, lambda p=policy, b=backfill: simulate(jobs, layout, [0], [n], SchedulerConfig(p, b)))
        out[f"philly_full_{policy}_{backfill}_jobs_per_s"] = round(n / took)
    return out


def environment(jobs: Jobs, layout: Layout) -> dict[str, float]:
    """100 contended windows in lock step, ordered by one of the features (job size).

    All decisions count; those between two jobs or more are observed and answered.
    """
    scheduler = SchedulerConfig("fifo", "none")
    every = disjoint_windows(0, len(jobs.row), LENGTH)
    run = simulate(jobs, layout, every, np.full(len(every), LENGTH), SchedulerConfig("saf"))
    crowded = np.argsort(-run.status["queue_sum"] / run.status["decisions"], kind="stable")[:100]
    first = np.sort(every[crowded])
    env = VectorEnvironment(jobs, layout, scheduler, "unsampled")

    def once() -> State:
        seen = env.reset(first, np.full(len(first), LENGTH))
        while len(seen.asking):
            seen = env.step(seen.rows[:, 1])
        return env.state

    once()
    took, state = best_of(7, once)
    decisions, choices = int(state.status["decisions"].sum()), int(state.status["choices"].sum())
    return {
        "env_decisions_per_s": round(decisions / took),
        "env_mean_queue": round(float(state.status["queue_sum"].sum() / decisions), 1),
        "env_share_with_choice": round(choices / decisions, 3),
        "env_observed_per_s": round(choices / took),
    }


def million() -> dict[str, float]:
    """A million jobs on 10,000 nodes, in a process that does nothing else."""
    layout = nodes_of(10_000)
    jobs = synthetic(1_000_000, layout, load=1.05, longest_s=6 * 3600)  # short enough for the cluster to fill
    simulate(jobs, layout, [0], [1000], SchedulerConfig("fifo"))
    out = {}
    for name, backfill in (("million_jobs", "none"), ("million_jobs_easy", "easy")):
        scheduler = SchedulerConfig("fifo", backfill)
        took, state = best_of(1, lambda scheduler=scheduler: simulate(jobs, layout, [0], [len(jobs.row)], scheduler))
        queue = state.status["queue_sum"][0] / state.status["decisions"][0]
        out |= {f"{name}_s": round(took, 2), f"{name}_mean_queue": round(float(queue))}
    return {**out, "million_jobs_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)}


if __name__ == "__main__":
    main()
