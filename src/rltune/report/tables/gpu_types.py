"""Rules and agents that choose a job's GPU type, where types differ in speed."""

from typing import Any

import pandas as pd

from rltune.cluster.types import MATCHED, PLANNED, PRICES
from rltune.evaluation.studies.gpu_types import USED
from rltune.report.artefact import Table
from rltune.report.artefacts import describe
from rltune.report.common import holm_note, scheduler_titles, where, with_holm
from rltune.report.style import title_of

TITLES = {
    "any": "any",
    "fastest_free": "fastest free",
    "fastest_only": "fastest only",
    "least": "earliest completion",
    "allox": "AlloX’s matching",
    "priced": "earliest completion with a price",
    "joint": "order and type planned together",
    "start": "RLTune without its network",
    "rltune": "RLTune",
}
"""Rules for the GPU type, and agents, which use one of them."""
SHOWN = 3
"""Orders and backfill rules of each workload and rule for the GPU type: those of the least excess; agents are all shown."""
TESTED = {"less_p": "less_holm"}


def gpu_types(rules: pd.DataFrame) -> Table:
    """The table `gpu-types-numbers`: SHOWN rows per workload × rule for the GPU type, those of the least excess.

    ``rules`` as rltune.evaluation.studies.gpu_types.summary gives it, of each ``workload``; the frame is the same with `title` (order
    and backfill rule) and `rule` (for the GPU type).
    """
    network, start = rules["network"], (rules["agent"] != "") & ~rules["network"]
    chosen = rules["types"].mask((rules["types"] == "least") & (rules["gpu_price"] > 0), "priced")
    titles = scheduler_titles(rules)
    titles = titles.mask(network, "RLTune, from " + titles).mask(start, titles + ", RLTune’s without its network")
    titles += rules["best"].map({True: " ★", False: ""}) + rules["reference"].map({True: " (reference)", False: ""})
    named = rules.assign(
        title=titles, rule=chosen.map(TITLES), choice=chosen.mask(network, "rltune").mask(start, "start")
    )
    every = with_holm(named, TESTED)
    rank = every.groupby(["workload", "choice"])["excess_s"].rank(method="first")
    shown = every[(rank <= SHOWN) | (every["agent"] != "")]
    frame = shown.sort_values(["workload", "choice", "excess_s"], key=_in_order, ignore_index=True)
    used = {column.removeprefix(USED): column.removeprefix(USED) for column in frame if column.startswith(USED)}
    return describe(
        "gpu-types-numbers",
        frame,
        workloads=[_facts(part) for _, part in frame.groupby("workload", sort=False)],
        together=best_of_each(frame).query("choice == 'joint'").to_dict("records"),
        agents=frame[frame["network"]].to_dict("records"),
        planned=PLANNED,
        matched=MATCHED,
        prices=", ".join(f"{price:g}" for price in PRICES),
        used=used,
        holm=holm_note(every, TESTED, "over the reference, shown or not,"),
        several=SHOWN,
    ), frame


def best_of_each(numbers: pd.DataFrame) -> pd.DataFrame:
    """Of each workload and rule for the GPU type the order and backfill rule with the shortest completion; the first agent."""
    seconds = numbers["jct_s"].mask(numbers["agent"] != "", 0.0)
    best = numbers.loc[seconds.groupby([numbers["workload"], numbers["choice"]], sort=False).idxmin()]
    return best.sort_values(["workload", "choice"], key=_in_order)


def _facts(part: pd.DataFrame) -> dict[str, Any]:
    least = best_of_each(part).set_index("choice")
    rules = where(part, agent="")
    best = rules.loc[rules["excess_s"].idxmin()]
    return {
        "workload": best["workload"],
        "best": best.to_dict() | {"title": title_of(best)},
        **{name: least.loc[name].to_dict() for name in ("any", "fastest_free")},
    }


def _in_order(column: pd.Series) -> pd.Series:
    """Choices as in TITLES."""
    return column.map(list(TITLES).index) if column.name == "choice" else column
