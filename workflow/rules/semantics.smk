# The workloads of the agents under other rules, with perfect estimates, by groups of jobs, and on balanced clusters.


def balanced_files():
    """What the workloads on balanced clusters are made of, where agents are judged there."""
    wanted = {(c.trace, f"{c.cluster}-balanced", c.estimate) for c in CELLS.values()}
    there = {(w.trace, w.cluster) for w in run.all_workloads()}
    return [here(workspace.estimates(*w)) for w in sorted(wanted) if w[:2] in there]


rule semantics:
    input:
        WINDOWS,
        jobs=[here(workspace.test_jobs(cell)) for cell in CELLS.values()],
        workloads=sorted({f for c in CELLS for f in workload_files(SimpleNamespace(cell=c))}),
        policies=[here(workspace.policy(cell)) for cell in CELLS.values()] if has_balanced(run) else [],
        balanced=balanced_files(),
        notebook=source("notebooks", "semantics.ipynb"),
    output:
        artefacts=artefact_files(
            tables=["scheduling-rules-numbers", "fairness-numbers", "fairness-losers",
                    *(["loads-compared-numbers"] if has_balanced(run) else [])],
            figures=["scheduling-rules", "headroom", "fairness", *(["loads-compared"] if has_balanced(run) else [])],
        ),
        page=here(workspace.page("semantics")),
    log:
        here(workspace.notebook("semantics")),
    benchmark:
        here(workspace.results / "benchmarks" / "semantics.tsv")
    threads: 1
    resources:
        **asks("semantics"),
    params:
        cells=list(CELLS),
        evaluation=run.evaluation.model_dump(),
        lookahead=run.lookahead.model_dump(),
        simulation=run.simulation.model_dump(),
        code=[EVALUATION_CODE, REPORT_CODE],
    message:
        "the baseline's doing, and who pays"
    shell:
        "rltune stage notebook semantics --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
