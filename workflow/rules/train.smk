# One agent a cell of the matrix; one notebook serves them all. A training that was stopped goes on from its last
# validation: its state lies in the cell's folder `training`, which is no output, for those of a failed job are deleted.


def workload_files(wildcards):
    """The job table, pools and estimates of a cell."""
    cell = CELLS[wildcards.cell]
    return [
        here(workspace.jobs(cell.trace)),
        here(workspace.fitted(cell.trace, cell.cluster)),
        here(workspace.estimates(cell.trace, cell.cluster, cell.estimate)),
    ]


def training_of(wildcards):
    """What a cell's training depends on besides its files: a change of it trains the cell anew."""
    preset = run.preset(CELLS[wildcards.cell].preset)
    blocks = (preset, run.lookahead, run.split, run.simulation)
    return {key: value for block in blocks for key, value in block.model_dump().items()}


rule train:
    input:
        workload_files,
        notebook=source("notebooks", "train.ipynb"),
    output:
        policy=here(workspace.policy(ANY_CELL)),
        history=here(workspace.history(ANY_CELL)),
        page=here(workspace.page("train", "{cell}")),
    log:
        here(workspace.notebook("train", "{cell}")),
    benchmark:
        here(workspace.results / "benchmarks" / "train" / "{cell}.tsv")
    # small networks gain little from a second thread; cells side by side use the cores better
    threads: 1
    resources:
        **asks("train"),
    params:
        training=training_of,
        code=CODE,
    message:
        "train {wildcards.cell}"
    shell:
        "rltune stage notebook train --log {log} --page {output.page} --threads {threads}"
        " {PARAMETERS} -p cell={wildcards.cell}"
