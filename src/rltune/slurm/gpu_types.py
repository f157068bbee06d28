"""Which GPU types a waiting job may use, how fast it runs there, and which nodes to exclude for each type.

Slurm lets an operator change the nodes that a waiting job excludes (ExcNodeList), but not the type of GPUs it requests. So a
job gets a type by excluding the nodes of all others. What its user requested stays as it is, and Slurm still respects it.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rltune.cluster.fit import Jobs, with_speeds
from rltune.cluster.layout import Layout
from rltune.cluster.speeds import Profile, Slowdowns
from rltune.slurm.records import SlurmJob, SlurmNode
from rltune.slurm.values import compress

FEATURES = re.compile(r"[\w.-]+(\|[\w.-]+)*", re.ASCII)
"""Alternative features, the only constraints that are understood here."""


def type_of(node: SlurmNode) -> str:
    """The node's one GPU type: "gpu" where Slurm names none, empty where it has several, or no GPUs."""
    kinds = [kind for kind, gpus in node.gpus.items() if gpus]
    return (kinds[0] or "gpu") if len(kinds) == 1 else ""


def with_types(jobs: Iterable[SlurmJob], nodes: Sequence[SlurmNode], restricted: Collection[int]) -> list[SlurmJob]:
    """The jobs with all types that their users allow as ``gpu_type``, such as ``p100|k80``, also where they run on one of them.

    A type is allowed if the job requests it or names none; if its nodes match the job's features; and if the job's partitions
    have at least as many nodes of it, not excluded by the user, as the job requests. A constraint that does not select whole
    types stays. ``restricted``: jobs whose excluded nodes were set by the controller.
    """
    known: dict[tuple[object, ...], tuple[str, str] | None] = {}
    found = []
    for job in jobs:
        excluded = frozenset() if job.id in restricted else job.excluded
        key = (job.partition, job.asked_type, job.constraint, job.nodes, excluded)
        if key not in known:
            known[key] = _allowed(*key, nodes)
        allowed = known[key]
        # where none is left, Slurm knows better why it waits
        found.append(job if allowed is None else replace(job, gpu_type=allowed[0], constraint=allowed[1]))
    return found


def _allowed(
    partition: str,
    asked_type: str | None,
    constraint: str,
    least: int,
    excluded: frozenset[str],
    nodes: Sequence[SlurmNode],
) -> tuple[str, str] | None:
    """(Types that a job may use, what is left of its constraint); None where there is no type."""
    partitions = set(partition.split(","))
    has: dict[str, list[SlurmNode]] = {}
    for node in nodes:
        if partitions & set(node.partitions):
            has.setdefault(type_of(node), []).append(node)
    allowed = {kind for kind in has if asked_type in (None, kind)}
    if FEATURES.fullmatch(constraint):
        wanted = set(constraint.split("|"))
        met = {kind: {bool(wanted & set(node.features)) for node in some} for kind, some in has.items()}
        if all(len(answers) == 1 for answers in met.values()):
            allowed, constraint = {kind for kind in allowed if met[kind] == {True}}, ""
    allowed = {kind for kind in allowed if sum(node.name not in excluded for node in has[kind]) >= least}
    return ("|".join(kind for kind in has if kind in allowed), constraint) if allowed else None


def slowdowns(jobs: Sequence[SlurmJob], types: Sequence[str], speeds: Profile) -> Slowdowns:
    """Run time of each job on each type, in arbitrary units. All types are equal if a profile lacks the job's model, or has no
    speed for it at the job's number of GPUs (else at the next smaller measured number)."""
    names = [job.comment if job.comment in speeds.models else "" for job in jobs]
    steps = np.ones((len(jobs), len(types), 2))
    for k, (job, name) in enumerate(zip(jobs, names, strict=True)):
        if name in speeds.models and ((found := speeds.at(name, job.gpus, types)) > 0).any():
            steps[k] = found
    with np.errstate(divide="ignore"):
        times = 1.0 / steps
    return Slowdowns(times[..., 0], times[..., 1], np.array(names, object), speeds.mean_speed(types))


def with_live_speeds(
    arrays: Jobs, jobs: Sequence[SlurmJob], layout: Layout, at: Mapping[str, int], speeds: Profile
) -> Jobs:
    """The jobs with their run time on each type; ``at``: node → its number in the layout.

    A time limit is taken to be for the slowest type on which the job may run: a job that is on a faster one ends earlier.
    """
    slow = slowdowns(jobs, layout.types, speeds)
    row, cut = arrays.row.copy(), arrays.cut.copy()
    could = (cut["full"] >= 0) & np.isfinite(slow.consolidated)
    for k, (job, options) in enumerate(zip(jobs, could, strict=True)):
        on = {layout.types[layout.nodes.row["type"][at[name]]] for name in job.node_names if name in at}
        if not options.any():  # it runs, or is to run, although by its speeds it cannot
            slow.consolidated[k] = slow.spread[k] = 1.0
        elif on:
            cut["full"][k, [kind not in on for kind in layout.types]] = -1
    slowest = np.where(could, slow.consolidated, 0.0).max(axis=1)
    fastest = slow.fastest(cut["full"] >= 0)
    share = np.where((slowest > 0) & np.isfinite(fastest), fastest / np.where(slowest > 0, slowest, 1.0), 1.0)
    for name in ("estimate_s", "run_s"):
        row[name] = np.maximum(row[name] * share, 1.0)
    return with_speeds(arrays._replace(row=row, cut=cut), slow)


def flexible_jobs(cut: np.ndarray, jobs: Sequence[SlurmJob], selective: Collection[int]) -> frozenset[int]:
    """The waiting jobs, with their CUT [J, T], whose type is to be decided: those with several types of different speed.

    Not arrays, whose tasks share one record, and none of the ``selective`` jobs, whose users named nodes to use or to
    exclude, a reservation, a constraint that stands for no types, or whole nodes: what Slurm makes of these is not known here.
    """
    usable, slow = cut["full"] >= 0, cut["slow"]
    least, most = (np.where(usable, slow, other) for other in (np.inf, -np.inf))
    differs = least.min(axis=1) < most.max(axis=1)
    return frozenset(
        job.id
        for job, there in zip(jobs, differs, strict=True)
        if there and "|" in (job.gpu_type or "") and job.array_id is None and job.id not in selective
    )


def exclusions_by_type(nodes: Iterable[SlurmNode], partitions: Collection[str], types: Iterable[str]) -> dict[str, str]:
    """Type → the nodes in these partitions with GPUs of any other type, usable or not, in Slurm's short form."""
    has = [node for node in nodes if any(node.gpus.values()) and set(node.partitions) & set(partitions)]
    return {kind: compress(node.name for node in has if type_of(node) != kind) for kind in types}
