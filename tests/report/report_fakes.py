"""A small project with generated results: what the other stages would have written, in seconds and without them."""

from __future__ import annotations

import contextlib
import io
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import report_fakes_peers as fakes_peers
import semantics_fakes
from report_runs import CLUSTER, RUN, TRACE

from rltune.config.cells import Cell
from rltune.config.context import Run
from rltune.evaluation.studies import system
from rltune.files import write_json, write_text
from rltune.report import figures, read, tables
from rltune.report.artefact import Artefact, Saved, save
from rltune.report.artefacts import of
from rltune.report.page import build
from rltune.report.paper import PaperResults, load_paper
from rltune.report.studies import curves_of, studies_of
from rltune.report.transferred import transferred

SOURCE = Path(__file__).resolve().parents[2]
TRACES = {"philly": ("Philly", 8725.0), "venus": ("Helios Venus", 5113.0), "pai": ("Alibaba PAI", 38223.0)}
GAIN = {"fifo": 0.85, "sjf": 0.4, "f1": -0.02, "wfp3": 0.6, "saf": 0.0, "multifactor": 0.7}
LEVEL = {"fifo": 1.0, "sjf": 0.35, "f1": 0.12, "wfp3": 0.4, "saf": 0.2, "multifactor": 0.9}
HEURISTICS = ("fifo", "sjf", "f1", "wfp3", "saf")
WINDOWS = {256: 24, 1024: 8}
SOLVER = {"asked": 30, "presolved": 5, "cached": 5, "calls": 20, "infeasible": 1, "limit": 0, "failure": 0}
PAGES = ("figures", "clean-philly")


@dataclass(frozen=True)
class Made:
    """A finished fake run; tests must not write to it."""

    project: Project
    there: dict[str, Saved]
    page: Path

    @property
    def run(self) -> Run:
        return self.project.run

    @cached_property
    def cells(self) -> pd.DataFrame:
        return read.cells(self.run, load_paper(self.project.root))

    @cached_property
    def windows(self) -> pd.DataFrame:
        return read.windows(self.run, self.project.of_cells("windows.csv"))

    @cached_property
    def histories(self) -> pd.DataFrame:
        return read.histories(self.run, self.project.of_cells("history.csv"))

    @cached_property
    def jobs(self) -> pd.DataFrame:
        return read.jobs(self.run, self.project.of_cells("jobs.parquet"))

    @property
    def html(self) -> str:
        return self.page.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Project:
    """A project folder: its configuration, and where its results lie."""

    root: Path
    run: Run

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def artefacts(self) -> Path:
        return self.results / "artefacts"

    def of_cells(self, name: str) -> list[Path]:
        return [self.results / "cells" / cell.name / name for cell in self.run.config.cells()]

    def audits(self) -> tuple[list[Path], list[Path]]:
        """Of cleaning and of fitting."""
        fitted = [f"{w.trace}__{w.cluster}" for w in self.run.config.all_workloads()]
        return (
            [self.results / "traces" / name / "audit.json" for name in self.run.traces],
            [self.results / "workloads" / name / "audit.json" for name in fitted],
        )

    def build(self, pages: tuple[str, ...] = PAGES) -> Path:
        out = self.results / "report" / "index.html"
        return build(self.run, self.artefacts, out, pages, self.results / "benchmarks", self.root)


def project(root: Path, run: str = RUN) -> Project:
    """A project folder with configuration and no results."""
    write_text(root / "workflow" / "Snakefile", "")
    write_text(root / "config" / "default.yaml", run)
    for name in ("paper_results.yaml", "deviations.yaml"):
        shutil.copy(SOURCE / "config" / name, root / "config")
    for name, format in (("philly", "philly"), ("venus", "helios"), ("pai", "alibaba2020")):
        part = "part: Venus\n" if format == "helios" else ""
        text = TRACE.format(title=TRACES[name][0], format=format, part=part)
        write_text(root / "config" / "traces" / f"{name}.yaml", text)
    for name in ("philly-192", "philly-192-balanced", "venus-160", "pai-140"):
        write_text(root / "config" / "clusters" / f"{name}.yaml", CLUSTER.format(name=name))
    with contextlib.chdir(root):
        return Project(root, Run.open("config/default.yaml"))


HOW = {"by": "simulator", "asked": False, "lacks": []}
BARS = pd.DataFrame(
    [(1, 0, 0, 2, 0.0, 0.0, 600.0), (2, 0, 2, 2, 0.0, 0.0, 900.0), (3, 1, 0, 4, 60.0, 600.0, 1200.0)],
    columns=["job", "node", "gpu", "gpus", "submit_s", "start_s", "end_s"],
)


def schedules() -> pd.DataFrame:
    """Figures 1 to 4: one order better than the other, with either placement."""
    seconds = "makespan wait total_wait simulated_makespan simulated_total_wait easy_total_wait start_off over".split()
    rows = []
    for i, placement in enumerate(("exclusive", "best_fit")):
        for k, (raised, above) in enumerate(((None, ""), (3, "2, 1"))):
            about = {"figure": f"fig{1 + 2 * i + k}", "placement": placement, "raised": raised, "above": above}
            times = {f"{name}_s": 1200.0 - 300 * k for name in seconds}
            rows.append({**about, "order": "1, 2, 3", "utilisation": 0.5 + 0.1 * k, **times})
    return pd.DataFrame(rows).astype({"raised": "Int64"})


def solved_twice(cells: pd.DataFrame) -> pd.DataFrame:
    """Two placement questions of each cell with the look-ahead, to which both solvers give the same answer."""
    asked = cells.loc[cells["placement"] == "lookahead", "cell"].repeat(2)
    return pd.DataFrame({"cell": asked, "glpk": 1.5, "cvxpy": 1.5, "agree": True, "glpk_ms": 0.2, "cvxpy_ms": 9.0})


def results(made: Project) -> None:
    """Every result file the report reads."""
    for i, cell in enumerate(made.run.config.cells()):
        rng, folder = np.random.default_rng(i), made.results / "cells" / cell.name
        folder.mkdir(parents=True)
        windows(cell, rng).to_csv(folder / "windows.csv", index=False)
        history(cell, rng).to_csv(folder / "history.csv", index=False)
        jobs(cell, rng).to_parquet(folder / "jobs.parquet")
    left_out = {"no GPU": 150, "ends before it starts": 50}
    clean = {"rows_read": 1200, "left_out": left_out, "noted": {"clamped": 3}, "rows_kept": 1000}
    fit = {"rows_read": 1000, "left_out": {"larger than any node group": 12}, "noted": {}, "rows_kept": 988}
    for audit, paths in zip((clean, fit), made.audits()):
        for path in paths:
            write_json(path, audit)
    for i, step in enumerate(("clean/philly", "fit/philly__philly-192", "figures")):
        write_text(made.results / "benchmarks" / f"{step}.tsv", f"s\th:m:s\n{12.5 * (i + 1)}\t0:00:12\n")


def artefacts(project: Project, of_traces: bool = True) -> None:
    """Every table and figure, saved as the notebooks would; ``of_traces``: those of the traces alone as well."""
    paper, run, folder = load_paper(project.root), project.run, project.artefacts
    made = Made(project, {}, folder)
    cells, wins, curves, waits, by = made.cells, made.windows, made.histories, made.jobs, run.config.evaluation
    studies = studies_of(cells)
    if of_traces:
        semantics_fakes.artefacts(folder)
    numbers = [tables.comparison(cells, wins, curves, paper, study, by) for study in studies]
    variants = tables.ablation(cells, wins, paper, by)
    by_id = {artefact.id: frame for artefact, frame in numbers}
    away_from = [tables.table7(transferred(cells), wins, bases(cells, wins), paper, by)] if of_traces else []
    saved = [
        *numbers,
        tables.claims({**by_id, **{a.id: f for a, f in away_from}}, variants[1], paper),
        tables.costs(cells, wins, curves, paper),
        tables.solvers(cells, solved_twice(cells)),
        tables.heuristics(cells, wins),
        tables.table1(paper),
        tables.table3(system.features(), paper),
        tables.table5(system.policies(run.config), system.SYMBOLS, paper),
        tables.example_schedules(schedules(), HOW, paper),
        *peers(made, paper),
    ]
    drawn = [
        *(figures.training(cells, curves, paper, name) for name in curves_of(cells)),
        *(figures.boxes(cells, waits, paper, study, n) for study in studies if study.boxes for n in WINDOWS),
        figures.improvements(list(by_id.values()), paper),
        *(figures.schedule(BARS, row, [4, 4], HOW, paper) for _, row in schedules().iterrows()),
    ]
    if of_traces:
        saved += [
            *away_from,
            tables.transfer(transferred(cells), away(cells), paper, by),
            tables.audits(read.audits(run, *project.audits())),
            tables.loads(loads()),
            tables.estimates(estimates()),
            tables.table2(statistics(), paper),
            tables.table4(summary(), paper),
        ]
        drawn += [
            figures.fig5(statistics(), paper),
            figures.fig6(batches(), paper),
            figures.arrivals(arrivals(), paper),
            figures.distributions(run_times(), sizes(), paper),
            figures.robustness(transferred(cells), noise(cells), by),
        ]
    if len(variants[1]):
        saved.append(variants)
        drawn += [figures.ablation(variants[1], paper), figures.ablation_training(cells, curves, paper)]
    if "placements" in of(run.config):
        saved.append(tables.placements(cells, wins, by, 1.2, 1.0))
    drawings = [figures.fig7(paper), figures.fig8(paper), figures.fig9(system.network(run.config), paper)]
    for artefact, frame, *picture in (*saved, *((a, f, p) for a, f, p in (*drawn, *drawings))):
        save(folder, artefact, frame, *picture)


def peers(made: Made, paper: PaperResults) -> list[tuple[Artefact, pd.DataFrame]]:
    """Those of the chapter on other learners that any run has."""
    cells, by = made.cells, made.run.config.evaluation
    met, daily = fakes_peers.batches(cells), dict.fromkeys(cells["cell"], 1440.0)
    return [
        tables.table9(cells, met, paper),
        tables.table9_numbers(cells, met, paper, by),
        tables.latency(cells, cells["cell"].iloc[0], fakes_peers.decisions(), paper),
        tables.break_even(cells, made.windows, made.histories, daily, by),
    ]


def windows(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """A row a scheduler × window; every scheduler sees the same windows."""
    first = TRACES[cell.trace][1]
    base = first * LEVEL[cell.policy]
    gain = GAIN[cell.policy] * (0.6 if cell.features == "raw" else 1)
    roles = [
        ("base", cell.policy, cell.backfill, cell.placement, base),
        ("base_best_fit", cell.policy, cell.backfill, "best_fit", 1.03 * base),
        ("random", cell.policy, cell.backfill, "best_fit", 0.4 * base),
        ("rltune", cell.policy, cell.backfill, cell.placement, (1 - gain) * base),
    ]
    # heuristics do not depend on the base policy the agent was trained against
    rules = {"none": 1.0, "greedy": 0.6, "easy": 0.55}
    roles += [("baseline", p, b, "best_fit", first * LEVEL[p] * rules[b]) for p in HEURISTICS for b in rules]
    bound, luck, frames = 0.05 * first * min(LEVEL.values()), np.random.default_rng(cell.seed).normal(1, 0.1), []
    for n, count in WINDOWS.items():
        hardness = rng.lognormal(0, 0.8, count)
        for role, policy, backfill, placement, level in roles:
            agent = int(role == "rltune")
            wait = level * hardness * (n / 256) ** 0.5 * rng.lognormal(0, 0.15, count)
            ran = {"role": role, "policy": policy, "backfill": backfill, "placement": placement, "locality": "strict"}
            solver = {f"milp_{name}": agent * number for name, number in SOLVER.items()}
            same = {"jobs": n, "makespan_s": n * 60.0, "decisions": n, "choices": n // 3, "seconds": 0.05}
            one = _windows(wait, n).assign(**ran, **same, **solver, jct_s=wait + 9000)
            bounds = bound * hardness if role == "baseline" else np.nan
            bsld, spans = 1 + wait / 400 * (luck if agent else 1), 0.6 / (1 + wait / 1e5)
            used = {"utilisation": 0.06 / (1 + wait / 1e6), "utilisation_span": spans}
            frames.append(one.assign(bound_s=bounds, bsld=bsld, **used))
    frame = pd.concat(frames, ignore_index=True)
    return pd.concat([frame, *elsewhere(cell, frame)], ignore_index=True)


def elsewhere(cell: Cell, frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Agent and base under the run's other placements: with best_fit a tenth more wait, with the others a fifth less."""
    found = []
    for placement, locality in (("best_fit", "strict"), ("lookahead", "soonest_end")):
        if (placement, locality) != (cell.placement, cell.locality):
            factor = 1.1 if placement == "best_fit" else 0.8
            for role in ("rltune", "base"):
                own = frame[frame["role"] == role].assign(role=f"{role}_also", placement=placement, locality=locality)
                found.append(own.assign(wait_s=own["wait_s"] * factor))
    return found


def bases(cells: pd.DataFrame, wins: pd.DataFrame) -> pd.DataFrame:
    """Every agent's base policy on the shortest windows, as the transfer stage gathers them."""
    chosen = transferred(cells)
    own = wins[(wins["role"] == "base") & (wins["sequence_jobs"] == min(WINDOWS)) & wins["cell"].isin(chosen["cell"])]
    axes = chosen[["cell", "trace", "cluster", "backfill", "placement", "locality", "estimate", "policy"]]
    return own[["cell", "sequence_jobs", "window", "first_job", "wait_s"]].merge(axes, on="cell")


def away(cells: pd.DataFrame) -> pd.DataFrame:
    """Every agent on every workload: a fifth less wait than its base at home, else a tenth; random a third more."""
    rng, chosen, n = np.random.default_rng(5), transferred(cells), min(WINDOWS)
    rules = {k: chosen[k].iloc[0] for k in ("backfill", "placement", "locality", "estimate")}
    rows = []
    for (trace, cluster), _ in chosen.groupby(["trace", "cluster"], sort=False):
        base = TRACES[trace][1] * rng.lognormal(0, 0.8, WINDOWS[n])
        who = [("base", policy, "", LEVEL[policy]) for policy in chosen["policy"].unique()]
        who += [("random", "", "", 4 / 3)]
        who += [
            ("rltune", c["policy"], c["cell"], LEVEL[c["policy"]] * (0.8 if c["trace"] == trace else 0.9))
            for _, c in chosen.iterrows()
        ]
        for role, policy, cell, factor in who:
            where = {"trace": trace, "cluster": cluster, **rules}
            rows.append(_windows(base * factor, n).assign(**where, role=role, policy=policy, cell=cell))
    return pd.concat(rows, ignore_index=True)


def noise(cells: pd.DataFrame) -> pd.DataFrame:
    """FIFO the same at every sigma; SAF a fifth of it, a tenth more a unit of sigma; agents twice as steep."""
    rng, chosen, n = np.random.default_rng(6), transferred(cells), min(WINDOWS)
    rows = []
    for (trace, cluster), group in chosen.groupby(["trace", "cluster"], sort=False):
        base = TRACES[trace][1] * rng.lognormal(0, 0.8, WINDOWS[n])
        who = [("fifo", "none", "", 1.0, 0.0), ("saf", "none", "", 0.2, 0.1)]
        who += [(c["policy"], "none", c["cell"], 0.3, 0.2) for _, c in group.iterrows()]
        for sigma in (0.0, 1.0, 2.0):
            where = {"trace": trace, "cluster": cluster, "locality": "strict", "sigma": sigma}
            for policy, backfill, cell, level, slope in who:
                one = _windows(base * level * (1 + slope * sigma), n)
                rows.append(one.assign(**where, policy=policy, backfill=backfill, cell=cell))
    return pd.concat(rows, ignore_index=True)


def _windows(wait_s: np.ndarray, n: int) -> pd.DataFrame:
    first = np.arange(len(wait_s))
    return pd.DataFrame({"sequence_jobs": n, "window": first, "first_job": first * n, "wait_s": wait_s})


def history(cell: Cell, rng: np.random.Generator, epochs: int = 20) -> pd.DataFrame:
    """A learning curve that flattens."""
    e = np.arange(1, epochs + 1)
    base = TRACES[cell.trace][1] * rng.lognormal(0, 0.1, epochs)
    rl = base * (1 - GAIN[cell.policy] * (1 - np.exp(-e / 6)) + rng.normal(0, 0.04, epochs))
    if cell.metric == "utilisation":  # more is better: the score to be minimised has its sign reversed
        base, rl = -0.05 * np.ones(epochs), -0.05 * base / rl
    validated = np.where(e % 4 == 0, 1.0, np.nan)
    curve = {"epoch": e, "base": base, "rl": rl, "kept_epoch": e // 4 * 4}
    compared = {"rl": rl * 1.02, "base": base, "random": base * 0.9}
    cost = {"decisions": 5000, "choices": 1800, "mean_queue": 30.0, "rollout_seconds": 2.0, "update_seconds": 1.0}
    solver = {"asked": 150, "presolved": 30, "calls": 100, "cached": 20, "infeasible": 0, "limit": 0, "failure": 0}
    solver |= {"p50_ms": 0.2, "p95_ms": 0.5, "p99_ms": 0.8, "max_ms": 1.5}
    validation = {f"validation_{who}": values * validated for who, values in compared.items()}
    return pd.DataFrame({**curve, **cost, **validation, **{f"milp_{name}": value for name, value in solver.items()}})


def jobs(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """Jobs of the test windows under base and agent; a third do not wait."""
    frames = []
    for n, count in WINDOWS.items():
        for role, factor in (("base", 1.0), ("rltune", 1 - GAIN[cell.policy])):
            wait = rng.lognormal(np.log(TRACES[cell.trace][1] * factor / 3), 1.5, n * count)
            wait[rng.random(n * count) < 0.33] = 0
            measures = {"wait_s": wait, "jct_s": wait + 600, "bsld": 1 + wait / 600}
            frames.append(pd.DataFrame({"role": role, "sequence_jobs": n, **measures}))
    return pd.concat(frames, ignore_index=True)


def parsed(text: str) -> pd.DataFrame:
    """A table whose columns are two spaces apart."""
    return pd.read_csv(io.StringIO(text), sep=r"\s{2,}", engine="python")


def statistics() -> pd.DataFrame:
    """Table 2 of our traces; one waited in a simulation."""
    return parsed("""\
trace         type  jobs_per_month  avg_wait_s  avg_run_s  arrival_per_s  alloc   wait_is
Philly        GPU   60000.0         2703.3      20000.0    0.0223         84602   recorded
Helios Venus  GPU   60001.0         1351.65     10000.0    0.0446         169204  simulated: FIFO on Cluster 1
Alibaba PAI   GPU   60002.0         901.1       6666.7     0.0669         253806  recorded
SDSC-SP2      CPU   2887.0          0.5         9.0        0.001          44416   recorded
""").assign(data="synthetic")


def summary() -> pd.DataFrame:
    """Table 4 of our traces."""
    return parsed("""\
trace         days  jobs   gpus  gpu_types  users  run_avg_s  run_max_days
Philly        75    96260  2490  P100       319    28329.0    60.0
Helios Venus  75    96260  2490  P100       319    28329.0    60.0
Alibaba PAI   75    96260  2490  P100       319    28329.0    60.0
""").assign(data="synthetic", nodes=pd.array([552, None, None], dtype="Int64"))


def each(frame: pd.DataFrame) -> pd.DataFrame:
    """The same rows for every trace, a CPU trace among them."""
    who = [(t, "GPU") for t, _ in TRACES.values()] + [("SDSC-SP2", "CPU")]
    return pd.concat([frame.assign(trace=t, type=kind, data="synthetic") for t, kind in who], ignore_index=True)


def batches() -> pd.DataFrame:
    """Figure 6 of our GPU traces; one waited in a simulation."""
    one = pd.DataFrame({"batch": np.arange(41, 141), "above": np.arange(100) * 2, "wait_h": np.arange(100.0) ** 2})
    rows = each(one.assign(jobs=256, median_wait_s=12.0, of_batches=300))
    rows["wait_is"] = np.where(rows["trace"] == "Helios Venus", "simulated: FIFO on Cluster 1", "recorded")
    return rows[rows["type"] == "GPU"]


def arrivals() -> pd.DataFrame:
    """Arrivals of our traces, none seen at weekends."""
    hour = pd.DataFrame({"by": "hour", "bin": range(24), "relative": np.linspace(0.5, 1.5, 24)})
    day = pd.DataFrame({"by": "weekday", "bin": range(7), "relative": [1.0] * 5 + [np.nan] * 2})
    return each(pd.concat([hour, day], ignore_index=True).assign(busiest=0.4))


def run_times() -> pd.DataFrame:
    """Run times of our traces."""
    return each(pd.DataFrame({"run_s": [1.0, 60.0, 3600.0], "jobs": [0.2, 0.5, 1.0], "work": [0.0, 0.1, 1.0]}))


def sizes() -> pd.DataFrame:
    """Sizes of our traces."""
    return each(pd.DataFrame({"most": [1.0, 2.0, 4.0], "jobs": [0.7, 0.2, 0.1], "work": [0.1, 0.2, 0.7]}))


def estimates() -> pd.DataFrame:
    """Accuracy of two estimates of our traces."""
    return each(
        parsed("""\
estimate         jobs  modelled  median_abs_log  spearman  within_2  median_ratio
lognormal-1      900   1.0       0.67            0.9       0.5       1.0
history-rolling  900   0.99      1.1             nan       0.3       0.9
""")
    )


def loads() -> pd.DataFrame:
    """Offered load of every workload."""
    titles = [title for title, _ in TRACES.values()]
    load = {"load_all": [0.8, 1.8, 2.8], "load_test": [0.7, 1.7, 2.7]}
    return pd.DataFrame({"trace": titles, "cluster": "Cluster 1", "gpus": 192, "data": "synthetic", **load})
