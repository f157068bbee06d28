# RLTune beside QSSF, other learners and the strongest heuristic; what a decision costs, and what training saves.

PEERS_TABLES, PEERS_FIGURES = peers_artefacts(run)


rule peers:
    input:
        WINDOWS,
        HISTORIES,
        policies=[here(workspace.policy(cell)) for cell in CELLS.values()],
        # SAF + EASY by blurred run times stands beside QSSF
        estimates=[here(workspace.estimates(c.trace, c.cluster, YARDSTICK)) for c in against_qssf(run)],
        plugins=[str(path) for path in workspace.plugins],
        paper=PAPER,
        notebook=source("notebooks", "peers.ipynb"),
    output:
        artefacts=artefact_files(tables=PEERS_TABLES, figures=PEERS_FIGURES),
        page=here(workspace.page("peers")),
    log:
        here(workspace.notebook("peers")),
    benchmark:
        here(workspace.results / "benchmarks" / "peers.tsv")
    threads: 1
    resources:
        **asks("peers"),
    params:
        cells=list(CELLS),
        evaluation=run.evaluation.model_dump(),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        split=run.split.model_dump(),
        code=[EVALUATION_CODE, REPORT_CODE],
    message:
        "against other learners and predictors"
    shell:
        "rltune stage notebook peers --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
