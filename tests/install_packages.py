"""Install the system packages that some tests need, Slurm's daemons and a browser, where root and apt are there.

Where they are not, those tests are skipped and say what they need. Called by ``make test-all``.
"""

import os
import shutil
import subprocess

from rltune.report.pdf import find_chromium
from rltune.slurm.emulate.packages import absent


def main() -> None:
    packages = absent(accounting=True, speed=2.0) + ([] if find_chromium() else ["chromium"])
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"tests that need these packages are skipped: {' '.join(packages)}")
        return
    print(f"installing {' '.join(packages)} …", flush=True)
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)
    done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], **quiet)
    if done.returncode:
        print("apt-get failed: tests that need these packages are skipped")


if __name__ == "__main__":
    main()
