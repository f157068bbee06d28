"""The deployment of a run (paper §5.6): its agent's controller on an emulated Slurm cluster, and what the simulator says of
the same jobs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from rltune import COMPILED, sources_digest
from rltune.cluster.load import offered_load
from rltune.config import Cell, Workspace
from rltune.config.deployment import Deployment
from rltune.errors import ClusterDied, ConfigError, SlurmError
from rltune.evaluation.contenders import Contender, run
from rltune.files import read_json, write_json, write_text
from rltune.pipeline.cells import workload_of
from rltune.pipeline.peers import agent_in, course_of, scheduler_of
from rltune.pipeline.prepare import Workload, ensure_fitted
from rltune.simulator.metrics import job_table
from rltune.slurm.emulate import packages
from rltune.slurm.emulate.configure import partition_name
from rltune.slurm.experiment import kept
from rltune.slurm.experiment.conduct import Conducted, Order, conduct
from rltune.slurm.experiment.rules import in_the_order_of
from rltune.slurm.experiment.submission import Submission, account_of

SLURM = "multifactor_size"
"""Slurm's order as the simulator has it: with Slurm's own job size, larger first."""
BACKFILLING = ("easy", "conservative")
"""Rules that the simulator predicts with: the one the agent was trained under by default, and the one that reserves for
every job of the queue, as sched/backfill does."""
TRIES = 2
"""Times that a run is begun where its cluster dies or hangs, as on a fast clock and a busy machine it now and then does."""


@dataclass(frozen=True)
class DeploymentStudy:
    """What the deployment is made of."""

    workspace: Workspace

    @property
    def settings(self) -> Deployment:
        """The block ``deployment`` of the run; its defaults where it has none."""
        return kept.asked(self.workspace)

    @cached_property
    def cell(self) -> Cell:
        """The cell whose agent is deployed."""
        return self.workspace.config.deployed_cell()

    @cached_property
    def workload(self) -> Workload:
        """The jobs with the estimates that the agent was trained with."""
        return workload_of(self.workspace, self.cell)

    @cached_property
    def firsts(self) -> np.ndarray:
        """[repetitions] first job of each: one after the other from the beginning of the test part, none shared.

        Raises ConfigError where the test part has too few jobs.
        """
        begin, end = self.workload.split.test
        wanted = self.settings.jobs * self.settings.repetitions
        if end - begin < wanted:
            raise ConfigError(
                f"deployment: {self.settings.repetitions} repetitions of {self.settings.jobs:,} jobs need {wanted:,}, found "
                f"{end - begin:,} in the test part of {self.cell.trace}; ask for fewer, give the trace more jobs, or "
                "lower `split.train`"
            )
        return begin + self.settings.jobs * np.arange(self.settings.repetitions)

    @cached_property
    def _table(self) -> pd.DataFrame:
        return ensure_fitted(self.workspace, self.cell.trace, self.cell.cluster)[0]

    def submissions(self, repetition: int) -> list[Submission]:
        """What is submitted in a repetition, from 1: the trace's jobs with the gaps they came in, each user an account.

        A job that asked for no time gets its estimate as limit, or its run time where that is longer. Raises ConfigError
        where jobs ask for GPU types: the agent's controller leaves such constraints to Slurm.
        """
        first = int(self.firsts[repetition - 1])
        rows = self._table.iloc[first : first + self.settings.jobs]
        cluster = self.workspace.cluster(self.cell.cluster)
        if (typed := rows["gpu_type"].notna() & (cluster.gpu_types != "ignore")).any():
            raise ConfigError(
                f"deployment: found {int(typed.sum()):,} jobs of {self.cell.trace} that ask for GPU types, "
                "expected a trace whose jobs take any, such as finetuning-synthetic"
            )
        told = self.workload.jobs.estimate_s[first : first + self.settings.jobs]
        begin = float(rows["submit_s"].iloc[0])
        found = []
        for k, (row, estimate_s) in enumerate(zip(rows.itertuples(index=False), told, strict=True)):
            gpus = int(row.gpus)
            pool = cluster.pools[int(row.pool)]
            limit_s = float(row.requested_s) if pd.notna(row.requested_s) else max(float(estimate_s), float(row.run_s))
            found.append(
                Submission(
                    f"job{first + k}",
                    float(row.submit_s) - begin,
                    account_of(row.user),
                    partition_name(pool.name),
                    gpus,
                    -(-gpus // max(group.gpus for group in pool.groups)),
                    int(row.cpus) if pd.notna(row.cpus) else 1,
                    limit_s,
                    float(row.run_s),
                )
            )
        return found

    def order(self, scheduler: str) -> Order | None:
        """Who gives the order under a scheduler; None: Slurm itself."""
        if scheduler == "slurm":
            return None
        placement = "lookahead" if self.cell.placement == "lookahead" else "best_fit"
        if scheduler != "rltune":
            return Order(in_the_order_of(scheduler), scheduler, placement, self.settings.interval_s)
        policy = agent_in(self.workspace, self.cell, self.workload).policy
        assert policy is not None
        base = policy.facts.get("way", {}).get("policy", self.cell.policy)
        return Order(policy, base, placement, self.settings.interval_s)

    def run(self, scheduler: str, repetition: int, say: Callable[[str], None] = print) -> Conducted:
        """One run on real daemons, written to its folder, which is there with all its files or not at all.

        A run that fails keeps its logs in a folder that is told. Where the cluster failed of itself, and only there, it is
        begun anew, TRIES times in all, and facts.json has the reasons. Raises SlurmError where a controller fails or the
        last try does, or Slurm's packages are missing.
        """
        packages.check(packages.needed(accounting=True, speed=self.settings.speed))
        retries: list[str] = []
        while True:
            try:
                return self._try(scheduler, repetition, retries, say)
            except ClusterDied as error:
                retries.append(str(error.__cause__))
                if len(retries) == TRIES:
                    raise
                say(f"{error}; it is begun anew")

    def _try(self, scheduler: str, repetition: int, retries: list[str], say: Callable[[str], None]) -> Conducted:
        """One try of a run, after those that ended for the reasons ``retries``. Raises SlurmError where it fails."""
        folder = self.workspace.deployed(scheduler, repetition)
        work = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        cluster, name = self.workspace.cluster(self.cell.cluster), f"{scheduler} {repetition}"
        made_of = {"code": sources_digest("slurm", *COMPILED), **kept.conditions(self.workspace, scheduler)}
        try:
            done = conduct(
                cluster,
                self.submissions(repetition),
                self.order(scheduler),
                self.settings.speed,
                work / "controller.log",
                lambda line: say(f"[{name}] {line}"),
            )
            write_text(work / "jobs.csv", done.jobs.round(3).to_csv(index=False))
            cycles = done.cycles if len(done.cycles.columns) else pd.DataFrame(columns=["began_s"])
            write_text(work / "cycles.csv", cycles.round(4).to_csv(index=False))
            write_json(
                work / "facts.json",
                {
                    "scheduler": scheduler,
                    "repetition": repetition,
                    **made_of,
                    "alone": self.settings.alone,
                    "tries": len(retries) + 1,
                    "retries": retries,
                    **done.facts,
                },
            )
        except SlurmError as error:
            failed = folder.with_name(f"{folder.name}.failed-{len(retries) + 1}")
            shutil.rmtree(failed, ignore_errors=True)
            work.rename(failed)
            raise type(error)(f"deployment, run {name}: {error}; logs are in {failed}") from error
        except BaseException:
            shutil.rmtree(work)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
        return done

    def there(self) -> list[tuple[str, int]]:
        """Runs that are finished."""
        return kept.there(self.workspace)

    def folder(self, scheduler: str, repetition: int) -> Path:
        """Of a run."""
        return self.workspace.deployed(scheduler, repetition)

    def measured(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """(Jobs, cycles, facts) of all finished runs, each with ``scheduler`` and ``repetition``; jobs have ``index``, the
        place in their submission order. All are empty where the chapter shows no runs
        (rltune.slurm.experiment.kept.showable).

        Raises ConfigError where a run was made under another configuration, or of other jobs.
        """
        kept.refuse_stale(self.workspace)
        jobs, cycles, facts = [], [], []
        for scheduler, repetition in self.there() if kept.showable(self.workspace) else ():
            where = {"scheduler": scheduler, "repetition": repetition}
            folder = self.folder(scheduler, repetition)
            frame = pd.read_csv(folder / "jobs.csv")
            first = int(self.firsts[repetition - 1])
            names = [f"job{first + k}" for k in range(self.settings.jobs)]
            if list(frame["job"]) != names:
                raise ConfigError(
                    f"{folder / 'jobs.csv'}: job: found {len(frame)} jobs from {frame['job'].iloc[0]} on, "
                    f"expected {len(names)} from {names[0]} on: the trace or its split was another; remove "
                    "the folder, and the workflow makes the run anew"
                )
            jobs.append(frame.assign(index=np.arange(len(frame)), **where))
            cycles.append(pd.read_csv(folder / "cycles.csv").assign(**where))
            facts.append({**read_json(folder / "facts.json"), **where})
        together = [pd.concat(frames, ignore_index=True) if frames else pd.DataFrame() for frames in (jobs, cycles)]
        return *together, pd.DataFrame(facts)

    def simulated(self) -> pd.DataFrame:
        """The same jobs in the simulator, from an idle cluster, under the same orders and each rule of BACKFILLING:
        backfill, scheduler, repetition, index, asked_gpus, gpus, at_s, submit_s, start_s, end_s, run_s (s since the
        repetition's first submission), state. An agent keeps its order and goes by the rule all the same, as on Slurm."""
        course, n = course_of(self.workspace, self.workload), self.settings.jobs
        frames = []
        for backfill in BACKFILLING:
            for scheduler in self.settings.schedulers:
                if scheduler == "rltune":
                    agent = agent_in(self.workspace, self.cell, self.workload)
                    policy = agent.policy
                    if policy is not None and "way" in policy.facts:
                        way = {**policy.facts["way"], "backfill": backfill}
                        policy = replace(policy, facts={**policy.facts, "way": way})
                    contender = Contender(replace(agent.scheduler, backfill=backfill), policy)
                else:
                    rule = SLURM if scheduler == "slurm" else scheduler
                    contender = Contender(scheduler_of(self.workspace, self.cell, policy=rule, backfill=backfill))
                state, _ = run(course, contender, self.firsts, np.full(len(self.firsts), n))
                table = job_table(self.workload.jobs, state)
                first = self.firsts[table["sequence"]]
                begin = self.workload.jobs.submit_s[first]
                submit = table["submit_s"] - begin
                frames.append(
                    pd.DataFrame(
                        {
                            "backfill": backfill,
                            "scheduler": scheduler,
                            "repetition": table["sequence"] + 1,
                            "index": table["job"] - first,
                            "asked_gpus": table["gpus"],
                            "gpus": table["gpus"],
                            "at_s": submit,
                            "submit_s": submit,
                            "start_s": table["start_s"] - begin,
                            "end_s": table["end_s"] - begin,
                            "run_s": table["run_s"],
                            "state": "COMPLETED",
                        }
                    ).sort_values(["repetition", "index"])
                )
        return pd.concat(frames, ignore_index=True)

    def missing(self) -> str:
        """Which runs are not there, and why where it is for want of packages; "" where all are."""
        there, asked = len(self.there()), len(self.settings.runs())
        if there == asked:
            return ""
        lacking = packages.missing(packages.needed(accounting=True, speed=self.settings.speed))
        told = f"{asked - there} of {asked} runs on the Slurm cluster are not there"
        if not lacking:
            return f"{told}; the workflow makes them."
        what = "; ".join(f"{', '.join(group.packages)} for {group.purpose}" for group in lacking)
        told += ", and the others are not shown without them" if there else ""
        return (
            f"{told}: what they need is not installed ({what}). On Debian or Ubuntu, as root: "
            f"{packages.install_command(lacking)}; make slurm-deps does it."
        )

    def facts(self) -> dict[str, object]:
        """trace and cluster (titles), data, gpus, jobs (of a repetition), repetitions, hours and offered (mean span of a
        repetition's submissions, and load over it), accounts (users of all repetitions)."""
        trace, cluster = self.workspace.trace(self.cell.trace), self.workspace.cluster(self.cell.cluster)
        parts = [self._table.iloc[first : first + self.settings.jobs] for first in self.firsts]
        spans = [float(part["submit_s"].iloc[-1] - part["submit_s"].iloc[0]) for part in parts]
        return {
            "trace": trace.title,
            "cluster": cluster.title,
            "data": trace.data,
            "gpus": cluster.gpus,
            "jobs": self.settings.jobs,
            "repetitions": self.settings.repetitions,
            "hours": float(np.mean(spans)) / 3600,
            "offered": float(np.mean([offered_load(part, cluster.gpus) for part in parts])),
            "accounts": int(pd.concat(parts)["user"].nunique()),
        }
