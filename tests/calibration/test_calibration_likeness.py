"""Are generated jobs like the months they were fitted to, and are the figures that say so right?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rltune.calibration.fit import AT_FULL_RATE, BOUNDS, errors, figures
from rltune.calibration.likeness import TOLERANCES, WAITS, Tolerance, describe
from rltune.calibration.months import MONTHS, as_rows, between, levels_of
from rltune.calibration.real import months_of
from rltune.calibration.replay import WAIT_TOLERANCES, describe_waits
from rltune.config import Workspace
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.parameters import LEVELS, Fitted, load

ROOT = Path(__file__).resolve().parents[2]
JOBS = {"philly": 40_000, "helios": 40_000, "alibaba2020": 120_000, "hpc2n": 20_000}
SEEDS = (1, 2, 3, 4, 5)
T0 = pd.Timestamp("2020-01-01 00:00", tz="UTC")
MISSED = {"helios": {"inter-arrival CV"}}
"""Figures of the fit months the generator does not reach."""


def table(submit_s: list[float], gpus: list[int], run_s: list[float], **more: list) -> pd.DataFrame:
    columns = {"submit_s": submit_s, "gpus": gpus, "run_s": run_s, "vc": None, "user": None}
    return pd.DataFrame({**columns, **more})


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    """Trace → the figures of each seed."""
    workspace = Workspace.open(ROOT / "config" / "csv.yaml")
    found = {}
    for name, months in MONTHS.items():
        cluster = workspace.cluster(months.cluster) if months.cluster else None
        parameters = load(name)
        t0 = pd.Timestamp(parameters.start, tz=parameters.time_zone)
        draws = (draw_jobs(parameters, JOBS[name], streams(seed, 7)) for seed in SEEDS)
        found[name] = pd.DataFrame([figures(name, drawn, months, cluster, t0) for drawn in draws])
    return found


@pytest.mark.parametrize("name", MONTHS)
def test_like_the_months_it_was_fitted_to(name: str, made: dict[str, pd.DataFrame]) -> None:
    """The median over seeds of every stored figure is within its tolerance, but for those known not to be."""
    target = Fitted.read(name).statistics
    off = errors(made[name].median().to_dict(), target)
    assert set(off) >= {w for w in target if w in TOLERANCES or w in WAIT_TOLERANCES} - _of_rows_only(name)
    assert {what for what, error in off.items() if abs(error) > 1} <= MISSED.get(name, set())


def _of_rows_only(name: str) -> set[str]:
    """Requested times are made by the writer, not by the engine."""
    return {w for w in TOLERANCES if "requested" in w or "recorded wait with" in w} if name == "hpc2n" else set()


@pytest.mark.parametrize("name", [n for n, m in MONTHS.items() if m.cluster])
def test_waits_are_like_those_of_the_months_held(
    name: str, made: dict[str, pd.DataFrame], real_traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mean waits of FIFO, SJF and SAF, with and without EASY, are within a factor of two of those of months that no
    parameter has seen."""
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    months = MONTHS[name]
    assert months.cluster is not None
    rows, _ = months_of(name, ROOT)["held"]
    held = describe_waits(rows, Workspace.open(ROOT / "config" / "csv.yaml").cluster(months.cluster))
    ours = made[name].median()
    for what, value in held.items():
        for kind in ("", AT_FULL_RATE) if months.sample > 1 else ("",):
            if what.startswith("mean wait"):
                assert WAITS.holds(ours[what + kind], value), (what + kind, ours[what + kind], value)


@pytest.mark.parametrize("name", MONTHS)
def test_fit_and_held_months_do_not_meet_and_lie_in_the_first_nine_tenths(
    name: str, real_traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLTUNE_REAL_TRACES", str(real_traces.resolve()))
    from rltune.calibration.real import real_rows

    jobs, t0 = real_rows(name, ROOT)
    fit, held = (between(jobs, t0, days, MONTHS[name].sample) for days in (MONTHS[name].fit, MONTHS[name].held))
    assert fit["submit_s"].iloc[-1] < held["submit_s"].iloc[0]
    assert held["submit_s"].iloc[-1] <= jobs["submit_s"].iloc[int(0.9 * len(jobs))]


@pytest.mark.parametrize("name", MONTHS)
def test_parameter_files_hold_aggregates_only(name: str) -> None:
    """They read back as written, inside the bounds of the search, and are far too small for rows."""
    fitted = Fitted.read(name)
    path = ROOT / "src/rltune/traces/synthetic/fitted" / f"{name}.json"
    assert json.loads(path.read_text()) == json.loads(json.dumps(asdict(fitted)))
    assert path.stat().st_size < 20_000
    for key, value in asdict(fitted.dynamics).items():
        assert BOUNDS[key][0] <= value <= BOUNDS[key][1], key
    assert (fitted.months["first"], fitted.months["until"]) == MONTHS[name].fit


def test_tolerances() -> None:
    twice, near = Tolerance(factor=2), Tolerance(difference=0.1)
    assert twice.holds(50, 100) and twice.holds(200, 100) and not twice.holds(49, 100) and not twice.holds(201, 100)
    assert near.holds(-0.05, 0.0) and not near.holds(0.15, 0.0)


def test_arrivals_worked_by_hand() -> None:
    """Submissions at 0, 0, 30, 60, 660: counts a minute 3, 1, 0 × 9, 1."""
    found = describe(table([0, 0, 30, 60, 660], [1] * 5, [10.0] * 5), T0)
    assert found["arrivals, jobs per s"] == pytest.approx(4 / 660)
    assert found["gaps of at most 1 s"] == 0.25 and found["gaps of at most 10 s"] == 0.25
    counts = np.array([3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    assert found["dispersion of counts, 60 s"] == pytest.approx(counts.var() / counts.mean())
    # Bins of ten minutes: 4 and 1.
    assert found["dispersion of counts, 600 s"] == pytest.approx(2.25 / 2.5)
    assert found["bursts: same GPUs as the job before"] == 1.0


def test_dispersion_of_a_poisson_process_is_one_and_its_cv_too() -> None:
    submit_s = np.cumsum(np.random.default_rng(0).exponential(5, 50_000))
    found = describe(table(submit_s.tolist(), [1] * 50_000, [10.0] * 50_000), T0)
    assert found["dispersion of counts, 60 s"] == pytest.approx(1, abs=0.05)
    assert found["inter-arrival CV"] == pytest.approx(1, abs=0.03)


def test_busiest_hours_count_bursts_once_and_follow_the_clock() -> None:
    """Nine bursts at nine o'clock of nine days, one single job at ten at night on a tenth: nine tenths by day."""
    by_day = [d * 86_400 + 9 * 3600 + s for d in range(9) for s in range(5)]
    submit_s = np.array([*by_day, 9 * 86_400 + 22 * 3600], dtype=float)
    n = len(submit_s)
    found = describe(table(submit_s.tolist(), [1] * n, [1.0] * n), T0)
    assert found["share of the busiest 8 hours"] == pytest.approx(0.9)
    # The same twelve times as fast, from noon.
    faster = describe(table((submit_s / 12).tolist(), [1] * n, [1.0] * n), T0 + pd.Timedelta(hours=12), sample=12)
    assert faster["share of the busiest 8 hours"] == pytest.approx(0.9)


def test_correlations_and_skew_worked_by_hand() -> None:
    runs = [10.0, 10.5, 100.0, 105.0]
    found = describe(table([0, 10, 20, 30], [1, 1, 8, 8], runs, user=["a", "a", "b", "b"], vc=["x", "x", "x", "y"]), T0)
    # Ranks 1, 2, 3, 4 and 1.5, 1.5, 3.5, 3.5: 4 / sqrt(5 × 4).
    assert found["run time with GPUs (rank correlation)"] == pytest.approx(4 / np.sqrt(20))
    assert found["bursts: run time like the job before's"] == pytest.approx(2 / 3)
    assert found["share of the busiest VC"] == 0.75 and found["share of the three busiest VCs"] == 1.0
    assert found["run time explained by user"] > 0.99
    assert found["share of 1 GPU"] == 0.5 and found["share of 8 GPUs"] == 0.5


def test_made_to_look_like_a_sample() -> None:
    """PAI's rows: a twelfth of the jobs, a clock twelve times as fast, run times cut off at 48 h."""
    drawn = draw_jobs(load("alibaba2020"), 60_000, streams(1, 1))
    rows = as_rows(drawn, MONTHS["alibaba2020"])
    assert len(rows) == pytest.approx(5000, rel=0.1)
    span_s = drawn["submit_unix_s"].iloc[-1] - drawn["submit_unix_s"].iloc[0]
    assert rows["submit_s"].iloc[0] == 0 and rows["submit_s"].iloc[-1] == pytest.approx(span_s / 12, rel=0.01)
    assert rows["run_s"].max() <= 172_800 < drawn["run_s"].max()


def test_quantiles_are_rounded_and_never_fall() -> None:
    levels = levels_of(np.random.default_rng(1).lognormal(6, 2, 1000))
    assert len(levels) == len(LEVELS) and list(levels) == sorted(levels)
    assert all(v == float(f"{v:.3g}") for v in levels)


def test_benchmark_writes_between_markers_the_document_has() -> None:
    text = (ROOT / "docs" / "synthetic.md").read_text(encoding="utf-8")
    source = (ROOT / "benchmarks" / "synthetic.py").read_text(encoding="utf-8")
    begin, end = "<!-- tables: make bench BENCH=synthetic -->", "<!-- end of tables -->"
    assert source.count(begin) == text.count(begin) == 1 and source.count(end) == text.count(end) == 1
    between_them = text.split(begin)[1].split(end)[0]
    titles = {line[4:] for line in between_them.splitlines() if line.startswith("### ")}
    assert titles == {m.paper for m in MONTHS.values()} | {"SDSC-SP2"}
