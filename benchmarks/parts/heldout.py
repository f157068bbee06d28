"""Agents and base policies on held-out real rows, side by side: what the benchmarks that train agents share.

An agent is trained on the rows up to an origin and evaluated on disjoint windows from the tenth behind it. Base policies run
under every backfill rule with best_fit; the strong baseline is the best of all policies × {none, greedy, easy} (and
localities) on the very windows it is compared on, and next to it the one that was best on the validation windows,
which one could have known. Everybody is given the same estimates, lognormal(1), but for agents that the preset `paper`
trains with true run times. Intervals: 95 %, moving blocks, paired by window, over seeds too where there are several.
"""

import argparse
import hashlib
import inspect
import json
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import parts.one_core  # noqa: F401  # isort: skip
import numpy as np
import pandas as pd

from parts.rows import HAS_PAI
from rltune import COMPILED, sources_digest
from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.rollout import ranker_of
from rltune.agent.scheduler_choice import POLICIES
from rltune.agent.task import TrainingTask
from rltune.agent.trainer import fit, make_trainer
from rltune.cluster.speeds import GAVEL
from rltune.cluster.workload import Workload, build_workload
from rltune.config import Cell, LookaheadConfig
from rltune.config.context import Run
from rltune.config.preset import BUILT_IN
from rltune.evaluation.intervals import improved
from rltune.files import atomic_write
from rltune.placement.placers import placer_of
from rltune.simulator.batch import SchedulerConfig, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import disjoint_windows, split_points

TRACES = {"philly": ("philly-rows", "philly-192"), "venus": ("venus-rows", "venus-160"), "pai": ("pai-csv", "pai-140")}
SHIPPED = ("philly", "venus")
"""Traces whose rows ship with the package; PAI's are read from the folder that RLTUNE_REAL_TRACES names."""
THERE = (*SHIPPED, *["pai"] * HAS_PAI)
"""Traces whose rows can be read."""
BACKFILLS = ("none", "greedy", "easy")
MORE = ("conservative",)
"""Printed next to them; not among what the strong baseline is chosen from. Nor is …"""
ISOLATING = "isolating_best_fit"
"""… this placement, which like locality soonest_end is tried too where jobs may be split."""


@dataclass(frozen=True)
class Variant:
    """A preset, the features and placement it is given, and fields of the preset that are changed."""

    preset: str
    features: str
    placement: str = "best_fit"
    changes: tuple[tuple[str, Any], ...] = ()


FROM_NOTHING = (("batch_decisions", 2048), ("validate_every", 5), ("validation_windows", 40))
"""The preset `paper` with smaller steps and validated oftener: a quarter of its time."""
VARIANTS: dict[str, Variant] = {
    **{name: Variant(name, "engineered" if name in ("paper", "quick") else "rich") for name in BUILT_IN},
    **{name: Variant(name, "rich", changes=(("estimates", "given"),)) for name in ("rlscheduler", "schedinspector")},
    "naive": Variant("paper", "raw", "best_fit", FROM_NOTHING),
    "pro": Variant("paper", "engineered", "lookahead", FROM_NOTHING),
    "tuned, raw": Variant("tuned", "raw"),
    "tuned, engineered": Variant("tuned", "engineered"),
}
"""What can be trained: the built-in presets; naive and pro; `tuned` on other features."""
COLUMNS = {"wait": "wait_s", "jct": "jct_s", "bsld": "bsld"}
BY = {"jct": "excess_s", "wait": "wait_s", "bsld": "bsld"}
"""Column of windows by which a metric is compared where GPU types differ: excess is completion less a constant."""
RESAMPLES = 10_000
PICKED = "picked for "
"""Begins the name of the base policy that is best on validation windows; the metric follows."""
ALONE = "its scheduler alone"
"""RLTune without its network."""


@dataclass(frozen=True)
class Task:
    """One agent: trained up to an origin, evaluated behind it."""

    trace: str
    origin: float
    seed: int
    learner: str
    folder: str
    metric: str = "wait"
    lengths: tuple[int, ...] = (256,)
    cluster: str = ""
    """Behind the cluster's name: -mixed."""
    nodes: tuple[tuple[str, Any], ...] = ()
    """Fields of the cluster that are changed."""
    locality: str = "strict"
    """Of the agent, and …"""
    localities: tuple[str, ...] = ("strict",)
    """… of the base policies."""
    keep: str = ""
    """Where results are kept, for a benchmark that is stopped or another with the same tasks; empty: nowhere."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Fields of the preset that are changed."""
    label: str = ""
    """What the agent is called; empty: RLTune for `tuned`, else the learner's name."""

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self.label or ("RLTune" if self.learner == "tuned" else self.learner)


def workload_of(task: Task) -> tuple[str, str]:
    """Names of the trace and the cluster."""
    trace, cluster = TRACES[task.trace]
    return trace, cluster + task.cluster


def loaded(task: Task) -> Workload:
    """The workload, split at the task's origin."""
    trace, cluster = workload_of(task)
    changed = "".join(f"__{name}-{Path(value).stem if isinstance(value, str) else value}" for name, value in task.nodes)
    path = Path(task.folder) / f"{trace}__{cluster}{changed}.pickle"
    if not path.is_file():
        run = Run.open("config/csv.yaml")
        made = build_workload(run, trace, cluster, "lognormal-1", calibrate=True, **dict(task.nodes))
        with atomic_write(path) as temporary:
            temporary.write_bytes(pickle.dumps(made))
    load: Workload = pickle.loads(path.read_bytes())
    return replace(load, split=split_points(len(load.job_ids), task.origin, 0.1))


def windows_of(load: Workload, length: int, validation: bool = False) -> np.ndarray:
    """First jobs of the windows that are evaluated on, the tenth of the rows behind the origin; or those of validation."""
    start, stop = load.split.validation if validation else load.split.test
    return disjoint_windows(start, min(stop, start + len(load.job_ids) // 10), length)


def run(
    load: Workload,
    length: int,
    scheduler: SchedulerConfig,
    uses_calibrated: bool = False,
    policy: TrainedPolicy | None = None,
    validation: bool = False,
):
    """A row per window of that many jobs; in the order of ``policy``, or of the setting's."""
    jobs = load.calibrated if uses_calibrated and load.calibrated is not None else load.jobs
    placer = placer_of(scheduler.placement, LookaheadConfig())
    ranker = ranker_of(policy, jobs, load.layout) if policy else None
    first = windows_of(load, length, validation)
    state = simulate(jobs, load.layout, first, np.full(len(first), length), scheduler, ranker, placer)
    return sequence_table(jobs, state, load.layout.gpus).assign(length=length)


def heuristics(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per base policy × backfill rule × locality × window; those of PICKED once more under that name. No facts."""
    load, frames, before = loaded(task), [], []
    open_to_all = [(locality, "best_fit") for locality in task.localities]
    if len(task.localities) > 1:
        open_to_all += [("any", ISOLATING), ("soonest_end", ISOLATING)]
    for length in task.lengths:
        bound = [lower_bound(load.jobs, load.layout, int(f), length).wait_s for f in windows_of(load, length)]
        for policy, backfill, (locality, placement) in product(POLICIES, (*BACKFILLS, *MORE), open_to_all):
            scheduler = SchedulerConfig(policy, backfill, placement, locality, **load.slowdowns)
            table = run(load, length, scheduler)
            where = f" {locality}" if len(task.localities) > 1 else ""
            how = f" {placement}" if placement == ISOLATING else ""
            name = f"{policy}+{backfill}{where}{how}"
            frames.append(table.assign(scheduler=name, rule=name, bound_s=bound))
            if is_candidate(name):
                before.append(run(load, length, scheduler, validation=True).assign(scheduler=name))
    tested, validated = pd.concat(frames), pd.concat(before).groupby(["length", "scheduler"])
    best = [
        (length, metric, validated[column].mean()[length].idxmin())
        for length, (metric, column) in product(task.lengths, COLUMNS.items())
    ]
    picked = [
        tested[(tested["length"] == length) & (tested["scheduler"] == rule)].assign(scheduler=PICKED + metric)
        for length, metric, rule in best
    ]
    return pd.concat([tested, *picked]).assign(trace=task.trace, origin=task.origin), {}


def is_candidate(scheduler: str) -> bool:
    """Whether a base policy under its rules is one of those that the strong baseline is the best of."""
    return scheduler.split()[0].split("+")[1] in BACKFILLS and ISOLATING not in scheduler


def trained(task: Task, load: Workload) -> tuple[TrainedPolicy, TrainingTask, float]:
    """(The task's agent, its training, seconds that it took)."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    variant = VARIANTS[task.learner]
    preset = BUILT_IN[variant.preset].model_copy(update=dict((*variant.changes, *task.changes)))
    preset = type(preset).model_validate(preset.model_dump())
    cell = Cell(
        *workload_of(task),
        "saf",
        task.metric,
        "easy",
        variant.placement,
        task.locality,
        variant.features,
        "lognormal-1",
        variant.preset,
        task.seed,
    )
    began = time.perf_counter()
    load = load.with_exact_estimates() if preset.estimates == "exact" else load
    training = TrainingTask(cell, preset, load)
    return fit(make_trainer(training, threads=1)), training, time.perf_counter() - began


def logged(task: Task, facts: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What is printed and written of a training."""
    some = {k: facts.get(k) for k in ("scheduler", "best_epoch", "learned", "validation_metric", "validation_start")}
    return {
        "trace": task.trace,
        "origin": task.origin,
        "seed": task.seed,
        "agent": task.name,
        "metric": task.metric,
        **some,
        "seconds": round(seconds, 1),
    }


def agent(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window of one agent, of the scheduler it chose without what it learned; facts of its training."""
    load, frames = loaded(task), []
    policy, training, seconds = trained(task, load)
    scheduler, calibrated = training.agent_scheduler.config, training.agent_scheduler.uses_calibrated
    for length in task.lengths:
        frames.append(run(load, length, scheduler, calibrated, policy).assign(scheduler=task.name))
        if task.name == "RLTune":
            frames.append(run(load, length, scheduler, calibrated).assign(scheduler=ALONE))
            easy = replace(scheduler, backfill="easy")  # nodes reserved for the first job alone
            frames.append(run(load, length, easy, calibrated, policy).assign(scheduler="RLTune, EASY only"))
    frame = pd.concat(frames).assign(trace=task.trace, origin=task.origin, seed=task.seed, metric=task.metric)
    return frame, logged(task, policy.facts, seconds)


def prepare(task: Task) -> None:
    """Make the files of a workload that all its tasks read, and compile, once."""
    run(loaded(task), task.lengths[0], SchedulerConfig("saf", "easy"))


Work = Callable[[Task], tuple[pd.DataFrame, dict[str, Any]]]
"""A piece of work, done in a process of its own: (windows, facts) of a task."""


def kept_at(make: Work, task: Task) -> Path | None:
    """Where the result of a piece of work is kept; None: nowhere."""
    of = asdict(task) | {"keep": ""}
    text = json.dumps([make.__name__, of, sources_digest("traces", "config", "evaluation", *COMPILED)])
    text = text.replace(task.folder, "")  # which is another in every run
    files = [inspect.getfile(make), *sorted(Path(__file__).parent.glob("*.py")), GAVEL]
    text += "".join(Path(p).read_text(encoding="utf-8") for p in files)
    name = f"{make.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.parquet"
    return Path(task.keep) / name if task.keep else None


def work(job: tuple[Work, Task]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """What a piece of work makes; found where it was done and kept before."""
    make, task = job
    path = kept_at(make, task)
    if path is not None and path.is_file():
        frame = pd.read_parquet(path)
        return frame, json.loads(frame.attrs["facts"])
    frame, facts = make(task)
    if path is not None:
        frame.attrs["facts"] = json.dumps(facts)
        with atomic_write(path) as temporary:
            frame.to_parquet(temporary)
    return frame, facts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that all of them have."""
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="trainings side by side")
    parser.add_argument(
        "--keep",
        default="",
        metavar="FOLDER",
        help="where results are kept and found again; another state of src or of the benchmark makes others",
    )


def pooled(processes: int) -> Any:
    """A pool whose processes do one piece of work each: TensorFlow is set up once per process."""
    return multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1)


def play(tasks: list[Task], processes: int) -> tuple[pd.DataFrame, pd.DataFrame, list[dict[str, Any]]]:
    """(Windows of the base policies, of the agents, facts of the agents) of all tasks."""
    same = {"seed": 0, "learner": "", "metric": "", "changes": (), "label": ""}  # nothing to a base policy
    once = [(heuristics, t) for t in dict.fromkeys(replace(t, **same) for t in tasks)]
    with pooled(processes) as pool:
        work_of = [*once, *((agent, t) for t in tasks)]
        for trace, task in {t.trace: t for t in tasks}.items():
            places = [kept_at(make, t) for make, t in work_of if t.trace == trace]
            if not all(place is not None and place.is_file() for place in places):
                pool.apply(prepare, (task,))
        ruled = pool.imap(work, once, chunksize=1)
        found = pool.imap(work, work_of[len(once) :], chunksize=1)
        rules_frame = pd.concat([frame for frame, _ in ruled])
        agents, logs = [], []
        for frame, log in found:
            agents.append(frame)
            logs.append(log)
            print("  " + ", ".join(f"{k} {v}" for k, v in log.items()), flush=True)
    return rules_frame, pd.concat(agents), logs


def against(ours: pd.DataFrame, theirs: pd.DataFrame, column: str) -> tuple[float, float, float]:
    """(Relative difference, its interval) over the same windows in time, seeds drawn too; negative is better."""
    keys = ["origin", "first_job"]
    x = ours.pivot(index="seed", columns=keys, values=column).sort_index(axis=1)
    if "seed" in theirs:
        y = theirs.pivot(index="seed", columns=keys, values=column).sort_index(axis=1)
    else:
        y = pd.concat([theirs.set_index(keys)[column].sort_index().to_frame().T] * len(x))
    assert x.columns.equals(y.columns) and len(x) == len(y), "other windows or seeds"
    found = improved(x.to_numpy(), y.to_numpy(), RESAMPLES)
    return -found.gain, -found.high, -found.low


def show(trace: str, ruled: pd.DataFrame, agents: pd.DataFrame, metrics: list[str]) -> dict[str, Any]:
    """Print a trace's tables, one length of windows; their figures."""
    length, windows = int(ruled["length"].iloc[0]), ruled.groupby(["origin", "first_job"]).ngroups
    figures: dict[str, Any] = {"windows": windows, "bound_s": round(ruled["bound_s"].mean())}
    rules = ruled[~ruled["scheduler"].str.startswith(PICKED)]
    for metric in metrics:
        column = COLUMNS[metric]
        means = rules.groupby("scheduler", sort=False)[column].mean()
        known = means[[is_candidate(s) for s in means.index]]
        print(
            f"\n{trace}, mean {metric}, {windows} windows of {length}"
            + (f"; no schedule waits less than {ruled['bound_s'].mean():.0f} s" if metric == "wait" else "")
        )
        print(means.sort_values().head(8).to_string(header=False))
        strong, best = str(known.idxmin()), str(means.idxmin())
        picked = ruled[ruled["scheduler"] == PICKED + metric]
        rule = ", ".join(picked["rule"].unique())
        print(f"  strong baseline: {strong} {known[strong]:.5g}; best of all rules: {best} {means[best]:.5g}")
        print(f"  best on validation windows: {rule} {picked[column].mean():.5g}")
        plain = " strict" if " " in strong else ""
        rivals = {
            "strong": ruled[ruled["scheduler"] == strong],
            "picked": picked,
            "any": ruled[ruled["scheduler"] == best],
            "saf_easy": ruled[ruled["scheduler"] == f"saf+easy{plain}"],
            "scheduler": agents[agents["scheduler"] == ALONE],
            "linear": agents[agents["scheduler"] == "linear"],
        }
        compared: dict[str, dict[str, list[float | None]]] = {}
        for scheduler, of_agent in agents.groupby("scheduler", sort=False):
            seeds = ", ".join(f"{v:.5g}" for v in of_agent.groupby("seed")[column].mean())
            print(f"  {scheduler:>18}  {of_agent[column].mean():9.5g}  (by seed: {seeds})")
            compared[scheduler] = {}
            for key, rival in rivals.items():
                if rival.empty or (key in ("scheduler", "linear") and scheduler != "RLTune"):
                    continue
                found = against(of_agent, rival, column)
                print(f"  {'':>18}  against {key}: " + "{:+.1f} % [{:+.1f}, {:+.1f}]".format(*(100 * f for f in found)))
                compared[scheduler][key] = [round(f, 4) if f == f else None for f in found]
        both = pd.concat([means, agents.groupby("scheduler", sort=False)[column].mean()])
        figures[metric] = {
            "strong": strong,
            "any": best,
            "picked": rule,
            "mean": both.round(2).to_dict(),
            "against": compared,
        }
    return figures
