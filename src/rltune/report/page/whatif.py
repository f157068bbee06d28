"""The what-if analysis on the page: its artefacts, and what of it stands in the summary."""

from __future__ import annotations

from markupsafe import Markup

from rltune.config import RunConfig
from rltune.report.artefact import Saved

WHATIF = {
    "whatif-recommendation": "The recommendation",
    "whatif": "Hours waited under each scheduler",
    "whatif-numbers": "Every scheduler on the log’s last part",
    "whatif-steps": "The comparisons behind the recommendation",
    "whatif-days": "Hours waited day by day",
    "whatif-groups": "Who waits, by users and by size",
    "whatif-groups-numbers": "Who waits, in numbers",
}
"""Id → title, in the order of the page."""
FIGURES = ("whatif", "whatif-days", "whatif-groups")
IN_SUMMARY = ("Recommendation", "RLTune", "What it learned", "Simulated and recorded")
"""Topics of the recommendation that stand in the summary."""


def made(config: RunConfig) -> tuple[list[str], list[str]]:
    """(Tables, figures) that the stage writes; none where the run has no block `whatif`."""
    ids = list(WHATIF) if config.whatif is not None else []
    return [name for name in ids if name not in FIGURES], [name for name in ids if name in FIGURES]


def summary(there: dict[str, Saved]) -> list[Markup]:
    """The recommendation, a sentence a topic; none where the analysis is not there."""
    if "whatif-recommendation" not in there:
        return []
    told = there["whatif-recommendation"].frame
    return [
        Markup("<strong>{}</strong>: {}").format(row["topic"], row["text"])
        for _, row in told[told["topic"].isin(IN_SUMMARY)].iterrows()
    ]
