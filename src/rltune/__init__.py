"""RLTune: reinforcement learning and optimisation for GPU-cluster scheduling."""

__version__ = "0.1.0"
