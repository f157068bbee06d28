"""Run the heuristics on a workload's windows, in every locality that its cells have."""

from logged import logged

from rltune.cluster.workload import load_workload
from rltune.config.context import Run
from rltune.evaluation.evaluate import evaluate_baselines
from rltune.evaluation.plugins import load_plugins
from rltune.files import write_text


def main(rule) -> None:
    run, of = Run.open(rule.config["path"]), rule.wildcards
    config = run.config
    load_plugins(run)
    workload = load_workload(rule.input.jobs, rule.input.estimates, run.clusters[of.cluster], config.train_share)
    of_cells = of.trace, of.cluster, of.estimate
    frame = evaluate_baselines(workload, config, config.localities(*of_cells), config.tuned_on(*of_cells))
    write_text(rule.output.baselines, frame.to_csv(index=False))
    print(f"{len(frame)} rows: a heuristic × window each")


with logged(snakemake.log[0]):  # noqa: F821
    main(snakemake)  # noqa: F821
