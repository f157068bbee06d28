"""One run of the experiment: a cluster of real daemons, the same submissions at the same times, with or without a controller.

The controller is the one of ``rltune slurm run --live``, in a thread and on the real clock, as in production; by the
cluster's clock its work takes ``speed`` times as long.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rltune.agent.policy_file import TrainedPolicy, save_policy
from rltune.config import ClusterConfig
from rltune.config.deployment import INTERVAL_S, QOS, SHORT
from rltune.config.slurm import SlurmConfig
from rltune.environment.features import width_of
from rltune.errors import ClusterDied, SlurmError, SlurmUnavailable
from rltune.slurm.controller import Controller, Cycle
from rltune.slurm.decide import decide
from rltune.slurm.emulate import Emulation, packages
from rltune.slurm.experiment.accounts import jobs_of
from rltune.slurm.experiment.submission import WATCH_S, Submission, submit_all
from rltune.slurm.observe import observe
from rltune.slurm.records import SlurmJob
from rltune.slurm.service import DONE, Service
from rltune.slurm.state_directory import StateDirectory

OVER_LIMIT_MIN = 10
"""Minutes by which a job may exceed its limit: otherwise the time that the daemons need to start it would end it."""
KEPT_S = 10.0
"""Real seconds that Slurm keeps ended jobs in the listing of its queue."""
LEAD_S = 1.0
"""Real seconds from the last preparation to the first submission."""
STALLED_S = 300.0
"""Real seconds without a start or an end, beyond the longest limit, after which a run has failed."""
HANGING = "Kill task failed"
"""Slurm's reason to take a node out of service because a job's last process did not end, which happens on a fast clock."""
UNKILLABLE_S = 5.0
"""Real seconds after which Slurm gives up on such a process; until then other jobs cannot use its nodes."""
NODES_S = 5.0
"""Real seconds between two looks at the nodes."""
SAY_S = 20.0
"""Real seconds between two lines of progress."""
PRIORITY_OF_QOS = {name: round(100 * factor) for name, (factor, _) in QOS.items()}
"""As sacctmgr takes it; Slurm divides by the largest."""
COUNTED = ("ranked", "running", "changed", "refused", "released", "read_s", "decide_s", "write_s")
"""What is recorded of a cycle of the controller."""


def policy_of_rule(rule: str) -> TrainedPolicy:
    """A policy that ranks as the base policy ``rule`` does, for the agent's controller: a network of zeros, so that the base
    policy's order decides."""
    layer = (np.zeros((width_of("engineered"), 1), np.float32), np.zeros(1, np.float32))
    return TrainedPolicy(layer, {"features": "engineered", "policy": rule, "base_policy_bias": 1.0})


@dataclass(frozen=True)
class Conducted:
    """The results of a run."""

    jobs: pd.DataFrame
    """Columns of rltune.slurm.experiment.accounts.jobs_of."""
    cycles: pd.DataFrame
    """One row per cycle of the controller: began_s (since the experiment began), took_s (both on the cluster's clock), ok,
    ranked, running, changed, refused, released, read_s, decide_s, write_s (real seconds)."""
    facts: dict[str, Any]
    """simulated_s (from the beginning to the last end) and true_s (real seconds); drift_s (how far the cluster's clock is
    behind at the end); slurm (version); resumed (nodes that Slurm took out of service for a hanging process, once per time)."""


def settings(speed: float) -> dict[str, str]:
    """The experiment's lines of slurm.conf."""
    kept, unkillable = (str(min(65_000, max(2, round(true_s * speed)))) for true_s in (KEPT_S, UNKILLABLE_S))
    return {"OverTimeLimit": str(OVER_LIMIT_MIN), "MinJobAge": kept, "UnkillableStepTimeout": unkillable}


def conduct(
    cluster: ClusterConfig,
    submissions: Sequence[Submission],
    policy: TrainedPolicy | None,
    speed: float,
    log: Path,
    max_wait_h: Mapping[int, float],
    say: Callable[[str], None] = print,
    decides_types: bool = False,
) -> Conducted:
    """Start a cluster, submit every job at its time, wait for the last end, read the accounts.

    Args:
        policy: orders the queue through a controller; None: Slurm does by itself.
        log: file for the controller's log; if the run fails, the daemons' logs are kept next to it.
        max_wait_h: of the controller, by size.
        decides_types: the controller decides GPU types, too, by the speeds of the cluster's configuration.
        say: prints progress, and that the cluster could not be stopped, which is no error at that point.

    Raises ClusterDied if a daemon ends (naming its log), Slurm does not answer, nothing moves or the accounts stay
    incomplete; SlurmError if the cluster is not the cause: packages are missing, a job is refused, the controller ends by
    itself or with an error, or jobs wait on an idle cluster that a controller orders.
    """
    packages.check(accounting=True, speed=speed)
    accounts = sorted({job.account for job in submissions})
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rltune-run-") as folder:
        options = {"accounting": True, "accounts": accounts, "speed": speed, "settings": settings(speed)}
        options |= {"partitions": {SHORT: {}}, "qos": PRIORITY_OF_QOS}
        slurm = Emulation(cluster, **options, small_first=True)
        with _started(slurm, say), log.open("w", encoding="utf-8", buffering=1) as log_file:
            speeds = cluster.speeds if decides_types else None
            driver = None
            if policy is not None:
                names = sorted({job.partition for job in submissions})
                eligible = {"partitions": names, "also": ["constraints"]}
                rules = {"eligible": eligible, "speeds": speeds, "max_wait_h": max_wait_h}
                driver = _Driver(slurm, policy, Path(folder), log_file.write, rules)
                driver.prepare(submissions)
            began_s, began = slurm.now() + LEAD_S * speed, time.monotonic() + LEAD_S
            longest_s = max(job.limit_s for job in submissions)
            watch = _Watch(slurm, driver, longest_s, began_s, say)
            try:
                if driver is not None:
                    driver.start(began_s)
                submit_all(slurm, submissions, began_s, watch.look)
                while watch.look():
                    time.sleep(WATCH_S)
                if driver is not None:
                    driver.end()
                facts = {"true_s": time.monotonic() - began, "drift_s": _drift_s(slurm)}
                facts |= {"slurm": slurm.client().version(), "resumed": watch.resumed}
                jobs = jobs_of(slurm, submissions, began_s)
            except BaseException as error:
                # the daemons' logs disappear with the cluster
                shutil.copytree(slurm.folders.logs, log.with_suffix(".daemons"), dirs_exist_ok=True)
                if driver is not None:
                    driver.abandon()
                if isinstance(error, SlurmError) and (why := _died(slurm, error)):
                    raise ClusterDied(why) from None
                raise
        facts["simulated_s"] = float(jobs["end_s"].max())
        return Conducted(jobs, driver.cycles() if driver is not None else pd.DataFrame(), facts)


def _drift_s(slurm: Emulation) -> float:
    """How far the cluster's clock is behind, from a command that reads it; the middle of the command's run counts."""
    before_s = slurm.now()
    date_s = float(slurm.run("date", "+%s.%N"))
    return (before_s + slurm.now()) / 2 - date_s


@contextmanager
def _started(slurm: Emulation, say: Callable[[str], None]) -> Iterator[None]:
    """Start the cluster, and stop it in the end."""
    try:
        slurm.start()
    except SlurmError as error:
        raise ClusterDied(f"the cluster did not start: {error}") from None
    try:
        yield
    finally:
        try:
            slurm.stop()
        except SlurmError as error:
            say(f"the cluster was not stopped cleanly: {error}")


def _died(slurm: Emulation, error: SlurmError) -> str:
    """The message of an error that the cluster itself caused; "" otherwise."""
    if isinstance(error, ClusterDied):
        return str(error)
    try:
        ended = slurm.ended()
    except ClusterDied as gone:
        return f"{error}; {gone}"
    if ended:
        return f"{error}; {_ended(slurm, ended)}"
    return str(error) if isinstance(error, SlurmUnavailable) else ""


def _ended(slurm: Emulation, ended: dict[str, int]) -> str:
    name = next(iter(ended))
    return (
        f"{name} of the emulated cluster ended with status {ended[name]} while the experiment ran; its log is "
        f"{slurm.log_of(name).name} among those kept"
    )


@dataclass
class _Watch:
    """Checks that daemons and controller work, resumes nodes, for which Slurm would wait for an administrator, and prints
    progress."""

    slurm: Emulation
    driver: _Driver | None
    longest_s: float
    began_s: float
    say: Callable[[str], None]
    resumed: list[str] = field(default_factory=list)
    """Names of nodes, once per time."""
    _looked_at_nodes: float = field(default_factory=time.monotonic)
    _moved: float = field(default_factory=time.monotonic)
    _state: tuple[int, int] = (-1, -1)
    _said: float = field(default_factory=time.monotonic)

    def look(self) -> int:
        """The number of jobs that have not ended.

        Raises ClusterDied if a daemon has ended or nothing has moved for long, SlurmError if the controller has ended, or
        jobs wait for long on an idle cluster that it orders, since it may be the cause.
        """
        now = time.monotonic()
        if ended := self.slurm.ended():
            raise ClusterDied(_ended(self.slurm, ended))
        if now - self._looked_at_nodes >= NODES_S:
            self._looked_at_nodes = now
            self.resume_nodes()
        state = self._queue()  # before the controller, which cannot go on either if Slurm does not answer
        if self.driver is not None:
            self.driver.check()
        if state != self._state:
            self._state, self._moved = state, now
        if now - self._moved > STALLED_S + self.longest_s / self.slurm.speed:
            kind = ClusterDied if state[1] or self.driver is None else SlurmError
            raise kind(
                f"nothing has started or ended for {now - self._moved:.0f} s: {state[0]} jobs wait, {state[1]} run; "
                "the log of slurmctld is among those kept"
            )
        if now - self._said > SAY_S:
            self._said = now
            hours = (self.slurm.now() - self.began_s) / 3600
            self.say(f"{hours:.1f} h of the cluster's clock: {state[0]} jobs wait, {state[1]} run")
        return sum(state)

    def resume_nodes(self) -> None:
        """Put nodes back into service that Slurm took out because of a hanging process."""
        for line in sorted(set(self.slurm.run("sinfo", "--Node", "--noheader", "--format=%N|%T|%E").splitlines())):
            name, state, reason = line.split("|", 2)
            if reason.strip() == HANGING and state.startswith("drain"):
                self.slurm.set_node(name, "RESUME")
                self.resumed.append(name)
                self.say(f"a process of a job on {name} did not end, and Slurm took the node out of service: resumed")

    def _queue(self) -> tuple[int, int]:
        """(Waiting, running) jobs."""
        states = self.slurm.run("squeue", "--all", "--noheader", "--format=%T").split()
        waiting = states.count("PENDING")
        return waiting, len(states) - waiting


class _Timed(Controller):
    """A controller that records what its cycles did and how long they took."""

    rows: list[dict[str, Any]]

    def cycle(self) -> Cycle:
        began_s = self.clock()
        self.rows.append({"began_s": began_s, "took_s": 0.0, "ok": False})
        try:
            done = super().cycle()
            self.rows[-1] |= {"ok": True} | {name: getattr(done, name) for name in COUNTED}
            return done
        finally:
            self.rows[-1]["took_s"] = self.clock() - began_s


class _Driver:
    """The controller's service in a thread."""

    def __init__(
        self,
        slurm: Emulation,
        policy: TrainedPolicy,
        folder: Path,
        write: Callable[[str], object],
        rules: Mapping[str, Any],
    ) -> None:
        save_policy(folder / "policy.npz", policy)
        self.config = SlurmConfig.model_validate(
            {
                "policy": str(folder / "policy.npz"),
                **rules,
                "interval_s": INTERVAL_S,
                "state_directory": str(folder / "state"),
                "watchdog": None,  # the experiment is to show the order to its end
            }
        )
        self.slurm, self.policy = slurm, policy
        self.said: list[str] = []
        self.controller = _Timed(
            self.config,
            slurm.client(),
            StateDirectory(folder / "state"),
            folder / "policy.npz",
            True,
            clock=slurm.now,
            say=lambda line, level=0: self._say(write, line),
        )
        self.controller.rows = []
        self.service = Service(self.controller, speed=slurm.speed)
        self.status: int | None = None
        self.error: BaseException | None = None
        self.began_s = 0.0
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)

    def prepare(self, submissions: Sequence[Submission]) -> None:
        """Decide once about a similar queue, so that everything is compiled before the measurement."""
        now_s = self.slurm.now()
        jobs = [
            SlurmJob(
                *(k, "user", job.partition, "PENDING", now_s, job.gpus, 1),
                reason="Priority",
                time_limit_s=60.0 * job.limit_min,
                nodes=job.nodes,
                cpus=job.cpus,
                comment=job.model,
            )
            for k, job in enumerate(submissions[:50], 1)
        ]
        view = observe(jobs, self.controller.slurm.nodes().records, self.config, now_s + 60.0)
        decide(view, self.policy, self.config)

    def start(self, began_s: float) -> None:
        """Start the controller."""
        self.began_s = began_s
        self._thread.start()

    def check(self) -> None:
        """Raise SlurmError if the controller has ended by itself."""
        if not self._thread.is_alive():
            raise SlurmError(
                f"the controller ended by itself, with status {self.status}: {self.error or self.said[-1]}"
            )

    def abandon(self) -> None:
        """Stop it and ignore its status."""
        self.service.stop.set()
        if self._thread.ident is not None:
            self._thread.join(60.0)

    def end(self) -> None:
        """Stop it. Raises SlurmError if it does not end cleanly."""
        self.abandon()
        if self._thread.is_alive() or self.status != DONE:
            last = self.error or (self.said[-1] if self.said else "")
            raise SlurmError(f"the controller did not end cleanly (status {self.status}): {last}")

    def cycles(self) -> pd.DataFrame:
        """What its cycles did."""
        frame = pd.DataFrame(self.controller.rows)
        return frame.assign(began_s=frame["began_s"] - self.began_s)

    def _run(self) -> None:
        try:
            self.status = self.service.run()
        except BaseException as error:  # raised by `check` and `end`, in the thread that waits
            self.error = error

    def _say(self, write: Callable[[str], object], line: str) -> None:
        self.said.append(line)
        write(f"{self.slurm.now() - self.began_s:.0f} s: {line}\n")
