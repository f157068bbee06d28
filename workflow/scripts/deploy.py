"""Submit a repetition's jobs to an emulated Slurm cluster of each scheduler, side by side, and write what became of them."""

import hashlib
import shutil
from pathlib import Path

from logged import logged

from rltune.agent.policy_file import load_policy
from rltune.cluster.workload import load_workload
from rltune.config.context import Run
from rltune.slurm.experiment.deployment import deploy_all
from rltune.sources import digest


def main(rule) -> None:
    run, repetition, path = Run.open(rule.config["path"]), int(rule.wildcards.repetition), Path(rule.input.policy)
    cell, inputs = run.config.deployed_cell(), [Path(file).read_bytes() for file in rule.input]
    workload = load_workload(rule.input.jobs, rule.input.estimates, run.clusters[cell.cluster], run.config.train_share)
    of_policy = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    made_of = {"cell": cell.name, "code": digest("workflow/scripts/deploy.py"), "policy": of_policy}

    # not among the rule's outputs, which Snakemake deletes when one of the runs fails
    settings = repr([rule.params.settings, rule.params.rules, rule.params.train_share]).encode()
    unfinished = Path(rule.output.facts[0]).parents[1] / f"unfinished-{repetition}"
    folder = unfinished / hashlib.sha256(settings + b"".join(inputs)).hexdigest()[:12]
    deploy_all(run, workload, load_policy(path), repetition, made_of, folder, Path(rule.log[0]).parent)
    for files in (rule.output.jobs, rule.output.cycles, rule.output.facts):
        for scheduler, file in zip(run.config.deployment.schedulers, files, strict=True):
            shutil.copy(folder / scheduler / Path(file).name, file)
    shutil.rmtree(unfinished)


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
