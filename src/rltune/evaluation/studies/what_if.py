"""The what-if analysis: the end of a cluster's log replayed under its current rule, other rules, QSSF and the agent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy
from rltune.cluster.load import gpus_in_use, offered_load
from rltune.cluster.workload import Workload
from rltune.config import Cell, whatif as settings
from rltune.config.context import Run
from rltune.config.max_wait import DEFAULT as MAX_WAIT_H
from rltune.config.whatif import Rule, WhatIf
from rltune.errors import ConfigError
from rltune.evaluation.contenders import Contender, contender_of, rule_of, run, scheduler_used
from rltune.evaluation.groups import LARGE, SIZES, by_group, in_order, size_class
from rltune.evaluation.intervals import Intervals
from rltune.evaluation.studies.hours_waited import (
    BOUNDED,
    CONFIGURATION,
    CURRENT,
    QSSF,
    RLTUNE,
    USERS,
    days_needed,
    user_groups,
    with_longer,
)
from rltune.simulator.batch import SchedulerConfig
from rltune.simulator.metrics import BSLD_FLOOR_S, job_table
from rltune.traces.table import recorded_run_s

GROUPINGS = {"user": (*USERS, "new"), "size": (*SIZES, LARGE)}
"""How jobs are grouped → the groups in order."""


@dataclass(frozen=True)
class Entry:
    """One scheduler of the analysis with the jobs as it is given them."""

    scheduler: str
    kind: str
    """current | rule | qssf | configuration | rltune | bounded."""
    seed: int
    contender: Contender
    workload: Workload
    estimate: str


@dataclass(frozen=True)
class WhatIfStudy:
    """A log's replay for the run's first agent with all its seeds.

    Args:
        run: the configuration.
        workload: the jobs with the estimates that every scheduler but QSSF is given.
        predicted: the same jobs with the run times that QSSF predicts (rltune.config.whatif.QSSF_ESTIMATE).
        policies: the trained policies of the run's ``first_cells``, in their order.
        training_s: seconds of rollouts and updates of a training, mean of the seeds.
    """

    run: Run
    workload: Workload
    predicted: Workload
    policies: Sequence[TrainedPolicy]
    training_s: float = float("nan")

    @cached_property
    def cells(self) -> list[Cell]:
        """The agent: the run's first cell with every seed."""
        return self.run.config.first_cells()

    @property
    def rules(self) -> WhatIf:
        """The block ``whatif``, or its defaults."""
        return self.run.config.whatif or WhatIf()

    @cached_property
    def table(self) -> pd.DataFrame:
        """The log's jobs with ``who`` (user, else virtual cluster) and ``at`` (submission, the log's local time)."""
        jobs, meta = self.workload.table, self.workload.meta
        at = pd.Timestamp(meta.t0).tz_convert(meta.time_zone) + pd.to_timedelta(jobs["submit_s"], unit="s")
        return jobs.assign(who=jobs["user"].fillna(jobs["vc"]), at=at.dt.tz_localize(None))

    @property
    def measured(self) -> slice:
        """The measured jobs: the test part."""
        return slice(*self.workload.split.test)

    @property
    def first(self) -> int:
        """First job of the replay."""
        return max(0, self.measured.start - round(settings.WARM_UP * self.measured.stop))

    @cached_property
    def block_start(self) -> pd.Series:
        """Beginning of the block of arrivals of each measured job, local time."""
        return self.table["at"].iloc[self.measured].dt.floor(pd.Timedelta(hours=settings.BLOCK_H))

    @cached_property
    def blocks(self) -> np.ndarray:
        """[measured] number of each measured job's block of arrivals, from 0; blocks without arrivals have none."""
        return pd.factorize(self.block_start, sort=True)[0]

    def entries(self) -> Iterator[Entry]:
        """Every scheduler, one after the other.

        The configuration that the agents chose in training, without their networks, is one of them unless a rule has it; so
        are the agents with the maximum waits that their controller keeps to, unless the run has them everywhere.
        """
        given = self.cells[0].estimate
        for scheduler, contender in self._rules.items():
            yield Entry(scheduler, "current" if scheduler == CURRENT else "rule", 0, contender, self.workload, given)
        qssf = rule_of(self.run.config, "qssf", "easy", self.cells[0].locality)
        yield Entry(QSSF, "qssf", 0, qssf, self.predicted, settings.QSSF_ESTIMATE)
        names = [given if jobs is self.workload.jobs else f"{given}, as calibrated" for _, jobs in self._chosen]
        if self.configuration == CONFIGURATION:
            for cell, (scheduler, jobs), name in zip(self.cells, self._chosen, names, strict=True):
                workload = replace(self.workload, jobs=jobs)
                contender = Contender(scheduler, lookahead=self.run.config.lookahead)
                yield Entry(CONFIGURATION, "configuration", cell.seed, contender, workload, name)
        for cell, agent, name in zip(self.cells, self.agents, names, strict=True):
            yield Entry(RLTUNE, "rltune", cell.seed, agent, self.workload, name)
            if agent.scheduler.max_wait_h != MAX_WAIT_H:
                bounded = replace(agent, scheduler=replace(agent.scheduler, max_wait_h=MAX_WAIT_H))
                yield Entry(BOUNDED, "bounded", cell.seed, bounded, self.workload, name)

    def _rule(self, of: Rule) -> Contender:
        return rule_of(self.run.config, of.policy, of.backfill, self.cells[0].locality)

    @cached_property
    def _rules(self) -> dict[str, Contender]:
        """The current and the other rules by scheduler."""
        return {CURRENT: self._rule(self.rules.current), **{r.id: self._rule(r) for r in self.rules.rules()}}

    @cached_property
    def agents(self) -> list[Contender]:
        """The agent of each cell."""
        return [contender_of(self.run.config, self.cells[0], policy) for policy in self.policies]

    @cached_property
    def _chosen(self) -> list[tuple[SchedulerConfig, object]]:
        """(Configuration, jobs with the estimates) that each agent chose in training."""
        return [scheduler_used(self.workload, agent) for agent in self.agents]

    @cached_property
    def configuration(self) -> str:
        """The scheduler that has the agents' configuration without their networks: a rule, else CONFIGURATION."""
        if all(jobs is self.workload.jobs for _, jobs in self._chosen):
            for name, contender in self._rules.items():
                used, _ = scheduler_used(self.workload, contender)
                if all(scheduler == used for scheduler, _ in self._chosen):
                    return name
        return CONFIGURATION

    def replays(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(Measured jobs, one row per scheduler × seed × job, with block, user group and size, as
        rltune.evaluation.studies.hours_waited has them; one row per scheduler × seed: policy, backfill, placement and
        estimate it ran with, ``utilisation`` while measured jobs arrived, ``seconds`` of the replay).

        Raises ConfigError if nothing is left to replay.
        """
        begin, end = self.measured.start, self.measured.stop
        if end - begin < 2:
            raise ConfigError(
                f"whatif: found {end - begin} jobs in the last part of {self.cells[0].trace}, expected more; give a "
                "longer log, or a smaller `train_share`"
            )
        frames, facts = [], []
        groups = user_groups(self.table.iloc[:begin], self.table["who"].iloc[self.measured]).to_numpy()
        first, n = np.array([self.first]), np.array([end - self.first])
        for entry in self.entries():
            run(entry.workload, entry.contender, first, np.ones(1, np.int64))  # compiles
            state, seconds = run(entry.workload, entry.contender, first, n)
            table = job_table(entry.workload.jobs, state).drop(columns="sequence")
            measured = table[table["job"] >= begin].sort_values("job")
            scheduler, _ = scheduler_used(entry.workload, entry.contender)
            who = {"scheduler": entry.scheduler, "kind": entry.kind, "seed": entry.seed}
            ran = {name: getattr(scheduler, name) for name in ("policy", "backfill", "placement")}
            used = self._utilisation(table["start_s"], table["end_s"], table["gpus"])
            facts.append({**who, **ran, "estimate": entry.estimate, "utilisation": used, "seconds": seconds})
            ids, sizes = self.workload.job_ids[measured["job"]], size_class(measured["gpus"].to_numpy())
            frames.append(measured.assign(**who, job_id=ids, block=self.blocks, user=groups, size=sizes))
        return pd.concat(frames, ignore_index=True), pd.DataFrame(facts)

    def recorded(self) -> pd.DataFrame:
        """The measured jobs as the log has them: job_id, block, gpus, ``wait_s`` (missing if not recorded), bsld."""
        jobs = self.log.iloc[self.measured]
        run_s = jobs["run_s"]
        bsld = np.maximum((jobs["wait_s"] + run_s) / np.maximum(run_s, BSLD_FLOOR_S), 1.0)
        found = jobs[["job_id", "gpus", "wait_s"]].assign(block=self.blocks, bsld=bsld).reset_index(drop=True)
        return found.astype({"wait_s": float})

    def recorded_utilisation(self) -> float:
        """Utilisation in the log while measured jobs arrived; NaN if it lacks more than a tenth of the waits."""
        wait = self.table["wait_s"].to_numpy(float)
        if np.isnan(wait).mean() > 0.1:
            return float("nan")
        start = self.table["submit_s"] + np.nan_to_num(wait)
        return self._utilisation(start, start + self.log["run_s"], self.table["gpus"])

    def _utilisation(self, start: pd.Series, end: pd.Series, gpus: pd.Series) -> float:
        """Share of the cluster's GPUs in use between the first and the last submission of measured jobs."""
        begin, stop = self.span_s
        inside = np.maximum(np.minimum(end, stop) - np.maximum(start, begin), 0.0)
        area = float((inside * gpus).sum())
        return area / (stop - begin) / self.workload.layout.gpus if stop > begin else float("nan")

    @cached_property
    def log(self) -> pd.DataFrame:
        """The jobs with the run times that they had on the GPU types of the log."""
        return self.table.assign(run_s=recorded_run_s(self.table))

    @property
    def span_s(self) -> tuple[float, float]:
        """First and last submission of measured jobs."""
        submit = self.workload.jobs.submit_s[self.measured]
        return float(submit[0]), float(submit[-1])

    def facts(self) -> dict[str, object]:
        """What the analysis covers: trace and cluster (titles), data, days (of measured arrivals), offered (load of the
        measured part), used (GPUs that the whole log used at once over the cluster's), warm_jobs, jobs, gpus, machine (GPU or CPU), limits (share of jobs with a time limit),
        configuration (the scheduler that has the agents' configuration without their networks), agents (number of seeds),
        idle (seeds whose training kept nothing learned: no epoch beat its start on validation), training_s, from and until
        (local times), block_h, log_days (of the whole log), needed_days (length of a log that allows a verdict)."""
        trace, cluster = self.run.traces[self.cells[0].trace], self.run.clusters[self.cells[0].cluster]
        jobs = self.table.iloc[self.measured]
        since, until = self.span_s
        log_days = float(np.ptp(self.workload.jobs.submit_s)) / 86_400
        return {
            "trace": trace.title,
            "cluster": cluster.title,
            "data": trace.data,
            "days": (until - since) / 86_400,
            "offered": offered_load(jobs, cluster.gpus),
            "used": gpus_in_use(self.log) / cluster.gpus,
            "warm_jobs": self.measured.start - self.first,
            "jobs": len(jobs),
            "gpus": cluster.gpus,
            "machine": cluster.slots.upper(),
            "limits": float(jobs["requested_s"].notna().mean()),
            "configuration": self.configuration,
            "agents": len(self.policies),
            "idle": sum(not policy.facts["learned"] or policy.facts["best_epoch"] == 0 for policy in self.policies),
            "training_s": self.training_s,
            "block_h": settings.BLOCK_H,
            "log_days": log_days,
            "needed_days": days_needed(log_days, len(np.unique(self.blocks))),
            "from": f"{jobs['at'].iloc[0]:%Y-%m-%d %H:%M}",
            "until": f"{jobs['at'].iloc[-1]:%Y-%m-%d %H:%M}",
        }

    def days(self, jobs: pd.DataFrame) -> pd.DataFrame:
        """Hours waited by the jobs of each block of arrivals: scheduler (`recorded`, if the log has waits, then those of
        ``jobs``), block, at (its beginning, local time), wait_h (mean of the seeds)."""
        starts = pd.Series(self.block_start.dt.strftime("%Y-%m-%d %H:%M").to_numpy(), self.blocks)
        recorded = self.recorded().dropna(subset="wait_s").assign(scheduler="recorded", seed=0)
        both = pd.concat([recorded, jobs[jobs["scheduler"] != BOUNDED]], ignore_index=True)
        hours = both.groupby(["scheduler", "seed", "block"], sort=False)["wait_s"].sum() / 3600
        found = hours.groupby(["scheduler", "block"], sort=False).mean().reset_index(name="wait_h")
        return found.assign(at=found["block"].map(starts.groupby(level=0).first()))

    def groups(self, jobs: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
        """By user group and by size: grouping, and the columns of by_group and with_longer, over all seeds.

        A grouping is left out if no job's group is known.
        """
        frames, jobs = [], jobs[jobs["scheduler"] != BOUNDED]
        for grouping, order in GROUPINGS.items():
            if len(known := jobs[jobs[grouping].notna()]):
                known = known.assign(window=known["block"], group=known[grouping])
                found = by_group(known, CURRENT, intervals, longer=True).assign(grouping=grouping)
                frames.append(in_order(found, order))
        return with_longer(pd.concat(frames, ignore_index=True))
