"""Plans that are evaluated over samples of run times: order, GPU type and spread that cost least on average.

A job's run time is taken as lognormal around its calibrated estimate, with the standard deviation of the logarithm that such
estimates had on the training rows; that of a running job, given that it exceeds what it has run so far. At a decision run times of all jobs planned
and running are drawn. The search (rltune.simulator.joint) plans for each of PLANS samples, and for the estimates; each of these
plans is then evaluated in SAMPLES others. Order and alternatives of the one of the least mean cost are taken, and jobs reserved by
their estimates, as always.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from parts.heldout import BY, Task, loaded
from rltune.cluster.fit import Jobs
from rltune.cluster.types import PLANNED, PRICES
from rltune.cluster.workload import Workload
from rltune.evaluation.studies.gpu_types import SPREAD
from rltune.kernels import ZERO, allocating
from rltune.simulator.availability import fill, work_space
from rltune.simulator.batch import Simulation
from rltune.simulator.config import SchedulerConfig
from rltune.simulator.conservative import _plan_pool, _ranked, question
from rltune.simulator.joint import _cost, _opened, search
from rltune.simulator.metrics import sequence_table
from rltune.simulator.queue import drop_started
from rltune.simulator.state import POOL, RESERVE, sequence_of
from rltune.traces.split import disjoint_windows, split_points, spread

LENGTH = 256
BASE = "calibrated"
"""The plan that others are compared with: on calibrated estimates, at the constant price that is best by the metric."""
PLANS, SAMPLES = 6, 18
TRIED = 60
"""Windows of the training rows that a constant price is chosen on."""
GRID = (0.0, *PRICES, 1.0, 3.0, 10.0)
"""Constant prices, s per GPU-second."""
MORE = 12
"""Jobs planned together in place of PLANNED."""
PLAN = SchedulerConfig("saf", "conservative", locality=SPREAD, types="joint")
LIKELY = 1.0 - 1e-12
"""Largest probability that is inverted."""


class Sampled(Simulation):
    """Sequences on one pool under ``joint``, whose plans are evaluated over samples.

    ``plans`` and ``samples``: how many samples are planned for, and how many plans are evaluated in. ``deviation``: standard deviation of the
    logarithm of the run time, given its estimate. A job's samples keep their ranks, which are stratified, from one decision to the next.
    """

    def __init__(self, *args: Any, plans: int, samples: int, deviation: float) -> None:
        super().__init__(*args)
        assert len(self.layout.nodes.pool) == 1, "samples are drawn on clusters of one pool"
        rng, shape = np.random.default_rng(1), self.state.run.shape
        strata = (rng.permuted(np.tile(np.arange(n), (*shape, 1)), axis=2) / n for n in (plans, samples))
        self.rank = np.concatenate([part + rng.random(part.shape) / part.shape[2] for part in strata], axis=2)
        self.plans, self.deviation = plans, deviation
        self.single = self.state._replace(options=self.state.options._replace(together=0))

    def reserve(self) -> None:
        """Plan over samples, then reserve."""
        for s in np.flatnonzero(self.state.phase == RESERVE):
            plan_over_samples(self.layout.nodes, self.jobs, self.single, s, self.run_s(s), self.plans)

    def run_s(self, s: int) -> np.ndarray:
        """Samples [plans + samples, N] of the run times of a sequence's jobs, s, as their estimates are."""
        run, first, n = self.state.run[s], self.state.first[s], self.state.n[s]
        estimate_s = self.jobs.estimate_s[first : first + n]
        with np.errstate(invalid="ignore", divide="ignore"):
            lasts = (run["due"][:n] - run["start"][:n]) / estimate_s  # s on its nodes per s of the estimate
            ran_s = np.nan_to_num((self.state.now[s] - run["start"][:n]) / lasts)  # not started: 0
            past = ndtr(np.log(ran_s / estimate_s) / self.deviation)
        likely = np.minimum(past + self.rank[s, :n].T * (1.0 - past), LIKELY)
        return np.maximum(estimate_s * np.exp(self.deviation * ndtri(likely)), ran_s + 1e-3)


@allocating
def plan_over_samples(nodes, jobs, st, s, run_s, plans):
    """Reserve in a sequence with RESERVE as the plan has it that costs least over the samples ``run_s`` [S, N] but the first ``plans``."""
    seq = sequence_of(st, s)
    ranked, profile = _ranked(seq), work_space(nodes, jobs, st)
    chosen = np.full(ranked.shape[0], -1, np.int64)
    some = ranked[:PLANNED]
    if some.shape[0] > 1 and seq.free.total.sum() > 0:
        fill(nodes, jobs, seq, st.options, ZERO, profile)
        asked = [question(jobs, seq, st.options, some, ZERO, profile)]
        ends, first = seq.ends[0], seq.status.first
        due_at, due_len, late_len = ends.due_at, ends.due_len, ends.late_len
        due, run, estimate_s = (
            seq.due.copy(),
            seq.run.copy(),
            jobs.row["estimate_s"][first : first + seq.status.n].copy(),
        )
        running = np.concatenate((due[due_at : due_at + due_len], seq.late[ends.late_at : ends.late_at + late_len]))
        for d in range(run_s.shape[0]):
            for k in some:
                jobs.row[first + k].estimate_s = run_s[d, k]
            end_s = np.empty(running.shape[0])
            for i in range(running.shape[0]):
                k = running[i]
                end_s[i] = run[k].start + (run[k].due - run[k].start) * run_s[d, k] / estimate_s[k]
                seq.run[k].due, seq.run[k].late = end_s[i], False
            turn = np.argsort(end_s)
            for i in range(running.shape[0]):
                seq.due[i] = running[turn[i]]
            ends.due_at, ends.due_len, ends.late_len = 0, running.shape[0], 0
            fill(nodes, jobs, seq, st.options, ZERO, profile)
            asked.append(question(jobs, seq, st.options, some, ZERO, profile))
        for k in some:
            jobs.row[first + k].estimate_s = estimate_s[k]
        for k in running:
            seq.run[k].due, seq.run[k].late = run[k].due, run[k].late
        seq.due[:] = due
        ends.due_at, ends.due_len, ends.late_len = due_at, due_len, late_len
        order, alternative = best_plan(asked, plans + 1)
        some[:], chosen[: some.shape[0]] = some[order], alternative[order]
    _plan_pool(nodes, jobs, seq, st.options, ZERO, ranked, chosen, profile)
    drop_started(jobs, seq, ZERO, ZERO, seq.queue[0].len)
    seq.status.phase = POOL


@allocating
def best_plan(asked, plans):
    """(Order, alternatives) [K] of the plan that costs least over the later Questions, of those for the first ``plans``."""
    jobs, types = asked[0].lasts_s.shape[0], asked[0].points.shape[0]
    cost = np.zeros(plans)
    orders, alternatives = np.empty((plans, jobs), np.int64), np.empty((plans, jobs), np.int64)
    for c in range(plans):
        start, chosen, _ = search(asked[c])
        orders[c], alternatives[c] = np.argsort(start, kind="mergesort"), chosen
    start, line = np.empty(jobs), np.empty(jobs, np.int64)
    for d in range(plans, len(asked)):
        work = _opened(asked[d])
        for c in range(plans):
            for kind in range(types):
                n = 0
                for k in orders[c]:
                    if alternatives[c, k] % types == kind:
                        line[n] = k
                        n += 1
                cost[c] += _cost(asked[d], work, line, n, kind, alternatives[c], start)
    best = np.argmin(cost)
    return orders[best], alternatives[best]


Tables = Callable[[SchedulerConfig, np.ndarray], pd.DataFrame]
"""A scheduler, first jobs of windows [S] → a row per window."""


def priced(load: Workload, windows_under: Tables, types: str = "joint") -> dict[str, SchedulerConfig]:
    """Plans of SAF's order, each at the constant price that is best by a metric of BY on windows of the training rows."""
    first = spread(disjoint_windows(*load.split.train, LENGTH), TRIED)
    tried = [replace(PLAN, types=types, gpu_price=price) for price in GRID]
    means = [windows_under(one, first)[list(BY.values())].mean() for one in tried]
    return {metric: tried[int(np.argmin([mean[column] for mean in means]))] for metric, column in BY.items()}


def on(jobs: Jobs, load: Workload, together: int | None = None) -> Tables:
    """Windows of these jobs under the simulator's own plans, or with so many jobs planned together."""

    def windows_under(scheduler: SchedulerConfig, first: np.ndarray) -> pd.DataFrame:
        run = Simulation(jobs, load.layout, first, np.full(len(first), LENGTH), scheduler)
        if together is not None:
            run.state = run.state._replace(options=run.state.options._replace(together=together))
        run.advance()
        return sequence_table(jobs, run.state, load.layout.gpus)

    return windows_under


def over(plans: int, samples: int, deviation: float, jobs: Jobs, load: Workload) -> Tables:
    """Windows of these jobs under plans over samples."""

    def windows_under(scheduler: SchedulerConfig, first: np.ndarray) -> pd.DataFrame:
        n = np.full(len(first), LENGTH)
        run = Sampled(jobs, load.layout, first, n, scheduler, plans=plans, samples=samples, deviation=deviation)
        run.advance()
        return sequence_table(jobs, run.state, load.layout.gpus)

    return windows_under


def windows_behind(load: Workload) -> np.ndarray:
    """First jobs of the windows behind the training rows and before the last tenth."""
    return disjoint_windows(load.split.train[1], split_points(len(load.job_ids), 0.9, 0.1).test[0], LENGTH)


def prices_on(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Of each metric, the best constant price of plans on calibrated estimates."""
    load = loaded(task)
    best = priced(load, on(load.calibrated, load))
    return pd.DataFrame(), {metric: plan.gpu_price for metric, plan in best.items()}


def plans_on(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window behind the training rows × metric × plan, each at its best price by the metric on those.

    For completion: on estimates as given, calibrated and exact, each job in turn, over samples; on calibrated ones without a price,
    and MORE jobs together. For other metrics: calibrated, also MORE together; each in turn; the fastest type that is free.
    """
    load = loaded(task)
    train, known, exact = slice(*load.split.train), load.calibrated, load.with_exact_estimates().jobs
    deviation = float(np.std(np.log(load.jobs.run_s[train] / known.estimate_s[train])))
    first, frames, prices = windows_behind(load), {}, {}
    for name, types, windows_under in (
        ("given", "joint", on(load.jobs, load)),
        (BASE, "joint", on(known, load)),
        ("exact", "joint", on(exact, load)),
        ("each in turn", "least", on(known, load)),
        ("sampled", "joint", over(PLANS, SAMPLES, deviation, known, load)),
    ):
        best = priced(load, windows_under, types)
        prices[name] = best["jct"].gpu_price
        for metric in BY if name in (BASE, "each in turn") else ["jct"]:
            frames[metric, name] = windows_under(best[metric], first)
        if name == BASE:
            frames["jct", "no price"] = windows_under(replace(best["jct"], gpu_price=0.0), first)
            frames |= {(metric, "more"): on(known, load, MORE)(plan, first) for metric, plan in best.items()}
            free = windows_under(replace(PLAN, types="fastest_free"), first)
            frames |= {(metric, "fastest free"): free for metric in ("wait", "bsld")}
        if name == "exact":  # samples that are the run times: the same plans but for ties
            certain = over(1, 1, 1e-12, exact, load)(best["jct"], first)
            assert np.isclose(certain["excess_s"], frames["jct", name]["excess_s"]).mean() > 0.9, (
                "other plans on known run times"
            )
    frame = pd.concat(part.assign(metric=metric, plan=name, first_job=first) for (metric, name), part in frames.items())
    facts = {"prices": prices, "windows": len(first), "deviation": round(deviation, 2)}
    return frame.assign(trace=task.trace, origin=task.origin), facts
