"""What the tests of messages about configuration files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_texts import ROOT, Mistake

from rltune.config import RunConfig
from rltune.config.load import load_run, read_block
from rltune.errors import ConfigError


@pytest.fixture
def mistake(tmp_path: Path) -> Mistake:
    """The message a file of this text gets."""

    def read(text: str | bytes, model: type = RunConfig) -> str:
        path = tmp_path / "mine.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_run(path, ROOT) if model is RunConfig else read_block(path, model, ROOT)
        return str(caught.value)

    return read
