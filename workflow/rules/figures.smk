# Tables and figures over all cells.


rule figures:
    input:
        WINDOWS,
        HISTORIES,
        jobs=[here(workspace.test_jobs(cell)) for cell in CELLS.values()],
        paper=source("config", "paper_results.yaml"),
        notebook=source("notebooks", "figures.ipynb"),
    output:
        artefacts=[
            here(workspace.artefacts / f"{name}.json")
            for name in ("fig11", "fig12", "fig12-numbers", "improvements", "costs")
        ],
        page=here(workspace.page("figures")),
    log:
        here(workspace.notebook("figures")),
    benchmark:
        here(workspace.results / "benchmarks" / "figures.tsv")
    threads: 1
    resources:
        mem_mb=3000,
    params:
        cells=list(CELLS),
    message:
        "tables and figures"
    shell:
        "rltune stage notebook figures --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
