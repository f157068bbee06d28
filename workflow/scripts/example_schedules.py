"""Run the example schedules of Figures 1 to 4 on an emulated Slurm cluster and write them, with how they were made."""

from rltune.files import write_json, write_text
from rltune.slurm.experiment.example_schedules import run_schedules

with open(snakemake.log[0], "w", encoding="utf-8", buffering=1) as log:  # noqa: F821

    def tell(line: str) -> None:
        print(f"[example schedules] {line}", flush=True)
        log.write(f"{line}\n")

    runs, facts = run_schedules(tell)
write_text(snakemake.output.runs, runs.to_csv(index=False))  # noqa: F821
write_json(snakemake.output.facts, facts)  # noqa: F821
