# The system in words and drawings, and what the order of a small queue is worth: neither traces nor agents.


def network_of(cell):
    """What decides the shapes of a cell's networks."""
    preset = run.preset(cell.preset)
    return preset.agent, cell.features, tuple(preset.actor_layers), preset.critic_iterations > 0, preset.residual > 0


rule system:
    input:
        plugins=[str(path) for path in workspace.plugins],
        paper=PAPER,
        notebook=source("notebooks", "system.ipynb"),
    output:
        artefacts=artefact_files(
            tables=["table1", "table3", "table5", "motivation"],
            figures=["fig1", "fig2", "fig3", "fig4", "fig7", "fig8", "fig9"],
        ),
        page=here(workspace.page("system")),
    log:
        here(workspace.notebook("system")),
    benchmark:
        here(workspace.results / "benchmarks" / "system.tsv")
    threads: 1
    resources:
        **asks("system"),
    params:
        policies=sorted({*run.evaluation.baseline_policies, *(cell.policy for cell in CELLS.values())}),
        networks=list(dict.fromkeys(map(network_of, CELLS.values()))),
        code=[CODE, REPORT_CODE],
    message:
        "the system, and why the order of a queue matters"
    shell:
        "rltune stage notebook system --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
