"""What agents are evaluated on, as the paper groups it: metric → its figures in the paper, our artefacts, words and units.

An agent belongs to the study of the metric it was trained for; one trained for a mix, to that of each of its parts.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rltune.config.metric import parse_metric
from rltune.evaluation.compare import COLUMN
from rltune.metrics import METRICS

MULTIFACTOR = ("multifactor", "multifactor_size")
PAPER_POLICY = {"multifactor": "slurm-multifactor"}
"""Our name of a base policy → the paper's, in its file of numbers; the others are called the same."""


@dataclass(frozen=True)
class Study:
    """One group of comparisons."""

    metric: str
    """What agents were trained for and are compared on."""
    paper: str
    """The paper's artefact with the figures, and the beginning of the names of ours; "" where it has none."""
    numbers: str
    """Id of our table."""
    boxes: str
    """Id of our distributions; "" where neither the paper nor this report draws any."""
    curves: str
    """Id of our figure of training curves, which several studies may share; mixes of metrics have a separate one."""
    slurm: bool = False
    """Whether the base policy is Slurm's multifactor priority."""

    @property
    def column(self) -> str:
        """The metric's column in tables of windows and of jobs."""
        return COLUMN[self.metric]

    noun = property(lambda self: METRICS[self.metric].noun, doc="The metric as a noun: `mean wait`.")
    less = property(lambda self: METRICS[self.metric].improvement, doc="An improvement as a heading: `Less wait`.")
    words = property(lambda self: METRICS[self.metric].words, doc="What a mean is when better, and when worse.")
    unit = property(lambda self: METRICS[self.metric].unit, doc="Of a mean.")
    format = property(lambda self: METRICS[self.metric].format, doc="Of a mean, one of rltune.report.format.FORMATS.")

    @property
    def title(self) -> str:
        """The metric as a heading: `Mean wait`."""
        return self.noun[0].upper() + self.noun[1:] + (" (Slurm multifactor)" if self.slurm else "")

    def covers(self, metric: str, policy: str) -> bool:
        """Whether an agent trained for ``metric`` against ``policy`` is evaluated here."""
        special = policy in MULTIFACTOR and self.metric == "bsld"
        return self.metric in parse_metric(metric) and special == self.slurm


WAIT = Study("wait", paper="fig12", numbers="fig12-numbers", boxes="fig12", curves="fig11")
BSLD = Study("bsld", paper="fig14", numbers="fig14-numbers", boxes="fig14", curves="fig13")
JCT = Study("jct", paper="fig15", numbers="fig15-numbers", boxes="fig15", curves="fig13")
UTILISATION = Study("utilisation", paper="table6", numbers="table6", boxes="", curves="training-utilisation")
SLURM = Study("bsld", paper="fig16", numbers="fig16-numbers", boxes="fig16", curves="fig16-training", slurm=True)
_PAPERS = (WAIT, BSLD, JCT, UTILISATION, SLURM)
_OTHERS = {m: m.replace("_", "-") for m in METRICS if m not in {s.metric for s in _PAPERS}}
STUDIES = (*_PAPERS, *(Study(m, "", name, "", f"training-{name}") for m, name in _OTHERS.items()))


def cells_of(study: Study, cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of `report.read.cells` that are evaluated in a study."""
    covered = [study.covers(m, p) for m, p in zip(cells["metric"], cells["policy"], strict=True)]
    return cells[np.array(covered, bool)]


def studies_of(cells: pd.DataFrame) -> list[Study]:
    """The studies that have cells, in the paper's order."""
    return [study for study in STUDIES if len(cells_of(study, cells))]


def in_curves(name: str, metric: str, policy: str) -> bool:
    """Whether a figure of training curves shows an agent's training; agents trained for a mix are in `training-mixes` alone."""
    if metric not in METRICS:
        return name == "training-mixes"
    return any(study.curves == name and study.covers(metric, policy) for study in STUDIES)


def curves_of(cells: pd.DataFrame) -> list[str]:
    """Ids of the figures of training curves that have cells."""
    pairs = list(zip(cells["metric"], cells["policy"], strict=True))
    names = dict.fromkeys([*(study.curves for study in STUDIES), "training-mixes"])
    return [name for name in names if any(in_curves(name, *pair) for pair in pairs)]


def main_part(metric: str) -> str:
    """The metric itself, or the part of a mix with the most weight."""
    weights = parse_metric(metric)
    return max(weights, key=lambda part: weights[part])
