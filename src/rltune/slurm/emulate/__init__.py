"""A Slurm cluster of real daemons with made-up GPUs on one machine, for trying and testing; no GPU is computed on."""

from rltune.slurm.emulate.emulation import Emulation

__all__ = ["Emulation"]
