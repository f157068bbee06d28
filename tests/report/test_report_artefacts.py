"""The list of artefacts: what a run makes, by which stage, and why not the others."""

from __future__ import annotations

import pytest
from report_fakes import Made
from report_runs import PAPER, SOURCE

from rltune.config import load_run
from rltune.report import artefacts


def test_every_artefact_has_a_chapter_a_stage_and_a_title_and_the_papers_are_the_papers() -> None:
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
def test_a_configuration_decides_what_is_made_and_the_reason_is_given(config: str, name: str, why: str | None) -> None:
    found = artefacts.why_not(load_run(f"config/{config}.yaml", SOURCE), name)
    assert found is None if why is None else found is not None and why in found and bool(why) == bool(found)


def test_a_stage_writes_the_files_of_its_artefacts(made: Made) -> None:
    config = made.run.config
    assert {"costs.csv", "costs.json", "fig12.svg", "fig12.png"} <= set(artefacts.files(config, "figures"))
    assert "fig7.svg" in artefacts.files(config, "system") and "fig7.png" not in artefacts.files(config, "system")
    stages = {entry.stage for entry in artefacts.entries().values()}
    assert sorted(artefacts.of(config)) == sorted(name for stage in stages for name in artefacts.of(config, stage))
    there = {path.name for path in made.project.artefacts.iterdir()}
    assert set(artefacts.files(config, "figures")) | set(artefacts.files(config, "ablation")) <= there


def test_what_is_saved_is_what_the_list_says(made: Made) -> None:
    for name, saved in made.there.items():
        entry = artefacts.entry_of(name)
        assert (saved.artefact.kind, saved.artefact.source) == (entry.kind, entry.stage)
        text = " ".join(
            filter(None, [saved.artefact.title, saved.artefact.caption, saved.artefact.alt, *saved.artefact.notes])
        )
        assert "{" not in text and "  " not in text, name
