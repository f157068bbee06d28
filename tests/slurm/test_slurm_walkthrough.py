"""From a cluster's log to its queue on real daemons, with the commands of the documents."""

import io
import json
import random
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from fake_slurm import BAND
from slurm_live import priorities
from slurm_workload import DEPLOYMENT, need, submit, wait_behind, wait_for

from rltune.slurm.emulate import Emulation
from rltune.traces.readers.sacct import ENDED_EARLY

ROOT = Path(__file__).resolve().parents[2]
JOBS, DAYS = 60, 60
SPEED = 1000.0
STAMP = "%Y-%m-%dT%H:%M:%S"
LEAST = """
presets:
  least: {epochs: 2, trajectories: 2, sequence_jobs: 64, iterations: 2, batch_decisions: 64,
          validate_every: 1, validation_windows: 1}
"""


def documented(beginning: str) -> list[str]:
    """The words of the documented command that begins so, with its lines joined."""
    text = (ROOT / "docs" / "how-to" / "own-cluster.md").read_text().replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.strip().startswith(beginning))
    return shlex.split(line.partition("#")[0])


def history(slurm: Emulation) -> None:
    """Jobs of 1 to 4 GPUs, minutes to an hour long, come and go."""
    rng = random.Random(1)
    for _ in range(JOBS):
        gpus = rng.choice(["1", "p100:1", "p100:2", "p100:4", "k80:1", "k80:2"])
        minutes = rng.choice([2, 5, 10, 30, 60])
        sleep_s = round(60 * minutes * rng.uniform(0.3, 1.2))
        submit(slurm, f"--gres=gpu:{gpus}", f"--time={2 * minutes}", sleep_s=sleep_s)
    wait_for(lambda: not slurm.run("squeue", "-h").strip(), 300)


def day_after_day(log: str) -> str:
    """The log of so many days like this one: an emulated cluster has no months to wait."""
    jobs = pd.read_csv(io.StringIO(log), sep="|", dtype=str, keep_default_na=False)
    ids = jobs.pop(jobs.columns[0]).astype(int)
    times = jobs[["Submit", "Start", "End"]].apply(pd.to_datetime, format=STAMP, errors="coerce")
    days = []
    for day in range(DAYS):
        later = (times + pd.Timedelta(days=day)).apply(lambda at: at.dt.strftime(STAMP)).fillna("None")
        days.append(jobs.assign(**later).set_index(ids + 10_000 * day))
    return pd.concat(days).to_csv(sep="|")


def away(slurm: Emulation) -> dict[int, frozenset[str]]:
    """Waiting job → the nodes that it excludes."""
    return {job.id: job.excluded for job in slurm.client().jobs().records if job.state == "PENDING"}


@pytest.mark.daemons
def test_from_a_clusters_log_to_its_queue(make_project, shell):
    need(accounting=True, speed=SPEED)
    root = make_project().root

    def rltune(*arguments: object) -> str:
        done = shell.rltune(*arguments, cwd=root)
        assert done.status == 0, done
        return done.out

    # 1 the log and the nodes, by the commands of the guides
    with Emulation(DEPLOYMENT, accounting=True, speed=SPEED) as slurm:
        history(slurm)
        sacct, sinfo = documented("sacct"), documented("sinfo")
        sacct = ["2100-01-01" if word == "2024-07-01" else word for word in sacct]
        assert sacct[-2:] == [">", "jobs.txt"] and sinfo[-2:] == [">", "nodes.txt"]
        wait_for(lambda: "|Unknown|" not in slurm.run(*sacct[:-2]), 60)  # slurmdbd records ends a little later
        log = slurm.run(*sacct[:-2])
        (root / "jobs.txt").write_text(day_after_day(log))
        (root / "nodes.txt").write_text(slurm.run(*sinfo[:-2]))

    # 2 the configuration
    said = rltune("init", "jobs.txt", "--nodes", "nodes.txt", "--name", "ours", "--time-zone", "UTC", "--yes")
    lost = log.count("|None|")  # starts that slurmdbd has lost: on a clock as fast as this one it may
    assert lost <= 3 and f"on this cluster: {(JOBS - lost) * DAYS:,} jobs" in said and "5 nodes, 13 GPUs" in said
    assert (f"{lost * DAYS:,} {ENDED_EARLY}" if lost else "left out: none") in said
    run = root / "config" / "ours.yaml"
    run.write_text(run.read_text().replace("preset: [tuned]", "preset: [least]") + LEAST)

    # 3 the agent
    cell = re.findall(r"^  \w{12}  (\S+)$", rltune("config", "check", "config/ours.yaml"), re.MULTILINE)[0]
    policy = f"results/ours/cells/{cell}/policy.npz"
    made = shell.make("report", "CONFIG=config/ours.yaml", "CORES=1", f"ARGS={policy}", cwd=root)
    assert made.status == 0 and (root / policy).is_file(), made

    # 4 the queue: observed, written, released
    with Emulation(DEPLOYMENT) as slurm:
        waiting, config = wait_behind(slurm), root / "config" / "slurm" / "mine.yaml"
        example = (root / "config" / "slurm" / "example.yaml").read_text()
        config.write_text(
            example.replace("results/cells/CELL/policy.npz", policy).replace("[gpu]", "[all]")
            + f"slurm_conf: {slurm.conf}\n"
        )
        computed = priorities(slurm)
        said = rltune("slurm", "run", "--config", config, "--once")
        assert "ranked=12" in said and "would_change=12" in said and priorities(slurm) == computed
        planned = {int(job): int(value) for job, value in re.findall(r"job (\d+), priority (\d+)", said)}
        assert "changed=12" in rltune("slurm", "run", "--config", config, "--once", "--live")
        written = priorities(slurm)
        assert written.keys() == planned.keys() == set(waiting)
        assert all(BAND.low <= value <= BAND.high for value in written.values())
        lines = [json.loads(line) for line in (root / "results/slurm/decisions.jsonl").read_text().splitlines()]
        assert {line["job"]: line["priority"] for line in lines if line["event"] == "change"} == written
        assert "12 jobs have been assigned" in rltune("slurm", "status", "--config", config)
        assert "released 12 jobs" in rltune("slurm", "release", "--config", config)
        assert priorities(slurm) == computed

        # 5 the same with GPU types, for the three jobs of any type
        speeds = re.findall(r"^ +(speeds: .*)$", (ROOT / "docs/how-to/live-controller.md").read_text(), re.MULTILINE)
        config.write_text(config.read_text() + speeds[0] + "\n")
        said = rltune("slurm", "run", "--config", config, "--once")
        given = dict(re.findall(r"job (\d+),.* GPU type (\w+)", said))
        assert given.keys() == {str(waiting[k]) for k in (0, 4, 8)} and not any(away(slurm).values())
        rltune("slurm", "run", "--config", config, "--once", "--live")
        there = {node.name: node.name.partition("-")[0] for node in slurm.nodes}
        for job, kind in given.items():
            assert away(slurm)[int(job)] == {name for name, its in there.items() if its != kind}
        rltune("slurm", "release", "--config", config)
        assert priorities(slurm) == computed and not any(away(slurm).values())
