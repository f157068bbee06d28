"""The command that compares a finished run with what it should show."""

from __future__ import annotations

from typing import Annotated

import typer

from rltune.cli.options import BaseOption, ConfigOption


def expected(
    config: ConfigOption = "config/default.yaml",
    base: BaseOption = "",
    file: Annotated[
        str, typer.Option("--file", help="The expectations; relative to the project.")
    ] = "config/expected.yaml",
    write: Annotated[bool, typer.Option("--write", help="Take the run's numbers as the new expectations.")] = False,
) -> None:
    """Compare a finished run's tables and figures with the numbers expected of it; exit status 1 if any is outside.

    Tolerances stay as they are with --write; read them again when numbers change.
    """
    from rltune.config import Workspace
    from rltune.report.expected import as_table, check, load_expectations, stage_seconds, write_values

    workspace = Workspace.open(config, base)
    path = workspace.root / file
    expectations = load_expectations(path, workspace.root)
    checked = check(workspace, expectations)
    print(as_table(checked))
    outside = sum(not one.inside for one in checked)
    little = sum(one.inside and not one.number.telling for one in checked)
    print(
        f"{len(checked) - outside} of {len(checked)} within tolerance ({workspace.artefacts}); of these {little} with "
        "tolerances as wide as the number, which nearly any run would meet"
    )
    if write:
        changed = write_values(path, checked, stage_seconds(workspace, expectations.stages()))
        print(f"{file}: {changed} values changed; `make docs` brings docs/reproduction.md up to date")
    elif outside:
        raise typer.Exit(1)
