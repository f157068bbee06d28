# Every agent on held-out windows, next to its base policy and the heuristics; then all agents of a trace.


rule baselines:
    input:
        PLUGINS,
        jobs=RESULTS / "workloads/{trace}__{cluster}/jobs.parquet",
        estimates=RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet",
    output:
        baselines=RESULTS / "workloads/{trace}__{cluster}/baselines-{estimate}.csv",
    log:
        RESULTS / "logs/baselines-{trace}__{cluster}__{estimate}.log",
    benchmark:
        RESULTS / "benchmarks/baselines/{trace}__{cluster}__{estimate}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(120),
    params:
        settings=SETTINGS | run.config.evaluation.model_dump(exclude={"also", "bootstrap"}),
        localities=lambda w: run.config.localities(w.trace, w.cluster, w.estimate),
        tuned=lambda w: run.config.tuned_on(w.trace, w.cluster, w.estimate),
        code=digest("workflow/scripts/baselines.py"),
    message:
        "heuristics on {wildcards.trace}, {wildcards.cluster}"
    script:
        "../scripts/baselines.py"


rule evaluate:
    input:
        notebook="notebooks/evaluate.ipynb",
        jobs=of_cell(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet"),
        estimates=of_cell(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet"),
        baselines=of_cell(RESULTS / "workloads/{trace}__{cluster}/baselines-{estimate}.csv"),
        policy=RESULTS / "cells/{cell}/policy.npz",
    output:
        windows=RESULTS / "cells/{cell}/windows.csv",
        test_jobs=RESULTS / "cells/{cell}/jobs.parquet",
        placements=RESULTS / "cells/{cell}/placements.csv",
        notebook=RESULTS / "notebooks/evaluate-{cell}.ipynb",
    log:
        RESULTS / "logs/evaluate-{cell}.ipynb",
    benchmark:
        RESULTS / "benchmarks/evaluate/{cell}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2500),
        runtime=more(120),
    params:
        cell="{cell}",
        settings=SETTINGS | run.config.evaluation.model_dump(),
        code=digest("notebooks/evaluate.ipynb"),
    message:
        "evaluate {wildcards.cell}"
    script:
        "../scripts/notebook.py"


rule compare:
    input:
        notebook="notebooks/compare.ipynb",
        windows=of_trace(RESULTS / "cells/{cell}/windows.csv"),
        histories=of_trace(RESULTS / "cells/{cell}/history.csv"),
        paper=PAPER,
    output:
        notebook=RESULTS / "notebooks/compare-{trace}.ipynb",
    log:
        RESULTS / "logs/compare-{trace}.ipynb",
    benchmark:
        RESULTS / "benchmarks/compare/{trace}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(1500),
        runtime=more(30),
    params:
        trace="{trace}",
        order=ORDER,
        settings=RESAMPLING,
        code=digest("notebooks/compare.ipynb", shown=True),
    message:
        "the agents of {wildcards.trace}"
    script:
        "../scripts/notebook.py"
