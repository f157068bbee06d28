"""Run one notebook as a stage of the workflow: papermill executes it, nbconvert renders it.

The executed notebook is the stage's log: it is written as it goes and stays when the stage fails.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rltune.config import Workspace
from rltune.errors import RLTuneError
from rltune.files import read_json, write_text
from rltune.pipeline.workflow.jobs import label

THREAD_VARIABLES = (
    "RLTUNE_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)
"""Set to the rule's number of threads before the kernel starts, so that stages side by side share the machine."""


class NotebookError(RLTuneError):
    """A notebook stopped at an error."""


def run_notebook(source: Path, log: Path, page: Path, parameters: Mapping[str, str], threads: int) -> None:
    """Execute ``source`` with ``parameters`` into ``log`` (.ipynb) and render it to ``page`` (.html).

    What it prints is passed on line by line, with the stage and what it works on in front. Raises NotebookError
    with the cell's own message when a cell fails; the notebook up to there is in ``log``.
    """
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel

    if not source.is_file():
        known = ", ".join(sorted(p.stem for p in source.parent.glob("*.ipynb")))
        raise NotebookError(f"{source}: no such notebook; there are: {known}")
    front = _label(source.stem, parameters)
    os.environ.update({name: str(threads) for name in THREAD_VARIABLES}, TF_NUM_INTEROP_THREADS="1")
    log.parent.mkdir(parents=True, exist_ok=True)
    noise = log.with_suffix(".stderr.txt")  # what libraries say below Python: TensorFlow's and the kernel's greetings
    try:
        with open(noise, "w") as file, _stderr_to(file):
            papermill.execute_notebook(
                source,
                log,
                parameters=dict(parameters),
                progress_bar=False,
                cwd=os.getcwd(),
                stdout_file=_Labelled(front),
            )
    except papermill.PapermillExecutionError as error:
        raise NotebookError(
            f"{source.name} stopped in cell {error.exec_count}: {error.ename}: {error.evalue}\n"
            f"the notebook up to there, with the whole traceback, is {log}"
        ) from None
    except NoSuchKernel as error:
        raise NotebookError(
            f"{source.name}: Jupyter kernel {error.name!r} is not installed here; `make setup` installs it, or: "
            "python -m ipykernel install --sys-prefix --name rltune --display-name RLTune"
        ) from None
    write_text(page, render(log))


def render(notebook: Path) -> str:
    """An executed notebook as one HTML page that asks nothing of the network."""
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    nothing = {"mathjax_url": "", "require_js_url": "", "jquery_url": "", "mermaid_js_url": ""}
    exporter = HTMLExporter(config=Config({"HTMLExporter": {"embed_images": True, **nothing}}))
    body, _ = exporter.from_filename(str(notebook))
    return body.replace('<script src=""></script>', "")


def stopped_at(notebook: Path) -> str:
    """Which cell of an executed notebook stopped it, and with which error; nothing where none did."""
    try:
        cells = read_json(notebook)["cells"]
    except ValueError:  # cut off by a kill
        return ""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if output["output_type"] == "error":
                where = f"{notebook.name} stopped in cell {cell['execution_count']}"
                return f"  {where}: {output['ename']}: {output['evalue']}"
    return ""


def _label(stage: str, parameters: Mapping[str, str]) -> str:
    """What the stage's lines have in front: it and what it works on."""
    wildcards = {name: parameters[name] for name in ("trace", "cell") if parameters.get(name)}
    if "cell" not in wildcards:
        return " ".join([stage, *wildcards.values()])
    return label(Workspace.open(parameters["config"], parameters.get("base", "")).config, stage, wildcards)


@contextmanager
def _stderr_to(file: io.TextIOBase) -> Iterator[None]:
    """Send the standard error of this process and its children to a file for a while."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


class _Labelled(io.TextIOBase):
    """Passes text on to standard output, each line with a label in front."""

    def __init__(self, label: str) -> None:
        self.label = label

    def write(self, text: str) -> int:
        # one write: stages side by side share the terminal, and two writes of one line could be torn apart
        sys.stdout.write("".join(f"[{self.label}] {line}\n" for line in filter(str.strip, text.splitlines())))
        sys.stdout.flush()
        return len(text)
