"""``rltune init``: asks for a job log, a list of nodes and a name, and writes the configuration of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rltune.cli.steps import VerboseOption, make_verbose, step
from rltune.errors import ConfigError, RLTuneError

if TYPE_CHECKING:
    from rltune.traces.sniff import Found

T = TypeVar("T")


def init(
    log: Annotated[Path | None, typer.Argument(help="Job log: sacct text, CSV with a header, SWF, …; .gz too.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Nodes: sinfo or scontrol output, or a CSV.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the files to write, such as ourcluster.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="Zone of the log's wall clock, such as Europe/Berlin.")] = None,
    today: Annotated[
        str | None,
        typer.Option(help="Today's order: multifactor (Slurm's), fifo, sjf, saf, …; unless told, found in the log."),
    ] = None,
    today_backfill: Annotated[
        str | None,
        typer.Option(
            help="What starts while the first job does not fit: easy, conservative, greedy, none; unless told, found."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write files anew that `rltune init` wrote before.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Set up a what-if analysis of your own cluster: asks for its job log and nodes, and writes the configuration.

    How to get the files out of Slurm or another system: docs/own-cluster.md.
    """
    from rltune.cluster.nodes import read_nodes
    from rltune.config.load import project_root
    from rltune.pipeline import own, own_today
    from rltune.traces.inspect import suggested

    make_verbose(verbose)
    own_today.check(today, today_backfill)
    root = project_root()
    sniffed: dict[Path, tuple[Found, str]] = {}

    def free(text: str) -> str:
        own.check_free(root, own.check_name(text), force)
        return text

    def readable(text: str) -> Path:
        path = Path(text).expanduser()
        with step(f"looking at {path}"):
            sniffed[path] = suggested(path)
        return path

    def listed(text: str) -> Path:
        read_nodes(Path(text).expanduser())
        return Path(text).expanduser()

    log_path = _asked("Job log (a file)", "LOG", log, readable)
    nodes_path = _asked("List of nodes (a file)", "--nodes", nodes, listed)
    chosen = _asked("A name for your cluster", "--name", name, free)
    found, text = sniffed[log_path]
    if time_zone is None and found.format in ("sacct", "csv"):
        default = _here()
        time_zone = default if yes else _asked("Time zone of the log's clock", "--time-zone", None, _zone, default)
        if yes:
            print(f"time zone of the log's clock: {default}, this machine's; another: --time-zone")
    elif time_zone is not None:
        _zone(time_zone)
    with step(f"reading {log_path}"):
        read = own.read_log(log_path, time_zone, (found, text))
    with step("fitting the jobs to the cluster"):
        seen = own.examine(read, nodes_path, chosen)
    print(seen.understood)
    with step("replaying the log under the orders that clusters have"):
        found = own_today.find(seen.fitted, read.clean.meta, seen.cluster, seen.estimate)
    rule = own_today.choose(found, today, today_backfill)
    print(own_today.told(found, rule))
    if not yes:
        if today is None and today_backfill is None:
            default = f"{rule.rule.policy} {rule.rule.backfill}"
            rule = own_today.answered(
                found,
                rule,
                _asked(
                    "Today's order and backfill, two words (Enter: as found)", "--today", None, own_today.parse, default
                ),
            )
        if not _agreed():
            print("nothing written")
            raise typer.Exit(1)
    made = own.make(seen, rule)
    for path in own.write(root, made, force):
        print(f"written: {path.relative_to(root)}")
    config = own.paths(chosen)[2]
    print(f"next: make report CONFIG={config}")
    for why in seen.voids:
        print(f"  BUT FIRST a better log: {why}")


def _asked(question: str, option: str, given: object, check: Callable[[str], T], default: str | None = None) -> T:
    """The answer to a question, asked again until it holds; where an option gave it, that, or its error."""
    if given is not None:
        return check(str(given))
    while True:
        try:
            answer = typer.prompt(question, default=default)
        except typer.Abort:
            raise ConfigError(
                f"{option}: not given, and nobody to ask; `rltune init --help` has every option"
            ) from None
        try:
            return check(str(answer).strip())
        except RLTuneError as error:
            print(error)


def _agreed() -> bool:
    try:
        return typer.confirm("Write the configuration?", default=True)
    except typer.Abort:
        raise ConfigError("--yes: not given, and nobody to ask whether to write") from None


def _zone(text: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from rltune.config.trace import near_zone

    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"time zone: found {text!r}, expected an IANA name such as America/Los_Angeles{near_zone(text)}"
        ) from None
    return text


def _here() -> str:
    """This machine's time zone by name; UTC where it does not say."""
    link = Path("/etc/localtime")
    found = os.environ.get("TZ") or (str(link.resolve()).partition("zoneinfo/")[2] if link.exists() else "")
    try:
        return _zone(found or "UTC")
    except ConfigError:
        return "UTC"
