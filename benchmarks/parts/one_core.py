"""Limit numerical libraries to one thread each; to be imported before numpy is."""

import os

for library in ("OMP", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
