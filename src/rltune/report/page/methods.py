"""What the chapter on methods and data takes from the configuration."""

from __future__ import annotations

from typing import Any

from rltune.config.context import Run
from rltune.evaluation.intervals import FEWEST
from rltune.report.common import policy_title
from rltune.report.format import listed, show
from rltune.traces.split import VALIDATION_SHARE


def methods(run: Run) -> dict[str, Any]:
    """What the chapter says besides what the configuration has; words, where a list would be too long."""
    config, cells = run.config, run.config.cells()
    return {
        "validation": show(VALIDATION_SHARE, "percent"),
        "policies": listed(map(policy_title, config.evaluation.baseline_policies)),
        "mixed": any(run.clusters[cell.cluster].speeds is not None for cell in cells),
        "fewest": FEWEST,
        "estimates": listed(sorted({c.estimate for c in cells})),
        "exact": listed(sorted({c.preset for c in cells if config.preset(c.preset).estimates == "exact"})),
        "seeds": listed(sorted({c.seed for c in cells})),
        "sources": [
            {**{k: getattr(trace, k) for k in ("title", "data", "format", "licence", "citation")}, "clusters": clusters}
            for name, trace in run.traces.items()
            for clusters in [[run.clusters[w.cluster].title for w in config.all_workloads() if w.trace == name]]
        ],
    }
