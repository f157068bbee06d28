"""Obtain a trace's raw files: generate them, download them, or find them where the configuration or the user says.

Generated and downloaded files lie in ``<cache>/raw/<trace>/`` beside a ``manifest.json`` with the sha256 of each.
Archives are not unpacked: readers stream what they need out of them.
"""

from rltune.traces.fetch.given import BY_HAND, by_hand, check_given, expand, fingerprint, given_file
from rltune.traces.fetch.manifest import MANIFEST, Manifest, sha256
from rltune.traces.fetch.sources import PATIENCE, obtain

__all__ = [
    "BY_HAND",
    "MANIFEST",
    "PATIENCE",
    "Manifest",
    "by_hand",
    "check_given",
    "expand",
    "fingerprint",
    "given_file",
    "obtain",
    "sha256",
]
