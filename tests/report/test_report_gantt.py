"""The Gantt chart: every job where it was, its number only where it fits, in colours that the page leaves alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from rltune.report.artefact import Artefact, save_figure
from rltune.report.figures.gantt import JOBS, MAX_LANES, ON, WAIT_TINT, gantt
from rltune.report.style import GRID, INK, MUTED, PAPER, PURPLE, VERMILION, styled

COLUMNS = ["job", "node", "gpu", "gpus", "submit_s", "start_s", "end_s"]
SMALL = pd.DataFrame(
    [
        (0, 0, 0, 4, 0.0, 0.0, 100.0),
        (1, 1, 0, 2, 0.0, 0.0, 60.0),
        (2, 1, 0, 4, 10.0, 60.0, 140.0),
        (3, 0, 0, 3, 20.0, 100.0, 220.0),
        (4, 0, 3, 1, 30.0, 100.0, 140.0),
    ],
    columns=COLUMNS,
)
SIZES = [8] * 12 + [4] * 24


def large(seed: int = 1, jobs: int = 256) -> tuple[pd.DataFrame, list[int]]:
    """Jobs of one to all GPUs of one or two nodes, each node's one after the other."""
    rng = np.random.default_rng(seed)
    idle, rows = [np.zeros(n) for n in SIZES], []
    for job in range(jobs):
        submit, run = 60.0 * job, float(rng.lognormal(8, 1))
        chosen = rng.choice(len(SIZES), rng.choice([1, 1, 1, 2]), replace=False)
        wanted = [int(rng.integers(1, SIZES[m] + 1)) for m in chosen]
        start = max(submit, *(float(idle[m][:g].max()) for m, g in zip(chosen, wanted)))
        for m, g in zip(chosen, wanted):
            idle[m][:g] = start + run
            rows.append((job, int(m), 0, g, submit, start, start + run))
    return pd.DataFrame(rows, columns=COLUMNS), SIZES


def bars_of(figure: Figure) -> PatchCollection:
    return next(c for c in figure.axes[0].collections if isinstance(c, PatchCollection))


def labels(figure: Figure) -> list[str]:
    return [t.get_text() for t in figure.axes[0].texts]


def boxes(collection: PatchCollection) -> list[tuple[float, ...]]:
    """x, y, width, height of its rectangles, in data."""
    return [tuple(round(float(v), 9) for v in p.get_extents().bounds) for p in collection.get_paths()]


def test_jobs_lie_on_their_gpus_for_as_long_as_they_ran() -> None:
    figure = gantt(SMALL, [4, 4], "Five jobs")
    main, strip = figure.axes
    assert boxes(bars_of(figure)) == [(0, 0, 100, 4), (0, 4, 60, 2), (60, 4, 80, 4), (100, 0, 120, 3), (100, 3, 40, 1)]
    assert set(labels(figure)) >= {"0", "1", "2", "3", "4"}
    assert [t.get_text() for t in main.get_yticklabels()] == ["node 0", "node 1"] and list(main.get_yticks()) == [2, 6]
    waits = next(c for c in strip.collections if isinstance(c, PatchCollection))
    assert [(x, width) for x, _, width, _ in boxes(waits)] == [(10, 50), (20, 80), (30, 70)]
    assert waits.get_hatch() and [t.get_text() for t in strip.get_yticklabels()] == ["job 2", "job 3", "job 4"]
    assert strip.get_xlabel() == "Time since the first submission (s)"
    assert main.get_title(loc="left") == "Five jobs"
    told = "makespan 220 s · total wait 200 s · 5 jobs, 3 of them had to wait · 8 GPUs on 2 nodes"
    assert told in labels(figure)


def test_the_makespan_is_a_dotted_line_through_both_parts() -> None:
    for axis in gantt(SMALL, [4, 4]).axes:
        line = axis.lines[0]
        assert line.get_color() == VERMILION and list(line.get_xdata()) == [220, 220] and line.get_linestyle() != "-"


@pytest.mark.parametrize(("times", "unit", "end"), [(1, "s", 220), (10, "min", 2200 / 60), (100, "h", 22000 / 3600)])
def test_time_runs_from_the_first_submission_in_a_unit_that_suits(times: float, unit: str, end: float) -> None:
    frame = SMALL.copy()
    frame[["submit_s", "start_s", "end_s"]] = 1e6 + times * frame[["submit_s", "start_s", "end_s"]]
    figure = gantt(frame, [4, 4])
    assert figure.axes[-1].get_xlabel().endswith(f"({unit})")
    assert figure.axes[0].lines[0].get_xdata()[0] == pytest.approx(end)


def test_many_waiting_jobs_are_a_queue_whose_area_is_their_wait() -> None:
    n = MAX_LANES + 1
    # one GPU, a job a second: job i starts at 2 i
    frame = pd.DataFrame([(i, 0, 0, 1, float(i), 2.0 * i, 2.0 * i + 2) for i in range(n + 1)], columns=COLUMNS)
    strip = gantt(frame, [1]).axes[1]
    assert strip.get_ylabel() == "jobs waiting"
    outline = strip.collections[0].get_paths()[0].vertices
    x, y = outline[:, 0], outline[:, 1]
    area = abs(float(x[:-1] @ y[1:] - x[1:] @ y[:-1])) / 2
    assert area == pytest.approx(sum(range(n + 1)))
    fewer = gantt(frame.head(n), [1]).axes[1]
    assert len(fewer.get_yticks()) == MAX_LANES


def test_without_waits_there_is_no_strip() -> None:
    figure = gantt(SMALL.assign(submit_s=SMALL["start_s"]), [4, 4])
    assert len(figure.axes) == 1 and "total wait 0 s" in labels(figure)[-1]
    assert figure.axes[0].get_xlabel()


@pytest.mark.parametrize("small", [True, False])
def test_every_number_is_inside_its_bar(small: bool) -> None:
    frame, sizes = (SMALL, [4, 4]) if small else large()
    with styled():
        figure = gantt(frame, sizes, "Title", [f"gpu-node-{i:03d}" for i in range(len(sizes))])
        FigureCanvasAgg(figure).draw()
        axis = figure.axes[0]
        bars = [p.get_extents(axis.transData) for p in bars_of(figure).get_paths()]
        numbers = [t for t in axis.texts if t.get_text().isdigit()]
        assert len(numbers) == 5 if small else len(numbers) > 60
        for text in numbers:
            box = text.get_window_extent()
            x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
            bar = min(bars, key=lambda b: abs(b.x0 + b.x1 - 2 * x) + abs(b.y0 + b.y1 - 2 * y))
            assert bar.x0 <= box.x0 and box.x1 <= bar.x1, text
            # a digit is lower than its line: what hangs out of the box is white
            assert bar.height >= 0.7 * box.height, text
        names = [t.get_window_extent() for t in axis.get_yticklabels()]
        assert all(a.y0 >= b.y1 - 1 or b.y0 >= a.y1 - 1 for a, b in zip(names, names[1:]))


def test_names_of_small_nodes_beside_large_ones_do_not_overlap() -> None:
    sizes = [2] * 16 + [8] * 20
    with styled():
        figure = gantt(SMALL.assign(gpus=1, gpu=0, node=range(5)), sizes)
        FigureCanvasAgg(figure).draw()
        written = [t for t in figure.axes[0].get_yticklabels()]
        boxes_ = [t.get_window_extent() for t in written]
    assert all(a.y0 >= b.y1 - 1 for a, b in zip(boxes_, boxes_[1:]))
    found = [t.get_text() for t in written]
    assert set(found) >= {"node 0", *(f"node {m}" for m in range(17, 36))} and 21 < len(found) < 36


def test_jobs_keep_one_colour_on_all_their_nodes_and_neighbours_have_another() -> None:
    frame, sizes = large()
    figure = gantt(frame, sizes)
    found = [to_hex(c) for c in bars_of(figure).get_facecolor()]
    ordered = frame.sort_values(["start_s", "job", "node", "gpu"])
    assert set(found) == set(JOBS)
    assert pd.Series(found).groupby(ordered["job"].to_numpy()).nunique().eq(1).all()
    small = [to_hex(c) for c in bars_of(gantt(SMALL, [4, 4])).get_facecolor()]
    assert len(set(small)) == 5


def test_few_jobs_have_the_same_colours_in_whatever_order_they_start() -> None:
    jobs = sorted(SMALL["job"].unique())
    turned = SMALL.assign(job=SMALL["job"].map(dict(zip(jobs, reversed(jobs)))))

    def colours(frame: pd.DataFrame) -> dict[int, str]:
        ordered = frame.sort_values(["start_s", "job", "node", "gpu"])["job"]
        return dict(zip(ordered, (to_hex(c) for c in bars_of(gantt(frame, [4, 4])).get_facecolor())))

    assert colours(SMALL) == colours(turned) and len(set(colours(SMALL).values())) == len(jobs)


def test_nothing_on_a_bar_changes_with_the_page() -> None:
    swapped = {INK, MUTED, GRID, PAPER}
    assert not swapped & {*JOBS, *ON.values(), WAIT_TINT} and not {PURPLE, VERMILION} & set(JOBS)
    figure = gantt(SMALL, [4, 4])
    assert {t.get_color() for t in figure.axes[0].texts if t.get_text().isdigit()} <= set(ON.values())


def test_an_earlier_end_of_the_drawing_leaves_the_numbers_as_they_are() -> None:
    figure = gantt(SMALL, [4, 4], until_s=90)
    assert figure.axes[0].get_xlim() == (0, 90)
    assert len(boxes(bars_of(figure))) == 3  # the others start later
    assert "makespan 220 s · total wait 200 s" in labels(figure)[-1]
    assert "makespan: beyond the edge" in [t.get_text() for t in figure.legends[0].get_texts()]
    assert gantt(SMALL, [4, 4], until_s=1e9).axes[0].lines[0].get_xdata()[0] == 220


def test_the_same_bytes_each_time_and_the_input_untouched(tmp_path: Path) -> None:
    frame, sizes = large()
    before = frame.copy()
    artefact = Artefact("gantt", "figure", "Title", "Caption", alt="Bars.")
    save_figure(tmp_path / "one", artefact, gantt(frame, sizes), frame)
    save_figure(tmp_path / "two", artefact, gantt(frame.sample(frac=1, random_state=1), sizes), frame)
    pd.testing.assert_frame_equal(frame, before)
    for name in ("gantt.svg", "gantt.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="no bars"):
        gantt(SMALL.head(0), [4, 4])
    with pytest.raises(ValueError, match="job 3: node 0 has no GPUs 2 to 4"):
        gantt(SMALL.assign(gpu=[0, 0, 0, 2, 3]), [4, 4])
    with pytest.raises(ValueError, match="job 1: node 1 has no GPUs"):
        gantt(SMALL, [4])
    with pytest.raises(ValueError, match="1 names for 2 nodes"):
        gantt(SMALL, [4, 4], node_names=["a"])
    with pytest.raises(ValueError, match="until_s is 0, expected more than 0"):
        gantt(SMALL, [4, 4], until_s=0)
