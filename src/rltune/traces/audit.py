"""The audit: how many rows a stage read, left out (by reason), found remarkable, and kept.

Nothing is dropped silently: ``rows_read == rows_kept + sum(left_out)`` is checked wherever an audit is closed.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd


@dataclass
class Audit:
    """Counts of one stage (cleaning a trace, fitting it to a cluster). Every count is a number of rows (jobs)."""

    rows_read: int = 0
    rows_kept: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason → rows left out, in the order the reasons were first met."""
    noted: dict[str, int] = field(default_factory=dict)
    """Remark → rows it holds for; such rows may be kept (a run time clamped, a fallback used)."""

    def read(self, rows: int) -> None:
        """Count rows that came in."""
        self.rows_read += int(rows)

    def leave_out(self, reason: str, rows: int) -> None:
        """Count rows left out for one reason; nothing is recorded for zero rows."""
        if rows:
            self.left_out[reason] = self.left_out.get(reason, 0) + int(rows)

    def note(self, remark: str, rows: int) -> None:
        """Count rows that are remarkable without being left out for it."""
        if rows:
            self.noted[remark] = self.noted.get(remark, 0) + int(rows)

    def keep(self, rows: int) -> None:
        """Set the number of rows that remain, and check the sum."""
        self.rows_kept = int(rows)
        self.check()

    def check(self) -> None:
        """Raise ``AssertionError`` unless every row read was either kept or left out for a reason."""
        out = sum(self.left_out.values())
        if self.rows_read != self.rows_kept + out:
            raise AssertionError(f"audit does not add up: {self}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``Audit(**values)`` is its inverse."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a line of the audit: ``kind`` (read, left out, kept, noted), ``reason``, ``rows``, ``share``."""
        lines = [("read", "", self.rows_read)]
        lines += [("left out", reason, rows) for reason, rows in self.left_out.items()]
        lines += [("kept", "", self.rows_kept)]
        lines += [("noted", remark, rows) for remark, rows in self.noted.items()]
        frame = pd.DataFrame(lines, columns=["kind", "reason", "rows"])
        frame["share"] = frame["rows"] / max(self.rows_read, 1)
        return frame

    def __str__(self) -> str:
        out = "; ".join(f"{rows} {reason}" for reason, rows in self.left_out.items()) or "none"
        text = f"{self.rows_read} rows read, {self.rows_kept} kept; left out: {out}"
        if self.noted:
            text += "; noted: " + "; ".join(f"{rows} {remark}" for remark, rows in self.noted.items())
        return text
