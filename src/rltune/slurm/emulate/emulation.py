"""The emulated cluster: start its daemons in order, control them while they run, and always end them."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rltune.config.cluster import ClusterConfig
from rltune.errors import SlurmError, SlurmUnavailable
from rltune.files import SECRET, write_text
from rltune.slurm.client import TIMED_OUT, Client, run_command
from rltune.slurm.emulate import clock, configure, packages
from rltune.slurm.emulate.machine import free_ports, make_database, make_device, user_name
from rltune.slurm.emulate.processes import Processes

SLURM_VARIABLES = ("SLURM", "SBATCH", "SALLOC", "SRUN", "SQUEUE", "SINFO", "SCANCEL", "SACCT", "MUNGE", "MYSQL")
"""Beginnings of environment variables that would steer Slurm's commands elsewhere."""


class Emulation:
    """An emulated cluster, as a context: ``with Emulation(cluster) as slurm: slurm.run("sbatch", ...)``.

    ``cluster``: its nodes, by pool.
    ``accounting``: with slurmdbd and MariaDB, without which age and fair share count nothing in Slurm's priority.
    ``accounts``: accounts to make (needs ``accounting``), for the user who runs this.
    ``speed``: how fast the cluster's clock runs; its daemons, clients and jobs have it, this process does not.
    ``settable``: the cluster's clock, at the true speed, can be set (:meth:`set_clock`).
    ``settings``: lines of slurm.conf to replace or add; ``OverSubscribe`` and the like go to every partition.
    ``directory``: a folder, empty or not there yet, to keep; default: a temporary one. ``say``: called with each step.
    ``small_first``: jobs are put on nodes with few GPUs before those with many, where either would do.
    ``partitions``: more partitions on the nodes of each pool: what is added to the pool's name → settings of the line.
    ``qos``: QOS to make (needs ``accounting``) → their priority.

    Entering raises :class:`rltune.errors.SlurmError` where packages are missing or a daemon does not start.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        *,
        accounting: bool = False,
        accounts: Sequence[str] = (),
        speed: float = 1.0,
        settable: bool = False,
        settings: Mapping[str, str] | None = None,
        directory: Path | str | None = None,
        say: Callable[[str], None] = lambda line: None,
        small_first: bool = False,
        partitions: Mapping[str, Mapping[str, str]] | None = None,
        qos: Mapping[str, int] | None = None,
    ) -> None:
        if not speed >= 1:
            raise SlurmError(f"speed: found {speed}, expected 1 (the true clock) or more")
        if settable and speed != 1:
            raise SlurmError(f"speed: found {speed} and a clock that can be set, expected one of the two")
        for what, names in (("accounts", accounts), ("QOS", qos or ())):
            if names and not accounting:
                raise SlurmError(f"{what} {', '.join(names)}: Slurm knows {what} with accounting only; switch it on")
        self.cluster, self.accounting, self.accounts, self.speed = cluster, accounting, tuple(accounts), float(speed)
        self.settable, self.small_first = settable, small_first
        self.settings, self.say = dict(settings or {}), say
        self.partitions, self.qos = dict(partitions or {}), dict(qos or {})
        self.kept = None if directory is None else Path(directory).resolve()
        self.user = user_name()
        self.env: dict[str, str] = {}
        self.nodes: list[configure.Node] = []
        self._running: Processes | None = None

    def __enter__(self) -> Emulation:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def conf(self) -> Path:
        """The cluster's slurm.conf."""
        return self.folders.conf

    def log_of(self, daemon: str) -> Path:
        """The log of a daemon: ``slurmctld``, ``slurmd p100-1``, ..."""
        return self.folders.logs / f"{daemon.replace(' ', '-')}.log"

    # Start and stop

    def start(self) -> None:
        """Start every daemon and wait until all nodes are ready. Raises SlurmError that quotes the daemon's log."""
        packages.check(self.accounting, self.speed, self.settable)
        if self.kept and self.kept.exists() and (not self.kept.is_dir() or any(self.kept.iterdir())):
            raise SlurmError(f"{self.kept}: not empty, or no folder; expected a new or empty folder for the cluster")
        try:
            self._start()
        except BaseException:
            self.stop(at_once=True)
            raise

    def stop(self, at_once: bool = False) -> None:
        """End jobs and daemons, and remove the folder unless it is kept. A second call does nothing.

        ``at_once``: jobs are not cancelled first, their processes are just ended.
        """
        if self._running is None:
            return
        processes, self._running = self._running, None
        try:
            if not at_once:
                self._cancel_all(processes)
            self._end_in_order(processes)
        finally:
            processes.end()

    def _start(self) -> None:
        self._running = Processes()
        sockets = Path(tempfile.mkdtemp(prefix="rltune-slurm-"))
        self._processes.remove_at_end(sockets)
        self.folders = configure.Folders(self.kept or sockets / "cluster", sockets)
        self.folders.make()
        if len(str(self.folders.munge)) > 100:
            raise SlurmError(f"{sockets}: too long a path for sockets; set TMPDIR to a shorter one, as /tmp")
        base = {k: v for k, v in clock.without_clock(os.environ).items() if not k.startswith(SLURM_VARIABLES)}
        base["PATH"] = os.pathsep.join([base.get("PATH", os.defpath), *packages.SYSTEM_PATH])
        fast = self._start_clock(base)
        self.env = {**base, **fast, "SLURM_CONF": str(self.conf)}
        self._configure()
        self._start_munge(base)
        if self.accounting:
            make_database(self.folders, self.user)
            self.start_accounting()
            self.run("sacctmgr", "-i", "add", "cluster", "emulated")
        self.start_controller(clear=True)
        for node in self.nodes:
            self.start_node(node.name)
        self._wait_for_nodes()
        for name, priority in self.qos.items():
            self.run("sacctmgr", "-i", "add", "qos", name, f"Priority={priority}")
        for account in self.accounts:
            self.run("sacctmgr", "-i", "add", "account", account, "cluster=emulated")
            self.run("sacctmgr", "-i", "add", "user", self.user, f"account={account}", "cluster=emulated")

    def _start_clock(self, base: Mapping[str, str]) -> dict[str, str]:
        """Start the fast clock, where there is one: the environment of those who live on it."""
        self._zero = (time.time(), time.time())
        if self.speed == 1 and not self.settable:
            return {}
        self.say(f"clock: {self.speed:g} times as fast" if self.speed != 1 else "clock: can be set")
        pid = self._processes.start("clock", clock.holder_command(self.speed), base, self.folders.logs / "clock.log")
        self._processes.remove_at_end(*clock.files_of(pid))
        fast = clock.of_holder(pid, self.speed)
        if self.settable:
            self._offset = self.folders.run / "clock"
            self._offset.write_text("+0\n")
            return clock.settable(fast, self._offset)
        reads = []
        for _ in range(3):
            before = time.time()
            shown = subprocess.run(["date", "+%s.%N"], env={**base, **fast}, capture_output=True, text=True, check=True)
            after = time.time()
            reads.append((after - before, (before + after) / 2, float(shown.stdout)))
        self._zero = min(reads)[1:]
        return fast

    def _configure(self) -> None:
        ports = free_ports(self.cluster.nodes + 2)
        self.nodes = configure.nodes_of(self.cluster, ports[2:])
        folders, dbd = self.folders, ports[1] if self.accounting else None
        options = self.settings, self.small_first, self.partitions
        text = configure.slurm_conf(self.cluster, self.nodes, folders, self.user, ports[0], self.speed, dbd, *options)
        folders.conf.write_text(text)
        (folders.root / "gres.conf").write_text(configure.gres_conf(self.nodes, folders))
        if dbd is not None:
            path = folders.root / "slurmdbd.conf"
            path.touch(SECRET)
            path.write_text(configure.filled("slurmdbd.conf", self.speed, folders=folders, user=self.user, port=dbd))
        for k in range(max(node.gpus for node in self.nodes)):
            make_device(folders.devices / f"gpu{k}")
        for node in self.nodes:
            (folders.spool / node.name).mkdir(exist_ok=True)

    def _start_munge(self, base: Mapping[str, str]) -> None:
        key = self.folders.root / "munge.key"
        key.touch(SECRET)
        key.write_bytes(secrets.token_bytes(1024))
        run, log = self.folders.run, self.folders.logs / "munged.log"
        argv = [
            packages.found("munged"),
            "-F",
            "--force",
            f"--key-file={key}",
            f"--socket={self.folders.munge}",
            f"--pid-file={run}/munged.pid",
            f"--seed-file={run}/munged.seed",
            f"--log-file={log}",
        ]
        self._launch("munged", argv, base, self.folders.munge.exists, 10)

    def _wait_for_nodes(self) -> None:
        self.say(f"{len(self.nodes)} nodes, {sum(node.gpus for node in self.nodes)} GPUs: waiting for them")

        def ready() -> bool:
            try:
                lines = self.run("sinfo", "-h", "-N", "-o", "%N|%T|%E").splitlines()
            except SlurmError:
                return False
            words = [line.split("|", 2) for line in dict.fromkeys(lines)]
            if wrong := [f"{name}: {state}, {why}" for name, state, why in words if "inval" in state]:
                raise SlurmError(f"Slurm refuses nodes of the emulated cluster: {'; '.join(wrong[:3])}")
            return sum(state == "idle" for _, state, _ in words) >= len(self.nodes)

        self._until(ready, "slurmctld", 30 + 0.5 * len(self.nodes))

    def _cancel_all(self, processes: Processes) -> None:
        """End every job, as far as the controller answers; what is left is ended with the daemons."""
        if processes.states().get("slurmctld", 0) is not None:
            return
        deadline = time.monotonic() + 5
        try:
            self.run("scancel", "--quiet", f"--user={self.user}", timeout_s=5)
            self.run("scancel", "--quiet", "--state=PENDING", "--state=RUNNING", "--state=SUSPENDED", timeout_s=5)
            while time.monotonic() < deadline and self.run("squeue", "-h", "-o", "%i", timeout_s=5).strip():
                time.sleep(0.05)
        except SlurmError as error:
            self.say(f"jobs are ended without Slurm: {error}")

    def _end_in_order(self, processes: Processes) -> None:
        """The controller first, so that it saves its state where that is kept."""
        living = [name for name, status in processes.states().items() if status is None]
        for name in ("slurmctld", "slurmdbd", "mariadbd"):
            if name in living:
                processes.kill(name, signal.SIGTERM if self.kept else signal.SIGKILL, 10.0)

    # While it runs

    def now(self) -> float:
        """The cluster's time, s since 1970."""
        true, own = self._zero
        return own + (time.time() - true) * self.speed

    def client(self, timeout_s: float = 30.0) -> Client:
        """A client of this cluster; ``timeout_s`` is on the true clock."""
        return Client(self.conf, timeout_s, self.env)

    def run(self, *argv: str | Path, stdin: str = "", timeout_s: float = 60.0) -> str:
        """Run a command with the cluster's environment to its end; what it printed.

        Raises SlurmError with its words where it fails.
        """
        done = run_command([*map(str, argv)], self.env, timeout_s, stdin)
        if done.returncode == TIMED_OUT:
            raise SlurmUnavailable(f"{argv[0]}: no answer within {timeout_s:g} s")
        if done.returncode:
            raise SlurmError(f"{' '.join(map(str, argv))}: exit status {done.returncode}: {done.stderr.strip()[-800:]}")
        return done.stdout

    def start_controller(self, clear: bool = False) -> None:
        """Start slurmctld; ``clear``: without the jobs it knew."""
        argv = [packages.found("slurmctld"), "-D", *(["-c"] if clear else [])]
        self._launch("slurmctld", argv, self.env, lambda: self._quietly("scontrol", "ping"), 30)

    def restart_controller(self) -> None:
        """End slurmctld orderly and start it again, with the jobs it knew."""
        self._processes.kill("slurmctld", signal.SIGTERM)
        self.start_controller()

    def start_accounting(self) -> None:
        """Start the database and slurmdbd."""
        socket, folders = self.folders.mysql, self.folders
        argv = [packages.found("mariadbd"), f"--defaults-file={folders.database_conf}"]
        self._launch("mariadbd", argv, clock.without_clock(self.env), socket.exists, 60)
        argv, env = [packages.found("slurmdbd"), "-D"], {**self.env, "MYSQL_UNIX_PORT": str(socket)}
        self._launch("slurmdbd", argv, env, lambda: self._quietly("sacctmgr", "--noheader", "list", "cluster"), 60)

    def start_node(self, name: str) -> None:
        """Start a node's slurmd."""
        argv = [packages.found("slurmd"), "-D", "-N", name]
        self._processes.start(f"slurmd {name}", argv, self.env, self.log_of(f"slurmd {name}"))

    def set_clock(self, offset_s: float) -> None:
        """Set the cluster's clock to so many seconds before or after the true one; of a ``settable`` cluster."""
        write_text(self._offset, f"{offset_s:+.3f}\n")
        self._zero = (0.0, offset_s)

    def set_node(self, name: str, state: str, reason: str = "requested") -> None:
        """Set a node's state, as an administrator does: DRAIN, DOWN, RESUME."""
        self.run("scontrol", "update", f"nodename={name}", f"state={state}", f"reason={reason}")

    def ended(self) -> dict[str, int]:
        """Daemons that have ended of themselves, with their exit statuses."""
        return {name: status for name, status in self._processes.states().items() if status is not None}

    @property
    def _processes(self) -> Processes:
        """The daemons of a started cluster."""
        assert self._running is not None, "the cluster has not been started"
        return self._running

    @property
    def supervisor(self) -> int:
        """Process id of the parent of all daemons."""
        return self._processes.pid

    def _quietly(self, *argv: str) -> bool:
        """Whether a command ends well."""
        try:
            self.run(*argv, timeout_s=15)
        except SlurmError:
            return False
        return True

    def _launch(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], ready: Callable[[], bool], timeout_s: float
    ) -> None:
        """Start a daemon and wait until it is ready."""
        self.say(name)
        self._processes.start(name, argv, env, self.log_of(name))
        self._until(ready, name, timeout_s)

    def _until(self, done: Callable[[], bool], daemon: str, timeout_s: float) -> None:
        """Wait for something to become true. Raises SlurmError when a daemon ends first, or after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not done():
            if (ended := self.ended()) or time.monotonic() > deadline:
                name = next(iter(ended), daemon)
                log = self.log_of(name)
                tail = log.read_text(errors="replace").strip().splitlines()[-5:] if log.exists() else []
                what = f"ended with status {ended[name]}" if ended else f"was not ready within {timeout_s:g} s"
                raise SlurmError(f"{name} of the emulated cluster {what}; its log ends: " + " / ".join(tail))
            time.sleep(0.05)
