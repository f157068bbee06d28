"""Agents and base policies on held-out real rows, side by side: what the benchmarks quality and joint share.

An agent is trained on the rows up to an origin and judged on disjoint windows from the tenth behind it. Base policies run
under every blocking rule with best_fit; the strong baseline is the best of all policies × {none, fits, easy} (and
localities) on the very windows it is compared on. Everybody is given the same estimates, lognormal(1). Intervals: 95 %,
moving blocks, paired by window.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.learners import ranker_of, train
from rltune.agent.ways import POLICIES, Way
from rltune.config import Cell, LookaheadConfig, SimulationConfig, Workspace
from rltune.config.preset import BUILT_IN
from rltune.evaluation.intervals import bootstrap_improvement
from rltune.pipeline.prepare import Workload, ensure_workload
from rltune.placement.placers import placer_of
from rltune.simulator.batch import Setting, simulate
from rltune.simulator.bound import lower_bound
from rltune.simulator.metrics import sequence_table
from rltune.traces.split import disjoint_windows, split_points

TRACES = {"philly": ("philly-csv", "philly-192"), "venus": ("venus-csv", "venus-160"), "pai": ("pai-csv", "pai-140")}
BLOCKINGS = ("none", "fits", "easy")
MORE = ("conservative",)
"""Printed beside them; not among what the strong baseline is chosen from. Nor is …"""
QUIET = "quiet_fit"
"""… this placement, which like locality soonest_end is tried beside them where jobs may be split."""
COLUMNS = {"wait": "wait_s", "jct": "jct_s", "bsld": "bsld"}
RESAMPLES, CONFIDENCE = 10_000, 0.95


@dataclass(frozen=True)
class Task:
    """One agent: trained up to an origin, judged behind it."""

    trace: str
    origin: float
    seed: int
    learner: str
    metric: str
    length: int
    chooses: str
    balanced: bool
    localities: tuple[str, ...]
    simulation: tuple[tuple[str, float], ...]
    epochs: int
    folder: str


def workload_of(task: Task) -> tuple[str, str]:
    """Names of the trace and the cluster."""
    trace, cluster = TRACES[task.trace]
    return trace, f"{cluster}-balanced" if task.balanced else cluster


def loaded(task: Task) -> Workload:
    """The workload, split at the task's origin."""
    trace, cluster = workload_of(task)
    load = ensure_workload(Workspace.open("config/csv.yaml", task.folder), trace, cluster, "lognormal-1")
    return replace(load, split=split_points(len(load.job_ids), task.origin, 0.1))


def windows_of(load: Workload, task: Task) -> np.ndarray:
    """First jobs of the windows the task is judged on: the tenth of the rows behind its origin."""
    start, stop = load.split.test
    return disjoint_windows(start, min(stop, start + len(load.job_ids) // 10), task.length)


def rules(task: Task) -> dict[str, Any]:
    """What everybody's simulation has in common."""
    return SimulationConfig(**dict(task.simulation)).model_dump()


def run(load: Workload, first: np.ndarray, length: int, setting: Setting, believes: bool = False, ranker: Any = None):
    """A row a window."""
    jobs = load.believed if believes and load.believed is not None else load.jobs
    placer = placer_of(setting.placement, LookaheadConfig())
    state = simulate(jobs, load.layout, first, np.full(len(first), length), setting, ranker, placer)
    return sequence_table(jobs, state, load.layout.gpus)


def heuristics(task: Task) -> pd.DataFrame:
    """A row a base policy × blocking rule × locality × window."""
    load = loaded(task)
    first, frames = windows_of(load, task), []
    bound = [lower_bound(load.jobs, load.layout, int(f), task.length).wait_s for f in first]
    for policy in POLICIES:
        for blocking in (*BLOCKINGS, *MORE):
            for locality in task.localities:
                table = run(load, first, task.length, Setting(policy, blocking, "best_fit", locality, **rules(task)))
                where = f" {locality}" if len(task.localities) > 1 else ""
                frames.append(table.assign(scheduler=f"{policy}+{blocking}{where}", bound_s=bound))
            if len(task.localities) > 1:
                for locality in ("any", "soonest_end"):
                    setting = Setting(policy, blocking, QUIET, locality, **rules(task))
                    table = run(load, first, task.length, setting)
                    frames.append(table.assign(scheduler=f"{policy}+{blocking} {locality} {QUIET}", bound_s=bound))
    return pd.concat(frames).assign(trace=task.trace, origin=task.origin)


def agent(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row a window of one agent, of the way it chose without what it learned; facts of its training."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    load = loaded(task)
    preset = BUILT_IN[task.learner]
    if task.learner == "tuned":
        preset = preset.model_copy(update={"chooses": task.chooses, "epochs": task.epochs or preset.epochs})
    features = "engineered" if task.learner in ("paper", "quick") else "rich"
    cell = Cell(*workload_of(task), "saf", task.metric, "easy", "best_fit", "strict", features, "lognormal-1",
                task.learner, task.seed)  # fmt: skip
    began = time.perf_counter()
    result = train(cell, preset, LookaheadConfig(), load.jobs, load.layout, load.split, 1, None,
                   SimulationConfig(**dict(task.simulation)), None, load.believed)  # fmt: skip
    seconds = time.perf_counter() - began
    facts = result.policy.facts
    first = windows_of(load, task)
    base = Setting(cell.policy, cell.blocking, **rules(task))
    way = Way(**facts["way"])
    told = load.believed if way.believes and load.believed is not None else load.jobs
    frames = [run(load, first, task.length, way.of(base), way.believes, ranker_of(result.policy, told, load.layout))
              .assign(scheduler=name_of(task))]  # fmt: skip
    if task.learner == "tuned":
        frames.append(run(load, first, task.length, way.of(base), way.believes).assign(scheduler="its way alone"))
        easy = replace(way.of(base), blocking="easy")  # nodes reserved for the first job alone
        frames.append(run(load, first, task.length, easy, way.believes, ranker_of(result.policy, told, load.layout))
                      .assign(scheduler="RLTune, EASY only"))  # fmt: skip
    some = {k: facts.get(k) for k in ("way", "best_epoch", "learned", "validation_metric", "validation_start")}
    log = {"trace": task.trace, "origin": task.origin, "seed": task.seed, "learner": task.learner, "metric": task.metric,
           **some,
           "seconds": round(seconds, 1)}  # fmt: skip
    return pd.concat(frames).assign(trace=task.trace, origin=task.origin, seed=task.seed, metric=task.metric), log


def name_of(task: Task) -> str:
    """What a learner is called."""
    return "RLTune" if task.learner == "tuned" else task.learner


def prepare(task: Task) -> None:
    """Make the files of a workload that all its tasks read, and compile, once."""
    run(loaded(task), np.zeros(1, int), 64, Setting("saf", "easy"))


def work(job: tuple[str, Task]) -> Any:
    """One piece of work, in a process of its own."""
    kind, task = job
    return {"agent": agent, "heuristics": heuristics, "prepare": prepare}[kind](task)


def play(tasks: list[Task], processes: int) -> tuple[pd.DataFrame, pd.DataFrame, list[dict[str, Any]]]:
    """(Windows of the base policies, of the agents, facts of the agents) of all tasks."""
    once = list({(t.trace, t.origin): t for t in tasks}.values())
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        for trace in {t.trace: t for t in tasks}.values():
            pool.apply(work, (("prepare", trace),))
        ruled = pool.imap(work, [("heuristics", t) for t in once], chunksize=1)
        trained = pool.imap(work, [("agent", t) for t in tasks], chunksize=1)
        rules_frame = pd.concat(ruled)
        agents, logs = [], []
        for frame, log in trained:
            agents.append(frame)
            logs.append(log)
            print("  " + ", ".join(f"{k} {v}" for k, v in log.items()), flush=True)
    return rules_frame, pd.concat(agents), logs


def against(ours: pd.DataFrame, theirs: pd.DataFrame, column: str) -> tuple[float, float, float]:
    """(Relative difference, its interval) over the same windows in time, seeds averaged; negative is better."""
    keys = ["origin", "first_job"]
    x, y = (frame.groupby(keys)[column].mean().sort_index() for frame in (ours, theirs))
    assert x.index.equals(y.index), "other windows"
    low, high = bootstrap_improvement(x.to_numpy(), y.to_numpy(), RESAMPLES, CONFIDENCE, seed=1)
    return float(x.sum() / y.sum() - 1), -high, -low


def named(name: str, found: tuple[float, float, float]) -> dict[str, float | None]:
    """A difference and its interval as figures; None where there is no interval."""
    return {f"{name}{end}": round(f, 4) if f == f else None for end, f in zip(("", "_lo", "_hi"), found, strict=True)}


def show(trace: str, ruled: pd.DataFrame, agents: pd.DataFrame, metrics: list[str], prefix: str) -> dict[str, Any]:
    """Print a trace's tables; its figures, named ``prefix`` + what RLTune is compared with."""
    figures: dict[str, Any] = {f"{trace}_windows": ruled.groupby(["origin", "first_job"]).ngroups}
    for metric in metrics:
        column, middle = COLUMNS[metric], "" if metric == metrics[0] else f"{metric}_"
        means = ruled.groupby("scheduler", sort=False)[column].mean()
        known = means[[s for s in means.index if s.split()[0].split("+")[1] in BLOCKINGS and QUIET not in s]]
        print(f"\n{trace}, mean {metric}, {figures[f'{trace}_windows']} windows"
              + (f"; no schedule waits less than {ruled['bound_s'].mean():.0f} s" if metric == "wait" else ""))
        if known.index[0].count(" "):
            for scheduler, value in means.sort_values().head(8).items():
                print(f"  {scheduler:>30}  {value:9.5g}")
        else:
            print(f"  {'':>14}  " + " / ".join(f"{b:>9}" for b in (*BLOCKINGS, *MORE)))
            for policy in POLICIES:
                print(f"  {policy:>14}  " + " / ".join(f"{means[f'{policy}+{b}']:9.4g}" for b in (*BLOCKINGS, *MORE)))
        strong, best = str(known.idxmin()), str(means.idxmin())
        print(f"  strong baseline: {strong} {known[strong]:.5g}; best of all rules: {best} {means[best]:.5g}")
        plain = " strict" if known.index[0].count(" ") else ""
        rivals = {"strong": strong, "any": best, "saf_easy": f"saf+easy{plain}", "fifo_none": f"fifo+none{plain}"}
        for scheduler, mine in agents.groupby("scheduler", sort=False):
            seeds = ", ".join(f"{v:.5g}" for v in mine.groupby("seed")[column].mean())
            print(f"  {scheduler:>18}  {mine[column].mean():9.5g}  (by seed: {seeds})")
            for key, rival in rivals.items():
                found = against(mine, ruled[ruled["scheduler"] == rival], column)
                print(f"  {'':>18}  against {rival}: " + "{:+.1f} % [{:+.1f}, {:+.1f}]".format(*(100 * f for f in found)))
                if scheduler == "RLTune":
                    figures |= named(f"{trace}_{prefix}{middle}vs_{key}", found)
        whole, alone = (agents[agents["scheduler"] == name] for name in ("RLTune", "its way alone"))
        if len(whole):
            found = against(whole, alone, column)
            print("  what it learned, against its way alone: {:+.1f} % [{:+.1f}, {:+.1f}]".format(*(100 * f for f in found)))
            figures |= named(f"{trace}_{prefix}{middle}vs_way", found)
        both = pd.concat([means, agents.groupby("scheduler", sort=False)[column].mean()])
        figures |= {f"{trace}_{metric}": both.round(2).to_dict(), f"{trace}_{metric}_strong": strong}
    return figures
