"""The ways an agent tries before it learns an order, told of and kept on disk: an interruption loses one of them."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rltune.agent.ways import Scores, Way
from rltune.files import write_text

NAME = "trials.json"
QUIET_S = 15.0
"""Longest time without a line, if single trials are shorter."""


class Trials:
    """Scores of ways, as rltune.agent.ways.choose asks for them.

    ``scores`` finds those that are not known; ``of`` tells a training from others
    (rltune.agent.exercise.Exercise.identity) and ``folder`` is where they are kept, None: nowhere. What another training
    left there, or what cannot be read, is not used.
    """

    def __init__(self, scores: Scores, of: dict[str, Any], folder: Path | None = None) -> None:
        self._scores, self._of = scores, of
        self._path = folder / NAME if folder else None
        self._known = self._kept()
        self._tried, self._best = 0, np.inf
        self._said = time.perf_counter()
        print(f"choosing its way{f': {len(self._known)} known from before' if self._known else ''}", flush=True)

    def __call__(self, way: Way) -> np.ndarray:
        """Scores of the windows [S]."""
        key = json.dumps(asdict(way))
        if key not in self._known:
            self._known[key] = self._scores(way).tolist()
            if self._path is not None:
                write_text(self._path, json.dumps({"of": self._of, "known": self._known}))
        found = np.array(self._known[key])
        self._tried, self._best = self._tried + 1, min(self._best, float(found.mean()))
        if time.perf_counter() - self._said > QUIET_S:
            self._said = time.perf_counter()
            print(f"choosing its way: {self._tried} tried, the best has {self._best:.4g}", flush=True)
        return found

    def end(self) -> None:
        """Chosen; what is kept stays until the training has ended."""
        print(f"choosing its way: {self._tried} tried, the best has {self._best:.4g}", flush=True)

    def _kept(self) -> dict[str, list[float]]:
        if self._path is None or not self._path.is_file():
            return {}
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            return dict(kept["known"]) if kept["of"] == json.loads(json.dumps(self._of)) else {}
        except (ValueError, KeyError, TypeError) as error:
            print(f"{self._path}: cannot be read ({error}); ways are tried anew", flush=True)
            return {}
