"""``rltune init``: asks for a job log, a list of nodes and a name, and writes the configuration of a run."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rltune.cli.choices import check_words
from rltune.cli.steps import step
from rltune.config.base import NAME
from rltune.errors import ConfigError, RLTuneError

if TYPE_CHECKING:
    from rltune.evaluation.current_policy import CurrentPolicy
    from rltune.evaluation.studies.operator_log import Examined
    from rltune.traces.sniff import Found

T = TypeVar("T")
MARK = "# Written by `rltune init`"
"""First words of every file it writes, by which it recognises its own files."""
SAME = "same"
"""Answer for GPU types that are equally fast."""
RUN = """{mark}: the current rule against others on the last tenth of the log. docs/how-to/own-cluster.md explains it.
title: {title}
description: >-
  Today's scheduler against simple rules, predictions from history and RLTune, on the log's last tenth.
results: {results}

experiments:
  - workloads: [{{trace: {name}, cluster: {name}}}]
    policy: [saf]
    backfill: [easy]
    placement: [best_fit]
    features: [rich]
    estimate: [{estimate}]
    preset: [tuned]
    seed: [1]  # more seeds, wider and more honest intervals: [1, 2, 3]
{types}
whatif:
  # The rule that the cluster runs now, {why}.
  # backfill: {meaning}
  current: {{policy: {policy}, backfill: {backfill}}}

evaluation:
  sequence_jobs: [{length}]
"""
TYPES = """
gpu_types:  # rules for the GPU type are compared
  - {{trace: {name}, cluster: {name}}}
"""


def init(
    log: Annotated[Path | None, typer.Argument(help="Job log: sacct text, CSV with a header, SWF, …; .gz too.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Nodes: sinfo output, or a CSV.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the files to write, such as ourcluster.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="Zone of the log's wall clock, such as Europe/Berlin.")] = None,
    current_policy: Annotated[
        str | None,
        typer.Option(
            help="Order that the cluster runs now: multifactor_size (Slurm's), fifo, sjf, …; default: found in the log."
        ),
    ] = None,
    current_backfill: Annotated[
        str | None,
        typer.Option(help="Backfill that it runs now: easy, conservative, greedy, none; default: found in the log."),
    ] = None,
    speeds: Annotated[
        str | None,
        typer.Option(help="How fast GPU types are: K80=1,V100=4; gavel (measured); a CSV of speeds; default: same."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that `rltune init` wrote before.")] = False,
) -> None:
    """Set up a what-if analysis of your own cluster: asks for its job log and nodes, and writes the configuration.

    How to get the files out of Slurm or another system: docs/how-to/own-cluster.md.
    """
    from rltune.cluster.nodes import read_nodes
    from rltune.config.load import project_root
    from rltune.evaluation.current_policy import CurrentPolicy, compare_rules, describe
    from rltune.evaluation.studies.operator_log import examine, read_log
    from rltune.traces.inspect import suggested

    check_words(current_policy=current_policy, current_backfill=current_backfill)
    root = project_root()

    def readable(text: str) -> tuple[Path, tuple[Found, str]]:
        path = Path(os.path.expanduser(text))
        with step(f"looking at {path}"):
            return path, suggested(path)

    def listed(text: str) -> Path:
        read_nodes(Path(os.path.expanduser(text)))
        return Path(os.path.expanduser(text))

    log_path, suggestion = _ask("Job log (a file)", "LOG", log, readable)
    nodes_path = _ask("List of nodes (a file)", "--nodes", nodes, listed)
    several = read_nodes(nodes_path).table.query("gpus > 0")["type"].nunique() > 1
    fast = parse_speeds(speeds or SAME)
    if several and speeds is None and not yes:
        question = "How fast are its GPU types, such as K80=1,V100=4; or gavel, or a CSV of speeds"
        fast = _ask(question, "--speeds", None, parse_speeds, SAME)
    chosen = _ask("A name for your cluster", "--name", name, lambda text: _free(root, text, force))
    if time_zone is not None:
        _zone(time_zone)
    elif suggestion[0].format in ("sacct", "csv"):
        time_zone = _here()
        if yes:
            print(f"time zone of the log's clock: {time_zone}, this machine's; another: --time-zone")
        else:
            time_zone = _ask("Time zone of the log's clock", "--time-zone", None, _zone, time_zone)
    with step(f"reading {log_path}"):
        read = read_log(log_path, time_zone, suggestion)
    with step("fitting the jobs to the cluster"):
        seen = examine(read, nodes_path, chosen, fast)
    print(seen.understood)
    with step("replaying the log under the rules that clusters run"):
        fits = compare_rules(seen.fitted, read.clean.meta, seen.cluster, seen.estimate)
    current = CurrentPolicy.choose(fits, current_policy, current_backfill)
    print(describe(fits, current))
    if not yes:
        if current_policy is None and current_backfill is None:
            default = f"{current.rule.policy} {current.rule.backfill}"
            question = "Current order and backfill, two words (Enter: as found)"
            answer = _ask(question, "--current-policy", None, parse_rule, default)
            if answer not in ((current.rule.policy, current.rule.backfill), (current.rule.policy, None)):
                current = CurrentPolicy.choose(fits, *answer)
        if not _agreed(sensible=not seen.too_few_nodes):
            print("nothing written")
            raise typer.Exit(1)
    for path in write_configuration(root, chosen, seen, current, nodes_path):
        print(f"written: {path}")
    print(f"next: make report CONFIG={paths(chosen)[2]}")
    for defect in seen.defects:
        print(f"  BUT FIRST: {defect}")


def paths(name: str) -> tuple[str, str, str]:
    """The three files of a name, below the project's root."""
    return f"config/traces/{name}.yaml", f"config/clusters/{name}.yaml", f"config/{name}.yaml"


def write_configuration(
    root: Path, name: str, seen: Examined, current: CurrentPolicy, nodes_path: Path
) -> tuple[str, str, str]:
    """Write the three files of a run and return their paths. Raises ConfigError if the configuration's model refuses one."""
    import yaml
    from pydantic import ValidationError

    from rltune.config.cluster import ClusterConfig
    from rltune.config.messages import first_error
    from rltune.config.run import RunConfig
    from rltune.config.trace import TraceConfig
    from rltune.evaluation.current_policy import MEANING
    from rltune.files import write_text
    from rltune.traces.guess import quoted

    trace = seen.log.text.replace("title: My cluster", f"title: {quoted(name)}", 1)
    nodes = seen.cluster.model_dump(exclude_defaults=True)
    values = {
        "mark": MARK,
        "title": quoted(f"{name}, what if"),
        "results": quoted(f"results/{name}"),
        "name": quoted(name),
        "estimate": seen.estimate,
        "why": current.why,
        "meaning": MEANING,
        "types": TYPES.format(name=quoted(name)) if seen.cluster.speeds else "",
        "length": 256 if len(seen.fitted) >= 6000 else 64,
    }
    texts = (
        f"{MARK}: the job log. `rltune trace inspect` looks at it, docs/reference/traces.md has every column.\n{trace}\n",
        f"{MARK} from {nodes_path.name}. Partitions that share nodes are one pool.\n"
        + yaml.safe_dump(nodes, sort_keys=False, allow_unicode=True, width=120),
        RUN.format(**values, policy=current.rule.policy, backfill=current.rule.backfill),
    )
    try:
        for model, text in zip((TraceConfig, ClusterConfig, RunConfig), texts, strict=True):
            model.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        raise ConfigError(f"{name}: {first_error(error)}") from None
    for path, text in zip(paths(name), texts, strict=True):
        write_text(root / path, text)
    return paths(name)


def _free(root: Path, name: str, force: bool) -> str:
    """The name if its files can be written: none is there or, with ``force``, `rltune init` wrote them. Raises ConfigError."""
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"name: found {name!r}; allowed: letters, digits, dots, and single - or _ between them")
    for path in filter(lambda path: (root / path).exists(), paths(name)):
        if not (root / path).read_text(encoding="utf-8").startswith(MARK):
            raise ConfigError(f"{path}: exists, and was not written by `rltune init`; choose another --name")
        if not force:
            raise ConfigError(f"{path}: exists already; choose another --name, or --force to replace it")
    return name


def parse_rule(text: str) -> tuple[str, str | None]:
    """`fifo none` or `fifo` as (order, backfill). Raises ConfigError."""
    policy, *backfill = text.replace(",", " ").split() or [""]
    if len(backfill) > 1:
        raise ConfigError(f"current rule: found {text!r}; expected an order and a backfill, such as: fifo none")
    current = policy, backfill[0] if backfill else None
    check_words(current_policy=current[0], current_backfill=current[1])
    return current


def parse_speeds(text: str) -> str | dict[str, float] | None:
    """What a cluster's ``speeds`` are to be; None for ``same``. Raises ConfigError."""
    if text == SAME:
        return None
    try:
        if "=" in text:
            parts = [part.split("=") for part in text.split(",")]
            speeds = {kind.strip(): float(speed) for kind, speed in parts}
            if len(speeds) < len(parts) or "" in speeds or not all(0 < speed < math.inf for speed in speeds.values()):
                raise ValueError
            return speeds
        if text == "gavel" or Path(os.path.expanduser(text)).is_file():
            return text if text == "gavel" else str(Path(os.path.expanduser(text)).resolve())
    except ValueError:
        pass
    raise ConfigError(
        f"speeds: found {text!r}, expected such as K80=1,V100=4, each type once and each speed above 0; gavel; a CSV file; or {SAME}"
    )


def _ask(question: str, option: str, given: object, check: Callable[[str], T], default: str | None = None) -> T:
    """The checked answer to a question, asked until it holds; if an option gave it, that, or its error."""
    if given is not None:
        return check(str(given))
    while True:
        try:
            return check(str(typer.prompt(question, default=default)).strip())
        except typer.Abort:
            raise ConfigError(
                f"{option}: not given, and no terminal to ask; `rltune init --help` has every option"
            ) from None
        except RLTuneError as error:
            print(error)


def _agreed(sensible: bool) -> bool:
    question = (
        "Write the configuration?" if sensible else "These nodes are too few. Write the configuration nevertheless?"
    )
    try:
        return typer.confirm(question, default=sensible)
    except typer.Abort:
        raise ConfigError("--yes: not given, and no terminal to ask whether to write") from None


def _zone(text: str) -> str:
    from rltune.config.trace import known_zone

    try:
        return known_zone(text)
    except ValueError as error:
        raise ConfigError(f"time zone: {error}") from None


def _here() -> str:
    """This machine's time zone by name, of TZ or else of /etc/localtime; UTC if neither names one."""
    local = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    for name in (os.environ.get("TZ", "").removeprefix(":"), local):
        with suppress(ConfigError):
            return _zone(name)
    return "UTC"
