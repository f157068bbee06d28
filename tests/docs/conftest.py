"""What the documents' tests share: their folder and the generators beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/site/ holds programs, not a package of the library."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    monkeypatch.chdir(ROOT)
    for name in ("generate", "hooks", "pictures", "sources", "workflow", "docstrings"):
        sys.modules.pop(name, None)
