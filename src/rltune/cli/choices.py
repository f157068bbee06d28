"""Options of `rltune simulate` checked before anything slow is imported."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from rltune.config import load_cluster, load_trace, project_root
from rltune.config.cells import ANY_ESTIMATE, BACKFILLS, LOCALITIES, PLACEMENTS, POLICIES, TYPES, parse_estimate
from rltune.config.messages import nearest
from rltune.errors import ConfigError

OVERRUNS = ("double", "now")
PARTS = ("all", "train", "validation", "test")
BUILT_IN = {
    "policy": POLICIES,
    "backfill": BACKFILLS,
    "placement": PLACEMENTS,
    "locality": LOCALITIES,
    "types": TYPES,
    "overrun": OVERRUNS,
    "part": PARTS,
    "current_policy": ANY_ESTIMATE,
    "current_backfill": BACKFILLS,
}
"""Option → the words it takes."""


def check_words(plugins: bool = False, **options: str | None) -> None:
    """Check that each option has a word that it knows; with plugins any policy or placement may be named.

    Raises ConfigError with every option that has not.
    """
    wrong = [
        f"--{option.replace('_', '-')}: found {word!r}{nearest(word, BUILT_IN[option])}, "
        f"expected one of {', '.join(BUILT_IN[option])}"
        for option, word in options.items()
        if word is not None and word not in BUILT_IN[option] and not (plugins and option in ("policy", "placement"))
    ]
    if wrong:
        raise ConfigError("\n".join(wrong))


def check_named(trace: str, cluster: str, estimate: str) -> None:
    """Check that there is a trace, a cluster and an estimate of these names, and that their files are right."""
    root = project_root()
    for option, name, read in (
        ("trace", trace, partial(load_trace, root=root)),
        ("cluster", cluster, partial(load_cluster, root=root)),
        ("estimate", estimate, parse_estimate),
    ):
        try:
            read(name)
        except ConfigError as error:
            text = str(error)
            raise ConfigError(f"--{option}: {text}" if text.startswith("found ") else text) from None


def check_goes_together(
    replay: bool, warm_up: float, bound: bool, windows: int | None, part: str, begin: int | None, jobs: int | None
) -> None:
    """Check that the options that say which jobs to take agree with each other. Raises ConfigError where they do not."""
    if not 0 <= warm_up < 1:
        raise ConfigError(f"--warm-up: found {warm_up:g}, expected a share of the jobs, 0 or more and below 1: 0.1")
    if warm_up and not replay:
        raise ConfigError("--warm-up: goes with --replay; windows start from an idle cluster")
    if warm_up and bound:
        raise ConfigError("--bound: does not go with --warm-up; the bound is on the mean wait of all jobs")
    if replay and windows is not None:
        raise ConfigError("--windows: does not go with --replay, which is one sequence; leave one of them out")
    if begin is not None and part != "all":
        raise ConfigError("--from: does not go with --part; give one of them")
    for option, value, least in (("from", begin, 0), ("jobs", jobs, 1), ("windows", windows, 1)):
        if value is not None and value < least:
            raise ConfigError(f"--{option}: found {value}, expected {least} or more")


def check_output(option: str, path: Path | None, suffixes: Iterable[str] = ()) -> None:
    """Check that an output file, if one is asked for, can be written. Raises ConfigError where it cannot."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise ConfigError(f"--{option}: found {path}, expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ConfigError(f"--{option}: found {path}, but it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise ConfigError(f"--{option}: found {path}, which is no regular file and would be replaced by one")
    if not path.parent.is_dir():
        make = f"make it: mkdir -p {path.parent}"
        raise ConfigError(f"--{option}: found {path}, but there is no folder {path.parent}; {make}")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"--{option}: found {path}, but you may not write to the folder {path.parent}")
