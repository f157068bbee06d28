"""What a result depends on: imports, direct or through others, by registry or by name, and libraries; not what only shows."""

from pathlib import Path

import numpy as np
import pytest

from rltune import sources

ROOT = Path(__file__).parents[1]
TRAIN, FIT, FIGURES = (
    ROOT / name for name in ("notebooks/train.ipynb", "workflow/scripts/fit.py", "notebooks/figures.ipynb")
)


CLEAN, EVALUATE, DEPLOYMENT = (ROOT / f"notebooks/{name}.ipynb" for name in ("clean", "evaluate", "deployment"))


def names(start: Path, **how: bool) -> set[str]:
    return {str(file.relative_to(sources.HERE)) for file in sources.closure(start, **how)}


def test_imports_are_followed():
    """Lazy ones, of registries, by a name in a string, in braces; not those for types alone."""
    train = names(TRAIN)
    assert {"agent/ppo.py", "kernels.py", "files.py", "policies/saf.py", "metrics/bsld.py"} <= train
    assert {"agent/peers/schedinspector.py", "traces/readers/philly.py", "traces/estimates/kinds/lognormal.py"} <= train
    assert not {name for name in train if name.startswith(("report/", "slurm/", "cli/", "notebook.py"))}
    assert not {name for name in names(FIT) if name.startswith(("agent/", "simulator/", "placement/"))}
    assert "traces/clean.py" in names(CLEAN) & train and not {"agent/ppo.py", "evaluation/evaluate.py"} & names(CLEAN)
    assert "evaluation/evaluate.py" in names(EVALUATE) - train and {"agent/ppo.py", "metrics/bsld.py"} <= names(
        EVALUATE
    )
    assert "slurm/ownership.py" in names(DEPLOYMENT, shown=True) - names(EVALUATE) - train
    assert "report/style.py" in names(FIGURES, shown=True) and not names(FIGURES) & names(FIGURES, shown=True) - {
        "__init__.py"
    }


@pytest.mark.parametrize(
    "start", sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("workflow/scripts/*.py")]), ids=lambda p: p.name
)
def test_whatever_is_imported_is_a_file(start):
    found = sources.closure(start, shown=True)
    assert found and all(file.is_file() and file.suffix == ".py" for file in found)


def test_the_version_of_a_library_counts(monkeypatch):
    before = sources.digest(FIT)
    assert ("numpy", np.__version__) in sources._versions()
    monkeypatch.setattr(sources, "_versions", lambda: [("numpy", "1.0")])
    assert sources.digest(FIT) != before and len(before) == 12


def test_a_script_itself_counts(monkeypatch):
    before, read = sources.digest(FIT), sources._bytes
    monkeypatch.setattr(sources, "_bytes", lambda file: b"" if file == FIT else read(file))
    assert sources.digest(FIT) != before


def test_a_table_next_to_the_module_that_reads_it_counts(monkeypatch):
    before, read = {start: sources.digest(start) for start in (CLEAN, TRAIN)}, sources._bytes
    monkeypatch.setattr(sources, "_bytes", lambda file: b"" if file.name == "fields.csv" else read(file))
    assert [start for start in before if sources.digest(start) != before[start]] == [CLEAN]


def test_what_an_editor_keeps_next_to_a_template_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "HERE", tmp_path)
    (tmp_path / "report/templates").mkdir(parents=True)
    before = sources.digest(shown=True)
    (tmp_path / "report/templates/.methods.html.swp").write_text("half a sentence")
    assert sources.digest(shown=True) == before
    (tmp_path / "report/templates/methods.html").write_text("a sentence")
    assert sources.digest(shown=True) != before
