"""What a controller knows of the priorities of single jobs: those that it gave, and those that somebody else has set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rltune.config.slurm import BandConfig

FORMAT = 1


@dataclass(frozen=True)
class Touch:
    """What a job was given."""

    priority: int
    """0 where only its over-subscription was changed."""
    before: int = 0
    """The controller's own priority that it had until then, and has still where this one did not arrive; 0 for none."""
    alone: bool = False
    """Whether it was given whole nodes."""
    missed: int = 0
    """Answers in a row that did not show it waiting with a priority of the controller's, or running."""
    seen: bool = False
    """Whether Slurm has shown it waiting with a priority of the controller's, and not running, held or given back since:
    another priority is somebody else's doing then."""

    def gave(self, priority: int, band: BandConfig) -> bool:
        """Whether a priority may be one that the controller gave this job: any of the band, for one that was sent earlier
        may arrive late; or one of the list, should the band be another one by now."""
        return priority > 0 and (priority in band or priority in (self.priority, self.before))


@dataclass(frozen=True)
class Owned:
    """Whose priorities are whose."""

    touched: dict[int, Touch] = field(default_factory=dict)
    """Job → what the controller gave it."""
    theirs: dict[int, int] = field(default_factory=dict)
    """Job whose priority somebody else has set after the controller → answers in a row that lacked it."""

    def as_json(self) -> dict[str, Any]:
        """The content of touched.json."""
        return {
            "format": FORMAT,
            "jobs": {str(job): asdict(self.touched[job]) for job in sorted(self.touched)},
            "theirs": {str(job): self.theirs[job] for job in sorted(self.theirs)},
        }


def from_json(content: Any) -> Owned:
    """The inverse. Raises ValueError, KeyError, TypeError or AttributeError for what is none of this version."""
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']}, expected {FORMAT}")
    touched = {int(job): _touch(told) for job, told in content["jobs"].items()}
    return Owned(touched, {int(job): int(missed) for job, missed in content.get("theirs", {}).items()})


def _touch(told: Mapping[str, Any]) -> Touch:
    return Touch(
        int(told["priority"]),
        int(told["before"]),
        bool(told["alone"]),
        int(told.get("missed", 0)),
        bool(told.get("seen", False)),
    )
