# What the rules share: how files are named, how stages are called, what results depend on besides files.

ANY_CELL = SimpleNamespace(name="{cell}")  # stands for every cell where a rule names its files
RUN = f"--config {shlex.quote(workspace.config_path)} --base ."
PARAMETERS = f"-p config={shlex.quote(workspace.config_path)} -p base=."

# the sources of the layers a stage runs: a change of them makes its results anew
TRACES_CODE = sources_digest("traces")
CODE = sources_digest("traces", *COMPILED)
EVALUATION_CODE = sources_digest("evaluation", "traces", *COMPILED)
REPORT_CODE = sources_digest("evaluation", "report")

COSTS = Costs(workspace)


def asks(rule):
    """Memory and time that a scheduler is asked for (workflow/costs.yaml), more of it with each attempt."""

    def job(wildcards):
        return Job(rule, dict(wildcards.items()), ())

    return {
        "mem_mb": lambda wildcards, attempt: attempt * COSTS.memory_mb(job(wildcards)),
        "runtime": lambda wildcards, attempt: attempt * COSTS.minutes(job(wildcards)),
    }


def here(path):
    """A path of the workspace relative to the folder the workflow runs in."""
    return os.path.relpath(path, workspace.base)


def source(*parts):
    """A file of the project."""
    return str(workspace.root.joinpath(*parts))


def shown(name, kind):
    """A file of an artefact, and in Snakemake's own report what it is: by chapter of ours, with its title."""
    path = here(workspace.artefacts / f"{name}.{kind}")
    if kind not in ("csv", "svg"):
        return path
    labels = {"artefact": ARTEFACT_TITLES.get(name, name), "file": f"{name}.{kind}"}
    return report(path, caption=CAPTION, category=chapter_of(name), labels=labels)


def artefact_files(tables=(), figures=()):
    """Every file of these artefacts, so that one that is missing is made again."""
    kinds = {**dict.fromkeys(tables, ("csv", "json")), **dict.fromkeys(figures, ("csv", "svg", "png", "json"))}
    return [shown(name, kind) for name in kinds for kind in kinds[name]]


CAPTION = source("workflow", "artefact.rst")
ARTEFACT_TITLES = artefact_titles()
PAPER = source("config", "paper_results.yaml")
