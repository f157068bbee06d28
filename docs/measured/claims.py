"""The paper's claims on real rows: the artefact `claims` of the runs of config/real-rows.yaml and, for Alibaba, csv.yaml."""

from collections import Counter

from measured.read import percent, rows_of, table
from rltune.policies import TITLES
from rltune.report.verdict import ABSENT

HEAD = "claim | cluster | paper, % | ours, % | preset | seeds | windows | verdict"


def runs() -> list[dict[str, str]]:
    """The rows of both runs; Alibaba's are from config/csv.yaml."""
    shipped, given = rows_of("claims"), rows_of("claims-pai")
    return [row for row in shipped if ": Alibaba." not in row["key"]] + [r for r in given if ": Alibaba." in r["key"]]


def claims() -> str:
    """Every improvement that the paper prints and a run has, in the report's order."""
    found = []
    for row in runs():
        if row["verdict"] != ABSENT:
            ours = _percent(row, "ours")
            whole = row["key"].startswith("fig17: ")  # one sequence, resampled in blocks
            windows = f"{1 if whole else row['windows']} × {row['sequence_jobs']}"
            paper = f"{100 * float(row['paper']):.1f}".replace("-", "−")
            against = f" ({row['against']})" if row.get("against") else ""
            about = row["claim"] + against, row["cluster_title"]
            found.append((*about, paper, ours, row["preset"], row["seed"], windows, row["verdict"]))
    return table(HEAD, found)


def verdicts() -> str:
    """How many rows have which verdict; headlines, the best where windows are most, are not counted, as in the report."""
    rows = [row for row in runs() if not row["key"].startswith("abstract: ")]
    absent = sum(row["verdict"] == ABSENT for row in rows)
    counts = Counter(row["verdict"] or "no interval" for row in rows if row["verdict"] != ABSENT)
    return table("verdict | rows", [*((word, str(n)) for word, n in counts.most_common()), (ABSENT, str(absent))])


def waits_of_csv() -> str:
    """How much less jobs wait under an agent than under its base policy: `fig12-numbers` and, for QSSF, `table8` of config/csv.yaml."""
    found = []
    for row in rows_of("waits-csv"):
        windows = f"{row['windows']} × {row['sequence_jobs']}"
        agent = row["trace"], TITLES[row["policy"]], row["backfill"], row["preset"], row["seed"]
        found.append((*agent, windows, _percent(row, "improvement")))
    return table("trace | base policy | backfilling | preset | seeds | windows | less wait, %", found)


def _percent(row: dict[str, str], value: str) -> str:
    return percent([float(row[end]) if row[end] else None for end in (value, "low", "high")])
