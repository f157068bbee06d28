"""Make tests/slurm/recorded anew: what real daemons say of jobs of many kinds. By hand, python slurm_record.py.

Times, ids and what Slurm decides differ from recording to recording; the tests know jobs by their names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from slurm_workload import many_kinds

from rltune.slurm.emulate import Emulation

RECORDED = Path(__file__).parent / "recorded"


def neutral(text: str, slurm: Emulation) -> str:
    """The same without names of this machine and its user."""
    text = re.sub(rf"\b{slurm.user}\b", "alice", text)
    text = re.sub(r'"operating_system": "[^"]*"', '"operating_system": "Linux"', text)
    return text.replace(str(slurm.folders.root), "/cluster").replace(str(slurm.folders.sockets), "/cluster")


def record(folder: Path, accounting: bool) -> None:
    with Emulation(accounting=accounting, accounts=["physics"] if accounting else [], say=print) as slurm:
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
