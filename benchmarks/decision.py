"""How long one scheduling decision takes, from the question to nodes (paper §5.7).

A decision is: the features of the queue (the first 256 jobs of it, the rest behind by the base policy), the actor, the
ranking, the placement of the chosen job with look-ahead, its start, and the simulator up to the next question. Real
jobs of Philly (synthetic ones where RLTUNE_REAL_TRACES, default ../shared/traces, has none) are all submitted at one
instant to 36 idle nodes, so the queue is as long as it says; the first decisions are timed, while jobs still fit. The
actor has the paper's shape and untrained weights. Medians over decisions; one core. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import time

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ[threads] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
from milp import philly  # noqa: E402

from rltune.agent.policy_file import TrainedPolicy  # noqa: E402
from rltune.agent.ppo import PPO  # noqa: E402
from rltune.agent.rollout import AgentRanker  # noqa: E402
from rltune.cluster.fit import Jobs  # noqa: E402
from rltune.cluster.layout import Layout  # noqa: E402
from rltune.config import LookaheadConfig, Preset  # noqa: E402
from rltune.environment.observation import Observer, width_of  # noqa: E402
from rltune.placement.lookahead import Lookahead  # noqa: E402
from rltune.simulator.batch import Run, Setting  # noqa: E402
from rltune.simulator.state import MAX_VISIBLE  # noqa: E402

QUEUES = (128, 256, 512, 1024, 10_000)
PAPER_GROWTH = (1.26, 1.59)
"""Growth of the paper's latency per doubling of the queue, least and greatest (§5.7)."""


def at_once(jobs: Jobs, first: int, n: int) -> Jobs:
    """Jobs first … first + n − 1, all submitted together."""
    some = jobs.take(np.arange(first, first + n))
    some.row["submit_s"] = some.row["submit_s"][0]
    return some


def decisions(jobs: Jobs, layout: Layout, ranker: AgentRanker, placer: Lookahead) -> list[float]:
    """Seconds of each decision until the first job does not fit."""
    n = len(jobs.row)
    run = Run(jobs, layout, np.array([0]), np.array([n]), Setting("fifo", "none", "lookahead"), placer, MAX_VISIBLE)
    asking = run.advance()
    seconds: list[float] = []
    while len(asking) and run.state.now[0] == jobs.submit_s[0]:
        began = time.perf_counter()
        ranker(run.state, asking)
        asking = run.advance()
        seconds.append(time.perf_counter() - began)
    return seconds[:-1]  # the last one waited for a job to end


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    jobs, layout, _, data = philly()
    weights = PPO(Preset(), np.random.default_rng(1), width_of("engineered")).weights()
    logits = TrainedPolicy(weights, {}).logits
    figures: dict[str, object] = {"data": data}
    print(f"{data}; decision latency, median / p95 / longest in ms")
    for n in QUEUES:
        seconds: list[float] = []
        for first in np.linspace(0, len(jobs.row) - n, 12 if n < 10_000 else 4).astype(int):
            some = at_once(jobs, int(first), n)
            ranker = AgentRanker(logits, Observer(some, layout, "engineered"))
            placer = Lookahead(LookaheadConfig())
            decisions(some, layout, ranker, placer)  # compiles, and warms the caches of this queue
            placer._memory.clear()
            seconds += decisions(some, layout, ranker, placer)
        p50, p95, longest = np.percentile(np.array(seconds) * 1000, (50, 95, 100))
        print(f"queue {n:>6}: {p50:.3f} / {p95:.3f} / {longest:.3f} over {len(seconds)} decisions", flush=True)
        figures[f"decision_{n}_median_ms"], figures[f"decision_{n}_p95_ms"] = round(float(p50), 4), round(float(p95), 4)
    growth = [figures[f"decision_{2 * n}_median_ms"] / figures[f"decision_{n}_median_ms"] for n in QUEUES[:3]]
    figures["growth_per_doubling"] = [round(float(g), 3) for g in growth]
    low, high = PAPER_GROWTH
    print(f"growth per doubling: {', '.join(f'{g:.2f}' for g in growth)} (the paper: {low}–{high})")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
