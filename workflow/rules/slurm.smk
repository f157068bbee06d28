# On emulated Slurm clusters of real daemons: the example schedules of Figures 1 to 4, and the deployment of §5.6.

import os

from rltune.config.deployment import QOS, SHORT_S
from rltune.slurm.emulate import packages

EXAMPLES, DEPLOYMENT = run.config.example_schedules, run.config.deployment
DEPLOYED = run.config.deployed_cell() if DEPLOYMENT else None
SCHEDULERS = DEPLOYMENT.schedulers if DEPLOYMENT else []
# where Slurm's packages are absent, the chapters do without these runs and say so
ABSENT = packages.absent(accounting=True, speed=2.0)
EXAMPLE_SCHEDULES = [f"{RESULTS}/example_schedules"] if EXAMPLES == "slurm" else []
DEPLOYED_RUNS = [f"{RESULTS}/deployment/{name}-{k}" for name, k in (DEPLOYMENT.runs() if DEPLOYMENT else [])]
if ABSENT and not all(os.path.exists(f"{folder}/jobs.csv") for folder in DEPLOYED_RUNS):
    DEPLOYED_RUNS = []


wildcard_constraints:
    repetition=r"\d+",


rule example_schedules:
    output:
        runs=RESULTS / "example_schedules.csv",
        facts=RESULTS / "example_schedules.json",
    log:
        RESULTS / "logs/example_schedules.log",
    benchmark:
        RESULTS / "benchmarks/example_schedules.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(1000),
        runtime=more(30),
    params:
        absent=ABSENT,  # once the packages are installed, the schedules are made again
        code=digest("workflow/scripts/example_schedules.py"),
    message:
        "seven jobs on real Slurm daemons"
    script:
        "../scripts/example_schedules.py"


# hours long, so it is not repeated for a change of the code; facts.json says which code it was. All schedulers of a
# repetition run side by side, two clusters a core: they mostly wait
rule deploy:
    input:
        jobs=path_of(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet", DEPLOYED),
        estimates=path_of(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", DEPLOYED),
        policy=path_of(RESULTS / "cells/{cell}/policy.npz", DEPLOYED),
    output:
        jobs=expand(RESULTS / "deployment/{scheduler}-{{repetition}}/jobs.csv", scheduler=SCHEDULERS),
        cycles=expand(RESULTS / "deployment/{scheduler}-{{repetition}}/cycles.csv", scheduler=SCHEDULERS),
        facts=expand(RESULTS / "deployment/{scheduler}-{{repetition}}/facts.json", scheduler=SCHEDULERS),
    log:
        RESULTS / "logs/deploy-{repetition}.log",
    benchmark:
        RESULTS / "benchmarks/deploy/{repetition}.tsv"
    retries: 0
    conda:
        ENVIRONMENT
    threads: (len(SCHEDULERS) + 1) // 2
    resources:
        mem_mb=more(1000 + 400 * len(SCHEDULERS)),
        runtime=more(240),
    params:
        settings=(DEPLOYMENT.model_dump(include={"cell", "jobs", "speed"}) if DEPLOYMENT else None),
        rules=[run.config.simulation.max_wait_h, QOS, SHORT_S],
        train_share=run.config.train_share,
    message:
        "deploy repetition {wildcards.repetition}"
    script:
        "../scripts/deploy.py"
