# The system in words and drawings, and what the order of a small queue is worth, on real Slurm daemons for runs with a
# block `motivation`: neither traces nor agents.

from rltune.slurm.emulate import packages

MOTIVATION_CODE = sources_digest("pipeline/motivation", "slurm")
ABSENT = packages.absent(accounting=True, speed=run.motivation.speed) if run.motivation is not None else []


def network_of(cell):
    """What decides the shapes of a cell's networks."""
    preset = run.preset(cell.preset)
    return preset.agent, cell.features, tuple(preset.actor_layers), preset.critic_iterations > 0, preset.base_policy_bias > 0


rule motivation:
    input:
        source("src", "rltune", "pipeline", "motivation", "jobs.py"),
    output:
        runs=here(workspace.motivation),
        facts=here(workspace.motivation.with_suffix(".json")),
    log:
        here(workspace.results / "logs" / "motivation.log"),
    benchmark:
        here(workspace.results / "benchmarks" / "motivation.tsv")
    threads: 1
    resources:
        **asks("motivation"),
    params:
        motivation=run.motivation.model_dump() if run.motivation is not None else None,
        absent=ABSENT,  # once they are installed, the stage is done again
        code=MOTIVATION_CODE,
    message:
        "seven jobs on real Slurm daemons"
    shell:
        "rltune stage motivation {RUN} 2>&1 | tee {log}"


rule system:
    input:
        rules.motivation.output if run.motivation is not None else [],
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
        motivation=run.motivation is not None,
        code=[CODE, REPORT_CODE, MOTIVATION_CODE],
    message:
        "the system, and why the order of a queue matters"
    shell:
        "rltune stage notebook system --log {log} --page {output.page} --threads {threads} {PARAMETERS}"
