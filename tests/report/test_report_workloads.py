"""Figures and tables about the traces: they hold what they draw, and say where waits are from."""

import numpy as np
import pandas as pd
import pytest
import report_fakes_traces as seen
from matplotlib.colors import to_hex
from report_runs import PAPER

from rltune.report import figures
from rltune.report.figures.workloads import LEAST_WAIT_S
from rltune.report.style import styled, trace_colours

DRAWN = {
    "fig5": lambda: figures.fig5(seen.statistics(), PAPER),
    "fig6": lambda: figures.fig6(seen.batches(), PAPER),
    "arrivals": lambda: figures.arrivals(seen.arrivals(), PAPER),
    "distributions": lambda: figures.distributions(seen.run_times(), seen.sizes(), PAPER),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_says_what_it_is_and_nothing_in_it_is_cut_off(name):
    artefact, frame, figure = DRAWN[name]()
    assert artefact.id == name and artefact.data == ("synthetic",) and len(frame)
    assert all(t in artefact.alt and t in set(frame["trace"]) for t in ("Philly", "Helios Venus", "Alibaba PAI"))
    assert all(axis.lines or axis.patches for axis in figure.axes)
    assert any(axis.get_xlabel() for axis in figure.axes) and any(axis.get_ylabel() for axis in figure.axes)
    with styled():
        figure.draw_without_rendering()
        boxes = [axis.get_tightbbox() for axis in figure.axes] + [x.get_window_extent() for x in figure.legends]
    for box in boxes:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.width + 1 and box.y1 <= figure.bbox.height + 1


def test_a_trace_of_ones_own_keeps_its_colour_whatever_it_is_called():
    """Earth is one of Helios' clusters."""
    name = "Earth cluster"
    own = {f: f().assign(trace=name, data="own") for f in (seen.arrivals, seen.batches)}
    _, _, lines = figures.arrivals(own[seen.arrivals].drop_duplicates(["by", "bin"]), PAPER)
    _, _, bars = figures.fig6(own[seen.batches].drop_duplicates("batch"), PAPER)
    colour = trace_colours({name: ""})[name]
    assert colour in {line.get_color() for line in lines.axes[0].lines}
    assert {to_hex(bar.get_facecolor()) for bar in bars.axes[0].patches} == {colour}


def test_figure_5_has_our_points_and_all_of_the_papers():
    artefact, frame, figure = DRAWN["fig5"]()
    ours, printed = frame[frame["row"] == "ours"], frame[frame["row"] == "paper"]
    assert set(printed["trace"]) == {"SDSC-SP2", "HPC2N", "Philly", "Helios", "Alibaba"}
    points = printed.set_index("trace")[["avg_wait_s", "avg_run_s", "alloc"]]
    assert points.loc["HPC2N"].tolist() == [13985.4, 8699.6, 38403]
    drawn = {tuple(line.get_xydata()[0]) for line in figure.axes[1].lines if len(line.get_xydata()) == 1}
    assert drawn == {(max(w, LEAST_WAIT_S), a) for w, a in zip(frame["avg_wait_s"], frame["alloc"])}
    assert len(ours) == 4 and figure.axes[0].get_xlabel() == figure.axes[1].get_xlabel() == "Mean wait (s)"
    assert any("Helios Venus: waits simulated: FIFO on Cluster 1" in n for n in artefact.notes)
    assert any("below 1 s are drawn at 1 s" in n for n in artefact.notes)


def test_figure_6_draws_every_batch():
    artefact, frame, figure = DRAWN["fig6"]()
    pd.testing.assert_frame_equal(frame, seen.batches())
    above, hours = figure.axes[:2]
    assert [bar.get_height() for bar in above.patches] == list(range(0, 200, 2))
    assert [bar.get_height() for bar in hours.patches] == [float(i) ** 2 for i in range(100)]
    titles = [axis.get_title(loc="left") for axis in figure.axes[::2]]
    assert titles == ["Philly", "Helios Venus (simulated waits)", "Alibaba PAI"]
    assert "the 100 consecutive batches" in artefact.caption and len(artefact.notes) == 3


def test_figure_6_has_cpu_traces_where_there_are_no_others():
    cpu = seen.batches().assign(type="CPU")
    _, frame, _ = figures.fig6(cpu, PAPER)
    pd.testing.assert_frame_equal(frame, cpu)
    one = cpu.assign(type=np.where(cpu["trace"] == "Philly", "GPU", "CPU"))
    assert set(figures.fig6(one, PAPER)[1]["trace"]) == {"Philly"}


def test_distributions_add_up():
    _, frame, figure = DRAWN["distributions"]()
    last = frame.groupby(["trace", "of"])[["jobs", "work"]].last()
    assert np.allclose(last, 1)
    philly = frame[(frame["trace"] == "Philly") & (frame["of"] == "size")]
    assert np.allclose(philly["jobs"], [0.7, 0.9, 1]) and np.allclose(philly["work"], [0.1, 0.3, 1])
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert styles == {"-", "--"}, "CPU traces are dashed"
