"""Submit a repetition's jobs to an emulated Slurm cluster under a scheduler, and write what became of them."""

import hashlib
from pathlib import Path

from logged import logged

from rltune.agent.policy_file import load_policy
from rltune.cluster.workload import load_workload
from rltune.config.context import Run
from rltune.files import write_json, write_text
from rltune.slurm.experiment.deployment import deploy
from rltune.sources import digest


def main(rule) -> None:
    run, scheduler, repetition = Run.open(rule.params.config), rule.wildcards.scheduler, int(rule.wildcards.repetition)
    cell = run.config.deployed_cell()
    workload = load_workload(rule.input.jobs, rule.input.estimates, run.clusters[cell.cluster], run.config.train_share)
    path = Path(rule.input.policy) if rule.input.policy else None
    log = Path(rule.log[0])
    controller = log.with_name(f"{log.stem}-controller.log")
    done = deploy(run, workload, load_policy(path) if path else None, scheduler, repetition, controller)
    of_policy = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path else None
    made_of = {"cell": cell.name, "code": digest("workflow/scripts/deploy.py"), "policy": of_policy}
    jobs = done.jobs.assign(index=range(len(done.jobs)), scheduler=scheduler, repetition=repetition)
    cycles = done.cycles.assign(scheduler=scheduler, repetition=repetition)
    write_text(rule.output.jobs, jobs.round(3).to_csv(index=False))
    write_text(rule.output.cycles, cycles.round(4).to_csv(index=False))
    write_json(rule.output.facts, made_of | done.facts)
    ended = int((jobs["state"] == "COMPLETED").sum())
    hours, true_s = done.facts["simulated_s"] / 3600, done.facts["true_s"]
    print(f"{ended} of {len(jobs)} jobs completed in {true_s:.0f} s, {hours:.1f} h of the cluster's clock")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
