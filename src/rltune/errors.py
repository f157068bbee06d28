"""Errors a user meets: one paragraph that names file, field, what was found and what is expected."""


class RLTuneError(Exception):
    """A mistake in what the user gave (file, value, data); its text is the whole message shown."""

    def _render_traceback_(self) -> list[str]:
        """What notebooks show in place of a traceback (IPython's protocol)."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(RLTuneError, ValueError):
    """A value, key or file of the configuration is wrong. A ValueError, which pydantic's validators may raise."""


class AnswerError(RLTuneError, ValueError):
    """A custom policy or placement answered what cannot be done."""


class DataError(RLTuneError):
    """A trace file is missing, truncated, or not what its configuration says."""


class SlurmError(RLTuneError):
    """Slurm answered with what cannot be read, or its emulation cannot be started."""


class ClusterDied(SlurmError):
    """An emulated cluster failed on its own: daemons ended, hung, or lost their data, without a command to do so."""


class SlurmUnavailable(SlurmError):
    """Slurm does not answer: its commands are absent, its controller is down, or a command took too long."""
