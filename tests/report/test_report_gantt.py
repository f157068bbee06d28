"""The Gantt chart: every job where it was, its number only where it fits, in colours that the page leaves alone."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rltune.report.figures.gantt import JOBS, MAX_LANES, WAIT, gantt
from rltune.report.style import GRID, INK, MUTED, PAPER, VERMILION, styled

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


def bars_of(figure: Figure, panel: int = 0) -> list[Rectangle]:
    return [patch for patch in figure.axes[panel].patches if isinstance(patch, Rectangle)]


def boxes(figure: Figure, panel: int = 0) -> list[tuple[float, ...]]:
    """x, y, width, height of the rectangles of a panel, in data."""
    return [(*map(float, p.get_xy()), p.get_width(), p.get_height()) for p in bars_of(figure, panel)]


def subtitle_of(figure: Figure) -> str:
    return figure.axes[0].get_title(loc="left")


def test_bars_are_on_the_gpus_of_a_job_for_as_long_as_it_ran():
    figure = gantt(SMALL, [4, 4], "Five jobs")
    main, strip = figure.axes
    assert boxes(figure) == [(0, 0, 100, 4), (0, 4, 60, 2), (60, 4, 80, 4), (100, 0, 120, 3), (100, 3, 40, 1)]
    assert {t.get_text() for t in main.texts} == {"0", "1", "2", "3", "4"}
    assert [t.get_text() for t in main.get_yticklabels()] == ["node 0", "node 1"] and list(main.get_yticks()) == [2, 6]
    assert [(x, width) for x, _, width, _ in boxes(figure, 1)] == [(10, 50), (20, 80), (30, 70)]
    assert bars_of(figure, 1)[0].get_hatch()
    assert [t.get_text() for t in strip.get_yticklabels()] == ["job 2", "job 3", "job 4"]
    assert figure.get_suptitle() == "Five jobs"
    assert (
        subtitle_of(figure) == "makespan 220 s · total wait 200 s · 5 jobs, 3 of them had to wait · 8 GPUs on 2 nodes"
    )
    for axis in figure.axes:
        assert axis.lines[0].get_color() == VERMILION and list(axis.lines[0].get_xdata()) == [220, 220]


@pytest.mark.parametrize(("times", "unit", "end"), [(1, "s", 220), (10, "min", 2200 / 60), (100, "h", 22000 / 3600)])
def test_time_runs_from_the_first_submission_in_a_unit_that_suits(times, unit, end):
    frame = SMALL.copy()
    frame[["submit_s", "start_s", "end_s"]] = 1e6 + times * frame[["submit_s", "start_s", "end_s"]]
    figure = gantt(frame, [4, 4])
    assert figure.axes[-1].get_xlabel() == f"Time since the first submission ({unit})"
    assert figure.axes[0].lines[0].get_xdata()[0] == pytest.approx(end)


def test_many_waiting_jobs_are_a_queue_whose_area_is_their_wait():
    n = MAX_LANES + 1
    # one GPU, a job a second: job i starts at 2 i
    frame = pd.DataFrame([(i, 0, 0, 1, float(i), 2.0 * i, 2.0 * i + 2) for i in range(n + 1)], columns=COLUMNS)
    strip = gantt(frame, [1]).axes[1]
    assert strip.get_ylabel() == "jobs waiting"
    outline = strip.collections[0].get_paths()[0].vertices
    x, y = outline[:, 0], outline[:, 1]
    assert abs(float(x[:-1] @ y[1:] - x[1:] @ y[:-1])) / 2 == pytest.approx(sum(range(n + 1)))
    assert len(gantt(frame.head(n), [1]).axes[1].get_yticks()) == MAX_LANES


def test_without_waits_there_is_no_strip():
    figure = gantt(SMALL.assign(submit_s=SMALL["start_s"]), [4, 4])
    assert len(figure.axes) == 1 and "total wait 0 s" in subtitle_of(figure) and figure.axes[0].get_xlabel()


@pytest.mark.parametrize("sizes", [[4, 4], SIZES, [2] * 16 + [8] * 20], ids=["few nodes", "many", "small and large"])
def test_every_number_is_inside_its_bar_and_no_name_runs_into_another(sizes):
    frame = large()[0] if sizes == SIZES else SMALL if len(sizes) == 2 else SMALL.assign(gpus=1, gpu=0, node=range(5))
    with styled():
        figure = gantt(frame, sizes, "Title")
        FigureCanvasAgg(figure).draw()
        axis, bars = figure.axes[0], [p.get_window_extent() for p in bars_of(figure)]
        assert len(axis.texts) > 60 or sizes != SIZES
        for text in axis.texts:
            box = text.get_window_extent()
            x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
            bar = min(bars, key=lambda b: abs(b.x0 + b.x1 - 2 * x) + abs(b.y0 + b.y1 - 2 * y))
            # a digit is lower than its line: what hangs out of the box is white
            assert bar.x0 <= box.x0 and box.x1 <= bar.x1 and bar.height >= 0.7 * box.height, text
        names = [t.get_window_extent() for t in axis.get_yticklabels()]
        assert all(a.y0 >= b.y1 - 1 for a, b in zip(names, names[1:])) and len(names) >= 2


def test_a_job_has_one_colour_everywhere_in_whatever_order_jobs_start_and_none_that_changes_with_the_page():
    jobs = sorted(SMALL["job"].unique())
    turned = SMALL.assign(job=SMALL["job"].map(dict(zip(jobs, reversed(jobs)))))

    def colours(frame: pd.DataFrame, sizes: list[int]) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for job, bar in zip(frame.sort_values(["start_s", "job", "node", "gpu"])["job"], bars_of(gantt(frame, sizes))):
            found.setdefault(job, set()).add(to_hex(bar.get_facecolor()))
        return found

    few = colours(SMALL, [4, 4])
    assert few == colours(turned, [4, 4]) and len({c for of in few.values() for c in of}) == len(jobs)
    assert all(len(of) == 1 for of in colours(*large()).values())
    assert not {INK, MUTED, GRID, PAPER} & {*JOBS, *JOBS.values(), WAIT["facecolor"]}


def test_an_earlier_end_of_the_drawing_leaves_the_numbers_as_they_are():
    figure = gantt(SMALL, [4, 4], until_s=90)
    assert figure.axes[0].get_xlim() == (0, 90) and len(boxes(figure)) == 3, "the others start later"
    assert "makespan 220 s · total wait 200 s" in subtitle_of(figure)
    assert "makespan: beyond the edge" in [t.get_text() for t in figure.legends[0].get_texts()]
    assert gantt(SMALL, [4, 4], until_s=1e9).axes[0].lines[0].get_xdata()[0] == 220
