"""What the download tests serve, and how patient they are."""

from __future__ import annotations

import hashlib

import numpy as np

from rltune.traces.fetch.patience import Patience

QUICK = Patience(
    tries=3,
    gain_bytes=1000,
    wait_s=0.0,
    longest_s=5.0,
    connect_s=10.0,
    stall_s=10.0,
    redirects=4,
    every_s=0.0,
    chunk_bytes=512,
)
DATA = np.random.default_rng(1).bytes(20_000)
SHA = hashlib.sha256(DATA).hexdigest()
OTHER = np.random.default_rng(2).bytes(20_000)
OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n".encode()
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in\n to continue</title></head><body>no</body></html>"
