"""Agents of a study as the chapter on rules has them: what they were judged under, and which are one."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from rltune.config import Cell
from rltune.pipeline.semantics import agents

SAF = Cell("philly", "philly-192", "saf", "wait", "easy", "best_fit", "strict", "rich", "lognormal-1", "tuned", 1)
FIFO = SAF.but(policy="fifo", backfill="none")


def study(*judged: tuple[Cell, str, float]) -> SimpleNamespace:
    """Of cells, the rule they were judged under and their wait in the first window; in the second it is twice that."""
    tables = {
        cell: pd.DataFrame(
            {
                "role": ["rltune", "rltune", "base"],
                "policy": "sjf",
                "backfill": [backfill, backfill, cell.backfill],
                "window": [0, 1, 0],
                "first_job": [0, 64, 0],
                "wait_s": [wait, 2 * wait, 999.0],
            }
        )
        for cell, backfill, wait in judged
    }
    return SimpleNamespace(cells=tuple(tables), results=tables.__getitem__)


def waits(frame: pd.DataFrame) -> dict[tuple[str, ...], list[float]]:
    keys = ["policy", "base_backfill", "other", "backfill"]
    return {key: rows["wait_s"].tolist() for key, rows in frame.groupby(keys, sort=False)}


def test_an_agent_has_the_rule_it_was_judged_under_and_its_base_policy() -> None:
    found = waits(agents(study((SAF, "conservative", 10.0), (FIFO, "none", 30.0))))
    assert found == {("saf", "easy", "", "conservative"): [10, 20], ("fifo", "none", "", "none"): [30, 60]}


def test_seeds_are_one_agent_and_presets_are_not() -> None:
    found = waits(
        agents(study((SAF, "easy", 10.0), (SAF.but(seed=2), "easy", 20.0), (SAF.but(preset="quick"), "easy", 50.0)))
    )
    assert found == {("saf", "easy", "tuned", "easy"): [15, 30], ("saf", "easy", "quick", "easy"): [50, 100]}


def test_rules_in_which_seeds_differ_are_both_named() -> None:
    found = agents(study((SAF, "easy", 10.0), (SAF.but(seed=2), "conservative", 20.0)))
    assert waits(found) == {("saf", "easy", "", "easy or conservative"): [15, 30]}
