"""The chapter on GPU types: what its table and figure say."""

import pandas as pd
import pytest
from report_runs import INTERVALS

from rltune.evaluation.studies.gpu_types import RULE, summary
from rltune.report import figures, tables

WINDOWS = 12
RULES = {
    ("", False, "saf", "easy", "strict", "any", 0.0): (1000.0, 100.0),
    ("", False, "fifo", "easy", "strict", "any", 0.0): (1200.0, 300.0),
    ("", False, "saf", "easy", "strict", "fastest_free", 0.0): (600.0, 100.0),
    ("", False, "saf", "conservative", "soonest_end", "least", 0.0): (400.0, 150.0),
    ("", False, "saf", "conservative", "soonest_end", "least", 0.3): (350.0, 160.0),
    ("", False, "saf", "conservative", "soonest_end", "joint", 0.1): (330.0, 90.0),
    ("a cell", False, "saf", "conservative", "strict", "least", 0.1): (350.0, 100.0),
    ("a cell", True, "saf", "conservative", "strict", "least", 0.1): (320.0, 100.0),
}
"""Agent and rule → mean completion and wait, s; 200 s of it are the run time on the fastest type."""


@pytest.fixture
def rules() -> pd.DataFrame:
    rows = []
    for rule, (jct, wait) in RULES.items():
        for window in range(WINDOWS):
            hard = 0.5 + window / (WINDOWS - 1)
            times = {"jct_s": jct, "excess_s": jct - 200, "wait_s": wait, "largest_wait_s": 5 * wait, "bound_s": 250.0}
            times = {name: value * hard for name, value in times.items()}
            rows.append(dict(zip(RULE, rule)) | {"window": window, **times, "bsld": 2.0, "used_V100": 0.6})
    return summary(pd.DataFrame(rows), INTERVALS).assign(workload="Philly on three types", data="sample")


def test_each_rule_is_compared_with_the_best_without_a_price(rules):
    artefact, frame = tables.gpu_types(rules[::-1])
    assert frame["title"].tolist() == [
        "SAF + EASY",
        "FIFO + EASY",
        "SAF + EASY",
        "SAF + conservative (reference)",
        "SAF + conservative",
        "SAF + conservative",
        "SAF + conservative, RLTune’s without its network",
        "RLTune, from SAF + conservative ★",
    ]
    priced = ["earliest completion with a price", "order and type planned together"]
    assert frame["rule"].tolist()[2:6] == ["fastest free", "earliest completion", *priced]
    assert frame["less"].tolist()[4] == pytest.approx(0.25) and frame["less"].isna().tolist()[3]
    assert frame["less_priced"].isna().tolist() == [True] * 5 + [False] * 3
    assert frame[["less", "less_priced", "less_start"]].iloc[7].tolist() == pytest.approx([0.4, 0.2, 0.2])
    assert frame["slower_s"].tolist() == pytest.approx([700, 700, 300, 50, -10, 40, 50, 20])
    best, together, agent = (note.replace("\u00a0", " ") for note in artefact.notes[:3])
    assert "after 330 s on average, under SAF + conservative" in best and "less than 250 s" in best
    assert "The excess is lower (negative: higher) by 13.3 %" in together
    assert "Its excess is lower (negative: higher) by 40.0 %" in agent and "by 20.0 % [20.0 %, 20.0 %] than" in agent


def test_the_figure_has_a_bar_a_rule_for_the_type(rules):
    artefact, frame, figure = figures.gpu_types(tables.gpu_types(rules)[1])
    assert frame["choice"].tolist() == ["any", "fastest_free", "least", "priced", "joint", "start", "rltune"]
    assert figure.axes[0].get_yticklabels()[0].get_text() == "any\n(SAF + EASY)"
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths[:7] == pytest.approx([200] * 7)
    assert sum(widths) == pytest.approx(1000 + 600 + 400 + 350 + 330 + 350 + 320)
    assert "fastest free: 600 s, of it wait 100 s" in artefact.alt.replace("\u00a0", " ")
