# The page that shows it all.


rule report:
    input:
        rules.characterise.output,
        rules.figures.output,
        rules.system.output,
        rules.semantics.output,
        rules.peers.output,
        rules.ablation.output if has_ablation(run) else [],
        rules.whatif.output if run.whatif is not None else [],
        rules.deployment.output if run.deployment is not None else [],
        rules.transfer.output,
        pages=[here(workspace.page(stage, cell)) for cell in CELLS for stage in ("train", "evaluate")],
        cleaning=[here(workspace.page("clean", trace)) for trace in run.traces()],
        comparisons=[here(workspace.page("compare", trace)) for trace in dict.fromkeys(c.trace for c in CELLS.values())],
        config=source(workspace.config_path),
        paper=PAPER,
        deviations=source("config", "deviations.yaml"),
    output:
        report(here(workspace.report / "index.html"), caption=CAPTION, category="The report"),
    log:
        here(workspace.results / "logs" / "report.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "report.tsv")
    threads: 1
    resources:
        **asks("report"),
    params:
        code=REPORT_CODE,
    message:
        "report"
    shell:
        "rltune stage report {RUN} 2>&1 | tee {log}"
