"""What benchmarks and runs have left in docs/assets/results/, and how a page shows a table of it."""

import csv
import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "assets" / "results"


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    columns = head.split(" | ")
    lines = [head, " | ".join("---" for _ in columns), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def measured(file: str) -> dict[str, Any]:
    """What benchmarks/quality.py has written for the documents: ``--write docs/assets/results/<file>.json``."""
    found: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text("utf-8"))
    return found


def rows_of(file: str) -> list[dict[str, str]]:
    """The rows of a CSV file among the results."""
    with (RESULTS / f"{file}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def percent(found: list[float | None] | None) -> str:
    """A difference and its interval; bold where all of it is on one side of zero."""
    if found is None or found[0] is None:
        return "–"
    if not any(found):
        return "the same"  # to four digits
    middle, *ends = (None if f is None else round(100 * f, 1) + 0.0 for f in found)  # no negative zero
    if None in ends:
        return f"{middle:+.1f}".replace("-", "−")
    text = "{:+.1f} [{:+.1f}, {:+.1f}]".format(middle, *ends).replace("-", "−")
    return f"**{text}**" if max(found[1:]) < 0 or min(found[1:]) > 0 else text
