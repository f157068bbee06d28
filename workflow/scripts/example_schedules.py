"""Run the example schedules of Figures 1 to 4 on an emulated Slurm cluster, and write them with how they were made."""

from logged import logged

from rltune.files import write_json, write_text
from rltune.slurm.experiment.example_schedules import run_schedules

with logged(snakemake.log[0]):  # noqa: F821
    runs, facts = run_schedules()
    write_text(snakemake.output.runs, runs.to_csv(index=False))  # noqa: F821
    write_json(snakemake.output.facts, facts)  # noqa: F821
