"""How near simulated waits are to recorded ones: known answers of the measure."""

import numpy as np
import pytest

from rltune.evaluation.recorded import MOST, nearness

HOUR = 3600.0


def test_the_factor_is_a_geometric_mean_of_waits_a_minute_longer():
    found = nearness(np.array([60.0, 0.0]), np.array([0.0, 120.0]))
    assert found.factor == pytest.approx((2 * 3) ** 0.5), "120 s over 60 s one way, 180 s over 60 s the other"


def test_one_job_delayed_for_days_counts_as_any_far_one():
    simulated = np.array([600.0, 600.0])
    days, hours = (nearness(simulated, np.array([600.0, wait_s])) for wait_s in (9e6, 9e4))
    assert days.factor == hours.factor == pytest.approx(MOST**0.5) and days.ratio < hours.ratio


def test_jobs_without_a_recorded_wait_have_no_part():
    some = nearness(np.array([100.0, 7.0, 300.0]), np.array([200.0, np.nan, 500.0]))
    assert some == nearness(np.array([100.0, 300.0]), np.array([200.0, 500.0])) and some.jobs == 2


def test_seconds_that_a_scheduler_takes_are_no_order_of_the_jobs():
    """Jobs that start at once in the simulation start within half a minute in a log."""
    simulated = np.array([0.0] * 50 + [HOUR, 2 * HOUR])
    latency = np.random.default_rng(0).uniform(0, 30, 52)
    assert nearness(simulated, simulated + latency).rank > 0.99


@pytest.mark.parametrize(
    ("hours", "backwards", "near"),
    [(1.0, False, True), (1.9, False, True), (2.1, False, False), (0.4, False, False), (1.0, True, False)],
)
def test_near_is_about_hours_and_about_who_waits(hours, backwards, near):
    recorded = np.arange(1, 21) * 600.0
    simulated = hours * (recorded[::-1] if backwards else recorded)
    found = nearness(simulated, recorded)
    assert (
        found.near(60) == near and found.hours_far(60) == (not 0.5 <= hours <= 2) and found.ranks_far(60) == backwards
    )


def test_where_nobody_waits_or_nothing_is_recorded_nothing_is_far():
    short = nearness(np.array([0.0, 40.0, 10.0]), np.array([30.0, 0.0, 5.0]))
    nothing = nearness(np.array([HOUR, 0.0]), np.full(2, np.nan))
    assert short.silent(60) and short.near(60) and nothing.silent(60) and nothing.near(60) and np.isnan(nothing.factor)


def test_a_log_in_which_nobody_waited_is_far_from_a_simulation_with_waits():
    found = nearness(np.full(3, HOUR), np.zeros(3))
    assert np.isnan(found.ratio) and not found.near(60)
