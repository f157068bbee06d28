"""Snakemake's logger plugin `rltune`: what a run does, one JSON object a line, for `rltune run` and `rltune status`.

Snakemake finds it by the name of this package: ``--logger rltune --logger-rltune-file FILE``. Each line has ``time``
(seconds since 1970) and ``event``: ``job`` (a job starts, or in a dry run would), ``finished``, ``failed`` (with its
logs, a scheduler's among them).
"""

import json
import time
from dataclasses import dataclass, field
from logging import LogRecord
from typing import Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Options of the plugin."""

    # Snakemake reads the type from here, and knows Optional
    file: Optional[str] = field(default=None, metadata={"help": "File that the lines are added to.", "required": True})


class LogHandler(LogHandlerBase):
    """Adds a line to the file for each event of a job."""

    writes_to_stream = False
    writes_to_file = False  # to Snakemake that means a log of its own kind
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def emit(self, record: LogRecord) -> None:
        """Write one event down; others than those of jobs are left out."""
        fields = vars(record)
        match str(fields.get("event") or ""):
            case "job_info":
                told = {
                    "event": "job",
                    "id": fields["jobid"],
                    "rule": fields["rule_name"],
                    "wildcards": dict(fields["wildcards"]),
                    "output": [*map(str, fields["output"])],
                    "log": [*map(str, fields["log"])],
                    "benchmark": fields["benchmark"],
                    "forced": fields["reason"].startswith("Forced"),
                    "reason": fields["reason"],
                }
            case "job_finished":
                told = {"event": "finished", "id": fields["job_id"]}
            case "job_error":
                told = {"event": "failed", "id": fields["jobid"], "logs": [*map(str, fields["log"])]}
            case _:
                return
        with open(self.settings.file, "a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), **told}) + "\n")
