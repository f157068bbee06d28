"""The report's page: one file of HTML that needs nothing else, not even a network."""

from rltune.report.page.build import build

__all__ = ["build"]
