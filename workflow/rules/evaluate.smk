# Every agent on the test part, beside its base policy and the baselines; then naive against pro.


rule evaluate:
    input:
        workload_files,
        policy=rules.train.output.policy,
        notebook=source("notebooks", "evaluate.ipynb"),
    output:
        windows=here(workspace.windows(ANY_CELL)),
        jobs=here(workspace.test_jobs(ANY_CELL)),
        page=here(workspace.page("evaluate", "{cell}")),
    log:
        here(workspace.notebook("evaluate", "{cell}")),
    benchmark:
        here(workspace.results / "benchmarks" / "evaluate" / "{cell}.tsv")
    threads: 1
    resources:
        mem_mb=3000,
    params:
        evaluation=run.evaluation.model_dump(),
    message:
        "evaluate {wildcards.cell}"
    shell:
        "rltune stage notebook evaluate --log {log} --page {output.page} --threads {threads}"
        " {PARAMETERS} -p cell={wildcards.cell}"


WINDOWS = [here(workspace.windows(cell)) for cell in CELLS.values()]
HISTORIES = [here(workspace.history(cell)) for cell in CELLS.values()]
ABLATION = ("ablation", "ablation-numbers")


rule ablation:
    input:
        WINDOWS,
        notebook=source("notebooks", "ablation.ipynb"),
    output:
        artefacts=[here(workspace.artefacts / f"{name}.json") for name in ABLATION],
        page=here(workspace.page("ablation")),
    log:
        here(workspace.notebook("ablation")),
    benchmark:
        here(workspace.results / "benchmarks" / "ablation.tsv")
    threads: 1
    resources:
        mem_mb=2000,
    params:
        cells=list(CELLS),
    message:
        "naive against pro"
    shell:
        "rltune stage notebook ablation --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
