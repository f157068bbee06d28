"""What benchmarks print last and, where the documents show it, write."""

import argparse
import json
from typing import Any

from rltune.files import write_json


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of options with ``--write``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    help_ = "write the JSON object to a file too: the documents read theirs"
    parser.add_argument("--write", metavar="FILE", help=help_)
    return parser


def report(figures: dict[str, Any], file: str | None) -> None:
    """Print the figures as one JSON object, and write them to a file if one is given."""
    print(json.dumps(figures), flush=True)
    if file:
        write_json(file, figures)
