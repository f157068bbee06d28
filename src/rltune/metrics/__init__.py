"""Metrics: a file each that assigns a ``Metric`` to ``METRIC``."""

from rltune.metrics.metric import Metric
from rltune.registry import discover

_metrics: list[Metric] = discover("rltune.metrics", "METRIC", "name", "column")
METRICS: dict[str, Metric] = {m.name: m for m in sorted(_metrics, key=lambda m: (m.rank, m.name))}

__all__ = ["METRICS", "Metric"]
