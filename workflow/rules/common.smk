# The run's configuration, and what the rules share.

import os
import zlib
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import get_wildcard_names

from rltune.cluster.speeds import profile_of
from rltune.config import project_root
from rltune.config.comparisons import YARDSTICK, against_qssf, balanced_cells
from rltune.config.context import Run
from rltune.config.trace_files import local_file
from rltune.errors import ConfigError, RLTuneError
from rltune.report import artefacts
from rltune.sources import digest
from rltune.traces.fetch import files_in


def given(what, files):
    """A user's files, inside the project by their paths from there: a project that is renamed or moved makes nothing again."""
    paths = [str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file) for file in files]
    if named := [path for path in paths if get_wildcard_names(path)]:
        raise ConfigError(f"{what}: found {named[0]}, expected a path without {{name}}: to Snakemake a wildcard")
    return paths


def files_of_trace(trace, path):
    """A user's files of a trace."""
    return given(f"trace {trace}", files_in(local_file(trace, path, ROOT)))


CONFIG = os.path.relpath(workflow.configfiles[0]) if workflow.configfiles else "config/default.yaml"
config["path"] = CONFIG  # for scripts: as a param, another name would make all again; the report, which says it, has it

try:
    ROOT = project_root()
    run = Run.open(CONFIG)
    PLUGINS = given("plugins", [ROOT / Path(path).expanduser() for path in run.config.plugins])
    LOCAL_FILES = {name: files_of_trace(name, trace.path) for name, trace in run.traces.items() if trace.path}
    PUBLISHED = {
        c.trace: files_of_trace(c.trace, run.traces[c.trace].predictions.path)
        for c in run.config.cells()
        if "published" in (c.estimate, run.config.preset(c.preset).estimates) and run.traces[c.trace].predictions
    }
except RLTuneError as error:
    raise WorkflowError(str(error)) from None

RESULTS = Path(run.config.results)
CELLS = {cell.name: cell for cell in run.config.cells()}
ORDER = [*CELLS, *run.traces]  # tables show them so, and of equal ones the first; inputs are compared sorted
WORKLOADS = run.config.all_workloads()
PAPER = "config/paper_results.yaml"
# What rules need. It installs this project, so Snakemake cannot make it by itself: `make` does.
ENVIRONMENT = "../../environment.yml"
BALANCED = balanced_cells(run.config, CELLS.values())  # the cells on balanced clusters, which no agent is trained on
MIXED = [run.config.cells()[0].but(trace=w.trace, cluster=w.cluster) for w in run.config.gpu_types]
BY_YARDSTICK = [cell.but(estimate=YARDSTICK) for cell in against_qssf(run.config)]
RESAMPLING = run.config.evaluation.model_dump(include={"bootstrap"})
SETTINGS = run.config.model_dump(include={"lookahead", "simulation", "train_share"})


def one_of(names):
    """A pattern that matches these names and no other."""
    return "|".join(map(re.escape, names)) or "none"


wildcard_constraints:
    trace=one_of(run.traces),
    cluster=one_of(run.clusters),
    cell=one_of(CELLS),
    estimate=r"[a-z0-9.-]+",


def path_of(path, cell):
    """A path with a cell's name, {cell}, or values of its axes, {trace}, {cluster}, …, in it; of no cell none."""
    return str(path).format(cell=cell.name, **vars(cell)) if cell else []


def of_cell(path):
    """The same as an input function of a rule with the wildcard {cell}."""
    return lambda wildcards: path_of(path, CELLS[wildcards.cell])


def of_trace(path):
    """The same for all cells of the rule's trace."""
    return lambda wildcards: cells(path, run.config.cells_of(wildcards.trace))


def cells(path, some=CELLS.values()):
    """The same for many cells, each path once."""
    return list(dict.fromkeys(path_of(path, cell) for cell in some))


def agents_on(some):
    """The cells of RLTune proper, trained for completion time, that have one of these cells' workloads."""
    ours = [c for c in CELLS.values() if c.metric == "jct" and run.config.preset(c.preset).agent == "rltune"]
    theirs = [(cell.trace, cell.cluster, cell.estimate) for cell in some]
    return [cell for cell in ours if (cell.trace, cell.cluster, cell.estimate) in theirs]


def artefact_names(stage):
    """Ids of the tables and figures that a notebook makes; of the deployment without runs, the table that says so."""
    names = artefacts.of(run.config, stage)
    return names if stage != "deployment" or DEPLOYED_RUNS else [name for name in names if name == "deployment-runs"]


def artefact_files(stage):
    """Their files."""
    names = artefact_names(stage)
    files = artefacts.files(run.config, stage)
    return [f"{RESULTS}/artefacts/{file}" for file in files if file.partition(".")[0] in names]


def more(amount):
    """A resource of which a job that is tried again asks for more."""
    return lambda wildcards, attempt: attempt * amount


def speeds_of(wildcards):
    """A number that changes with the file of a cluster's speeds by GPU type, where it has one."""
    speeds = run.clusters[wildcards.cluster].speeds
    file = profile_of(speeds) if isinstance(speeds, str) else None
    return zlib.crc32(file.read_bytes()) if file and file.is_file() else 0


def training_of(wildcards):
    """The settings that a cell's training depends on."""
    return SETTINGS | {"preset": run.config.preset(CELLS[wildcards.cell].preset).model_dump()}


def as_trained(cell):
    """A cell with the estimates of its preset, where those are others than it is evaluated with."""
    estimates = run.config.preset(cell.preset).estimates
    return cell if estimates == "given" else cell.but(estimate=estimates)
