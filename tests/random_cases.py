"""How many random cases a test tries: those of the profile ``fast``, or ten times as many with
``--hypothesis-profile=thorough``, as in ``make test-all``. The cases are the same every time."""

from hypothesis import HealthCheck, settings

FAST = settings(
    derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck), print_blob=True
)
settings.register_profile("fast", FAST)
settings.register_profile("thorough", FAST, max_examples=400)
settings.load_profile("fast")


def times(factor: float) -> settings:
    """So many times the cases of the profile, for what is cheap or dear."""
    return settings(max_examples=max(round(factor * settings.default.max_examples), 1))
