"""The paper's numbers: complete, readable, loud when asked for what is not there."""

import pytest
from report_runs import PAPER


def test_every_table_and_figure_of_the_paper_is_named_once():
    refs = [a.where for a in (*PAPER.artefacts.values(), *PAPER.without_figures.values())]
    words = " ".join(refs).replace("Figures 18 and 19", "Figure 18 Figure 19").split()
    numbers = {(kind, int(n)) for kind, n in zip(words, words[1:]) if kind in ("Table", "Figure") and n.isdigit()}
    assert numbers == {("Table", n) for n in range(1, 10)} | {("Figure", n) for n in range(1, 20)}
    assert len(refs) == len(set(refs))


def test_a_name_that_is_not_there_raises():
    for key in (("fig12", "Philly", "fif", "wait"), ("fig99", "x"), ("fig12", "Alibaba", "sjf", "wait")):
        with pytest.raises(KeyError):
            PAPER.value(*key)
    assert PAPER.find("fig12", "Helios", "fifo", "wait") is None


def test_traces_find_their_name_in_the_paper():
    names = ("philly", "Helios (Venus)", "pai-2020", "mine")
    assert [PAPER.trace(n) for n in names] == ["Philly", "Helios", "Alibaba", ""]
    assert PAPER.trace("earth-sciences") == "Helios" and not PAPER.trace("earth-sciences", "own"), "one of its clusters"
