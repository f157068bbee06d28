"""One stage again: the job of the workflow that some axes name, and the arguments that make it anew."""

from __future__ import annotations

from collections.abc import Mapping

from rltune.config import Workspace
from rltune.config.messages import nearest
from rltune.errors import RLTuneError
from rltune.pipeline.workflow.jobs import Job
from rltune.pipeline.workflow.snakemake import would_run

MOST_NAMED = 12
"""So many candidates are listed."""


class ChoiceError(RLTuneError):
    """The stage and axes name no job, or several."""


def find(workspace: Workspace, cores: int, stage: str, wanted: Mapping[str, str]) -> Job:
    """The one job of a stage whose axes have these values.

    Raises ChoiceError, with the candidates, where there is none or there are several.
    """
    (every,) = would_run(workspace, cores, ["--forceall"])
    return choose(workspace, every, stage, wanted)


def choose(workspace: Workspace, every: list[Job], stage: str, wanted: Mapping[str, str]) -> Job:
    """The one of these jobs; see :func:`find`."""
    config = workspace.config
    jobs = [job for job in every if job.rule == stage]
    if not jobs:
        stages = ", ".join(dict.fromkeys(job.rule for job in reversed(every)))
        raise ChoiceError(
            f"stage: found {stage!r}{nearest(stage, [job.rule for job in every])}; this run has: {stages}"
        )
    known = [axis for axis in jobs[0].axes(config)]
    if unknown := [axis for axis in wanted if axis not in known]:
        has = f"its jobs have: {', '.join(known)}" if known else "it is one job, and asks for nothing"
        raise ChoiceError(f"{', '.join(unknown)}: not of stage {stage}; {has}")
    matching = [job for job in jobs if all(_is(job.axes(config)[axis], axis, wanted[axis], job) for axis in wanted)]
    if len(matching) == 1:
        return matching[0]
    for axis, value in wanted.items():
        there = sorted({job.axes(config)[axis] for job in jobs})
        if not matching and axis != "cell" and value not in there:  # misspelt, more likely than meant
            raise ChoiceError(f"{axis}: found {value!r}{nearest(value, there)}; stage {stage} has: {', '.join(there)}")
    said = ", ".join(f"{axis} {value}" for axis, value in wanted.items()) or "nothing"
    shown = matching or jobs
    lines = [_line(job.axes(config)) for job in shown[:MOST_NAMED]]
    more = [f"… and {len(shown) - MOST_NAMED} more"] if len(shown) > MOST_NAMED else []
    count = f"{len(matching)} jobs match" if matching else "no job matches; there are"
    raise ChoiceError("\n  ".join([f"{stage}: {count} ({said} given), say which one:", *lines, *more]))


def arguments(job: Job, only: bool) -> list[str]:
    """What Snakemake is told to make a job anew, with what depends on it or without."""
    return [job.key, "--force"] if only else ["--forcerun", job.key]


def plan(workspace: Workspace, job: Job, jobs: list[Job], anyway: list[Job]) -> str:
    """The jobs of a rerun in words: the forced one, then those that follow, then how many are to do without it."""
    undone = {other.key for other in anyway} - {job.key}
    follow = [other for other in jobs if other.key not in undone | {job.key}]
    lines = [f"again: {job.label(workspace.config)}", *(f"  then: {other.label(workspace.config)}" for other in follow)]
    if also := sum(other.key in undone for other in jobs):
        lines.append(f"  and {also} stages that the run has not done yet (rltune status)")
    return "\n".join(lines)


def _is(value: str, axis: str, wanted: str, job: Job) -> bool:
    """Whether an axis has a value; a cell goes by its name too."""
    return value == wanted or (axis == "cell" and wanted == job.wildcards.get("cell"))


def _line(axes: Mapping[str, str]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in axes.items())
