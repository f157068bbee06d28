"""Install a Chromium for the tests of the report's page, where this machine lets us: root, apt, and none there yet.

Run with any Python: `python workflow/chromium.py`. Never fails; without a Chromium those tests are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")  # as rltune.report.pdf's
LIMIT_S = 300


def install() -> str:
    """What is to be said of it; "" where there is a Chromium already."""
    if any(shutil.which(name) for name in NAMES):
        return ""
    without = "the tests of the report's page in a browser are skipped"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return f"no Chromium here, and no root with apt to install one: {without}"
    print(f"installing Chromium for the tests of the report's page (at most {LIMIT_S} s) …", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = ["apt-get", "-qq", "-y"]
    for command in ([*get, "update"], [*get, "install", "--no-install-recommends", "chromium"]):
        try:
            done = subprocess.run(command, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=LIMIT_S)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{' '.join(command)} took more than {LIMIT_S} s: {without}"
        if done.returncode:
            said = done.stdout.strip().splitlines()[-1:] or ["no message"]
            return f"{' '.join(command)} failed ({said[0]}): {without}"
    return "" if any(shutil.which(name) for name in NAMES) else f"apt has no Chromium that can be started: {without}"


if __name__ == "__main__":
    if said := install():
        print(said, file=sys.stderr, flush=True)
