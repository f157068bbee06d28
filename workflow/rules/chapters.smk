# The chapters of the report: a notebook each, over the results of every cell.

from rltune.config.whatif import QSSF_ESTIMATE

FIRST = run.config.first_cells()  # the agent of the what-if analysis, with every seed


rule characterise:
    input:
        notebook="notebooks/characterise.ipynb",
        tables=expand(RESULTS / "traces/{trace}/jobs.parquet", trace=run.traces),
        audits=expand(RESULTS / "traces/{trace}/audit.json", trace=run.traces),
        fitted=[
            f"{RESULTS}/workloads/{w.trace}__{w.cluster}/jobs.parquet"
            for w in WORKLOADS
        ],
        fit_audits=[
            f"{RESULTS}/workloads/{w.trace}__{w.cluster}/audit.json" for w in WORKLOADS
        ],
        paper=PAPER,
    output:
        artefact_files("characterise"),
        notebook=RESULTS / "notebooks/characterise.ipynb",
    log:
        RESULTS / "logs/characterise.ipynb",
    benchmark:
        RESULTS / "benchmarks/characterise.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(60),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=SETTINGS | JUDGING,
        code=[CODE["training"], CODE["report"]],
    message:
        "what the traces look like"
    script:
        "../scripts/notebook.py"


rule system:
    input:
        PLUGINS,
        notebook="notebooks/system.ipynb",
        example_schedules=EXAMPLE_SCHEDULES,
        paper=PAPER,
    output:
        artefact_files("system"),
        notebook=RESULTS / "notebooks/system.ipynb",
    log:
        RESULTS / "logs/system.ipynb",
    benchmark:
        RESULTS / "benchmarks/system.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(60),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=run.config.model_dump(
            include={"experiments", "presets", "example_schedules"}
        ),
        code=[CODE["training"], CODE["report"], CODE["slurm"]],
    message:
        "the system, and why the order of a queue matters"
    script:
        "../scripts/notebook.py"


rule ablation:
    input:
        notebook="notebooks/ablation.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        histories=cells(RESULTS / "cells/{cell}/history.csv"),
        paper=PAPER,
    output:
        artefact_files("ablation"),
        notebook=RESULTS / "notebooks/ablation.ipynb",
    log:
        RESULTS / "logs/ablation.ipynb",
    benchmark:
        RESULTS / "benchmarks/ablation.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(60),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=JUDGING,
        code=CODE["report"],
    message:
        "naive against pro"
    script:
        "../scripts/notebook.py"


OTHERS = (
    "table7",
    "fig17-numbers",
    "deployment-numbers",
)  # tables of other chapters with claims of the paper


rule figures:
    input:
        notebook="notebooks/figures.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        histories=cells(RESULTS / "cells/{cell}/history.csv"),
        test_jobs=cells(RESULTS / "cells/{cell}/jobs.parquet"),
        others=[
            f"{RESULTS}/artefacts/{name}.csv"
            for name in OTHERS
            if name in artefacts.of(run.config)
        ],
        placements=cells(RESULTS / "cells/{cell}/placements.csv"),
        paper=PAPER,
    output:
        artefact_files("figures"),
        notebook=RESULTS / "notebooks/figures.ipynb",
    log:
        RESULTS / "logs/figures.ipynb",
    benchmark:
        RESULTS / "benchmarks/figures.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(2000),
        runtime=more(60),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=JUDGING,
        code=CODE["report"],
    message:
        "tables and figures"
    script:
        "../scripts/notebook.py"


rule semantics:
    input:
        PLUGINS,
        notebook="notebooks/semantics.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        test_jobs=cells(RESULTS / "cells/{cell}/jobs.parquet"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=workloads("jobs", [*CELLS.values(), *BALANCED]),
        estimates=workloads("estimates", [*CELLS.values(), *BALANCED]),
        paper=PAPER,
    output:
        artefact_files("semantics"),
        notebook=RESULTS / "notebooks/semantics.ipynb",
    log:
        RESULTS / "logs/semantics.ipynb",
    benchmark:
        RESULTS / "benchmarks/semantics.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(3000),
        runtime=more(120),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=SETTINGS | run.config.evaluation.model_dump(),
        code=[CODE["evaluation"], CODE["report"]],
    message:
        "what scheduling rules do, and who pays"
    script:
        "../scripts/notebook.py"


rule transfer:
    input:
        notebook="notebooks/transfer.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=workloads("jobs"),
        estimates=workloads("estimates"),
        paper=PAPER,
    output:
        artefact_files("transfer"),
        notebook=RESULTS / "notebooks/transfer.ipynb",
    log:
        RESULTS / "logs/transfer.ipynb",
    benchmark:
        RESULTS / "benchmarks/transfer.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(3000),
        runtime=more(120),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=SETTINGS | run.config.evaluation.model_dump(),
        code=[CODE["evaluation"], CODE["report"]],
    message:
        "agents on other base policies, traces and estimates"
    script:
        "../scripts/notebook.py"


rule peers:
    input:
        PLUGINS,
        notebook="notebooks/peers.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        histories=cells(RESULTS / "cells/{cell}/history.csv"),
        policies=cells(RESULTS / "cells/{cell}/policy.npz"),
        jobs=workloads("jobs"),
        estimates=workloads("estimates", [*CELLS.values(), *BY_YARDSTICK]),
        paper=PAPER,
    output:
        artefact_files("peers"),
        notebook=RESULTS / "notebooks/peers.ipynb",
    log:
        RESULTS / "logs/peers.ipynb",
    benchmark:
        RESULTS / "benchmarks/peers.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(3000),
        runtime=more(120),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=SETTINGS | run.config.evaluation.model_dump(),
        code=[CODE["evaluation"], CODE["report"]],
    message:
        "RLTune next to other learners and predictors"
    script:
        "../scripts/notebook.py"


rule whatif:
    input:
        notebook="notebooks/whatif.ipynb",
        policies=cells(RESULTS / "cells/{cell}/policy.npz", FIRST),
        histories=cells(RESULTS / "cells/{cell}/history.csv", FIRST),
        jobs=workload("jobs", FIRST[0]),
        estimates=workload("estimates", FIRST[0]),
        qssf_estimates=workload("estimates", FIRST[0].but(estimate=QSSF_ESTIMATE)),
    output:
        artefact_files("whatif"),
        notebook=RESULTS / "notebooks/whatif.ipynb",
    log:
        RESULTS / "logs/whatif.ipynb",
    benchmark:
        RESULTS / "benchmarks/whatif.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(3000),
        runtime=more(120),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        settings=SETTINGS | JUDGING | run.config.model_dump(include={"whatif"}),
        code=[CODE["evaluation"], CODE["report"]],
    message:
        "your cluster, what if"
    script:
        "../scripts/notebook.py"
