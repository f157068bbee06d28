# One agent a cell of the matrix. A training that was stopped goes on from its last validation: its state is in the cell's
# folder `training`, which is no output, for Snakemake deletes those of a failed job.


rule train:
    input:
        notebook="notebooks/train.ipynb",
        jobs=of_cell(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet"),
        estimates=lambda w: path_of(
            RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet",
            as_trained(CELLS[w.cell]),
        ),
    output:
        policy=RESULTS / "cells/{cell}/policy.npz",
        history=RESULTS / "cells/{cell}/history.csv",
        notebook=RESULTS / "notebooks/train-{cell}.ipynb",
    log:
        RESULTS / "logs/train-{cell}.ipynb",
    benchmark:
        RESULTS / "benchmarks/train/{cell}.tsv"
    priority: 1  # most of the rest waits for agents
    conda:
        ENVIRONMENT
    # small networks gain little from a second thread; cells next to one another use the cores better
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(240),
    params:
        cell="{cell}",
        training=lambda w: f"{RESULTS}/cells/{w.cell}/training",
        settings=training_of,
        code=digest("notebooks/train.ipynb"),
    message:
        "train {wildcards.cell}"
    script:
        "../scripts/notebook.py"
