# Raw archives, which `clean` downloads or finds (rltune.traces.fetch) → job tables → workloads: the jobs that a cluster can
# hold, and what schedulers are given of their run times.


rule clean:
    input:
        "config/traces/{trace}.yaml",
        lambda w: LOCAL_FILES.get(w.trace, []),
        notebook="notebooks/clean.ipynb",
    output:
        jobs=RESULTS / "traces/{trace}/jobs.parquet",
        audit=RESULTS / "traces/{trace}/audit.json",
        notebook=RESULTS / "notebooks/clean-{trace}.ipynb",
    log:
        RESULTS / "logs/clean-{trace}.ipynb",
    benchmark:
        RESULTS / "benchmarks/clean/{trace}.tsv"
    priority: 2  # agents and emulated clusters wait for it
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(60),
    params:
        trace="{trace}",
        code=digest("notebooks/clean.ipynb"),
    message:
        "clean {wildcards.trace}"
    script:
        "../scripts/notebook.py"


rule fit:
    input:
        jobs=RESULTS / "traces/{trace}/jobs.parquet",
        cluster="config/clusters/{cluster}.yaml",
    output:
        jobs=RESULTS / "workloads/{trace}__{cluster}/jobs.parquet",
        audit=RESULTS / "workloads/{trace}__{cluster}/audit.json",
    log:
        RESULTS / "logs/fit-{trace}__{cluster}.log",
    benchmark:
        RESULTS / "benchmarks/fit/{trace}__{cluster}.tsv"
    priority: 2
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(1500),
        runtime=more(30),
    params:
        train=run.config.train_share,
        speeds=speeds_of,
        code=digest("workflow/scripts/fit.py"),
    message:
        "fit {wildcards.trace} to {wildcards.cluster}"
    script:
        "../scripts/fit.py"


rule estimate:
    input:
        lambda w: PUBLISHED.get(w.trace, []) if w.estimate == "published" else [],
        jobs=RESULTS / "workloads/{trace}__{cluster}/jobs.parquet",
    output:
        estimates=RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet",
    log:
        RESULTS / "logs/estimate-{trace}__{cluster}__{estimate}.log",
    benchmark:
        RESULTS / "benchmarks/estimate/{trace}__{cluster}__{estimate}.tsv"
    priority: 2
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(1500),
        runtime=more(30),
    params:
        seed=run.config.evaluation.seed,
        code=digest("workflow/scripts/estimate.py"),
    message:
        "run-time estimates {wildcards.estimate} for {wildcards.trace} on {wildcards.cluster}"
    script:
        "../scripts/estimate.py"
