"""Submit a repetition's jobs to an emulated Slurm cluster of each scheduler, side by side, and write what became of them."""

import hashlib
from multiprocessing.pool import ThreadPool
from pathlib import Path

from logged import logged

from rltune.agent.policy_file import load_policy
from rltune.cluster.workload import load_workload
from rltune.config.context import Run
from rltune.config.deployment import LEARNED
from rltune.files import write_json, write_text
from rltune.slurm.experiment.deployment import deploy
from rltune.sources import digest


def main(rule) -> None:
    run, repetition, path = Run.open(rule.params.config), int(rule.wildcards.repetition), Path(rule.input.policy)
    cell, schedulers = run.config.deployed_cell(), run.config.deployment.schedulers
    workload = load_workload(rule.input.jobs, rule.input.estimates, run.clusters[cell.cluster], run.config.train_share)
    log, policy, of_policy = Path(rule.log[0]), load_policy(path), hashlib.sha256(path.read_bytes()).hexdigest()[:12]

    def one(scheduler):
        def say(line):
            print(f"{scheduler}: {line}\n", end="")  # in one write: others print too

        controller = log.with_name(f"deploy-{scheduler}-{repetition}-controller.log")
        return deploy(run, workload, policy, scheduler, repetition, controller, say)

    with ThreadPool(len(schedulers)) as pool:  # its threads end with the process, and clusters do
        runs = pool.map(one, schedulers, chunksize=1)
    made_of = {"cell": cell.name, "code": digest("workflow/scripts/deploy.py")}
    files = zip(rule.output.jobs, rule.output.cycles, rule.output.facts, strict=True)
    for scheduler, done, (jobs_file, cycles_file, facts_file) in zip(schedulers, runs, files, strict=True):
        jobs = done.jobs.assign(index=range(len(done.jobs)), scheduler=scheduler, repetition=repetition)
        cycles = done.cycles.assign(scheduler=scheduler, repetition=repetition)
        write_text(jobs_file, jobs.round(3).to_csv(index=False))
        write_text(cycles_file, cycles.round(4).to_csv(index=False))
        write_json(facts_file, made_of | {"policy": of_policy if scheduler in LEARNED else None} | done.facts)
        ended = int((jobs["state"] == "COMPLETED").sum())
        hours, true_s = done.facts["simulated_s"] / 3600, done.facts["true_s"]
        print(f"{scheduler}: {ended} of {len(jobs)} completed in {true_s:.0f} s, {hours:.1f} h of the cluster's clock")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
