# The page that shows it all, with the executed notebooks next to it.

CHAPTERS = ["characterise", "system", "figures", "scheduling_rules", "transfer", "peers"]
OPTIONAL = ["ablation", "gpu_types", "whatif", "deployment"]
CHAPTERS += [chapter for chapter in OPTIONAL if artefacts.of(run.config, chapter)]


rule report:
    input:
        [artefact_files(chapter) for chapter in CHAPTERS],
        notebooks=[
            *cells(RESULTS / "notebooks/train-{cell}.ipynb"),
            *cells(RESULTS / "notebooks/evaluate-{cell}.ipynb"),
            *expand(RESULTS / "notebooks/clean-{trace}.ipynb", trace=run.traces),
            *expand(
                RESULTS / "notebooks/compare-{trace}.ipynb",
                trace={cell.trace: 0 for cell in CELLS.values()},
            ),
            *expand(RESULTS / "notebooks/{chapter}.ipynb", chapter=CHAPTERS),
        ],
        paper=PAPER,
        deviations="config/deviations.yaml",
    output:
        report=RESULTS / "report/index.html",
    log:
        RESULTS / "logs/report.log",
    benchmark:
        RESULTS / "benchmarks/report.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=more(1500),
        runtime=more(30),
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        benchmarks=RESULTS / "benchmarks",
        settings=run.config.model_dump(mode="json"),
        code=digest("workflow/scripts/report.py", shown=True),
    message:
        "report"
    script:
        "../scripts/report.py"


rule pdf:
    input:
        report=RESULTS / "report/index.html",
    output:
        pdf=RESULTS / "report/report.pdf",
    log:
        RESULTS / "logs/pdf.log",
    conda:
        ENVIRONMENT
    message:
        "the report as a PDF, printed by Chromium"
    script:
        "../scripts/pdf.py"


rule expected:
    input:
        report=RESULTS / "report/index.html",
        expected="config/expected.yaml",
    output:
        checked=RESULTS / "expected.csv",
    log:
        RESULTS / "logs/expected.log",
    conda:
        ENVIRONMENT
    params:
        config=CONFIG,
        artefacts=RESULTS / "artefacts",
        traces=run.config.traces(),
        without=[] if DEPLOYED_RUNS or not DEPLOYMENT else ["deployment", "example_schedules"],
    message:
        "compare the numbers with those expected of this run"
    script:
        "../scripts/expected_numbers.py"
