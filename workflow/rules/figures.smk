# Tables and figures over all cells.


rule figures:
    input:
        WINDOWS,
        HISTORIES,
        rules.transfer.output.artefacts,
        rules.peers.output.artefacts,
        rules.deployment.output.artefacts if run.deployment is not None else [],
        jobs=[here(workspace.test_jobs(cell)) for cell in CELLS.values()],
        paper=PAPER,
        notebook=source("notebooks", "figures.ipynb"),
    output:
        artefacts=artefact_files(*results_artefacts(run)),
        page=here(workspace.page("figures")),
    log:
        here(workspace.notebook("figures")),
    benchmark:
        here(workspace.results / "benchmarks" / "figures.tsv")
    threads: 1
    resources:
        **asks("figures"),
    params:
        cells=list(CELLS),
        lengths=run.evaluation.sequence_jobs,
        code=REPORT_CODE,
    message:
        "tables and figures"
    shell:
        "rltune stage notebook figures --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
