"""A small project with generated results: what the other stages would have written, in seconds and without them."""

import contextlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import report_fakes_cells as ran
import report_fakes_peers as fakes_peers
import report_fakes_rules
import report_fakes_traces as seen
from report_runs import CLUSTER, DEVIATIONS, PAPER, TRACE

from rltune import sources
from rltune.config.context import Run
from rltune.evaluation.studies import example_schedules, system
from rltune.files import write_json, write_text
from rltune.report import figures, read, tables
from rltune.report.artefact import Saved, load_artefact, save
from rltune.report.artefacts import of
from rltune.report.page import build
from rltune.report.studies import curves_of, studies_of
from rltune.report.transferred import transferred

MADE = (sources.made(Path(__file__).parent), {"Commit": "of another day"})
"""What two notebooks recorded."""
PAGES = ("figures", "clean-philly")


def load_artefacts(folder: Path) -> dict[str, Saved]:
    """Every complete artefact of a folder, by id."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    return {name: load_artefact(folder, name) for name in names}


@dataclass(frozen=True)
class Project:
    """A project folder: its configuration and its results, to which tests must not write."""

    root: Path
    run: Run

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def artefacts(self) -> Path:
        return self.results / "artefacts"

    @property
    def page(self) -> Path:
        return self.results / "report" / "index.html"

    @property
    def html(self) -> str:
        return self.page.read_text(encoding="utf-8")

    @cached_property
    def saved(self) -> dict[str, Saved]:
        return load_artefacts(self.artefacts)

    @cached_property
    def cells(self) -> pd.DataFrame:
        return read.cells(self.run, PAPER)

    @cached_property
    def windows(self) -> pd.DataFrame:
        return read.results(self.run, self.of_cells("windows.csv"))

    @cached_property
    def histories(self) -> pd.DataFrame:
        return read.results(self.run, self.of_cells("history.csv"))

    @cached_property
    def jobs(self) -> pd.DataFrame:
        return read.jobs(self.run, self.of_cells("jobs.parquet"))

    def of_cells(self, name: str) -> list[Path]:
        return [self.results / "cells" / cell.name / name for cell in self.run.config.cells()]

    def audits(self) -> tuple[list[Path], list[Path]]:
        """Of cleaning and of fitting."""
        fitted = [f"{w.trace}__{w.cluster}" for w in self.run.config.all_workloads()]
        return (
            [self.results / "traces" / name / "audit.json" for name in self.run.traces],
            [self.results / "workloads" / name / "audit.json" for name in fitted],
        )

    def build(self) -> Path:
        benchmarks = self.results / "benchmarks"
        return build(self.run, self.artefacts, self.page, PAPER, DEVIATIONS, PAGES, benchmarks, MADE)


def project(root: Path, run: str = "run.yaml") -> Project:
    """A project folder with a configuration, a file of this folder, and no results."""
    write_text(root / "workflow" / "Snakefile", "")
    write_text(root / "config" / "default.yaml", Path(__file__).with_name(run).read_text(encoding="utf-8"))
    for name, format in (("philly", "philly"), ("venus", "philly"), ("pai", "alibaba2020")):
        text = TRACE.format(title=seen.TRACES[name][0], format=format)
        write_text(root / "config" / "traces" / f"{name}.yaml", text)
    for name in ("philly-192", "philly-192-balanced", "venus-160", "pai-140"):
        write_text(root / "config" / "clusters" / f"{name}.yaml", CLUSTER.format(name=name))
    with contextlib.chdir(root):
        return Project(root, Run.open("config/default.yaml"))


def solved_twice(cells: pd.DataFrame) -> pd.DataFrame:
    """Two placement questions of each cell with the look-ahead, to which both solvers give the same answer."""
    asked = cells.loc[cells["placement"] == "lookahead", "cell"].repeat(2)
    return pd.DataFrame({"cell": asked, "glpk": 1.5, "cvxpy": 1.5, "agree": True, "glpk_ms": 0.2, "cvxpy_ms": 9.0})


def results(made: Project) -> None:
    """Every result file the report reads."""
    for i, cell in enumerate(made.run.config.cells()):
        rng, folder = np.random.default_rng(i), made.results / "cells" / cell.name
        folder.mkdir(parents=True)
        ran.windows(cell, rng).to_csv(folder / "windows.csv", index=False)
        ran.history(cell, rng).to_csv(folder / "history.csv", index=False)
        ran.jobs(cell, rng).to_parquet(folder / "jobs.parquet")
    left_out = {"no GPU": 150, "ends before it starts": 50}
    clean = {"rows_read": 1200, "left_out": left_out, "noted": {"clamped": 3}, "rows_kept": 1000}
    fit = {"rows_read": 1000, "left_out": {"larger than any node group": 12}, "noted": {}, "rows_kept": 988}
    for audit, paths in zip((clean, fit), made.audits()):
        for path in paths:
            write_json(path, audit)
    for i, step in enumerate(("clean/philly", "fit/philly__philly-192", "figures")):
        write_text(made.results / "benchmarks" / f"{step}.tsv", f"s\th:m:s\n{12.5 * (i + 1)}\t0:00:12\n")


def artefacts(made: Project, of_traces: bool = True) -> None:
    """Every table and figure, saved as the notebooks would; ``of_traces``: those of the traces alone as well."""
    paper, run, folder = PAPER, made.run, made.artefacts
    cells, wins, curves, waits, by = made.cells, made.windows, made.histories, made.jobs, run.config.evaluation
    studies, met, four = studies_of(cells), fakes_peers.batches(cells), example_schedules.schedules()
    if of_traces:
        report_fakes_rules.artefacts(folder)
    numbers = [tables.comparison(cells, wins, curves, paper, study, by) for study in studies]
    variants = tables.ablation(cells, wins, paper, by)
    by_id = {artefact.id: frame for artefact, frame in numbers}
    away_from = [tables.table7(transferred(cells), ran.bases(cells, wins), paper, by)] if of_traces else []
    saved = [
        *numbers,
        tables.claims({**by_id, **{a.id: f for a, f in away_from}}, variants[1], paper),
        tables.costs(cells, wins, curves, paper),
        tables.solvers(cells, solved_twice(cells)),
        tables.heuristics(cells, wins),
        tables.table1(paper),
        tables.table3(system.features(), paper),
        tables.table5(system.policies(run.config), system.SYMBOLS, paper),
        tables.example_schedules(four.facts, four.source, paper),
        tables.table9(cells, met, paper),
        tables.table9_numbers(cells, met, paper, by),
        tables.latency(cells, cells["cell"].iloc[0], fakes_peers.decisions(), paper),
        tables.break_even(cells, wins, curves, dict.fromkeys(cells["cell"], 1440.0), by),
        *(figures.training(cells, curves, paper, name) for name in curves_of(cells)),
        *(figures.boxes(cells, waits, paper, study, n) for study in studies if study.boxes for n in ran.WINDOWS),
        figures.improvements(list(by_id.values()), paper),
        *(
            figures.schedule(four.bars[r["figure"]], r, four.node_gpus, four.source, paper)
            for _, r in four.facts.iterrows()
        ),
        figures.diagram("fig7", paper),
        figures.diagram("fig8", paper),
        figures.fig9(system.network(run.config), paper),
    ]
    if of_traces:
        saved += [
            *away_from,
            tables.transfer(transferred(cells), ran.away(cells), paper, by),
            tables.audits(read.audits(run, *made.audits())),
            tables.loads(seen.loads()),
            tables.estimates(seen.estimates()),
            tables.table2(seen.statistics(), paper),
            tables.table4(seen.summary(), paper),
            figures.fig5(seen.statistics(), paper),
            figures.fig6(seen.batches(), paper),
            figures.arrivals(seen.arrivals(), paper),
            figures.distributions(seen.run_times(), seen.sizes(), paper),
            figures.robustness(transferred(cells), ran.noise(cells), by),
        ]
    if len(variants[1]):
        saved += [variants, figures.ablation(variants[1], paper), figures.ablation_training(cells, curves, paper)]
    if "placements" in of(run.config):
        saved.append(tables.placements(cells, wins, by, run.clusters))
    for one in saved:
        save(folder, *one)
