# Chapters that simulate: other rules, other traces, other learners, an operator's cluster. What is not said here is as in
# `characterise`, resources as in the first rule.


use rule characterise as scheduling_rules with:
    input:
        PLUGINS,
        notebook="notebooks/scheduling_rules.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        test_jobs=cells(RESULTS / "cells/{cell}/jobs.parquet"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=cells(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet", [*CELLS.values(), *BALANCED]),
        estimates=cells(
            RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", [*CELLS.values(), *BALANCED]
        ),
        paper=PAPER,
    output:
        artefact_files("scheduling_rules"),
        notebook=RESULTS / "notebooks/scheduling_rules.ipynb",
    log:
        RESULTS / "logs/scheduling_rules.ipynb",
    benchmark:
        RESULTS / "benchmarks/scheduling_rules.tsv"
    resources:
        mem_mb=more(3000),
        runtime=more(120),
    params:
        settings=SETTINGS | run.config.evaluation.model_dump(),
        code=digest("notebooks/scheduling_rules.ipynb", shown=True),
    message:
        "what scheduling rules do, and who pays"


use rule scheduling_rules as transfer with:
    input:
        notebook="notebooks/transfer.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=cells(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet"),
        estimates=cells(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet"),
        paper=PAPER,
    output:
        artefact_files("transfer"),
        notebook=RESULTS / "notebooks/transfer.ipynb",
    log:
        RESULTS / "logs/transfer.ipynb",
    benchmark:
        RESULTS / "benchmarks/transfer.tsv"
    priority: 1  # the longest of those that wait for all agents
    params:
        code=digest("notebooks/transfer.ipynb", shown=True),
    message:
        "agents on other base policies, traces and estimates"


use rule scheduling_rules as peers with:
    input:
        PLUGINS,
        notebook="notebooks/peers.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        histories=cells(RESULTS / "cells/{cell}/history.csv"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=cells(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet"),
        estimates=cells(
            RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", [*CELLS.values(), *BY_YARDSTICK]
        ),
        paper=PAPER,
    output:
        artefact_files("peers"),
        notebook=RESULTS / "notebooks/peers.ipynb",
    log:
        RESULTS / "logs/peers.ipynb",
    benchmark:
        RESULTS / "benchmarks/peers.tsv"
    params:
        code=digest("notebooks/peers.ipynb", shown=True),
    message:
        "RLTune next to other learners and predictors"


use rule scheduling_rules as gpu_types with:
    input:
        PLUGINS,
        notebook="notebooks/gpu_types.ipynb",
        jobs=cells(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet", MIXED),
        estimates=cells(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", MIXED),
        policies=cells(RESULTS / "cells/{cell}/policy.npz", agents_on(MIXED)),
    output:
        artefact_files("gpu_types"),
        notebook=RESULTS / "notebooks/gpu_types.ipynb",
    log:
        RESULTS / "logs/gpu_types.ipynb",
    benchmark:
        RESULTS / "benchmarks/gpu_types.tsv"
    params:
        settings=SETTINGS
        | run.config.evaluation.model_dump(include={"sequence_jobs", "max_windows", "bootstrap", "baseline_policies"}),
        code=digest("notebooks/gpu_types.ipynb", shown=True),
    message:
        "which GPU, now or later"


use rule scheduling_rules as whatif with:
    input:
        notebook="notebooks/whatif.ipynb",
        policies=cells(RESULTS / "cells/{cell}/policy.npz", FIRST),
        histories=cells(RESULTS / "cells/{cell}/history.csv", FIRST),
        jobs=path_of(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet", FIRST[0]),
        estimates=path_of(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", FIRST[0]),
        qssf_estimates=path_of(
            RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", FIRST[0].but(estimate=QSSF_ESTIMATE)
        ),
    output:
        artefact_files("whatif"),
        notebook=RESULTS / "notebooks/whatif.ipynb",
    log:
        RESULTS / "logs/whatif.ipynb",
    benchmark:
        RESULTS / "benchmarks/whatif.tsv"
    params:
        settings=SETTINGS | RESAMPLING | run.config.model_dump(include={"whatif"}),
        code=digest("notebooks/whatif.ipynb", shown=True),
    message:
        "your cluster, what if"
