# Every agent on the test part, beside its base policy and the baselines; all of a trace side by side; then naive
# against pro.


def localities_of(wildcards):
    """Localities in which a workload's cells need the heuristics."""
    return run.localities(wildcards.trace, wildcards.cluster, wildcards.estimate)


rule baselines:
    input:
        jobs=here(workspace.jobs("{trace}")),
        pools=here(workspace.fitted("{trace}", "{cluster}")),
        estimates=here(workspace.estimates("{trace}", "{cluster}", "{estimate}")),
        plugins=[str(path) for path in workspace.plugins],
    output:
        here(workspace.baselines("{trace}", "{cluster}", "{estimate}")),
    log:
        here(workspace.results / "logs" / "baselines" / "{trace}__{cluster}__{estimate}.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "baselines" / "{trace}__{cluster}__{estimate}.tsv")
    threads: 1
    resources:
        **asks("baselines"),
    params:
        evaluation=run.evaluation.model_dump(exclude={"also", "bootstrap", "confidence"}),
        simulation=run.simulation.model_dump(),
        localities=localities_of,
        split=run.split.model_dump(),
        code=EVALUATION_CODE,
    message:
        "heuristics on {wildcards.trace}, {wildcards.cluster}"
    shell:
        "rltune stage baselines {wildcards.trace} {wildcards.cluster} {wildcards.estimate} {RUN} 2>&1 | tee {log}"


def baselines_of(wildcards):
    """The heuristics' results on a cell's workload."""
    cell = CELLS[wildcards.cell]
    return here(workspace.baselines(cell.trace, cell.cluster, cell.estimate))


rule evaluate:
    input:
        workload_files,
        baselines=baselines_of,
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
        **asks("evaluate"),
    params:
        evaluation=run.evaluation.model_dump(),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        code=EVALUATION_CODE,
    message:
        "evaluate {wildcards.cell}"
    shell:
        "rltune stage notebook evaluate --log {log} --page {output.page} --threads {threads}"
        " {PARAMETERS} -p cell={wildcards.cell}"


WINDOWS = [here(workspace.windows(cell)) for cell in CELLS.values()]
HISTORIES = [here(workspace.history(cell)) for cell in CELLS.values()]


def results_of(wildcards):
    """What the agents of a trace left."""
    cells = run.cells_of(wildcards.trace)
    return [here(path(cell)) for path in (workspace.windows, workspace.history) for cell in cells]


rule compare:
    input:
        results_of,
        paper=PAPER,
        notebook=source("notebooks", "compare.ipynb"),
    output:
        page=here(workspace.page("compare", "{trace}")),
    log:
        here(workspace.notebook("compare", "{trace}")),
    benchmark:
        here(workspace.results / "benchmarks" / "compare" / "{trace}.tsv")
    threads: 1
    resources:
        **asks("compare"),
    params:
        cells=lambda w: [cell.name for cell in run.cells_of(w.trace)],
        code=REPORT_CODE,
    message:
        "the agents of {wildcards.trace}"
    shell:
        "rltune stage notebook compare --log {log} --page {output.page} --threads {threads}"
        " {PARAMETERS} -p trace={wildcards.trace}"


rule ablation:
    input:
        WINDOWS,
        HISTORIES,
        paper=PAPER,
        notebook=source("notebooks", "ablation.ipynb"),
    output:
        artefacts=artefact_files(tables=["ablation-numbers"], figures=["ablation", "ablation-training"]),
        page=here(workspace.page("ablation")),
    log:
        here(workspace.notebook("ablation")),
    benchmark:
        here(workspace.results / "benchmarks" / "ablation.tsv")
    threads: 1
    resources:
        **asks("ablation"),
    params:
        cells=list(CELLS),
        code=REPORT_CODE,
    message:
        "naive against pro"
    shell:
        "rltune stage notebook ablation --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
