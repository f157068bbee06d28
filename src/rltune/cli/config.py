"""The commands `rltune config …`: look at the configuration."""

from typing import Annotated

import typer

from rltune.config import project_root
from rltune.errors import ConfigError

config_app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")


@config_app.command()
def check(file: Annotated[str, typer.Argument(help="The run's configuration.")] = "config/default.yaml") -> None:
    """Check a run's configuration and files; estimate how long training takes; list its cells, each with a short id."""
    from rltune.cluster.fit import speeds_of
    from rltune.cluster.layout import build_layout
    from rltune.config.context import Run
    from rltune.config.trace_files import local_file
    from rltune.evaluation.plugins import load_plugins

    run = Run.open(file)
    cells = run.config.cells()
    policies = load_plugins(run) if run.config.plugins else {}
    for name, trace in run.traces.items():
        used = {e for c in cells if c.trace == name for e in (c.estimate, run.config.preset(c.preset).estimates)}
        if trace.path is not None:
            local_file(name, trace.path, run.root)
        if "published" in used:
            if trace.predictions is None:
                raise ConfigError(f"config/traces/{name}.yaml: no `predictions`, found estimate published in {file}")
            local_file(name, trace.predictions.path, run.root, "predictions.path")
    for cluster in run.clusters.values():
        speeds_of(cluster, build_layout(cluster))
    print(f"{file}: valid; cells: {len(cells)}; results in {run.config.results}")
    rules = run.config.simulation.model_dump()
    print(f"  simulation: {', '.join(f'{key} {value}' for key, value in rules.items() if value != {})}")
    if also := run.config.evaluation.also:
        print(f"  evaluated also with: {'; '.join(map(str, also))}")
    for name, path in policies.items():
        print(f"  policy {name} from {path}")
    hours = sum(run.config.preset(cell.preset).core_hours() for cell in cells)
    about = f"{hours:.0f}" if hours >= 10 else f"{hours:.1g}"
    print(f"  training: about {about} core hours, within a factor of two; longer where GPU types differ in speed")
    for cell in cells:
        print(f"  {cell.hash}  {cell.name}")


@config_app.command()
def schema() -> None:
    """Write config/schema.json from the code."""
    from rltune.config.schema import schema_text
    from rltune.files import write_text

    path = project_root() / "config" / "schema.json"
    write_text(path, schema_text())
    print(path)
