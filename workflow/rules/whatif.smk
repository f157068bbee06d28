# Today's order of a cluster against others on the last part of its log, for runs with a block `whatif`.

WHATIF_TABLES, WHATIF_FIGURES = whatif_artefacts(run)
WHATIF_CELLS = [c for c in CELLS.values() if c.but(seed=0) == next(iter(CELLS.values())).but(seed=0)]


def whatif_workload():
    """The jobs, the run times that all are told, and those that QSSF predicts."""
    cell = WHATIF_CELLS[0]
    told = dict.fromkeys([cell.estimate, *([run.whatif.predicted] if run.whatif is not None else [])])
    return [
        here(workspace.jobs(cell.trace)),
        here(workspace.fitted(cell.trace, cell.cluster)),
        *(here(workspace.estimates(cell.trace, cell.cluster, estimate)) for estimate in told),
    ]


rule whatif:
    input:
        whatif_workload(),
        policies=[here(workspace.policy(cell)) for cell in WHATIF_CELLS],
        histories=[here(workspace.history(cell)) for cell in WHATIF_CELLS],
        notebook=source("notebooks", "whatif.ipynb"),
    output:
        artefacts=artefact_files(tables=WHATIF_TABLES, figures=WHATIF_FIGURES),
        page=here(workspace.page("whatif")),
    log:
        here(workspace.notebook("whatif")),
    benchmark:
        here(workspace.results / "benchmarks" / "whatif.tsv")
    threads: 1
    resources:
        **asks("whatif"),
    params:
        whatif=run.whatif.model_dump() if run.whatif is not None else None,
        evaluation=run.evaluation.model_dump(include={"bootstrap", "confidence", "seed"}),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        split=run.split.model_dump(),
        code=[EVALUATION_CODE, REPORT_CODE],
    message:
        "your cluster, what if"
    shell:
        "rltune stage notebook whatif --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
