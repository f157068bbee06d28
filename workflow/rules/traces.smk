# Raw archives to job tables, and each job table fitted to its clusters.


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
        mem_mb=3000,
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
        mem_mb=2000,
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
    threads: 1
    resources:
        mem_mb=2000,
    params:
        seed=run.evaluation.seed,
    message:
        "run-time estimates {wildcards.estimate} for {wildcards.trace} on {wildcards.cluster}"
    shell:
        "rltune stage estimate {wildcards.trace} {wildcards.cluster} {wildcards.estimate} {RUN} 2>&1 | tee {log}"


rule characterise:
    input:
        notebook=source("notebooks", "characterise.ipynb"),
        jobs=[rules.clean.output.jobs.format(trace=trace) for trace in run.traces()],
        pools=[rules.fit.output.pools.format(trace=w.trace, cluster=w.cluster) for w in run.all_workloads()],
    output:
        artefacts=[here(workspace.artefacts / f"{name}.json") for name in ("table2", "table4", "loads", "audits")],
        page=here(workspace.page("characterise")),
    log:
        here(workspace.notebook("characterise")),
    benchmark:
        here(workspace.results / "benchmarks" / "characterise.tsv")
    threads: 1
    resources:
        mem_mb=3000,
    params:
        split=run.split.model_dump(),
    message:
        "characterise the traces"
    shell:
        "rltune stage notebook characterise --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
