"""Make the project's virtual environment from the lock: with uv, or with pip where that fails or pip has an index of its own.

Runs on a bare Python (3.11 or later) with nothing installed; called by ``make``.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

OLDEST, TOO_NEW = (3, 11), (3, 14)  # as requires-python in pyproject.toml


def run(*command: str) -> None:
    """Run a command silently; if it fails, show its output, name it and stop."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if result.returncode:
        print(result.stdout.rstrip(), file=sys.stderr, flush=True)
        sys.exit(
            f"set-up failed (exit status {result.returncode}) at: {' '.join(command)}\nWhat it said is above. If the "
            "package index cannot be reached, set PIP_INDEX_URL to one that can; the same make command then goes on."
        )


def works(*command: str) -> bool:
    """Whether a command runs to its end; what it says is not shown."""
    try:
        return not subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    except OSError:
        return False


def has_own_index(*pip: str) -> bool:
    """Whether pip is configured with another package index than PyPI, which uv would not read."""
    said = subprocess.run((*pip, "config", "list"), capture_output=True, text=True).stdout
    return any(line.split("=")[0].endswith(".index-url") for line in said.splitlines())


def made_here(root: Path) -> bool:
    """Whether the virtual environment was made in this place, which its commands name."""
    config = root / "pyvenv.cfg"
    return config.is_file() and f" {root}\n" in config.read_text(encoding="utf-8")


def locked(name: str, lock: str) -> str:
    """The entry of one package in a lock, its hashes too."""
    entry = re.search(rf"^{name}==(.*\\\n)*.*\n", lock, re.MULTILINE)
    assert entry is not None, name
    return entry.group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", default=".venv")
    parser.add_argument("--lock", default="requirements.lock")
    args = parser.parse_args()
    found = ".".join(map(str, sys.version_info[:3]))
    if not OLDEST <= sys.version_info[:2] < TOO_NEW:
        sys.exit(
            f"RLTune needs Python {'.'.join(map(str, OLDEST))} or later, below {'.'.join(map(str, TOO_NEW))}; "
            f"{sys.executable} is {found}. Name another one: make report PYTHON=python3.12"
        )
    started = time.monotonic()
    root = Path(args.venv).resolve()
    python = str(root / "bin" / "python")
    print(f"setting up {args.venv} with Python {found} (once; half a minute or more) …", flush=True)
    # A set-up killed half-way may leave a Python without pip, or none that runs; a folder that was moved or copied names
    # its old place: such a folder is made again.
    if not (works(python, "-m", "pip", "--version") and made_here(root)):
        venv.create(root, with_pip=True, clear=True, symlinks=True)
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    # Python compiles what it imports; compiling all of it first would take longer
    install = (*pip, "install", "--quiet", "--no-compile")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pin:
        pin.write(locked("uv", Path(args.lock).read_text(encoding="utf-8")))
        pin.flush()
        quick = not has_own_index(*pip) and works(*install, "--require-hashes", "-r", pin.name)
    uv = (str(root / "bin" / "uv"), "pip", "install", "--quiet", "--python", python)
    if not (quick and works(*uv, "--require-hashes", "-r", args.lock)):
        run(*install, "--require-hashes", "-r", args.lock)
    run(*install, "--no-deps", "--no-build-isolation", "-e", ".")
    run(python, "-m", "ipykernel", "install", "--prefix", str(root), "--name", "rltune", "--display-name", "RLTune")
    kernel = root / "share" / "jupyter" / "kernels" / "rltune" / "kernel.json"
    spec = json.loads(kernel.read_text())  # what libraries print below Python stays out of the notebooks
    spec["argv"].append("--IPKernelApp.capture_fd_output=False")
    kernel.write_text(json.dumps(spec, indent=1))
    print(f"set-up done in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
