"""Jobs to submit to the emulated cluster, and their submission at the right time."""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from rltune.errors import SlurmError
from rltune.slurm.emulate import Emulation

NO_NAME = re.compile(r"[^a-z0-9_]+")
WORKERS = 4
"""Concurrent sbatch commands, so that the first of a burst does not delay the others."""
CALM_S = 0.5
"""Real seconds without a submission that leave time for something else."""
WATCH_S = 0.5
"""Real seconds between two looks at the queue."""


@dataclass(frozen=True)
class Submission:
    """A job that sleeps as long as the trace's job ran, or would have run on the GPU type that it gets."""

    name: str
    """Its name in Slurm, unique within a run."""
    at_s: float
    """Submission, s after the experiment began."""
    account: str
    partition: str
    gpus: int
    nodes: int
    cpus: int
    """Over all nodes."""
    limit_s: float
    """The time limit its user asks for."""
    run_s: float
    """Run time, s; where GPU types differ, on the fastest."""
    share: str = ""
    """sbatch's option for sharing nodes; empty: as the partition says."""
    times_s: Mapping[str, float] = field(default_factory=dict)
    """GPU type → how long it runs there, where that differs; types on which it does not run are not among them."""
    types: str = ""
    """The GPU types that its user allows, such as ``p100|k80``; empty: any."""
    model: str = ""
    """The model that it trains, by which the controller knows its speeds."""
    qos: str = ""
    """Its QOS; empty: Slurm's default."""

    def lasts_s(self, node: str) -> float:
        """How long it runs on a node, s."""
        return self.times_s.get(node.rpartition("-")[0], self.run_s)

    @property
    def limit_min(self) -> int:
        """The limit in whole minutes, as Slurm takes it."""
        return max(1, math.ceil(self.limit_s / 60))

    def options(self) -> list[str]:
        """sbatch's options: GPUs of any type, equally many per node if they can be divided so."""
        each, rest = divmod(self.gpus, self.nodes)
        options = [
            f"--job-name={self.name}",
            f"--account={self.account}",
            f"--partition={self.partition}",
            f"--nodes={self.nodes}",
            "--ntasks-per-node=1",
            f"--cpus-per-task={max(1, self.cpus // self.nodes)}",
            f"--gpus={self.gpus}" if rest else f"--gres=gpu:{each}",
            f"--time={self.limit_min}",
        ]
        more = {"--constraint": self.types, "--comment": self.model, "--qos": self.qos}
        options += [f"{name}={value}" for name, value in more.items() if value]
        return [*options, self.share] if self.share else options


def account_of(user: str) -> str:
    """A user of the trace as an account's name, which Slurm keeps in lower case."""
    return NO_NAME.sub("_", str(user).lower()).strip("_") or "nobody"


def submit_all(slurm: Emulation, jobs: Sequence[Submission], began_s: float, at_work: Callable[[], object]) -> None:
    """Submit every job at its time on the cluster's clock, ``began_s`` + ``at_s``.

    ``at_work`` is called every WATCH_S while the next submission is at least CALM_S away, so it delays none; it ends
    everything by raising. Raises SlurmError if Slurm refuses a job, SlurmUnavailable if it does not answer.
    """
    sent: list[Future[int]] = []
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for job in sorted(jobs, key=lambda job: job.at_s):
                while (left_s := (began_s + job.at_s - slurm.now()) / slurm.speed) > 0:
                    if left_s < CALM_S:
                        time.sleep(left_s)
                    else:
                        time.sleep(min(left_s - CALM_S, WATCH_S))
                        at_work()
                sent.append(pool.submit(submit, slurm, job))
                for done in filter(Future.done, sent):
                    done.result()  # raises its error
            for done in sent:
                done.result()
        except SlurmError:
            pool.shutdown(cancel_futures=True)
            raise


def submit(slurm: Emulation, job: Submission) -> int:
    """Submit a job now and return its id. Raises as Slurm's command does, naming the job."""
    cases = "".join(f"{kind}) exec sleep {time_s:.0f};; " for kind, time_s in job.times_s.items())
    script = f'#!/bin/sh\ncase "${{SLURMD_NODENAME%-*}}" in {cases}*) exec sleep {job.run_s:.0f};; esac\n'
    argv = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--no-requeue")
    try:
        said = slurm.run(*argv, *job.options(), stdin=script).strip()
    except SlurmError as error:
        raise type(error)(f"job {job.name} of the experiment was not taken: {error}") from None
    if (found := re.match(r"(\d+)(;|$)", said)) is None:
        raise SlurmError(f"job {job.name} of the experiment: found {said[:80]!r} from sbatch, expected the job's id")
    return int(found[1])
