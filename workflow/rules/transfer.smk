# Agents away from where they were trained: against other base policies, on other traces, with other estimates.


rule transfer:
    input:
        WINDOWS,
        [here(workspace.policy(cell)) for cell in CELLS.values()],
        workloads=sorted({path for name in CELLS for path in workload_files(SimpleNamespace(cell=name))}),
        paper=PAPER,
        notebook=source("notebooks", "transfer.ipynb"),
    output:
        artefacts=artefact_files(
            tables=["table7", *(["transfer"] if has_transfer(run) else [])],
            figures=["robustness"] if has_robustness(run) else [],
        ),
        page=here(workspace.page("transfer")),
    log:
        here(workspace.notebook("transfer")),
    benchmark:
        here(workspace.results / "benchmarks" / "transfer.tsv")
    threads: 1
    resources:
        **asks("transfer"),
    params:
        cells=list(CELLS),
        evaluation=run.evaluation.model_dump(exclude={"also"}),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        split=run.split.model_dump(),
        code=[EVALUATION_CODE, REPORT_CODE],
    message:
        "agents on other base policies, traces and estimates"
    shell:
        "rltune stage notebook transfer --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
