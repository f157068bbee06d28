# The agent's controller on an emulated Slurm cluster, for runs with a block `deployment`: a job a scheduler × repetition,
# then the chapter. Where Slurm's packages are absent and no runs are there, the chapter does without and says so.
from rltune.config.deployment import RUN_FILES
from rltune.report.page.deployment import made as deployment_artefacts
from rltune.slurm.experiment.kept import showable

DEPLOYED = run.deployed_cell() if run.deployment is not None else next(iter(CELLS.values()))
RUNS = run.deployment.runs() if run.deployment is not None else []
CONDUCTED = [here(workspace.deployed(*of) / name) for of in RUNS for name in RUN_FILES]
HAS_RUNS = run.deployment is not None and showable(workspace)
ALONE = run.deployment is not None and run.deployment.alone
DEPLOYMENT_TABLES, DEPLOYMENT_FIGURES = deployment_artefacts(run, HAS_RUNS)


wildcard_constraints:
    scheduler="|".join(sorted({scheduler for scheduler, _ in RUNS})) or "none",
    repetition=r"\d+",


def deployed_policy(wildcards):
    """The agent, where it is the agent that gives the order."""
    return [here(workspace.policy(DEPLOYED))] if wildcards.scheduler == "rltune" else []


# no digest of the code among the parameters: an experiment of hours is not made anew for a line of code, but on request;
# facts.json has it. Nothing tries a failed run again but the stage itself, which counts its tries
rule deploy:
    input:
        workload_files(SimpleNamespace(cell=DEPLOYED.name)),
        deployed_policy,
    output:
        jobs=here(workspace.deployed("{scheduler}", "{repetition}") / "jobs.csv"),
        cycles=here(workspace.deployed("{scheduler}", "{repetition}") / "cycles.csv"),
        facts=here(workspace.deployed("{scheduler}", "{repetition}") / "facts.json"),
    log:
        here(workspace.results / "logs" / "deploy" / "{scheduler}-{repetition}.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "deploy" / "{scheduler}-{repetition}.tsv")
    threads: (workflow.cores or 1) if ALONE else 1
    retries: 0
    resources:
        **asks("deploy"),
    params:
        deployment=run.deployment.conditions() if run.deployment is not None else None,
        split=run.split.model_dump(),
    message:
        "deploy {wildcards.scheduler} {wildcards.repetition}"
    shell:
        "rltune stage deploy {wildcards.scheduler} {wildcards.repetition} {RUN} 2>&1 | tee {log}"


rule deployment:
    input:
        workload_files(SimpleNamespace(cell=DEPLOYED.name)),
        CONDUCTED if HAS_RUNS else [],
        policy=here(workspace.policy(DEPLOYED)),
        history=here(workspace.history(DEPLOYED)),
        paper=PAPER,
        notebook=source("notebooks", "deployment.ipynb"),
    output:
        artefacts=artefact_files(tables=DEPLOYMENT_TABLES, figures=DEPLOYMENT_FIGURES),
        page=here(workspace.page("deployment")),
    log:
        here(workspace.notebook("deployment")),
    benchmark:
        here(workspace.results / "benchmarks" / "deployment.tsv")
    threads: 1
    resources:
        **asks("deployment"),
    params:
        deployment=run.deployment.model_dump() if run.deployment is not None else None,
        evaluation=run.evaluation.model_dump(include={"bootstrap", "confidence", "seed"}),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        split=run.split.model_dump(),
        code=[EVALUATION_CODE, REPORT_CODE],
    message:
        "on a Slurm cluster"
    shell:
        "rltune stage notebook deployment --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
