"""A Slurm cluster of real daemons with emulated GPUs on one machine, for trying and testing; no GPU is computed on."""

from rltune.slurm.emulate.emulation import Emulation

__all__ = ["Emulation"]
