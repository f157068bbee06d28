"""The page in a headless Chromium: how it lies at three widths, what it says, and what happens on real clicks."""

import csv
import io
from pathlib import Path

import nbformat
import page_checks
import pytest
from chromium import Chromium
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from report_fakes import Project

from rltune.errors import DataError, RLTuneError
from rltune.report import pdf
from rltune.report.page.notebooks import render_all


@pytest.fixture
def page(made: Project) -> Path:
    return made.page.resolve()


@pytest.fixture
def opened(browser: Chromium, page: Path) -> Chromium:
    browser.said.clear()
    browser.open(page.as_uri())
    browser.run("document.querySelectorAll('main details').forEach((e) => { e.open = true; })")
    return browser


@pytest.mark.parametrize("check", page_checks.CHECKS)
def test_page(browser, page, check):
    check(browser, page)


def visible(browser: Chromium, selector: str) -> bool:
    return browser.run(f"""(() => {{
      const r = document.querySelector("{selector}").getBoundingClientRect();
      return r.width > 0 && r.top >= 0 && r.bottom <= innerHeight;
    }})()""")


def test_search_marks_jumps_and_filters_the_contents(opened):
    opened.key("/", "/", 191)
    assert opened.run("document.activeElement.id") == "search"
    opened.write("lower bound")
    opened.wait_for("document.querySelector('mark')")
    marks = opened.run("[...document.querySelectorAll('mark')].map((m) => m.textContent.toLowerCase())")
    assert set(marks) == {"lower bound"}
    assert opened.run("document.querySelector('#found').textContent") == f"{len(marks)} found"
    chapters = "document.querySelectorAll('.contents > details > ol > li{}').length"
    assert 0 < opened.run(chapters.format(":not([hidden])")) < opened.run(chapters.format(""))
    opened.key("Enter", "\r", 13)
    assert visible(opened, "mark.here")
    assert opened.run("document.querySelector('#found').textContent").startswith("1 of")
    opened.click("#previous")
    assert opened.run("document.querySelector('#found').textContent").startswith(f"{len(marks)} of")
    assert visible(opened, "mark.here")
    opened.run("document.querySelector('#search').focus()")
    before = opened.run("document.querySelector('main').textContent")
    opened.key("Escape", "", 27)
    assert opened.run("document.querySelectorAll('mark').length") == 0
    assert opened.run("document.querySelectorAll('.contents li[hidden]').length") == 0
    assert opened.run("document.querySelector('main').textContent") == before
    opened.key("/", "/", 191)
    opened.write("no such words anywhere")
    opened.wait_for("document.querySelector('#found').textContent === 'nothing found'")
    assert opened.said == []


@pytest.mark.parametrize("width", page_checks.WIDTHS)
def test_tables_sort_by_a_click_both_ways_with_unknown_values_last(opened, width):
    opened.size(width)
    column = (
        "[...document.querySelectorAll('#fig12-numbers tbody tr')]"
        ".map((r) => r.querySelectorAll('td.n')[1].dataset.value)"
    )
    heading = "#fig12-numbers thead tr:last-child th.n button"
    for order in (sorted, lambda v: sorted(v, reverse=True)):
        opened.click(heading)
        values = [float(v) for v in opened.run(column) if v]
        assert len(set(values)) > 10 and values == order(values)
    assert opened.run("document.querySelector('#fig12-numbers th[aria-sort]').ariaSort") == "descending"


def test_wide_tables_show_a_group_of_columns_at_a_time(opened):
    heads = (
        "[...document.querySelectorAll('#fig12-numbers thead th')].filter((e) => e.checkVisibility())"
        ".map((e) => e.textContent)"
    )
    first = opened.run(heads)
    assert "Against its base policy" in first and "Against the strongest heuristic" not in first
    opened.click("#fig12-numbers .groups button:last-child")
    assert opened.run("document.querySelector('#fig12-numbers [aria-pressed=true]').textContent") == "All"
    assert set(first) < set(opened.run(heads)) and "Against the strongest heuristic" in opened.run(heads)
    all_cells = "[...document.querySelectorAll('#fig12-numbers tbody td')].every((c) => c.checkVisibility())"
    assert opened.run(all_cells)
    opened.click("#fig12-numbers .groups button:first-child")
    assert opened.run(heads) == first and not opened.run(all_cells)


@pytest.mark.parametrize("clipboard", ["of the browser", "of old"])
def test_a_table_is_copied_as_tab_separated_text(opened, clipboard):
    opened.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    opened.run("navigator.clipboard.writeText('')")
    if clipboard == "of old":
        opened.run("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    opened.click("#table4 .copy")
    opened.wait_for("document.querySelector('#table4 .copy').textContent === 'Copied'")
    text = opened.run("navigator.clipboard.readText()")
    rows = list(csv.reader(io.StringIO(text), delimiter="\t"))
    columns = opened.run("document.querySelector('#table4 tbody tr').cells.length")
    assert len(rows) == 1 + opened.run("document.querySelectorAll('#table4 tbody tr').length")
    assert {len(row) for row in rows} == {columns}
    assert rows[1][0] == opened.run("document.querySelector('#table4 tbody th').textContent.trim()")


@pytest.mark.parametrize("width", page_checks.WIDTHS)
def test_a_figure_is_enlarged_and_put_back(opened, width):
    opened.size(width)
    narrow = opened.run("document.querySelector('#fig12 svg').getBoundingClientRect().width")
    opened.click("#fig12 .enlarge")
    assert opened.run("document.querySelector('#enlarged').open && !document.querySelector('#fig12 .enlarge svg')")
    enlarged = opened.run("document.querySelector('#enlarged svg').getBoundingClientRect().width")
    assert enlarged > narrow or width < 1400 and enlarged >= narrow
    opened.key("Escape", "", 27)
    opened.wait_for("!document.querySelector('#enlarged').open && document.querySelector('#fig12 .enlarge svg')")
    assert opened.run("document.activeElement.className") == "enlarge"


def test_the_theme_is_chosen_kept_and_left_to_the_system(opened, page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = opened.run(ground)
    opened.run("document.querySelector('#theme').focus()")
    opened.key("d", "d", 68)
    opened.wait_for("document.querySelector('#theme').value === 'dark'")
    dark = opened.run(ground)
    assert dark != light
    opened.open(page.as_uri())
    assert opened.run(ground) == dark
    opened.run("document.querySelector('#theme').focus()")
    opened.key("a", "a", 65)
    opened.wait_for("document.querySelector('#theme').value === ''")
    assert opened.run(ground) == light
    opened.prefer(dark=True)
    assert opened.run(ground) == dark


def test_the_contents_follow_and_lead(opened):
    opened.run("document.querySelector('#methods').scrollIntoView({behavior: 'instant'})")
    opened.wait_for("document.querySelector('.contents [aria-current]')?.getAttribute('href') === '#methods'")
    assert opened.run("document.querySelector('nav').getBoundingClientRect().top") == 0
    opened.click(".contents a[href='#deviations']")
    opened.wait_for("Math.abs(document.querySelector('#deviations').getBoundingClientRect().top) < 80")
    opened.size(360)
    opened.wait_for("!document.querySelector('.contents details').open")
    opened.click(".contents summary")
    opened.wait_for("document.querySelector('.contents details').open")
    opened.click(".contents a[href='#provenance']")
    opened.wait_for("!document.querySelector('.contents details').open && location.hash === '#provenance'")


def test_a_link_opens_what_is_folded_and_paper_has_all(browser, page):
    browser.open(page.as_uri())
    seen = "document.querySelector('#fig11').checkVisibility()"
    assert not browser.run(seen) and browser.run("document.querySelector('#fig12-numbers').checkVisibility()")
    browser.click(".contents a[href='#chapter-waits']")
    browser.wait_for("document.querySelector(`.contents a[href='#fig11']`).checkVisibility()")
    browser.click(".contents a[href='#fig11']")
    browser.wait_for(seen)
    assert visible(browser, "#fig11 h3")
    closed = "document.querySelectorAll('main details:not([open])').length"
    before = browser.run(closed)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert before and browser.run(closed) == 0
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(closed) == before


def test_search_unfolds_what_it_finds(browser, page):
    browser.open(page.as_uri())
    browser.key("/", "/", 191)
    browser.write("moving-block bootstrap: ")
    browser.wait_for("document.querySelector('mark')")
    assert not browser.run("document.querySelector('mark').checkVisibility()")
    browser.key("Enter", "\r", 13)
    assert visible(browser, "mark.here")


def test_on_paper_there_is_no_navigation_and_nothing_is_cut(opened):
    opened.size(690)  # A4 between its margins
    opened.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "[...document.querySelectorAll('nav, .copy, dialog')].filter((e) => e.checkVisibility()).length"
        assert opened.run(shown) == 0
        cut = """[...document.querySelectorAll('.scroll')].filter((e) => e.checkVisibility()
          && ['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowY)).length"""
        assert opened.run(cut) == 0
        assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        opened.call("Emulation.setEmulatedMedia", media="")


def test_it_is_printed_to_a_pdf(browser, page, monkeypatch):
    target = page.with_name("report.pdf")
    written = pdf.print_page(page, target)
    assert written == target
    held = written.read_bytes()
    assert held.startswith(b"%PDF-") and held.rstrip().endswith(b"%%EOF") and len(held) > 50_000
    written.unlink()
    with pytest.raises(DataError, match="make report"):
        pdf.print_page(page.with_name("nothing.html"), target)
    monkeypatch.setattr(pdf, "find_chromium", lambda: None)
    with pytest.raises(RLTuneError, match="no Chromium found"):
        pdf.print_page(page, target)


def test_scripts_that_data_bring_along_do_not_run(browser, page, tmp_path):
    """In the report and in a notebook's page: a script, and a handler of an event."""
    evil = "<script>document.title = 'attacked'</script><img src='x:' onerror=\"document.title = 'attacked'\">"
    shown = new_output("display_data", {"text/html": f"<h3>{evil}</h3>"})
    notebook = new_notebook(cells=[new_markdown_cell(f"# {evil}"), new_code_cell("1", outputs=[shown])])
    nbformat.write(notebook, tmp_path / "evil.ipynb")
    render_all([tmp_path / "evil.ipynb"], tmp_path)
    (tmp_path / "report.html").write_text(page.read_text().replace("<main", f"{evil}<main", 1))
    for name in ("evil.html", "report.html"):
        browser.open((tmp_path / name).as_uri())
        assert "onerror" in (tmp_path / name).read_text() and browser.run("document.title") != "attacked"
        assert browser.run("document.querySelectorAll('img').length") >= 1, "the page is what it was made to be"
    browser.said.clear()
