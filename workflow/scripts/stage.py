"""Print the file that a stage of a run makes: stage.py CONFIG STAGE [CELL or TRACE]. For `make notebook`."""

import sys
from pathlib import Path

from rltune.config.context import Run
from rltune.errors import RLTuneError
from rltune.report import artefacts

NO_STAGES = ("index", "explore")
"""Notebooks for readers, which no rule runs."""


def target(config: str, stage: str, of: str) -> str:
    """The executed notebook of a stage. Raises SystemExit with what there is where that is not clear."""
    run = Run.open(config)
    stages = sorted(path.stem for path in Path("notebooks").glob("*.ipynb") if path.stem not in NO_STAGES)
    if stage not in stages:
        others = "rules without a notebook run again by make report ARGS='--forcerun RULE'"
        sys.exit(f"STAGE: found {stage!r}; expected one of: {', '.join(stages)}; {others}")
    cells = {cell.name: cell for cell in run.config.cells()}
    traces = list(dict.fromkeys(cell.trace for cell in cells.values()))
    names = {"train": [*cells], "evaluate": [*cells], "clean": [*run.traces], "compare": traces}.get(stage, [])
    if names:
        by_id = {cell.hash: name for name, cell in cells.items()}
        of = by_id.get(of, of) or (names[0] if len(names) == 1 else "")
        if of not in names:
            variable = "CELL" if stage in ("train", "evaluate") else "TRACE"
            sys.exit(f"{variable}: found {of!r}; stage {stage} of {config} has:\n  " + "\n  ".join(names))
    elif not artefacts.of(run.config, stage):
        sys.exit(f"STAGE: {config} asks for nothing that {stage} makes")
    return f"{run.config.results}/notebooks/{stage}{'-' if names else ''}{of if names else ''}.ipynb"


if __name__ == "__main__":
    try:
        print(target(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
    except RLTuneError as error:
        sys.exit(str(error))
