"""Slurm's answers read into records, from JSON of any version or from text."""

from rltune.slurm.as_json import jobs_from_json, nodes_from_json
from rltune.slurm.as_text import jobs_from_text, nodes_from_text

__all__ = ["jobs_from_json", "jobs_from_text", "nodes_from_json", "nodes_from_text"]
