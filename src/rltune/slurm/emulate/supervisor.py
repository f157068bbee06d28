"""Parent of an emulated cluster's daemons: a separate process that ends them all when the process that started it is gone.

It runs as a script, without the rest of the project, and takes calls of :class:`Supervisor` as lines of JSON on its standard
input. The end of that input, by whatever cause, ends every process below it. As a "subreaper" it adopts processes whose
parents ended (job steps of a killed slurmd), so that none escapes.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 5.0
"""How long processes may take to end before they are killed."""


def adopt_orphans() -> None:
    """Make this process the parent of those of its descendants whose parents end."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_all(keep: int | None = None) -> None:
    """End every descendant of this process but ``keep`` and those below it: by SIGTERM, after GRACE_S by SIGKILL."""
    deadline = time.monotonic() + GRACE_S
    asked: set[int] = set()
    while left := descendants(keep):
        forced = time.monotonic() > deadline
        for process in left:
            if forced or process.pid not in asked:
                asked.add(process.pid)
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL if forced else signal.SIGTERM)
        psutil.wait_procs(left, timeout=0.05)
        if keep is None:  # otherwise somebody waits for a child of this process
            reap()


def descendants(keep: int | None) -> list[psutil.Process]:
    """Living processes below this one, without ``keep`` and those below it."""
    below: dict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter(["ppid", "status"]):  # one look at all: there may be thousands
        below[process.info["ppid"]].append(process)
    found, todo = [], [os.getpid()]
    while todo:
        children = [child for child in below[todo.pop()] if child.pid != keep]
        found += [child for child in children if child.info["status"] != psutil.STATUS_ZOMBIE]
        todo += [child.pid for child in children]
    return found


def reap() -> None:
    """Wait for children that ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Supervisor:
    """The daemons by name, each the leader of a process group of its own."""

    def __init__(self) -> None:
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.starting = False
        self.to_remove: list[str] = []
        setpriv = shutil.which("setpriv")
        self.wrapper = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        """Command that ends a daemon also when this process is killed."""

    def start(self, name: str, argv: list[str], env: dict[str, str], log: str) -> int:
        """Start a daemon whose words are added to a file; its process id."""
        self.starting = True
        try:
            with open(log, "ab") as file:
                self.daemons[name] = subprocess.Popen(
                    [*self.wrapper, *argv],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    cwd="/",
                    start_new_session=True,
                )
        finally:
            self.starting = False
        return self.daemons[name].pid

    def reap_orphans(self, *_: object) -> None:
        """Wait for adopted processes that ended, one per job of the cluster; a daemon's exit status is kept."""
        if self.starting:
            return  # a child that is not among the daemons yet may be one; the next child's end comes by here again
        daemons = {daemon.pid: daemon for daemon in self.daemons.values()}
        with suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid in daemons:
                    if daemons[ended.si_pid].poll() is None:
                        return  # its end is being waited for right now
                else:
                    os.waitpid(ended.si_pid, os.WNOHANG)

    def kill(self, name: str, number: int, wait_s: float) -> int | None:
        """Send a daemon a signal and wait for its end: its status, and it is forgotten; None while it still runs."""
        self.daemons[name].send_signal(number)
        try:
            status = self.daemons[name].wait(wait_s)
        except subprocess.TimeoutExpired:
            return None
        del self.daemons[name]
        return status

    def states(self) -> dict[str, int | None]:
        """Each daemon's exit status, None while it runs."""
        return {name: daemon.poll() for name, daemon in self.daemons.items()}

    def remove_at_end(self, *paths: str) -> None:
        """Remove files and folders once all daemons have ended."""
        self.to_remove += paths


def main() -> None:
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervisor = Supervisor()
    signal.signal(signal.SIGCHLD, supervisor.reap_orphans)
    try:
        for line in sys.stdin:
            request = json.loads(line)
            reply = {"number": request["number"]}
            try:
                reply["is"] = getattr(supervisor, request["call"])(*request["arguments"])
            except (OSError, KeyError) as error:
                reply["error"] = f"{type(error).__name__}: {error}"
            print(json.dumps(reply), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all()
        for path in supervisor.to_remove:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.unlink(path)


if __name__ == "__main__":
    main()
