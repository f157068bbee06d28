"""The run time that the user asked for; of a job without one, the rolling median."""

import numpy as np

from rltune.errors import DataError
from rltune.traces.estimates.history import Request

FALL_BACK = "none requested: rolling median"


def estimate(request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Requested times [J], s. Raises DataError where no job names one."""
    asked = request.jobs["requested_s"].to_numpy(np.float64)
    if np.isnan(asked).all():
        raise DataError(f"trace {request.meta.name}: estimate requested, but no job names a time; take history-rolling")
    return request.else_rolling(asked, "requested", FALL_BACK)
