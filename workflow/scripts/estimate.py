"""Write the run-time estimates that every scheduler is given, and what they become once their error is known."""

from logged import logged

from rltune.cluster.workload import add_calibrated, read_fitted
from rltune.config import project_root
from rltune.config.context import Run
from rltune.files import atomic_write
from rltune.traces.estimates import estimate_jobs


def main(rule) -> None:
    run = Run.open(rule.config["path"])
    trace, kind = rule.wildcards.trace, rule.wildcards.estimate
    fitted, meta = read_fitted(rule.input.jobs)
    seed = run.config.evaluation.seed
    made = estimate_jobs(fitted, meta, kind, seed, run.traces[trace].predictions, project_root())
    is_exact = kind == "exact"  # there is no error to correct
    shown = made.assign(job_id=fitted["job_id"].to_numpy()) if is_exact else add_calibrated(fitted, meta, made)
    with atomic_write(rule.output.estimates) as temporary:
        shown.to_parquet(temporary, index=False)
    print(f"{len(made):,} estimates; {made['source'].value_counts().to_dict()}")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
