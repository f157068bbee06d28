"""The page: whole, valid, offline, honest; every number on it is a cell of a CSV."""

import base64
import io
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from report_fakes import Project
from report_runs import DEVIATIONS, PAPER

from rltune import sources
from rltune.config.context import Run
from rltune.files import write_text
from rltune.report import artefacts
from rltune.report.artefact import save
from rltune.report.common import best_measured
from rltune.report.page import build, contents, marks, opponents, provenance, summary
from rltune.report.page.build import _page
from rltune.report.page.summary import claims
from rltune.report.studies import WAIT
from rltune.report.verdict import ABSENT, FAILS, HOLDS, TOO_FEW

TAG = re.compile(r"<(/?[a-z][\w-]*)")
SECTIONS = {"summary", "methods", "deviations", "paper", "run-cost", "provenance"}


def parsed(html: str) -> BeautifulSoup:
    """The page. Its tags are closed, and in order: the parser, which would repair them, leaves them as they are."""
    page = BeautifulSoup(html, "html.parser")
    closed = re.sub(r"<([\w-]+)([^<>]*)/>", r"<\1\2></\1>", html)
    assert TAG.findall(str(page).lower()) == TAG.findall(closed.lower())
    return page


@pytest.fixture(scope="module")
def page(made: Project) -> BeautifulSoup:
    return parsed(made.html)


def test_nothing_of_the_template_is_left(made):
    assert not re.search(r"\{\{|\}\}|\{%|%\}", re.sub(r"<(style|script)>.*?</\1>", "", made.html, flags=re.DOTALL))
    assert "Undefined" not in made.html and ">nan<" not in made.html.lower()


def test_ids_are_there_and_unique(page, made):
    ids = [tag["id"] for tag in page.select("[id]")]
    assert SECTIONS | set(made.saved) <= set(ids)
    assert len(ids) == len(set(ids))
    assert set(artefacts.expected(made.run.config)) <= set(made.saved), "else the page was not seen whole"


def test_downloads_hold_the_artefacts_csv(page, made):
    links = {a["download"]: a["href"] for a in page.select("a[download]")}
    assert set(links) == {f"{name}.csv" for name in made.saved}
    for name, address in links.items():
        linked = pd.read_csv(io.BytesIO(base64.b64decode(address.split(",", 1)[1])))
        pd.testing.assert_frame_equal(linked, pd.read_csv(made.artefacts / name))


def test_every_number_in_the_summary_is_in_a_csv(page, made):
    from_cells = page.select("data[data-from]")
    assert len(from_cells) > 12 * 8
    for cell in from_cells:
        name, row, column = cell["data-from"].replace(".csv", "").split(":")
        value = made.saved[name].frame[column][int(row)]
        assert float(cell["value"]) == pytest.approx(float(value))
        digits = float(re.sub(r"[^0-9.]", "", cell.text))
        shown = abs(value) * (100 if "%" in cell.text else 1)
        assert digits == pytest.approx(shown, rel=6e-3, abs=0.06)


def test_every_number_in_the_tables_is_in_a_csv(page, made):
    for name, saved in made.saved.items():
        csv = {"", *map(str, saved.frame.astype(object).to_numpy().ravel())}
        shown = {cell["data-value"] for cell in page.select(f"article#{name} td[data-value]")}
        assert shown <= csv and (shown or saved.artefact.kind == "figure"), name


def test_places_in_the_paper_follow_its_order():
    places = ["Figures 9 and 11", "Section 3.2", "Section 5.7", "Section 7"]
    assert sorted(reversed(places), key=contents._order) == places


def test_dark_mode_reaches_the_pictures(made):
    drawings = "".join(re.findall(r"<svg.*?</svg>", made.html, flags=re.DOTALL))
    assert "var(--figure-ink)" in drawings and "#22282f" not in drawings and "#ffffff" not in drawings


def test_where_zero_is_covered_no_difference_is_said_to_be_shown(made):
    rows = made.saved["fig12-numbers"].frame
    rows = rows[rows["sequence_jobs"] == 256]
    for shown, words in (("open", "no difference shown"), ("better", "better"), ("worse", "worse")):
        counted = sum((rows[column] == shown).sum() for column in ("shows", "shows_random", "shows_strong"))
        badge = rf'class="mark {shown}">[^/]+</data>[^/]+</span> <span class="badge {shown}">{words}<'
        assert len(re.findall(badge, made.html)) == counted
    assert (rows["shows"] == "open").any() and (rows["shows"] == "better").any()


@pytest.fixture(scope="module")
def answers(page: BeautifulSoup) -> str:
    """The answers in the summary as one line."""
    (found,) = page.select("dl.answers")
    return " ".join(found.text.split())


def test_the_answers_are_first_and_count_every_study(answers, made):
    frame = best_measured(made.saved["fig12-numbers"].frame)
    better, worse = ((frame["shows_strong"] == word).sum() for word in ("better", "worse"))
    assert answers.startswith("What it gains")
    assert f"RLTune is better in {better} of {len(frame)} comparisons, worse in {worse};" in answers
    assert f"{len(made.run.config.cells())} agents were trained" in answers and "synthetic data" in answers
    some = "Mostly" if 2 * better < len(frame) else "Sometimes"
    word = "No" if better == len(frame) else some if better else "Yes"
    assert f"Does a simple heuristic do as well?{word}." in answers.replace("? ", "?")


def test_the_gain_on_each_trace_is_said_with_intervals(answers, made):
    said = answers.split("The question")[0].replace("\u00a0", " ")
    frame = best_measured(made.saved["fig12-numbers"].frame)
    assert all(f"{title} " in said for title in frame["trace_title"].unique())
    firsts = frame.drop_duplicates("trace_title")
    for _, row in firsts.iterrows():
        for value, low, high, shows, _ in opponents.OPPONENTS.values():
            ends = [f"{100 * abs(row[end]):.1f} %" for end in (value, low, high)]
            assert all(end in said for end in ends) and marks.OUTCOME[row[shows]] in said
    assert said.count("learned nothing") == firsts["learned"].str.startswith("no").sum()
    assert "in random order" in said and "the strongest heuristic in hindsight" in said


def test_of_each_chapter_all_but_the_leading_table_or_figure_is_folded(made):
    for chapter, items in contents.chapters(made.saved):
        section = made.html.split(f'<section id="chapter-{chapter.id}"')[1].split("</section>")[0]
        shown, *folded = section.split('<details class="more">')
        assert shown.count("<article") == min(len(items), 1) and len(folded) == (len(items) > 1)
        assert all(saved.artefact.title in folded[0].split("</summary>")[0] for saved in items[1:])


def test_a_note_that_many_tables_share_is_printed_once(page, made):
    shared = contents.shared_notes(made.saved)
    assert shared and len(shared) == len(page.select("li[id]"))
    items = [" ".join(item.text.split()) for item in page.select("li")]
    for i, note in enumerate(shared):
        carriers = [saved for saved in made.saved.values() if note in saved.artefact.notes]
        assert len(carriers) >= 3 and items.count(" ".join(note.split())) == 1
        assert len(page.select(f"a[href='#note-{i + 1}']")) == len(carriers)


def test_every_claim_is_the_row_of_the_table_it_names(made):
    frame = made.saved["claims"].frame
    compared = frame[frame["row"].notna()]
    assert len(compared) > 3 and set(compared["artefact"]) >= {"fig12-numbers", "table7"}
    for _, claim in compared.iterrows():
        source = made.saved[claim["artefact"]].frame.loc[int(claim["row"])]
        columns = {"fig10-numbers": "pro_over", "deployment-numbers": "gain", "table7": claim["key"].split(".")[-2:][0]}
        column = columns.get(claim["artefact"], "improvement")
        assert source[column] == pytest.approx(claim["ours"]), claim["claim"]
    found, untested = claims(made.saved)
    assert len({c["claim"] for c in found}) == compared["key"].nunique() and len(found) >= compared["key"].nunique()
    assert len(untested) == (frame["verdict"] == ABSENT).sum()


def test_chapters_follow_the_paper(made):
    chapters = [chapter for chapter, _ in contents.chapters(made.saved)]
    sections = [tuple(map(int, re.findall(r"\d+", s.where.split(" ")[-1]))) for s in chapters if s.where]
    assert sections == sorted(sections) and len(sections) > 8
    shown = [saved.artefact.id for _, saved_ones in contents.chapters(made.saved) for saved in saved_ones]
    assert sorted([*shown, "improvements"]) == sorted(made.saved)


def test_evidence_for_deviations_exists():
    root, known = Path(__file__).resolve().parents[2], artefacts.entries()
    for deviation in DEVIATIONS:
        assert set(deviation.artefacts) <= set(known), deviation.title
        for item in deviation.files:
            path, _, test = item.partition("::")
            assert (root / path).is_file(), item
            assert path.startswith("tests/") == bool(test), item
            assert not test or f"def {test}(" in (root / path).read_text(encoding="utf-8"), item


def test_deviations_link_to_what_the_page_has(page, made):
    linked = {a["href"][1:] for a in page.select("a[href]")}
    for deviation in DEVIATIONS:
        assert {name for name in deviation.artefacts if name in made.saved} <= linked
    assert "(not in this run)" in page.select_one("section#deviations").text


def test_provenance_is_complete(made):
    texts = "generated trace Philly;matplotlib;Processor;fit/philly__philly-192;policy: [fifo, sjf, f1, wfp3]"
    assert [text for text in texts.split(";") if text not in made.html] == []
    assert "of another day (1 of 2 notebooks)" in made.html and "not recorded (1 of 2 notebooks)" in made.html


def test_an_empty_run_names_what_is_missing(empty):
    text = empty.build().read_text(encoding="utf-8")
    (section,) = parsed(text).select("section#missing")
    for name, title in artefacts.expected(empty.run.config).items():
        assert f"{title} ({name})" in section.text
    assert "No comparison has been written yet" in text


def test_windows_that_do_not_fit_are_named(made):
    saved = {k: v for k, v in made.saved.items() if k != "fig12-256"} | {"fig12": made.saved["fig12-256"]}
    missing = {m["id"]: m["why"] for m in contents.missing(made.run.config, saved) if not m["why"].startswith(ABSENT)}
    assert missing == {"fig12-1024": "no test part is long enough for such a window"}
    evaluation = made.run.config.evaluation.model_copy(update={"sequence_jobs": [256, 512, 1024]})
    config = made.run.config.model_copy(update={"evaluation": evaluation})
    missing = {m["id"]: m["why"] for m in contents.missing(config, saved) if m["id"].startswith("fig12-")}
    assert {"fig12-512", "fig12-1024"} == {name for name, why in missing.items() if "no test part" in why}


def test_a_figure_of_longer_windows_than_there_are_is_of_an_earlier_run(made, tmp_path):
    """The test part has become shorter: the longest windows, drawn anew under the first name, are now of 256 jobs."""
    folder = shutil.copytree(made.artefacts, tmp_path / "artefacts")
    shorter = replace(made.saved["fig12-256"].artefact, id="fig12")
    save(folder, shorter, made.saved["fig12-256"].frame)
    html = build(made.run, folder, tmp_path / "page.html", PAPER, DEVIATIONS).read_text(encoding="utf-8")
    ids = {tag["id"] for tag in parsed(html).select("[id]")}
    assert set(made.saved) - ids == {"fig12-256"}


def test_a_table_without_rows_is_shown_and_what_another_run_left_is_not_read(made, tmp_path):
    """Agents that chose another placement leave none to compare; a file of an older version may be anything."""
    folder = shutil.copytree(made.artefacts, tmp_path / "artefacts")
    (folder / "of-old.json").write_text("{}")
    save(folder, replace(made.saved["placements"].artefact, columns={}), pd.DataFrame([]))
    html = build(made.run, folder, tmp_path / "page.html", PAPER, DEVIATIONS).read_text(encoding="utf-8")
    assert len(parsed(html).select("[id=placements]")) == 1


def built(made: Project, run: Run, folder: Path) -> str:
    out = build(run, made.artefacts, folder / "page.html", PAPER, DEVIATIONS)
    return out.read_text(encoding="utf-8")


def test_text_from_files_is_escaped(made, tmp_path):
    config = made.run.config.model_copy(update={"title": "<script>alert(1)</script> & more"})
    text = built(made, replace(made.run, config=config), tmp_path)
    assert "<script>alert(1)" not in text and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text


def test_the_same_artefacts_make_the_same_page(made, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = built(made, made.run, tmp_path)
    assert first == built(made, made.run, tmp_path) and "2023-11-14 22:13 UTC" in first


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_commit_and_clean_tree(empty):
    git = ["git", "-C", str(empty.root), "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    assert re.fullmatch(r"[0-9a-f]{40}, no file changed", sources.commit(empty.root))
    (empty.root / "new").write_text("x")
    assert sources.commit(empty.root).endswith("with 1 changed or new files")


def test_benchmarks_of_an_earlier_configuration_are_not_counted_and_unreadable_ones_unknown(empty):
    cell, trace = empty.run.config.cells()[0], next(iter(empty.run.traces))
    load, folder = f"{cell.trace}__{cell.cluster}", empty.results / "benchmarks"
    steps = [f"train/{cell.name}", f"clean/{trace}", f"fit/{load}", f"estimate/{load}__exact", "figures"]
    gone = ["train/gone", "clean/gone", f"fit/{trace}__gone", f"baselines/{trace}__gone__exact", "deploy/99"]
    for name in steps + gone:
        write_text(folder / f"{name}.tsv", "s\n1.0\n")
    write_text(folder / "empty.tsv", "")
    write_text(folder / "running.tsv", "s\th:m:s\n-\t-\n")
    found = provenance.stages(folder, empty.run).set_index("stage")["seconds"]
    assert sorted(found.index) == sorted([*steps, "empty", "running"])
    assert (found[steps] == 1.0).all() and found[["empty", "running"]].isna().all()


def test_of_each_item_of_the_paper_the_page_says_how_much_it_has(made):
    found = {one.item.where: one for one in contents.coverage(PAPER, made.saved)}
    for name in ("abstract", "section7", "table7"):
        printed = [key for key, entry in PAPER.artefacts[name].entries.items() if entry.unit == "fraction"]
        absent = made.saved["claims"].frame.query("key.str.startswith(@name + ': ') and verdict == @ABSENT")
        one = found[PAPER.artefacts[name].where]
        assert one.wanted == len(printed) and sorted(one.missing) == sorted(absent["claim"])
    waits = made.saved["fig12-numbers"].frame.query("backfill == 'none' and paper_trace == 'Philly'")
    assert found["Figure 12"].wanted == 12
    missing = [what for what in found["Figure 12"].missing if what.startswith("Philly")]
    assert len(missing) == 4 - waits["policy"].isin(["fifo", "sjf", "f1", "wfp3"]).groupby(waits["policy"]).any().sum()
    assert found["Figure 13"].wanted == 12 and found["Table 6"].wanted == 9
    jct = {"fig15-numbers": replace(made.saved["fig12-numbers"], frame=waits.assign(policy="fifo"))}
    curves = next(one for one in contents.coverage(PAPER, jct) if one.item.where == "Figure 13")
    assert "Philly FIFO, BSLD" in curves.missing and "Philly FIFO, JCT" not in curves.missing
    assert [a.id for a in found["Section 7"].ours] == [a.id for a in found["Abstract"].ours] == ["claims"]
    assert not found["Algorithm 1"].ours
    placements = made.saved["placements"]
    printed = replace(placements, frame=placements.frame.assign(placement="algorithm1"))
    found = {one.item.where: one for one in contents.coverage(PAPER, {**made.saved, "placements": printed})}
    assert [a.id for a in found["Algorithm 1"].ours] == ["placements"]


def said(what: str, run: Run, shown: dict, rows: opponents.Rows | None = None) -> str:
    """What a macro of the summary says about these tables, as one line."""
    claimed, untested = claims(shown)
    s = summary.facts(run, shown, rows or {}, claimed)
    call = {"answers": f"answers(s, {len(untested)}, [], {{}})", "others": "others(s)"}[what]
    html = _page().from_string(f'{{% import "summary.html" as say with context %}}{{{{ say.{call} }}}}').render(s=s)
    return " ".join(BeautifulSoup(html, "html.parser").text.split())


@pytest.mark.parametrize(
    ("base", "random", "answer"),
    [
        (["better"] * 4, ["better"] * 4, "Yes"),
        (["worse"] * 4, ["better"] * 4, "No"),
        (["better"] * 4, ["worse", *["open"] * 3], "No"),
        (["better"] * 4, ["better", *["open"] * 3], "In part"),
        (["open"] * 4, ["better"] * 4, "Not decided"),
        (["open"] * 4, ["open"] * 4, "Not decided"),
        (["better", TOO_FEW], ["better", TOO_FEW], "Yes"),
    ],
)
def test_an_agent_that_beats_one_of_base_policy_and_random_order_does_not_beat_both(empty, base, random, answer):
    rows = pd.DataFrame({"shows": base, "shows_random": random, "shows_strong": "open"})
    rows = rows.assign(sequence_jobs=256, windows=40, learned="yes", heuristics=15)
    assert f"a random order?{answer}. Better than its base policy in" in said("answers", empty.run, {}, {WAIT: rows})


def test_naive_variants_of_one_setting_count_once_and_only_with_enough_windows(empty):
    one = {"trace_title": "T", "policy": "fifo", "cluster_title": "C", "backfill": "none", "locality": "strict"}
    one |= {"metric": "wait", "estimate": "exact", "preset": "quick", "sequence_jobs": 256, "windows": 40}
    rows = [
        {**one, "variant": "naive", "pro_over_low": 0.4, "pro_over_high": 0.5},
        {**one, "variant": "naive, whole nodes", "pro_over_low": 0.5, "pro_over_high": 0.6},
        {**one, "variant": "pro", "pro_over_low": float("nan"), "pro_over_high": float("nan")},
        {**one, "policy": "sjf", "variant": "naive", "pro_over_low": 0.1, "pro_over_high": 0.2, "windows": 5},
    ]
    for better, low in ((1, 0.5), (0, -0.1)):
        rows[1]["pro_over_low"] = low
        text = said("others", empty.run, {"fig10-numbers": SimpleNamespace(frame=pd.DataFrame(rows))})
        assert f"better than every naive variant in {better} of 1 settings, worse than every one in 0" in text


def test_comparisons_of_one_claim_are_told_apart_and_counted_as_such(empty):
    one = {"claim": "Less wait on Philly", "key": "fig12: a", "where": "Figure 12", "cluster_title": "One"}
    one |= {"preset": "quick", "estimate": "exact", "seed": "1", "against": float("nan"), "verdict": FAILS}
    one |= {"sequence_jobs": 256, "windows": 40, "learned": "", "artefact": "fig12-numbers", "row": 0}
    rows = [one, one | {"cluster_title": "Two"}, one | {"cluster_title": "Two", "seed": "2", "verdict": HOLDS}]
    rows += [one | {"key": "fig12: b", "verdict": TOO_FEW}]
    shown = {"claims": SimpleNamespace(frame=pd.DataFrame(rows))}
    assert [c["setting"] for c in claims(shown)[0]] == [" (One, seed 1)", " (Two, seed 1)", " (Two, seed 2)", ""]
    text = said("answers", empty.run, shown)
    assert "Of 4 comparisons with 2 figures of the paper, 0 match, 1 hold in direction only, 2 do not hold and" in text
    assert "1 is not decided. Not: less wait on Philly (One, seed 1); less wait on Philly (Two, seed 1)." in text
