"""Texts of Slurm's commands that are taken for a job log and are none, or cannot be read as one: what each is, and how to
get the log."""

from __future__ import annotations

import re

from rltune.traces.readers.sacct import COMMAND, FORMAT, RUNNING, STATUS, WAITING

QUEUE_ONLY = {"ST", "NODELIST(REASON)", "REASON", "TIME_LEFT"}
"""Columns that squeue has and no log."""
_ID, _TIME = re.compile(r"\d+([_+]\S*)?(\.\w+)?"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_STATES = {*STATUS, *WAITING, *RUNNING}


def mistaken(lines: list[str]) -> str | None:
    """What a text with these first lines is instead of a job log, and what to do; None where it is no such text."""
    shown = [line.strip() for line in lines if line.strip()][:2]
    if not shown:
        return None
    first, words = shown[0], set(re.split(r"[|;,\s]+", shown[0]))
    blanks = not re.search(r"[|;,\t]", first)
    queue = "JOBID" in words and (blanks or words & QUEUE_ONLY)
    nodes = "NODELIST" in words and words & {"PARTITION", "AVAIL", "STATE", "CPUS", "GRES"}
    padded = {"JobID", "State"} <= words and blanks and len(shown) > 1 and not shown[1].strip("- ")
    fields = [field.strip() for field in re.split(r"[|;,\t]", first)]
    ended = any(field.split(" ")[0] in _STATES for field in fields)
    headerless = ended and any(map(_ID.fullmatch, fields)) and any(map(_TIME.fullmatch, fields))
    cases = (
        (first.startswith("NodeName="), "a list of nodes (scontrol show nodes), which `rltune init` takes as --nodes"),
        (first.startswith("JobId="), "jobs of now (scontrol show job), not those that have ended"),
        (queue, "squeue's list of the jobs that wait or run now, not of those that have ended"),
        (nodes, "sinfo's list of nodes, which `rltune init` takes as --nodes"),
        (padded, "sacct's table for the eye, whose columns are cut off"),
        (headerless, _without_header(first)),
    )
    return next((f"{text}; a log of ended jobs is made with: {COMMAND}" for holds, text in cases if holds), None)


def _without_header(first: str) -> str:
    text = "sacct's text without its header line, so that nobody knows which column is which"
    if len(first.removesuffix("|").split("|")) != len(FORMAT.split(",")):
        return f"{text} (it was made with --noheader, or the line was lost)"
    header = FORMAT.replace(",", "|")
    return f"{text}. If its columns are those of the command below, put the line {header} before it"
