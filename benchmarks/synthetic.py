"""How like the real traces the synthetic ones are: fit months | held months | synthetic | paper, with verdicts.

Needs the real rows, as benchmarks/fit_synthetic.py does. Every figure of rltune.calibration.likeness and the mean
waits of FIFO, SJF and SAF on windows of 256 jobs, from several seeds; tolerances are stated there. Writes the tables
into docs/synthetic.md between its markers. The last line is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from rltune.calibration.fit import AT_FULL_RATE, figures
from rltune.calibration.likeness import TOLERANCES, Tolerance, describe
from rltune.calibration.months import MONTHS
from rltune.calibration.real import months_of
from rltune.calibration.replay import WAIT_TOLERANCES, describe_waits
from rltune.config import Workspace
from rltune.config.trace import TraceConfig
from rltune.files import write_text
from rltune.report.paper import PaperResults, load_paper
from rltune.traces.clean import clean_trace
from rltune.traces.synthetic import generate, write_alibaba, write_helios, write_philly
from rltune.traces.synthetic.engine import draw_jobs, streams
from rltune.traces.synthetic.parameters import load

SEEDS = (1, 2, 3, 4, 5)
"""None of them is one the search judged its candidates on."""
JOBS = 40_000
SALTS = {"philly": write_philly.SALT, "helios": write_helios.SALT, "alibaba2020": write_alibaba.SALT}
DOCUMENT = "docs/synthetic.md"
BEGIN, END = "<!-- tables: make bench BENCH=synthetic -->", "<!-- end of tables -->"
CPU, PAPER_ONLY = ("hpc2n", "SDSC-SP2"), "SDSC-SP2"
"""The CPU logs; the one of which there are no rows."""
ALL = TOLERANCES | WAIT_TOLERANCES
IN_PAPER = {
    "arrivals, jobs per s": "arrival_per_s",
    "run time, mean, s": "avg_run_s",
    "recorded wait, mean, s": "avg_wait_s",
}


def synthetic(name: str, seed: int, workspace: Workspace, t0: pd.Timestamp) -> dict[str, float]:
    """The figures of one seed's synthetic trace."""
    months = MONTHS[name]
    if months.cluster is None:
        return _swf(months.paper, seed)
    drawn = draw_jobs(load(name), JOBS * (6 if months.sample > 1 else 1), streams(seed, SALTS[name]))
    return figures(name, drawn, months, workspace.cluster(months.cluster), _begin(drawn, t0))


def _swf(part: str, seed: int) -> dict[str, float]:
    """The figures of a log that has gone through file, reader and cleaning."""
    with tempfile.TemporaryDirectory() as folder:
        generate("swf", Path(folder), seed, JOBS // 2, part)
        zone = "Europe/Stockholm" if part == "HPC2N" else "America/Los_Angeles"
        trace = TraceConfig(title=part, data="own", format="swf", path=folder, time_zone=zone)
        clean = clean_trace(part, trace, Path(folder))
    jobs = clean.jobs.dropna(subset=["cpus"]).reset_index(drop=True)
    jobs = jobs.assign(gpus=jobs["cpus"].astype(np.int64), vc=None)
    return describe(jobs, pd.Timestamp(clean.meta.t0).tz_convert(zone))


def _begin(drawn: pd.DataFrame, t0: pd.Timestamp) -> pd.Timestamp:
    return pd.Timestamp(drawn["submit_unix_s"].iloc[0], unit="s", tz="UTC").tz_convert(t0.tz)


def compare(name: str, workspace: Workspace, results: PaperResults) -> pd.DataFrame:
    """One trace: figure → fit, held, synthetic (median over seeds), least, most, paper, tolerance, two verdicts."""
    months = MONTHS[name]
    real = {}
    for which, (rows, t0) in months_of(name, workspace.root).items():
        real[which] = describe(rows, t0, months.sample)
        if months.cluster:
            real[which] |= describe_waits(rows, workspace.cluster(months.cluster))
    made = pd.DataFrame([synthetic(name, seed, workspace, t0) for seed in SEEDS])
    paper = _paper(results, months.paper)
    rows = []
    for what in [w for base in ALL for w in (base, base + AT_FULL_RATE) if w in made]:
        base, near = what.removesuffix(AT_FULL_RATE), ALL[what.removesuffix(AT_FULL_RATE)]
        ours = float(made[what].median())
        fit, held = (real[w].get(base) for w in ("fit", "held"))
        rows.append(
            {
                "figure": what,
                "fit": fit,
                "held": held,
                "synthetic": ours,
                "least": float(made[what].min()),
                "most": float(made[what].max()),
                "paper": paper.get(what),
                "tolerance": str(near),
                "near_fit": _verdict(near, ours, fit),
                "near_held": _verdict(near, ours, held),
                "fit_near_held": None if fit is None or held is None else near.holds(fit, held),
            }
        )
    return pd.DataFrame(rows).astype({c: object for c in ("near_fit", "near_held", "fit_near_held")})


def _verdict(near: Tolerance, ours: float, theirs: float | None) -> bool | None:
    return None if theirs is None else near.holds(ours, theirs)


def _paper(paper: PaperResults, name: str) -> dict[str, float]:
    """Figures the paper's Table 2 prints."""
    printed = {ours: paper.value("table2", name, theirs) for ours, theirs in IN_PAPER.items()}
    return printed | {"GPUs, mean": paper.value("table2", name, "alloc") / paper.value("table2", name, "jobs")}


def against_paper(name: str, paper: PaperResults) -> pd.DataFrame:
    """A trace without real rows: figure → synthetic (median over seeds), least, most, paper."""
    made = pd.DataFrame([_swf(name, seed) for seed in SEEDS])
    return pd.DataFrame(
        [
            {
                "figure": what,
                "synthetic": float(made[what].median()),
                "least": float(made[what].min()),
                "most": float(made[what].max()),
                "paper": value,
            }
            for what, value in _paper(paper, name).items()
        ]
    )


def markdown(name: str, table: pd.DataFrame) -> str:
    """One trace's table."""
    title = PAPER_ONLY if name == PAPER_ONLY else MONTHS[name].paper
    lines = [f"### {title}", ""]
    if name != PAPER_ONLY:
        fit, held = MONTHS[name].fit, MONTHS[name].held
        lines += [
            f"Fitted on {fit[0]} to {fit[1]}; {held[0]} to {held[1]} held for the check (without the last day).",
            "",
        ]
    unit = "processors" if name in CPU else "GPUs"
    lines += [
        "| | real (fit) | real (held) | synthetic | seeds | paper | tolerance | like the held |",
        "|---|---:|---:|---:|---|---:|---|---|",
    ]
    for row in table.to_dict("records"):
        what = row["figure"].replace("GPUs", unit).replace("GPU", unit.removesuffix("s"))
        verdict = {True: "yes", False: "**no**"}.get(row.get("near_held"), "")
        if row.get("near_held") is False and row.get("fit_near_held") is False:
            verdict += ", nor are the fit months"
        cells = [
            what,
            *(_number(row.get(c)) for c in ("fit", "held", "synthetic")),
            f"{_number(row['least'])} – {_number(row['most'])}",
            _number(row["paper"]),
            row.get("tolerance", ""),
            verdict,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def summary(table: pd.DataFrame) -> dict[str, object]:
    """What counts: how many figures are within tolerance of the held months, and whether all waits are."""
    judged = table[table["near_held"].notna()]
    waits = judged[judged["figure"].str.startswith("mean wait")]
    return {
        "figures": len(judged),
        "like_held": int(judged["near_held"].astype(bool).sum()),
        "fit_months_like_held": int(judged["fit_near_held"].astype(bool).sum()),
        "not_like_held": judged.loc[~judged["near_held"].astype(bool), "figure"].tolist(),
        "waits_like_held": bool(waits["near_held"].astype(bool).all()) if len(waits) else None,
    }


def write_document(path: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Put the tables between the document's markers."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    body = "\n\n".join(markdown(name, table) for name, table in tables.items())
    write_text(path, f"{before}{BEGIN}\n\n{body}\n\n{END}{after}")


def main() -> None:
    os.environ.setdefault("RLTUNE_REAL_TRACES", str(Path("../shared/traces").resolve()))
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open("config/csv.yaml", folder)
        paper = load_paper(workspace.root)
        tables = {}
        for name in MONTHS:
            tables[name] = compare(name, workspace, paper)
            print(f"{name}: {summary(tables[name])}", flush=True)
        tables[PAPER_ONLY] = against_paper(PAPER_ONLY, paper)
    write_document(workspace.root / DOCUMENT, tables)
    figures_out = {
        name: {"summary": summary(t) if "near_held" in t else None, "figures": json.loads(t.to_json(orient="records"))}
        for name, t in tables.items()
    }
    print(json.dumps(figures_out))


if __name__ == "__main__":
    sys.exit(main())
