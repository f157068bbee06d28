"""How fast an agent is trained and how fast it decides, and how much memory training takes.

Philly's rows on 192 GPUs; the sixth of the windows of 256 jobs whose queues are longest; one core. An epoch is draws, base runs,
rollouts, update: of the preset `tuned`, with a hundred sequences, with best_fit and with look-ahead, and of `paper`, each
in a process of its own, whose peak memory is printed. The first epoch of each compiles and is not counted, and what the
placement model solved in earlier epochs is forgotten. Only decisions with two candidates or more count. The online
decision is observation, network and order of one queue, without placement. At last two whole cells of 100 epochs as the
preset has them, best_fit and look-ahead: choice of the scheduler, training on the whole training part, validations. The
last line is one JSON object.
"""

import multiprocessing
import resource
import statistics
import time

import parts.one_core  # noqa: F401

# isort: split
import numpy as np
from parts.output import parser_of, report

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.ppo import PPO, set_up
from rltune.agent.task import TrainingTask
from rltune.agent.trainer import fit, make_trainer
from rltune.cluster.workload import Workload, build_workload
from rltune.config import Cell, LookaheadConfig
from rltune.config.context import Run
from rltune.config.preset import BUILT_IN
from rltune.environment.observation import width_of
from rltune.evaluation.studies.decision_time import decision_times

CELL = Cell(
    "philly-rows", "philly-192", "fifo", "wait", "easy", "best_fit", "strict", "rich", "lognormal-1", "tuned", 1
)
EPOCHS = 3
"""Epochs that are timed."""
MEASURED = (
    "rollout_seconds update_seconds decisions choices mean_queue choices_per_second actor_iterations "
    "milp_asked milp_presolved milp_cached milp_calls"
).split()
"""Columns of the history whose means are printed."""
QUEUES = (256, 1024)
HUNDRED = {"tunes": "nothing", "trajectories": 25, "rollouts": 4}
"""Of `tuned`: as many sequences an epoch as `paper` has, under the cell's own rules."""
TUNED = BUILT_IN["tuned"].model_copy(update=HUNDRED)
TRAININGS = {
    "tuned": (CELL, TUNED),
    "tuned, look-ahead": (CELL.but(placement="lookahead"), TUNED),
    "paper": (CELL.but(features="engineered", preset="paper"), BUILT_IN["paper"]),
}
"""What is timed → its cell and preset."""


def workload() -> Workload:
    """Philly's rows."""
    return build_workload(Run.open("config/real-rows.yaml"), CELL.trace, CELL.cluster, CELL.estimate)


class Contended(TrainingTask):
    """Draws only sequences whose mean queue under the base policy is long."""

    def draw(self) -> np.ndarray:
        """First jobs [trajectories] of an epoch's sequences."""
        if not hasattr(self, "_long"):
            at = np.arange(self.split.train[0], self.split.train[1] - self.length, self.length)
            queue = self.run(at)["mean_queue"].to_numpy()
            self._long = at[np.argsort(-queue)[: max(len(at) // 6, 10)]]
        return self.stream.choice(self._long, size=self.preset.trajectories)


def epochs(name: str) -> dict[str, float]:
    """Means over the timed epochs of a training; ``rss_gb`` is the most memory that it took, data and TensorFlow too."""
    cell, preset = TRAININGS[name]
    trainer = make_trainer(Contended(cell, preset, workload()), threads=1)
    rows, seconds = [], []
    for _ in range(1 + EPOCHS):
        trainer.task.forget_solutions()
        start = time.perf_counter()
        batch = trainer.collect()
        trainer.update(batch, trainer.advantages(batch))
        rows.append(trainer.log())
        seconds.append(time.perf_counter() - start)
    means = {name: statistics.fmean(row[name] for row in rows[1:]) for name in MEASURED}
    rss_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": statistics.fmean(seconds[1:]), **means, "rss_gb": rss_gb}


def cell_minutes(placement: str) -> float:
    """A whole training of `tuned`, of 100 epochs."""
    preset = BUILT_IN["tuned"].model_copy(update={"epochs": 100})
    work = workload()
    start = time.perf_counter()
    fit(make_trainer(TrainingTask(CELL.but(placement=placement), preset, work), threads=1))
    return (time.perf_counter() - start) / 60


def main() -> None:
    """Print each figure as it comes; the JSON object last."""
    parser = parser_of(__doc__)
    args = parser.parse_args()
    work = workload()
    print(f"{set_up(1, 1)}; {EPOCHS} epochs of 100 sequences of 256 jobs each")
    found: dict[str, dict[str, float]] = {}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in TRAININGS:
            found[name] = pool.apply(epochs, (name,))
            print(f"{name}: {', '.join(f'{what} {mean:,.4g}' for what, mean in found[name].items())}", flush=True)
        cells = {placement: pool.apply(cell_minutes, (placement,)) for placement in ("best_fit", "lookahead")}
    print("; ".join(f"a cell of 100 epochs, {placement}: {minutes:.1f} min" for placement, minutes in cells.items()))
    weights = PPO(BUILT_IN["tuned"], np.random.default_rng(1), width_of(CELL.features)).weights()
    untrained = TrainedPolicy(weights, {"features": CELL.features, "base_policy_bias": 1.0})
    decisions = decision_times(untrained, work.jobs, work.layout, LookaheadConfig(), QUEUES, 10)
    online = 1000 * decisions.groupby("queue")["inference_s"].median()
    for queued, taken in online.items():
        print(f"online decision, {queued} queued: {taken:.3f} ms")
    plain, placed = found["tuned"], found["tuned, look-ahead"]
    figures = {
        "rollout_mean_queue": round(plain["mean_queue"], 1),
        **{name: round(plain[name]) for name in ("decisions", "choices")},
        **{name: round(placed[name]) for name in ("milp_asked", "milp_presolved")},
        "cell_minutes": round(cells["best_fit"], 2),
        "cell_milp_minutes": round(cells["lookahead"], 2),
        **{f"decision_ms_{queued}": round(taken, 4) for queued, taken in online.items()},
        "found": found,
    }
    report(figures, args.write)


if __name__ == "__main__":
    main()
