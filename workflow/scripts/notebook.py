"""Execute a rule's notebook; its files are the notebook's parameters.

Every named input and output of the rule (but ``notebook``) is passed as the parameter of the same name: a path, or a list
of paths. So are the configuration's path and every named param that the notebook's parameters cell has. The notebook is
executed into the rule's log, which stays when a cell fails, and copied to the output ``notebook`` when it is done, with
a record of what it was made with.
"""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

sys.modules["rfc3987_syntax"] = None  # optional for jsonschema, which checks notebooks; loading it takes a second

import nbformat
import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import DeadKernelError
from traitlets.config import Config

from rltune.files import atomic_write
from rltune.sources import made

THREADS = "OMP OPENBLAS MKL NUMBA".split()


def parameters(rule, declared: set[str]) -> dict:
    """The rule's files and params by name. Exits where the notebook has no parameter for a file."""
    files = {
        name: value if isinstance(value, str) else list(value)
        for part in (rule.input, rule.output)
        for name, value in part.items()
        if name != "notebook"
    }
    if unknown := files.keys() - declared:
        sys.exit(f"{rule.input.notebook}: no parameter {', '.join(sorted(unknown))} in its parameters cell")
    params = {"config": rule.config["path"]} | dict(rule.params.items())
    given = {name: value for name, value in params.items() if name in declared}
    return files | {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


@contextmanager
def quiet(path: Path):
    """Send to a file what libraries and the kernel print below Python."""
    kept = os.dup(2)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)


def main(rule) -> None:
    source, log = Path(rule.input.notebook), Path(rule.log[0])
    names = {f"{name}_NUM_THREADS" for name in THREADS} | {"RLTUNE_THREADS", "TF_NUM_INTRAOP_THREADS"}
    os.environ.update(dict.fromkeys(names, str(rule.threads)), TF_NUM_INTEROP_THREADS="1")
    log.parent.mkdir(parents=True, exist_ok=True)
    facts = made(Path.cwd())  # of the beginning: files may change while a notebook is at work
    given = parameters(rule, set(papermill.inspect_notebook(source)))
    stderr = log.with_suffix(".stderr.txt")
    try:
        with quiet(stderr), TemporaryDirectory(dir="/tmp") as sockets:
            # Sockets in files, whose paths have to be short: Jupyter frees a port before the kernel takes it.
            ipc = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
            papermill.execute_notebook(source, log, given, progress_bar=False, config=ipc)
    except papermill.PapermillExecutionError:
        sys.exit(1)  # the error is in the log
    except KeyboardInterrupt:
        os._exit(130)  # at once and quietly: what is half done is done again, or resumed; the kernel follows
    except DeadKernelError:
        sys.exit(f"{source.name}: its kernel was stopped, by Ctrl-C or for want of memory")
    except RuntimeError as error:  # it ended before it was asked anything
        sys.exit(f"{source.name}: {error}\n{stderr.read_text(encoding='utf-8', errors='replace')[-2000:]}")
    except NoSuchKernel as error:
        sys.exit(f"{source.name}: no Jupyter kernel {error.name!r} here; `make .venv/.ready` installs it")
    done = nbformat.read(log, as_version=4)
    done.metadata["rltune"] = facts
    with atomic_write(rule.output.notebook) as temporary:
        nbformat.write(done, temporary)


main(snakemake)  # noqa: F821
