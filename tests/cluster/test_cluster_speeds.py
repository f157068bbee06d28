"""Profiles of speeds: what is refused, which model a job is given, and how long it then runs where."""

import gzip

import numpy as np
import pandas as pd
import pytest

from rltune.cluster.speeds import GAVEL, Profile, ratios, read_profile, read_speeds, slowdowns
from rltune.errors import DataError
from rltune.traces.columns import empty_columns

HEAD = "model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s\n"
TYPES = ("K80", "P100", "V100")


def jobs(n: int = 4000, seed: int = 1) -> pd.DataFrame:
    gpus = np.random.default_rng(seed).choice([1, 2, 3, 4, 6, 8, 16, 32], n)
    return empty_columns(n).assign(job_id=[f"j{i}" for i in range(n)], gpus=gpus)


@pytest.fixture(scope="module")
def gavel() -> Profile:
    return read_profile(GAVEL)


def test_the_profile_that_ships_is_as_published(gavel):
    assert (len(gavel.models), gavel.gpus.tolist(), gavel.types) == (26, [1, 2, 4, 8], ("k80", "p100", "v100"))
    assert np.isfinite(gavel.steps).any(axis=3).sum() == 249
    lm, resnet = gavel.models.index("LM (batch size 10)"), gavel.models.index("ResNet-50 (batch size 128)")
    assert gavel.steps[lm, 3, 2].tolist() == [615.09346, 65.52055], "nine tenths are lost where it is spread"
    assert gavel.steps[resnet, 1:, 0].tolist() == [[0, 0]] * 3, "it does not run on a K80"


def test_a_job_runs_as_long_as_recorded_on_the_type_it_was_recorded_on(gavel):
    for on in TYPES:
        found = slowdowns(jobs(), gavel, TYPES, on)
        assert (found.consolidated[:, TYPES.index(on)] == 1.0).all()
        assert (found.consolidated > 0).all() and (found.spread > 0).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_models_are_drawn_by_id_alike_among_those_of_the_number_of_gpus(gavel, seed):
    table = jobs(seed=seed)
    found = slowdowns(table, gavel, TYPES, "P100")
    again = slowdowns(table.iloc[::-1], gavel, TYPES, "P100")
    assert (again.model[::-1] == found.model).all() and (again.consolidated[::-1] == found.consolidated).all()
    for low, high, g in ((1, 1, 0), (2, 3, 1), (4, 7, 2), (8, 99, 3)):
        mine = found.model[table["gpus"].between(low, high).to_numpy()]
        measured = [m for i, m in enumerate(gavel.models) if gavel.steps[i, g, 1, 0] > 0]
        counts = pd.Series(mine).value_counts()
        assert set(counts.index) == set(measured)
        assert counts.min() > 0.4 * len(mine) / len(measured) and counts.max() < 2 * len(mine) / len(measured)


def test_the_slowdowns_of_a_model(gavel):
    table = jobs(3).assign(gpus=[1, 9, 8], model=["A3C", "LM (batch size 10)", "ResNet-50 (batch size 128)"])
    found = slowdowns(table, gavel, ("V100", "K80"), "P100")
    assert found.consolidated[0].tolist() == pytest.approx([5.68135 / 7.17577, 5.68135 / 3.43877])
    assert found.spread[1].tolist() == pytest.approx([127.78891 / 65.52055, 127.78891 / 62.64704])
    assert np.isinf(found.consolidated[2, 1]) and np.isfinite(found.consolidated[2, 0])


def test_one_ratio_a_type():
    found = slowdowns(jobs(2), ratios({"v100": 2.0, "P100": 1.0}, "c: speeds"), ("P100", "V100"), "P100")
    assert found.consolidated.tolist() == found.spread.tolist() == [[1.0, 0.5]] * 2


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,1,k80,1,-2\n", r"own.csv: model 'a' on k80: found gpus 1, .*-2"),
        ("a,1,k80,x,2\n", "model 'a' on k80"),
        ("a,1,k80,inf,inf\n", "found gpus 1, .*inf"),
        ("a,0,k80,1,2\n", "whole gpus from 1 to 1,000,000"),
        ("a,1.5,k80,1,2\n", "found gpus 1.5"),
        ("a,1e19,k80,1,2\n", "found gpus 1e"),
        ("a,2,k80,1,0\n", "model 'a' on k80: .*both 0 or neither"),
        ("a,1,K80,1,1\na,1,k80,2,2\n", "model 'a' with 1 GPUs on k80: found twice"),
        (",1,k80,1,1\n", "model nan on k80: found gpus 1, .*expected both names, numbers"),
        ("a,1,k80,1,1\nb,1,,1,1\n", "model 'b' on nan"),
        ("", "own.csv: found a header only, expected a row for each model"),
        ("a,1,k80,0,0\nb,1,k80,1,1\n", "model 'a': found 0 everywhere"),
    ],
)
def test_a_profile_that_says_nonsense_is_refused(rows, words, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(HEAD + rows)
    with pytest.raises(DataError, match=words):
        read_profile(path)


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:20] + b"x" * 20])
def test_a_damaged_profile_is_named(damage, tmp_path):
    (tmp_path / "own.csv.gz").write_bytes(damage(gzip.compress((HEAD + "a,1,k80,1,1\n").encode())))
    with pytest.raises(DataError, match=r"own.csv.gz: not a profile of speeds: "):
        read_profile(tmp_path / "own.csv.gz")


def test_what_a_profile_lacks_is_named(gavel, tmp_path):
    with pytest.raises(DataError, match="gavel_throughputs.csv: no speed on GPU type A100; found k80, p100, v100"):
        read_speeds("gavel", ("P100", "A100"), "")
    with pytest.raises(DataError, match="c: speeds: no speed on GPU type K80; found p100"):
        read_speeds({"P100": 1.0}, ("K80",), "c: speeds")
    with pytest.raises(DataError, match="no model 'GPT', which the trace names"):
        slowdowns(jobs(1).assign(model="GPT"), gavel, TYPES, "P100")
    with pytest.raises(DataError, match="'A3C' with 8 GPUs: not measured on p100"):
        slowdowns(jobs(1).assign(model="A3C", gpus=8), gavel, TYPES, "P100")
    (tmp_path / "own.csv").write_text("model,gpus\na,1\n")
    with pytest.raises(DataError, match=r"own.csv: no column gpu_type, consolidated_steps_per_s"):
        read_profile(tmp_path / "own.csv")
