"""What the chapter on methods and data takes from the configuration."""

from __future__ import annotations

from typing import Any

from rltune.config.context import Run
from rltune.evaluation.intervals import FEWEST
from rltune.report.common import policy_title
from rltune.report.format import listed, show
from rltune.traces.split import VALIDATION_SHARE


def methods(run: Run) -> dict[str, Any]:
    """Everything the chapter says that a configuration can change; words, where a list would be too long."""
    config = run.config
    evaluation, cells, most = config.evaluation, config.cells(), config.evaluation.max_windows
    windows = "all that fit" if most is None else f"at most {show(most, 'int')} of each length, evenly spread"
    return {
        "train": show(config.train_share, "percent"),
        "validation": show(VALIDATION_SHARE, "percent"),
        "test": show(1 - config.train_share, "percent"),
        "lengths": listed(show(n, "int") for n in sorted(evaluation.sequence_jobs)),
        "windows": windows,
        "policies": listed(map(policy_title, evaluation.baseline_policies)),
        "backfills": listed(evaluation.baseline_backfills),
        "mixed": any(run.clusters[cell.cluster].speeds is not None for cell in cells),
        "bootstrap": show(evaluation.bootstrap, "int"),
        "confidence": f"{100 * evaluation.confidence:.0f}\u00a0%",
        "fewest": FEWEST,
        "estimates": listed(sorted({c.estimate for c in cells})),
        "seeds": listed(sorted({c.seed for c in cells})),
        "rules": config.simulation,
        "sources": [
            {**{k: getattr(trace, k) for k in ("title", "data", "format", "licence", "citation")}, "clusters": clusters}
            for name, trace in run.traces.items()
            for clusters in [[run.clusters[w.cluster].title for w in config.all_workloads() if w.trace == name]]
        ],
    }
