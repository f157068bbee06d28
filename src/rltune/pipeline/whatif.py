"""The what-if analysis of a run: today's order, other rules, QSSF and the trained agent replay the log's last part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from rltune.cluster.load import offered_load
from rltune.config import Cell, Workspace
from rltune.config.whatif import Rule, WhatIf
from rltune.errors import ConfigError
from rltune.evaluation.contenders import Contender, run, way_taken
from rltune.evaluation.groups import LARGE, SIZES, size_class
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.recommend import days_needed
from rltune.evaluation.whatif import QSSF, RLTUNE, CURRENT, USERS, CONFIGURATION, in_groups, user_groups, with_longer
from rltune.pipeline.cells import workload_of
from rltune.pipeline.peers import agent_in, course_of, scheduler_of
from rltune.pipeline.prepare import Workload, ensure_fitted, ensure_workload
from rltune.simulator.metrics import BSLD_FLOOR_S, job_table

GROUPINGS = {"user": (*USERS, "new"), "size": (*SIZES, LARGE)}
"""Ways to group jobs, and their groups in order."""


@dataclass(frozen=True)
class WhatIfStudy:
    """What the analysis is made of: the run's first cell, with all its seeds, and its workload."""

    workspace: Workspace

    @property
    def settings(self) -> WhatIf:
        """The block ``whatif`` of the run; its defaults where it has none."""
        return self.workspace.config.whatif or WhatIf()

    @cached_property
    def cells(self) -> list[Cell]:
        """The agent: cells that differ from the run's first in their seed only."""
        first = self.workspace.config.cells()[0]
        return [cell for cell in self.workspace.config.cells() if cell.but(seed=0) == first.but(seed=0)]

    @property
    def main(self) -> Cell:
        """The first of them."""
        return self.cells[0]

    @cached_property
    def workload(self) -> Workload:
        """The jobs with the estimates that all but QSSF are told."""
        return workload_of(self.workspace, self.main)

    @cached_property
    def predicted(self) -> Workload:
        """The jobs with the run times that QSSF predicts."""
        return ensure_workload(self.workspace, self.main.trace, self.main.cluster, self.settings.predicted)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The job table that the cluster can hold, all of the log, with ``who`` (user, where not known virtual
        cluster), ``at`` (submission, local time of the log)."""
        jobs, meta = ensure_fitted(self.workspace, self.main.trace, self.main.cluster)
        at = pd.Timestamp(meta.t0).tz_convert(meta.time_zone) + pd.to_timedelta(jobs["submit_s"], unit="s")
        return jobs.assign(who=jobs["user"].fillna(jobs["vc"]), at=at.dt.tz_localize(None))

    @property
    def measured(self) -> tuple[int, int]:
        """First job that is measured, and the one behind the last: the test part."""
        return self.workload.split.test

    @property
    def begins(self) -> int:
        """First job of the replay."""
        begin, end = self.measured
        return max(0, begin - round(self.settings.warm_up * end))

    @cached_property
    def blocks(self) -> np.ndarray:
        """[measured] number of the block of arrivals of each measured job, from 0; those without arrivals have none."""
        at = self.table["at"].iloc[slice(*self.measured)]
        return pd.factorize(at.dt.floor(pd.Timedelta(hours=self.settings.block_h)), sort=True)[0]

    def contenders(self) -> Iterator[tuple[str, str, int, Contender, Workload]]:
        """(scheduler, kind, seed, what it is, the workload with what it is told), one after the other.

        The way that the agents chose, without their networks, is among them where it is none of the others'.
        """
        for scheduler, contender in self._rules().items():
            yield scheduler, "current" if scheduler == CURRENT else "rule", 0, contender, self.workload
        yield QSSF, "qssf", 0, self._rule(Rule(policy="saf", backfill="easy")), self.predicted
        if self.way == CONFIGURATION:
            for cell, agent in zip(self.cells, self.agents, strict=True):
                scheduler, told = way_taken(course_of(self.workspace, self.workload), agent)
                yield CONFIGURATION, "configuration", cell.seed, Contender(scheduler), replace(self.workload, jobs=told)
        for cell, agent in zip(self.cells, self.agents, strict=True):
            yield RLTUNE, "rltune", cell.seed, agent, self.workload

    def _rule(self, of: Rule) -> Contender:
        changes = {"policy": of.policy, "backfill": of.backfill, "placement": "best_fit"}
        return Contender(scheduler_of(self.workspace, self.main, **changes))

    def _rules(self) -> dict[str, Contender]:
        """Today's and the other rules by scheduler."""
        return {CURRENT: self._rule(self.settings.current), **{r.id: self._rule(r) for r in self.settings.rules()}}

    @cached_property
    def agents(self) -> list[Contender]:
        """The agent of each cell."""
        return [agent_in(self.workspace, cell, self.workload) for cell in self.cells]

    @cached_property
    def way(self) -> str:
        """The scheduler that has the agents' way without their networks: the rule whose it is, else CONFIGURATION."""
        course = course_of(self.workspace, self.workload)
        taken = [way_taken(course, agent) for agent in self.agents]
        if all(told is self.workload.jobs for _, told in taken):
            for scheduler, contender in self._rules().items():
                if all(scheduler == contender.scheduler for scheduler, _ in taken):
                    return scheduler
        return CONFIGURATION

    def replays(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(Measured jobs: a row a scheduler × seed × job, with block, user group and size, as rltune.evaluation.whatif
        has them, and job, start_s, end_s, run_s; a row a scheduler × seed: policy, backfill, placement and estimate it
        ran with, ``utilisation`` of the cluster while measured jobs arrived, ``seconds`` of the replay).

        Raises ConfigError where nothing is left to replay.
        """
        begin, end = self.measured
        if end - begin < 2:
            raise ConfigError(
                f"whatif: found {end - begin} jobs in the last part of {self.main.trace}, expected more; give a longer "
                "log, or a smaller `split.train`"
            )
        frames, facts = [], []
        groups = user_groups(self.table.iloc[:begin], self.table["who"].iloc[begin:end]).to_numpy()
        known = {"qssf": self.predicted.jobs, **dict.fromkeys(("current", "rule", "configuration", "rltune"), self.workload.jobs)}
        first, n = np.array([self.begins]), np.array([end - self.begins])
        for scheduler, kind, seed, contender, workload in self.contenders():
            course = course_of(self.workspace, workload)
            run(course, contender, first, np.ones(1, np.int64))  # compiles what has not been
            state, seconds = run(course, contender, first, n)
            table = job_table(workload.jobs, state).drop(columns="sequence")
            mine = table[table["job"] >= begin].sort_values("job")
            scheduler, told = way_taken(course, contender)
            estimate = self.settings.predicted if kind == "qssf" else self.main.estimate
            facts.append(
                {
                    "scheduler": scheduler,
                    "kind": kind,
                    "seed": seed,
                    "policy": scheduler.policy,
                    "backfill": scheduler.backfill,
                    "placement": scheduler.placement,
                    "estimate": f"{estimate}, as calibrated" if told is not known[kind] else estimate,
                    "utilisation": self._used(table["start_s"], table["end_s"], table["gpus"]),
                    "seconds": seconds,
                }
            )
            frames.append(
                mine.assign(
                    scheduler=scheduler,
                    kind=kind,
                    seed=seed,
                    job_id=workload.job_ids[mine["job"]],
                    block=self.blocks,
                    user=groups,
                    size=size_class(mine["gpus"].to_numpy()),
                )
            )
        return pd.concat(frames, ignore_index=True), pd.DataFrame(facts)

    def recorded(self) -> pd.DataFrame:
        """The measured jobs as the log has them: job_id, block, gpus, ``wait_s`` (missing where not recorded), bsld."""
        jobs = self.table.iloc[slice(*self.measured)]
        wait, run_s = jobs["wait_s"].to_numpy(float), jobs["run_s"].to_numpy(float)
        bsld = np.maximum((wait + run_s) / np.maximum(run_s, BSLD_FLOOR_S), 1.0)
        return pd.DataFrame(
            {
                "job_id": jobs["job_id"].to_numpy(),
                "block": self.blocks,
                "gpus": jobs["gpus"].to_numpy(),
                "wait_s": wait,
                "bsld": bsld,
            }
        )

    def recorded_utilisation(self) -> float:
        """As the log has it, while measured jobs arrived; NaN where it does not record most waits."""
        wait = self.table["wait_s"].to_numpy(float)
        if np.isnan(wait).mean() > 0.1:
            return float("nan")
        start = self.table["submit_s"] + np.nan_to_num(wait)
        return self._used(start, start + self.table["run_s"], self.table["gpus"])

    def _used(self, start: pd.Series, end: pd.Series, gpus: pd.Series) -> float:
        """Share of the cluster's GPUs in use between the first and the last submission of measured jobs."""
        begin, stop = self.span_s
        inside = np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0.0)
        area = float((inside * gpus).sum())
        return area / (stop - begin) / self.workload.layout.gpus if stop > begin else float("nan")

    @property
    def span_s(self) -> tuple[float, float]:
        """First and last submission of measured jobs."""
        submit = self.workload.jobs.submit_s[slice(*self.measured)]
        return float(submit[0]), float(submit[-1])

    def facts(self) -> dict[str, object]:
        """What the analysis is of: trace (title), cluster (title), data, days (of measured arrivals), offered (load of
        the measured part), warm_jobs, jobs, gpus, machine (GPU or CPU), limits (share of jobs with a time limit),
        way (the scheduler that has the agents' way without their
        networks), agents (number of seeds), idle (of them, those that kept nothing of what they learned: no epoch beat
        on validation what they began with), training_s (seconds of rollouts and updates, mean of the seeds, as the table
        `costs` has them), from and until (local times), block_h, log_days (of the whole log), needed_days (that a log
        would have to have for a verdict)."""
        begin, end = self.measured
        trace, cluster = self.workspace.trace(self.main.trace), self.workspace.cluster(self.main.cluster)
        jobs = self.table.iloc[begin:end]
        since, until = self.span_s
        log_days = (self.table["at"].iloc[-1] - self.table["at"].iloc[0]) / pd.Timedelta(days=1)
        return {
            "trace": trace.title,
            "cluster": cluster.title,
            "data": trace.data,
            "days": (until - since) / 86_400,
            "offered": offered_load(jobs, cluster.gpus),
            "warm_jobs": begin - self.begins,
            "jobs": end - begin,
            "gpus": cluster.gpus,
            "machine": cluster.slots.upper(),
            "limits": float(jobs["requested_s"].notna().mean()),
            **self.facts_of_agents(),
            "training_s": float(np.mean([self._training_s(cell) for cell in self.cells])),
            "block_h": self.settings.block_h,
            "log_days": log_days,
            "needed_days": days_needed(log_days, len(np.unique(self.blocks))),
            "from": f"{jobs['at'].iloc[0]:%Y-%m-%d %H:%M}",
            "until": f"{jobs['at'].iloc[-1]:%Y-%m-%d %H:%M}",
        }

    def facts_of_agents(self) -> dict[str, object]:
        """way, agents and idle of :meth:`facts`."""
        return {"configuration": self.way, "agents": len(self.agents), "idle": sum(map(_idle, self.agents))}

    def days(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Hours waited by the jobs of each block of arrivals: scheduler (`recorded`, where the log has waits, then
        those of ``jobs``), block, at (its beginning, local time of the log), wait_h (mean of the seeds)."""
        at = self.table["at"].iloc[slice(*self.measured)].dt.floor(pd.Timedelta(hours=self.settings.block_h))
        begins = pd.Series(at.dt.strftime("%Y-%m-%d %H:%M").to_numpy(), self.blocks).groupby(level=0).first()
        recorded = self.recorded().dropna(subset="wait_s").assign(scheduler="recorded", seed=0)
        both = pd.concat([recorded, jobs], ignore_index=True)
        hours = both.groupby(["scheduler", "seed", "block"], sort=False)["wait_s"].sum() / 3600
        found = hours.groupby(["scheduler", "block"], sort=False).mean().reset_index(name="wait_h")
        return found.assign(at=found["block"].map(begins))

    def _training_s(self, cell: Cell) -> float:
        return float(pd.read_csv(self.workspace.history(cell))[["rollout_seconds", "update_seconds"]].to_numpy().sum())

    def groups(self, jobs: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
        """By user group and by size: grouping, and the columns of rltune.evaluation.whatif.in_groups and with_longer,
        over all seeds. A grouping of which no job's group is known is left out."""
        frames = []
        for grouping, order in GROUPINGS.items():
            known = jobs[jobs[grouping].notna()]
            if not len(known):
                continue
            found = in_groups(known, grouping, intervals).assign(grouping=grouping)
            found = found.sort_values("group", key=lambda g, r=order: g.map(r.index), kind="stable")
            frames.append(found)
        return with_longer(pd.concat(frames, ignore_index=True), intervals)


def _idle(agent: Contender) -> bool:
    """Whether an agent kept what it began with: no epoch of its training was better on validation."""
    return agent.policy is not None and (not agent.policy.facts["learned"] or agent.policy.facts["best_epoch"] == 0)
