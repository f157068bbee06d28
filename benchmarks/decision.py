"""How long one scheduling decision takes, from the question to nodes (rltune.evaluation.studies.decision_time; paper §5.7).

Real jobs of Philly (synthetic ones where RLTUNE_REAL_TRACES, default ../shared/traces, has none) on 36 nodes. The actor
has the paper's shape and untrained weights. Medians over decisions; one core. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ[threads] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
from milp import philly  # noqa: E402

from rltune.agent.policy_file import TrainedPolicy  # noqa: E402
from rltune.agent.ppo import PPO  # noqa: E402
from rltune.config import LookaheadConfig, Preset  # noqa: E402
from rltune.environment.observation import width_of  # noqa: E402
from rltune.evaluation.studies.decision_time import QUEUES, decision_times  # noqa: E402

PAPER_GROWTH = (1.26, 1.59)
"""Growth of the paper's latency per doubling of the queue, least and greatest (§5.7)."""


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    os.environ.setdefault("RLTUNE_REAL_TRACES", "../shared/traces")
    jobs, layout, _, data = philly()
    weights = PPO(Preset(), np.random.default_rng(1), width_of("engineered")).weights()
    policy = TrainedPolicy(weights, {"features": "engineered"})
    figures: dict[str, object] = {"data": data}
    print(f"{data}; decision latency, median / p95 / longest in ms")
    for n in QUEUES:
        times = decision_times(policy, jobs, layout, LookaheadConfig(), [n], 12 if n < QUEUES[-1] else 4)["decision_s"]
        p50, p95, longest = np.percentile(times * 1000, (50, 95, 100))
        print(f"queue {n:>6}: {p50:.3f} / {p95:.3f} / {longest:.3f} over {len(times)} decisions", flush=True)
        figures[f"decision_{n}_median_ms"], figures[f"decision_{n}_p95_ms"] = round(float(p50), 4), round(float(p95), 4)
    growth = [figures[f"decision_{2 * n}_median_ms"] / figures[f"decision_{n}_median_ms"] for n in QUEUES[:3]]
    figures["growth_per_doubling"] = [round(float(g), 3) for g in growth]
    low, high = PAPER_GROWTH
    print(f"growth per doubling: {', '.join(f'{g:.2f}' for g in growth)} (the paper: {low}–{high})")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
