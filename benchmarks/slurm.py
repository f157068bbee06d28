"""Cycles of the controller on an emulated Slurm cluster: seconds to read, decide and write, and CPU, by the queue's length.

Real daemons on this machine, five nodes with made-up GPUs, all of them taken. `first`: the queue has just grown to this
length; `next`: ten more jobs have come. With no GPU free nothing can be placed: `free_s` is what deciding takes on the same
queue if every node were idle, with the placement model asked. The policy is untrained, which costs the same. `cpu_s` is
the controller's and that of Slurm's commands it starts, not of the daemons. `watch_s` is what the watchdog needs to take
note of the queue in each cycle, `cycle_s` a cycle of the service, with it. `compare_s` is one comparison of the
watchdog's, of which it makes one in ten minutes; neither `cycle_s` nor `cpu_s` has it. At the end all jobs are released. The last line is one JSON
object.
"""

import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from parts.output import parser_of, report

from rltune.agent.policy_file import TrainedPolicy, load_policy, save_policy, shapes_of
from rltune.config import load_cluster, project_root
from rltune.config.slurm import SlurmConfig, WatchdogConfig
from rltune.slurm.controller import Controller
from rltune.slurm.decide import decide
from rltune.slurm.emulate import Emulation
from rltune.slurm.observe import observe
from rltune.slurm.state_directory import StateDirectory
from rltune.slurm.watchdog import Watchdog


def policy(path: Path) -> Path:
    """A policy in the paper's shape, untrained: it costs what a trained one does."""
    rng, widths = np.random.default_rng(1), [shapes_of("engineered")["actor"][1], 32, 16, 8, 1]
    layers = [rng.normal(size=shape).astype(np.float32) for a, b in zip(widths, widths[1:]) for shape in ((a, b), (b,))]
    save_policy(path, TrainedPolicy(tuple(layers), {"features": "engineered"}))
    return path


def submit(slurm: Emulation, n: int, *options: str) -> None:
    """Submit so many jobs."""
    argv = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", *options)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: slurm.run(*argv, stdin="#!/bin/sh\nsleep 36000\n"), range(n)))


def cpu_s() -> float:
    """CPU seconds of this process and its ended children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _compare(watchdog: Watchdog, controller: Controller) -> float:
    """Seconds of one comparison."""
    assert watchdog.shadow is not None
    began = time.perf_counter()
    watchdog.shadow.waits(controller.view.now_s)
    return time.perf_counter() - began


def _idle(controller: Controller) -> float:
    """Seconds of a decision about the queue that the last cycle saw, on idle nodes."""
    nodes = [
        replace(node, state=frozenset({"IDLE"}), cpus_alloc=0, mem_alloc_mb=0, gpus_alloc={})
        for node in controller.slurm.nodes().records
    ]
    view = observe([job for job in controller.jobs if job.state == "PENDING"], nodes, controller.config, time.time())
    assert len(view.ranked) == len(controller.view.ranked)
    began = time.perf_counter()
    isolating = controller.config.model_copy(update={"exclusive": "model", "interference_slowdown": 1.25})
    assert decide(view, load_policy(controller.policy_path), isolating).starts
    return time.perf_counter() - began


def measure(folder: Path, queues: list[int], speeds: dict[str, float] | None) -> dict[str, Any]:
    """Seconds at each length of the queue; with ``speeds`` jobs may use any GPU type, and the controller decides which."""
    found: dict[str, Any] = {}
    with Emulation(load_cluster("deployment", project_root()), settings={"MaxJobCount": "30000"}) as slurm:
        config = SlurmConfig.model_validate({"policy": "-", "eligible": {"partitions": ["all"]}, "speeds": speeds})
        for gpus in (4, 4, 2, 2, 1):
            submit(slurm, 1, f"--gres=gpu:{gpus}")
        waiting, kinds = 2, ("--gres=gpu:1", "--gres=gpu:p100:2", "--gres=gpu:p100:4")
        if speeds:
            kinds = ("--gres=gpu:1", "--gres=gpu:2", "--gres=gpu:4")
        controller = Controller(
            config, slurm.client(), StateDirectory(folder), policy(folder / "policy.npz"), True, say=lambda _: None
        )
        submit(slurm, 2, "--gres=gpu:1")
        watchdog = Watchdog(config, lambda _: None)
        controller.cycle()
        watchdog.cycle(controller.view)
        _compare(watchdog, controller)
        _idle(controller)  # all of them compile
        for n in queues:
            while waiting < n:
                some = min(n - waiting, 500)
                submit(slurm, some, kinds[waiting // 500 % 3], "--time=60")
                waiting += some
            for name in ("first", "next"):
                if name == "next":
                    submit(slurm, 10, "--gres=gpu:1")
                    waiting += 10
                began, used = time.perf_counter(), cpu_s()
                done, watching = controller.cycle(), time.perf_counter()
                watchdog.cycle(controller.view)
                took, used, watched = time.perf_counter() - began, cpu_s() - used, time.perf_counter() - watching
                compared, idle = _compare(watchdog, controller), _idle(controller)
                measured = {"read_s": done.read_s, "decide_s": done.decide_s, "write_s": done.write_s, "cycle_s": took}
                measured |= {"cpu_s": used, "watch_s": watched, "compare_s": compared, "free_s": idle}
                rounded = {what: round(value, 3) for what, value in measured.items()}
                found.setdefault(str(n), {})[name] = {**rounded, "written": done.changed}
                print(f"{done.ranked} queued, {name}: {found[str(n)][name]}", flush=True)
        began = time.perf_counter()
        count, _ = controller.release_all("end of the benchmark")
        found["release"] = {"jobs": count, "s": round(time.perf_counter() - began, 3)}
        print(
            f"released {count} jobs in {found['release']['s']:.2f} s; {os.cpu_count()} cores, on average"
            f" {os.getloadavg()[2]:.1f} programs wanting one"
        )
    return found


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--queues", nargs="+", type=int, default=[128, 1024, 10_000])
    args = parser.parse_args()
    WatchdogConfig.every_s = 1e9  # the comparison is timed apart
    measured = {}
    for name, speeds in (("priorities", None), ("types", {"P100": 4.0, "M40": 2.0, "K80": 1.0})):
        print(f"{name} decided:")
        with tempfile.TemporaryDirectory() as folder:
            measured[name] = measure(Path(folder), args.queues, speeds)
    report(measured, args.write)


if __name__ == "__main__":
    sys.exit(main())
