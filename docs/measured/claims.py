"""The paper's claims on real rows: the artefact `claims` of the run of config/real-rows.yaml."""

from __future__ import annotations

from collections import Counter

from measured.read import percent, rows_of, table
from rltune.report.verdict import ABSENT

HEAD = "claim | paper, % | ours, % | preset | seeds | windows | verdict"


def claims() -> str:
    """Every improvement that the paper prints and the run has, in the report's order."""
    found = []
    for row in rows_of("claims"):
        if row["verdict"] != ABSENT:
            ours = percent([float(row[end]) if row[end] else None for end in ("ours", "low", "high")])
            windows = f"{row['windows']} × {row['sequence_jobs']}"
            paper = f"{100 * float(row['paper']):.1f}".replace("-", "−")
            found.append((row["claim"], paper, ours, row["preset"], row["seed"], windows, row["verdict"]))
    return table(HEAD, found)


def verdicts() -> str:
    """How many rows have which verdict; headlines, which repeat the best of the others, are not counted, as in the report."""
    rows = [row for row in rows_of("claims") if not row["key"].startswith("abstract: ")]
    absent = sum(row["verdict"] == ABSENT for row in rows)
    counts = Counter(row["verdict"] or "no interval" for row in rows if row["verdict"] != ABSENT)
    return table("verdict | rows", [*((word, str(n)) for word, n in counts.most_common()), (ABSENT, str(absent))])
