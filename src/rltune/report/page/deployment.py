"""The deployment on the page: its artefacts, and why a run has not all of them."""

from __future__ import annotations

from rltune.config import RunConfig

DEPLOYMENT = {
    "fig18": "Makespan and wait on the Slurm cluster",
    "deployment-numbers": "RLTune beside Slurm, in numbers",
    "fig19": "Utilisation over time on the Slurm cluster",
    "deployment-runs": "Every run",
    "deployment-machinery": "What the machinery took",
    "deployment-fidelity": "The simulator against Slurm",
    "deployment-predicted": "Would the simulator have said so?",
}
"""Id → title, in the order of the page."""
FIGURES = ("fig18", "fig19")
ALWAYS = ("deployment-runs",)
"""What is made without Slurm's packages too: what the simulator says of the same jobs, and what is missing."""
NO_BLOCK = "the run’s configuration has no block `deployment`; config/deployment.yaml has one"
NO_RUNS = "no run on the Slurm cluster is there; the table “Every run” says what is missing and how to install it"


def made(config: RunConfig, runs: bool) -> tuple[list[str], list[str]]:
    """(Tables, figures) that the stage writes; none where the run has no block `deployment`.

    ``runs``: whether there are runs on the Slurm cluster, or can be.
    """
    ids = [name for name in DEPLOYMENT if runs or name in ALWAYS] if config.deployment is not None else []
    return [name for name in ids if name not in FIGURES], [name for name in ids if name in FIGURES]
