"""A custom placement: short jobs on the first nodes of a pool, long ones on the last, packed tightly in both."""

from rltune.placement.counts import Counts
from rltune.placement.placers import fitting_nodes, placement

LONG_S = 3600.0


@placement("long_apart")
class LongApart:
    """Nodes are emptied sooner where all that runs on them is short."""

    top = 1  # it looks at the chosen job alone, not at those behind it

    def __init__(self) -> None:
        self.counts = Counts()

    def place(self, jobs, layout, state, asking):
        """Of each sequence that asks: the chosen job's nodes, (node, GPUs) a row, and how many rows."""
        for s in asking:
            self.counts.asked += 1
            nodes = fitting_nodes(jobs, layout, state, s)
            if not len(nodes):  # a job of several nodes stays where best_fit put it
                continue
            self.counts.presolved += 1
            j = state.first[s] + state.status["chosen"][s]
            free = state.free.row[s]["gpus"][nodes]
            tightest = nodes[free == free.min()]
            state.place[s, 0] = tightest[-1] if jobs.estimate_s[j] >= LONG_S else tightest[0], jobs.gpus[j]
            state.status["place_len"][s] = 1
