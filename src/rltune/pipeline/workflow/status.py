"""How far a run is, told from another terminal or after it ended: from Snakemake, the run's record, and its lock."""

from __future__ import annotations

import platform
import time
from collections import Counter

import psutil

from rltune.config import Workspace
from rltune.pipeline.workflow.costs import Costs
from rltune.pipeline.workflow.jobs import Job, Record, last_record
from rltune.pipeline.workflow.launch import at_work
from rltune.pipeline.workflow.live import at_work_s, cells_text, failure, running_text
from rltune.pipeline.workflow.snakemake import would_run
from rltune.traces.fetch.progress import time_text

COLUMNS = ("done", "running", "failed", "to do")


def status(workspace: Workspace, cores: int) -> str:
    """Done, running, failed and to do for each stage; what runs, what failed and why, the time that is left.

    What is to do is what Snakemake would do now; of a run at work, what is left of its plan.
    """
    process, record = at_work(workspace.base), last_record(workspace)
    live = (
        process is not None
        and record is not None
        and record.ended is None
        and (
            record.process == process
            or record.host not in ("", platform.node())  # of another machine's processes nothing is known
            or bool(process and not psutil.pid_exists(record.process))  # its Snakemake alone lives
        )
    )
    if live:
        (every,) = would_run(workspace, cores, ["--forceall"])
        todo, cores = record.left, record.cores
    else:
        every, todo = would_run(workspace, cores, ["--forceall"], [])
    failed = [record.planned[key] for key in record.failed if key in {job.key for job in todo}] if record else []
    running = [record.planned[key] for key in record.running] if live else []
    lines = [f"{workspace.config_path} in {workspace.results}: {_state(record, process, live)}"]
    lines.append(cells_text(workspace, todo))
    lines += _table(every, todo, running, failed)
    if live and running:
        lines.append(f"running: {running_text(workspace, record, Costs(workspace))}")
    for job in failed:
        lines.append(f"FAILED: {job.label(workspace.config)}\n{failure(workspace, record, job)}")
    if todo:
        began = at_work_s(workspace, record) if live else {}
        left = Costs(workspace).time(todo, cores, began)
        where = f" of {record.scheduler}" if live and record.scheduler else ""
        lines.append(f"about {time_text(left)} left on {cores} cores{where}")
    return "\n".join(lines)


def _state(record: Record | None, process: int | None, live: bool) -> str:
    """Whether a run is at work, or how the last one ended."""
    if live:
        where = "" if record.host in ("", platform.node()) else f" on {record.host}"
        return f"a run is at work, for {time_text(time.time() - record.began)} (process {process}{where})"
    other = "; another run is at work in the folder" if process else ""
    if record is None:
        return f"no run yet{other}"
    if record.ended is None:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.last))
        return f"the last run was killed, last heard of at {when}{other}"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.ended))
    how = "ended" if not record.status else "failed" if record.failed else "was stopped"
    return f"no run is at work, the last one {how} at {when}{other}"


def _table(every: list[Job], todo: list[Job], running: list[Job], failed: list[Job]) -> list[str]:
    """A line a stage, in the order in which they run."""
    counts = [Counter(job.rule for job in jobs) for jobs in (every, todo, running, failed)]
    # what runs or failed is still to do for Snakemake, and counted once here
    rows = [
        (rule, all_ - left, now, wrong, left - now - wrong)
        for rule, all_, left, now, wrong in ((r, *(count[r] for count in counts)) for r in counts[0])
    ]
    width = max(len(row[0]) for row in rows)
    head = f"  {'stage':<{width}}" + "".join(f"{column:>9}" for column in COLUMNS)
    return [head, *(f"  {rule:<{width}}" + "".join(f"{n:>9}" for n in numbers) for rule, *numbers in rows)]
