"""Keep the jobs of a trace that a cluster can hold, each with its pool."""

from logged import logged

from rltune.cluster.fit import fit
from rltune.config.context import Run
from rltune.files import write_json
from rltune.traces.table import read_table, write_parquet


def main(rule) -> None:
    trace, cluster = rule.wildcards.trace, rule.wildcards.cluster
    run = Run.open(rule.config["path"])
    jobs, meta = read_table(rule.input.jobs)
    fitted, audit = fit(jobs, run.clusters[cluster], f"{trace} on {cluster}", run.config.train_share)
    write_parquet(fitted, meta, rule.output.jobs)
    write_json(rule.output.audit, audit.to_dict())
    print(audit)


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
