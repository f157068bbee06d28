# The chapters of the report: a notebook each, over the results of every cell. Environment, resources, script and the other
# parameters of all are those of the first rule.

from rltune.config.whatif import QSSF_ESTIMATE

FIRST = run.config.first_cells()  # the agent of the what-if analysis, with every seed


rule characterise:
    input:
        sum(PUBLISHED.values(), []),
        notebook="notebooks/characterise.ipynb",
        tables=expand(RESULTS / "traces/{trace}/jobs.parquet", trace=run.traces),
        audits=expand(RESULTS / "traces/{trace}/audit.json", trace=run.traces),
        fitted=[f"{RESULTS}/workloads/{w.trace}__{w.cluster}/jobs.parquet" for w in WORKLOADS],
        fit_audits=[f"{RESULTS}/workloads/{w.trace}__{w.cluster}/audit.json" for w in WORKLOADS],
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
        artefacts=RESULTS / "artefacts",
        order=ORDER,
        settings=SETTINGS
        | {
            "seed": run.config.evaluation.seed,
            "estimates": sorted({(c.trace, c.estimate) for c in run.config.cells()}),
        },
        code=digest("notebooks/characterise.ipynb", shown=True),
    message:
        "what the traces look like"
    script:
        "../scripts/notebook.py"


use rule characterise as system with:
    input:
        PLUGINS,
        notebook="notebooks/system.ipynb",
        example_schedules=expand("{file}.csv", file=EXAMPLE_SCHEDULES),
        schedule_facts=expand("{file}.json", file=EXAMPLE_SCHEDULES),
        paper=PAPER,
    output:
        artefact_files("system"),
        notebook=RESULTS / "notebooks/system.ipynb",
    log:
        RESULTS / "logs/system.ipynb",
    benchmark:
        RESULTS / "benchmarks/system.tsv"
    params:
        settings=run.config.model_dump(include={"experiments", "presets", "example_schedules"})
        | run.config.evaluation.model_dump(include={"baseline_policies"}),
        code=digest("notebooks/system.ipynb", shown=True),
    message:
        "the system, and why the order of a queue matters"


use rule characterise as ablation with:
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
    params:
        settings=RESAMPLING,
        code=digest("notebooks/ablation.ipynb", shown=True),
    message:
        "naive against pro"


use rule characterise as deployment with:
    input:
        notebook="notebooks/deployment.ipynb",
        jobs=path_of(RESULTS / "workloads/{trace}__{cluster}/jobs.parquet", DEPLOYED),
        estimates=path_of(RESULTS / "workloads/{trace}__{cluster}/estimate-{estimate}.parquet", DEPLOYED),
        policy=path_of(RESULTS / "cells/{cell}/policy.npz", DEPLOYED),
        history=path_of(RESULTS / "cells/{cell}/history.csv", DEPLOYED),
        runs=expand("{folder}/jobs.csv", folder=DEPLOYED_RUNS),
        cycles=expand("{folder}/cycles.csv", folder=DEPLOYED_RUNS),
        run_facts=expand("{folder}/facts.json", folder=DEPLOYED_RUNS),
        paper=PAPER,
    output:
        artefact_files("deployment"),
        notebook=RESULTS / "notebooks/deployment.ipynb",
    log:
        RESULTS / "logs/deployment.ipynb",
    benchmark:
        RESULTS / "benchmarks/deployment.tsv"
    resources:
        mem_mb=more(3000),
        runtime=more(60),
    params:
        settings=SETTINGS | RESAMPLING | run.config.model_dump(include={"deployment"}),
        code=digest("notebooks/deployment.ipynb", shown=True),
    message:
        "on a Slurm cluster"


# tables of other chapters with claims of the paper
OTHERS = [
    ("transfer", "table7"),
    ("peers", "table8"),
    ("peers", "fig17-numbers"),
    ("peers", "table9-numbers"),
    ("deployment", "deployment-numbers"),
]


use rule characterise as figures with:
    input:
        notebook="notebooks/figures.ipynb",
        windows=cells(RESULTS / "cells/{cell}/windows.csv"),
        histories=cells(RESULTS / "cells/{cell}/history.csv"),
        test_jobs=cells(RESULTS / "cells/{cell}/jobs.parquet"),
        others=[f"{RESULTS}/artefacts/{name}.csv" for stage, name in OTHERS if name in artefact_names(stage)],
        placements=cells(RESULTS / "cells/{cell}/placements.csv"),
        paper=PAPER,
    output:
        artefact_files("figures"),
        notebook=RESULTS / "notebooks/figures.ipynb",
    log:
        RESULTS / "logs/figures.ipynb",
    benchmark:
        RESULTS / "benchmarks/figures.tsv"
    params:
        settings=RESAMPLING,
        code=digest("notebooks/figures.ipynb", shown=True),
    message:
        "tables and figures"
