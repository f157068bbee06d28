"""The list of artefacts: what a run makes, by which stage, and why not the others."""

import pytest
from report_runs import PAPER, SOURCE

from rltune.config import load_run
from rltune.report import artefacts


def test_every_artefact_has_a_chapter_a_stage_and_a_title_and_the_papers_are_the_papers():
    for entry in artefacts.entries().values():
        assert entry.chapter in artefacts.chapters() and entry.title and entry.caption
        assert (SOURCE / "notebooks" / f"{entry.stage}.ipynb").is_file(), entry.id
        assert entry.kind == "table" or entry.alt
        assert not entry.paper or PAPER.ref(entry.paper)
        assert entry.when in ("", "trained", *artefacts.CONDITIONS)


@pytest.mark.parametrize(
    ("config", "name", "why"),
    [
        ("default", "fig10", None),
        ("transfer", "fig10", "no setting"),
        ("default", "whatif", ""),
        ("smoke", "fig18", None),
        ("transfer", "fig18", "has no block `deployment`"),
        ("smoke", "table8", "no RLTune agent with EASY"),
        ("smoke", "sensitivity", "differ only in their features"),
        ("smoke", "loads-compared", "has a balanced cluster"),
        ("smoke", "fig14-numbers", "no agent is trained for mean bounded slowdown"),
        ("smoke", "fig16", "against Slurm’s multifactor priority"),
        ("smoke", "training-mixes", ""),
        ("smoke", "fig12", None),
        ("smoke", "gpu-types", None),
        ("transfer", "gpu-types", ""),
    ],
)
def test_a_configuration_decides_what_is_made_and_the_reason_is_given(config, name, why):
    found = artefacts.why_not(load_run(f"config/{config}.yaml", SOURCE), name)
    assert found is None if why is None else found is not None and why in found and bool(why) == bool(found)
