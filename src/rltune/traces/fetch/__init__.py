"""Obtain a trace's raw files: generate them, download them, or find them where the configuration or the user says.

Generated and downloaded files lie in ``<cache>/raw/<trace>/`` next to a ``manifest.json`` with the sha256 of each.
Archives are not unpacked: readers stream what they need out of them.
"""

from rltune.traces.fetch.download import sha256
from rltune.traces.fetch.sources import Manifest, files_in, obtain

__all__ = ["Manifest", "files_in", "obtain", "sha256"]
