"""Record tests/slurm/recorded again: what real daemons say of jobs of many kinds. Run it as python slurm_record.py.

Times, ids and what Slurm decides differ from recording to recording; the tests know jobs by their names.
"""

import json
import re
import time
from pathlib import Path

from slurm_workload import DEPLOYMENT, state, submit, wait_for

from rltune.slurm.emulate import Emulation

RECORDED = Path(__file__).parent / "recorded"


def many_kinds(slurm: Emulation) -> dict[str, int]:
    """Submit jobs of many kinds to the cluster of five nodes; the id of each by its name."""
    jobs: dict[str, int] = {}

    def add(name: str, *options: str) -> int:
        jobs[name] = submit(slurm, *options, name=name)
        return jobs[name]

    # nodes that are away: k80-2 drained while a job is on it, m40-1 down
    add("on-draining", "--gres=gpu:k80:1", "--nodelist=k80-2", "--time=30")
    wait_for(lambda: state(slurm, jobs["on-draining"]) == "RUNNING")
    slurm.set_node("k80-2", "DRAIN", "fan | broken")
    slurm.set_node("m40-1", "DOWN", "gone")
    # running: all P100s in use, a job's spread unevenly over two nodes; one K80 node without a free CPU
    add("uneven", "--gpus=5", "--nodes=2", "--nodelist=p100-[1-2]", "--time=1-02:03:04")
    wait_for(lambda: state(slurm, jobs["uneven"]) == "RUNNING")
    add("typed", "--gres=gpu:p100:1", "--cpus-per-task=8", "--mem=1000", "--time=90")
    add("untyped", "--gpus-per-node=1", "--constraint=p100", "--time=UNLIMITED", "--ntasks=2")
    add("one more", "--gres=gpu:p100", "--time=10")
    add("cpu-only", "--ntasks=3", "--time=45", "--mem-per-cpu=10", "--nodelist=p100-2")
    add("requeued", "--gres=gpu:1", "--nodelist=k80-1", "--requeue", "--time=20")
    running = ("typed", "untyped", "one more", "cpu-only", "requeued")
    wait_for(lambda: all(state(slurm, jobs[name]) == "RUNNING" for name in running))
    slurm.run("scontrol", "requeue", str(jobs["requeued"]))
    add("array running", "--array=1-2", "--gres=gpu:k80:1", "--nodelist=k80-1", "--time=10", "--cpus-per-task=8")
    wait_for(lambda: slurm.run("squeue", "-h", "-t", "R", "-o", "%j").count("array running") == 2)
    # waiting
    add("per-node", "--nodes=2", "--gpus-per-node=p100:4", "--ntasks-per-node=2", "--time=5")
    add("per-job", "--gpus=p100:6", "--nodes=2", "--time=5")
    add("per-job-untyped", "--gpus=5", "--time=5")
    add("per-task", "--ntasks=4", "--gpus-per-task=p100:1", "--time=5")
    add("per-socket", "--gpus-per-socket=p100:2", "--sockets-per-node=1", "--nodes=2", "--time=5")
    add("bare", "--gres=gpu", "--time=5", "--nodelist=k80-1")
    add("array", "--array=0-99%3", "--gres=gpu:p100:1", "--time=5", "--constraint=p100|k80")
    add("held", "--hold", "--gres=gpu:p100:1", "--time=5")
    add("dependent", f"--dependency=afterok:{jobs['typed']}", "--gres=gpu:p100:1", "--time=5")
    add("begin", "--begin=now+1day", "--gres=gpu:p100:1", "--time=5")
    add("whole nodes", "--exclusive", "--nodes=1", "--time=5", "--gres=gpu:p100:2")
    add("pipes | and spaces = odd\tname", "--gres=gpu:p100:3", "--time=5", "--comment=a|b JobState=RUNNING")
    add("ünïcödé", "--gres=gpu:p100:3", "--time=5")
    add("oversubscribing", "--oversubscribe", "--gres=gpu:p100:3", "--time=5")
    add("het", "--gres=gpu:p100:2", "--time=5", ":", "--ntasks=2", "--gres=gpu:k80:1")
    add("cancelled", "--hold", "--gres=gpu:p100:1", "--time=5")
    slurm.run("scancel", str(jobs["cancelled"]))
    wait_for(lambda: state(slurm, jobs["requeued"]) == "PENDING")
    time.sleep(2)
    return jobs


def neutral(text: str, slurm: Emulation) -> str:
    """The same without names of this machine and its user."""
    text = re.sub(rf"\b{slurm.user}\b", "alice", text)
    text = re.sub(r'"operating_system": "[^"]*"', '"operating_system": "Linux"', text)
    return text.replace(str(slurm.folders.root), "/cluster").replace(str(slurm.folders.sockets), "/cluster")


def record(folder: Path, accounting: bool) -> None:
    with Emulation(DEPLOYMENT, accounting=accounting, accounts=["physics"] if accounting else [], say=print) as slurm:
        jobs = many_kinds(slurm)
        client = slurm.client()
        slurm.env = dict(client.env)
        answers = {
            "squeue.json": slurm.run("squeue", "--all", "--json"),
            "sinfo.json": slurm.run("sinfo", "--all", "--json"),
        }
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in answers.items():
            text = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).replace("},{", "},\n{")
            (folder / name).write_text(neutral(text, slurm) + "\n", encoding="utf-8")
        (folder / "jobs.json").write_text(json.dumps(jobs, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(RECORDED / "22.05", accounting=False)
    record(RECORDED / "22.05-accounting", accounting=True)
