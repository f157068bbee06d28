# Raw archives to job tables, and each job table fitted to its clusters.


def raw_of(wildcards):
    """What a trace's own file was when it was read: a corrected file is read again."""
    return fingerprint(workspace.trace(wildcards.trace).path, workspace.root)


def predictions_of(wildcards):
    """What the file of published run times was when it was read."""
    predictions = workspace.trace(wildcards.trace).predictions
    return fingerprint(predictions.path, workspace.root) if predictions and wildcards.estimate == PUBLISHED else ""


rule clean:
    input:
        notebook=source("notebooks", "clean.ipynb"),
        trace=source("config", "traces", "{trace}.yaml"),
    output:
        jobs=here(workspace.jobs("{trace}")),
        audit=here(workspace.clean_audit("{trace}")),
        page=here(workspace.page("clean", "{trace}")),
    log:
        here(workspace.notebook("clean", "{trace}")),
    benchmark:
        here(workspace.results / "benchmarks" / "clean" / "{trace}.tsv")
    threads: 1
    resources:
        **asks("clean"),
    params:
        raw=raw_of,
        code=TRACES_CODE,
    message:
        "clean {wildcards.trace}"
    shell:
        "rltune stage notebook clean --log {log} --page {output.page} --threads {threads}"
        " {PARAMETERS} -p trace={wildcards.trace}"


rule fit:
    input:
        jobs=rules.clean.output.jobs,
        cluster=source("config", "clusters", "{cluster}.yaml"),
    output:
        pools=here(workspace.fitted("{trace}", "{cluster}")),
        audit=here(workspace.fit_audit("{trace}", "{cluster}")),
    log:
        here(workspace.results / "logs" / "fit" / "{trace}__{cluster}.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "fit" / "{trace}__{cluster}.tsv")
    threads: 1
    resources:
        **asks("fit"),
    params:
        known_share=lambda w: run.split.train if workspace.cluster(w.cluster).balance else None,
        code=CODE,
    message:
        "fit {wildcards.trace} to {wildcards.cluster}"
    shell:
        "rltune stage fit {wildcards.trace} {wildcards.cluster} {RUN} 2>&1 | tee {log}"


rule estimate:
    input:
        pools=rules.fit.output.pools,
    output:
        here(workspace.estimates("{trace}", "{cluster}", "{estimate}")),
    log:
        here(workspace.results / "logs" / "estimate" / "{trace}__{cluster}__{estimate}.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "estimate" / "{trace}__{cluster}__{estimate}.tsv")
    threads: 1
    resources:
        **asks("estimate"),
    params:
        seed=run.evaluation.seed,
        predictions=predictions_of,
        code=TRACES_CODE,
    message:
        "run-time estimates {wildcards.estimate} for {wildcards.trace} on {wildcards.cluster}"
    shell:
        "rltune stage estimate {wildcards.trace} {wildcards.cluster} {wildcards.estimate} {RUN} 2>&1 | tee {log}"


rule characterise:
    input:
        notebook=source("notebooks", "characterise.ipynb"),
        jobs=[rules.clean.output.jobs.format(trace=trace) for trace in run.traces()],
        pools=[rules.fit.output.pools.format(trace=w.trace, cluster=w.cluster) for w in run.all_workloads()],
        paper=PAPER,
    output:
        artefacts=artefact_files(
            tables=["table2", "table4", "loads", "estimates", "audits"],
            figures=["fig5", "fig6", "arrivals", "distributions"],
        ),
        page=here(workspace.page("characterise")),
    log:
        here(workspace.notebook("characterise")),
    benchmark:
        here(workspace.results / "benchmarks" / "characterise.tsv")
    threads: 1
    resources:
        **asks("characterise"),
    params:
        split=run.split.model_dump(),
        seed=run.evaluation.seed,
        estimates=sorted({cell.estimate for cell in CELLS.values()}),
        code=[CODE, REPORT_CODE],
    message:
        "characterise the traces"
    shell:
        "rltune stage notebook characterise --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
