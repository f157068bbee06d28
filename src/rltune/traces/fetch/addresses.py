"""Addresses that follow from others."""

from __future__ import annotations

import re

_RAW = re.compile(
    r"https://(?:github\.com/(?P<repo>[^/]+/[^/]+)/raw/|raw\.githubusercontent\.com/(?P<repo2>[^/]+/[^/]+)/)"
    r"(?:refs/heads/)?(?P<path>[^?#]+)"
)


def media_address(url: str) -> str | None:
    """Where GitHub keeps the file that a Git-LFS pointer at ``url`` stands for; None for other addresses."""
    if match := _RAW.match(url):
        return f"https://media.githubusercontent.com/media/{match['repo'] or match['repo2']}/{match['path']}"
    return None
